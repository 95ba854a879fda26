"""Memory of this process: its peak as the kernel counts it, and what it keeps to use again."""

import ctypes
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
# Parameters of the C library's mallopt.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 256 << 20


def reset_peak() -> None:
    """Forget the peak so far; without permission the peak stays that of the process."""
    try:
        _CLEAR.write_text(_RESET_PEAK)
    except OSError:
        return


def peak_mb() -> float | None:
    """Largest resident size since `reset_peak` in MB (10^6 bytes); None where the kernel does not tell."""
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("VmHWM:"):
            return round(int(line.split()[1]) * 1024 / 1e6, 1)
    return None


def keep_freed() -> None:
    """Let the allocator keep memory that arrays have freed; without the C library's help nothing changes.

    By default every large array is mapped anew, and the kernel clears each of its pages: of reading and
    merging that is a quarter of the time.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, _KEPT_BYTES)
    mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
