"""Variables of the environment, or the files that they name."""

from collections.abc import Callable
from typing import ClassVar

import environ
from django.core.exceptions import ImproperlyConfigured
from environ.fileaware_mapping import FileAwareMapping


class _Files(FileAwareMapping):  # type: ignore[misc]
    def __getitem__(self, key: str) -> str:
        """Editors and `echo` end a file with a line feed, which belongs to no secret."""
        try:
            return str(super().__getitem__(key)).rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            problem = getattr(error, "strerror", None) or "the file is not UTF-8 text"
            text = f"{key}_FILE must name a readable file, got {self.env[f'{key}_FILE']}: {problem}"
            raise ImproperlyConfigured(text) from None


class Env(environ.FileAwareEnv):  # type: ignore[misc]
    """Environment like `environ.Env`; `NAME_FILE=/path` replaces `NAME`, without the line end of the file.

    Meaningless values are refused with their name, since a traceback does not show the line.
    """

    ENVIRON: ClassVar[_Files] = _Files()

    def whole(self, name: str, *, default: int, least: int) -> int:
        """A whole number, `least` or more."""
        return int(self._parsed(name, int, "a whole number", default=default, least=least))

    def number(self, name: str, *, default: float, least: float) -> float:
        """A number, `least` or more."""
        return self._parsed(name, float, "a number", default=default, least=least)

    def choice(self, name: str, *, default: str, among: tuple[str, ...]) -> str:
        """One of a few words."""
        text = str(self.str(name, default=default))
        if text not in among:
            listed = f"{', '.join(among[:-1])} or {among[-1]}"
            raise ImproperlyConfigured(f"{name} must be {listed}, got {text!r}")
        return text

    def _parsed(
        self, name: str, parse: Callable[[str], float], what: str, *, default: float, least: float
    ) -> float:
        text = self.str(name, default=str(default))
        try:
            number = parse(text)
        except ValueError:
            raise ImproperlyConfigured(f"{name} must be {what}, got {text!r}") from None
        if not least <= number < float("inf"):
            raise ImproperlyConfigured(f"{name} must be at least {least}, got {number}")
        return number
