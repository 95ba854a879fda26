"""Peak memory of this process, as the kernel counts it."""

from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


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
