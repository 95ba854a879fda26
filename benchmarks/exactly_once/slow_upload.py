"""Send a file as slowly as a bad line would, so that the sender can be killed in the middle.

    python -m benchmarks.exactly_once.slow_upload STUDY FILE SECONDS [more-to-come]

It says `sending` when it begins.
"""

import sys
import time
from pathlib import Path
from typing import BinaryIO

import django

MORE_TO_COME = "more-to-come"


class SlowFile:
    """Reads take so long that the whole takes about `seconds`."""

    def __init__(self, file: BinaryIO, *, size: int, seconds: float) -> None:
        self._file = file
        self._seconds_a_byte = seconds / size

    def read(self, size: int, /) -> bytes:
        """Return the content of the file, read again."""
        data = self._file.read(size)
        time.sleep(len(data) * self._seconds_a_byte)
        return data


def main() -> None:
    django.setup()
    from mobility.uploads import actions as uploads
    from mobility.vault.queries import find_study

    slug, path, seconds = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    size = path.stat().st_size
    sys.stdout.write("sending\n")
    sys.stdout.flush()
    with path.open("rb") as file:
        uploads.receive(
            SlowFile(file, size=size, seconds=seconds),
            study=find_study(slug),
            filename=path.name,
            by="soak",
            more_to_come=MORE_TO_COME in sys.argv,
            bytes_total=size,
        )


if __name__ == "__main__":
    main()
