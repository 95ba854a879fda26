"""Kernels that one process of a run compiles while the others wait and load them.

In a fresh clone all kernels take 50 processor seconds, and each process of a run begins with the same ones.
"""

import fcntl
import os
import time
from pathlib import Path
from typing import Any, Final

import pytest

from tests.migrated import VARIABLE

LONGEST_S: Final = 30.0  # a process with the lock may have failed to compile, and kept it


def once_a_run(patch: pytest.MonkeyPatch) -> None:
    """Let this process wait for a kernel that another one of the run compiles."""
    if VARIABLE not in os.environ:
        return
    from numba.core.caching import FunctionCache  # half a second, which a part of the tests need not

    folder, load, save = Path(os.environ[VARIABLE]), FunctionCache.load_overload, FunctionCache.save_overload
    held: dict[Any, int] = {}  # locks: a kernel is compiled while the one that calls it is

    def load_overload(cache: Any, *given: Any) -> Any:
        found = load(cache, *given)
        if found is None and cache not in held:
            held[cache] = _locked(folder / f"{cache._cache_file._index_name}.lock")
            found = load(cache, *given)
            if found is not None:
                os.close(held.pop(cache))
        return found

    def save_overload(cache: Any, *given: Any) -> None:
        save(cache, *given)
        if cache in held:
            os.close(held.pop(cache))

    patch.setattr(FunctionCache, "load_overload", load_overload)
    patch.setattr(FunctionCache, "save_overload", save_overload)


def _locked(path: Path) -> int:
    descriptor, until = os.open(path, os.O_RDWR | os.O_CREAT, 0o600), time.monotonic() + LONGEST_S
    while time.monotonic() < until:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        else:
            break
    return descriptor
