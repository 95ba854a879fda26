"""Variables of the environment, or the files that they name."""

from typing import ClassVar

import environ
from environ.fileaware_mapping import FileAwareMapping


class _Files(FileAwareMapping):  # type: ignore[misc]
    def __getitem__(self, key: str) -> str:
        """Editors and `echo` end a file with a line feed, which belongs to no secret."""
        return str(super().__getitem__(key)).rstrip("\r\n")


class Env(environ.FileAwareEnv):  # type: ignore[misc]
    """As `environ.Env`; `NAME_FILE=/path` stands for `NAME`, without the line end of the file."""

    ENVIRON: ClassVar[_Files] = _Files()
