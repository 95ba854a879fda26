"""A service: a process group that commands share, and the last of them stops."""

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from mobility.base import locks
from mobility.base.errors import MobilityError
from mobility.base.runtime import private_folder

POLL_S = 0.05
LOG_LINES = 15


class ServiceError(MobilityError):
    """A service did not start, or failed; the text ends with its last words."""


class Service:
    """One program, known by the lock file that all of its processes inherit.

    The lock tells more than a process number: it cannot belong to a stranger, and it is free
    only when the last process of the group is gone.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock: Path = settings.PATHS.run / f"{name}.pid"
        self.log: Path = settings.PATHS.logs / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def is_alive(self) -> bool:
        return locks.is_held(self.lock)

    def start(self, argv: list[str], *, descriptors: tuple[int, ...] = ()) -> None:
        """Run `argv` in its own session: Ctrl-C reaches us, and we decide the order of stopping."""
        private_folder(self.log.parent)
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "mobility.settings",
            "MOBILITY_DATA_DIR": str(settings.MOBILITY_DATA_DIR),
        }
        if self.log.exists():  # the one before may hold why a batch failed
            self.log.replace(self.log.with_suffix(".log.1"))
        with locks.opened(self.lock) as lock, self.log.open("wb") as log:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                pass_fds=(lock, *descriptors), cwd=settings.BASE_DIR, env=environment,
            )  # fmt: skip
            os.ftruncate(lock, 0)
            os.write(lock, str(self._process.pid).encode())

    def wait_until(self, answers: Callable[[], bool], *, timeout_s: float) -> None:
        """Return when `answers()` is true."""
        deadline = time.monotonic() + timeout_s
        while not answers():
            if not self.is_alive():
                raise ServiceError(f"{self.name} stopped during start-up\n{self.last_words()}")
            if time.monotonic() > deadline:
                problem = f"{self.name} has not responded within {timeout_s:.0f} s"
                raise ServiceError(f"{problem}\n{self.last_words()}")
            time.sleep(POLL_S)

    def stop(self, *, grace_s: float = 10.0) -> None:
        """Ask the leader, which ends its children in good order; anyone who remains is killed."""
        if self.is_alive():
            pid = int(self.lock.read_text())
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            if not self._gone(within_s=grace_s):
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                self._gone(within_s=grace_s)
        if self._process is not None:
            self._process.wait()

    def last_words(self) -> str:
        """The end of the log, and where the rest is."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        lines = [f"  | {line}" for line in text.splitlines()[-LOG_LINES:]]
        return "\n".join([f"  last lines of {self.log}:", *lines])

    def _gone(self, *, within_s: float) -> bool:
        deadline = time.monotonic() + within_s
        while self.is_alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True
