"""Memory of this process: its peak as the kernel counts it, and what it keeps to use again."""

import ctypes
import resource
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
# Parameters of the C library's mallopt.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 256 << 20
_limit: dict[str, int] = {}  # of this process: what it was given in MB, and where that ends in bytes


def reset_peak() -> None:
    """Forget the peak so far; without permission the peak stays that of the process."""
    try:
        _CLEAR.write_text(_RESET_PEAK)
    except OSError:
        return


def peak_mb() -> float | None:
    """Largest resident size since `reset_peak` in MB (10^6 bytes); None where the kernel does not tell."""
    peak = _told_bytes("VmHWM:")
    return None if peak is None else round(peak / 1e6, 1)


def limit(megabytes: int) -> None:
    """Limit this process to `mb` MB (10^6 bytes) more than now; more raises MemoryError.

    Counted is what is asked for privately (heap, arrays, stacks of threads), not files and shared libraries.
    0 leaves it unlimited, and so does a kernel that does not tell how much there is now.
    """
    held = _told_bytes("VmData:")
    if not megabytes or held is None:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = held + megabytes * 10**6
    _limit["given_mb"] = megabytes
    _limit["soft"] = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    hold_limit()


def limit_mb() -> int | None:
    """MB that this process was given by `limit`; None where it has no limit."""
    return _limit.get("given_mb")


def hold_limit() -> None:
    """Let the limit hold again that this process was given, if any."""
    if "soft" in _limit:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (_limit["soft"], hard))


def lift_limit() -> None:
    """Let this process say that it met its limit: that needs memory, too."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def _told_bytes(what: str) -> int | None:
    """Return a size from the status that the kernel keeps of this process."""
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(what)), None)


def keep_freed() -> None:
    """Let the allocator keep memory that arrays have freed; without the C library's help nothing changes.

    By default every large array is mapped again, and the kernel clears each of its pages: of reading and
    merging that is a quarter of the time.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, _KEPT_BYTES)
    mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
