"""Memory and processor time of several processes together.

Memory is the proportional set size: a page that several processes share counts once, in parts.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

import psutil

SAMPLE_S: Final = 0.05


@dataclass(slots=True)
class Peak:
    """Memory seen in a `watched` block, in bytes: at its beginning, and the largest sum since then."""

    idle: int
    highest: int = 0
    samples: int = 0

    @property
    def above_idle_mb(self) -> float:
        """Return the memory above an idle process, in MB of 10^6 bytes."""
        return (self.highest - self.idle) / 1e6


@dataclass(slots=True)
class Watch:
    """Processes that are watched with all of their children; more can be added at any time."""

    roots: list[int] = field(default_factory=list)

    def processes(self) -> Iterator[psutil.Process]:
        """Return the processes that live now."""
        for pid in list(self.roots):
            with suppress(psutil.NoSuchProcess):
                root = psutil.Process(pid)
                yield root
                yield from root.children(recursive=True)


def proportional_set_size(processes: Iterable[psutil.Process]) -> int:
    """Sum over the processes, in bytes; one that has just ended counts nothing."""
    total = 0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            total += process.memory_full_info().pss
    return total


def processor_seconds(processes: Iterable[psutil.Process]) -> float:
    """User and system time that the processes, and those of their children that have ended, used so far."""
    total = 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


@contextmanager
def watched(watch: Watch, *, every_s: float = SAMPLE_S) -> Iterator[Peak]:
    """Sample the memory of the processes again and again while the block runs."""
    peak = Peak(idle=proportional_set_size(watch.processes()))
    ended = threading.Event()
    thread = threading.Thread(target=_sample, args=(watch.processes, peak, ended, every_s))
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def _sample(
    processes: Callable[[], Iterable[psutil.Process]], peak: Peak, ended: threading.Event, every_s: float
) -> None:
    while True:
        peak.highest = max(peak.highest, proportional_set_size(processes()))
        peak.samples += 1
        if ended.wait(every_s):
            return
