"""File locks: they vanish with the process that holds them, so a crash leaves nothing to clean up."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mobility.base.runtime import private_folder


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """Descriptor of the lock file `path`."""
    private_folder(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def exclusive(path: Path, *, waits: bool = True) -> Iterator[None]:
    """No one else holds `path` inside this block.

    Raises
    ------
    BlockingIOError : someone does, and this is not to wait
    """
    with opened(path) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def share_for_life(path: Path) -> None:
    """Hold `path` with others until this process and all that it forks are gone. It waits for its turn."""
    private_folder(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)  # never closed
    fcntl.flock(descriptor, fcntl.LOCK_SH)


def is_held(path: Path) -> bool:
    """Return whether another process holds `path` exclusively."""
    return not _try_lock(path, fcntl.LOCK_SH)


def is_used(path: Path) -> bool:
    """Return whether another process holds `path` at all."""
    return not _try_lock(path, fcntl.LOCK_EX)


def _try_lock(path: Path, kind: int) -> bool:
    if not path.exists():
        return True
    with opened(path) as descriptor:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
