"""Speed of sanitising and counting, compared with other libraries that do the same job in the same run.

Six indicators with 3, 3, 8, 12, 37 and 11 values, epsilon 1: every subscriber's values in, counts per value
out. One thread: subscribers per second of processor time, the best of the runs (the machine may be busy
otherwise). Two threads: of elapsed time, half of the subscribers each. Libraries that loop over subscribers
take few of them: their speed does not depend on the number. Ours gives everyone one answer permanently; the
others remember nothing.

The noise is AES, one block or more for each answer, so the speed of AES bounds that of a mechanism: the table
says how many blocks a subscriber takes, and which part of the bound is reached.

    python -m benchmarks.sanitise --subscribers 2000000 --markdown
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

import ldp
from benchmarks.jobs import JOBS, Counts, Job, Subscribers, make_subscribers
from benchmarks.peers import Peer, libraries
from ldp.kernels.entropy import BUFFER_BLOCKS, BlockBuffer

KEY: Final = bytes(16)
THREADS: Final = 2

Clock = Callable[[], float]
Row = Sequence[str]
Run = Callable[[], object]


class CountingBuffer(BlockBuffer):
    """Counts the blocks that the cipher is given."""

    n_blocks = 0

    def seal(self, n_blocks: int) -> Any:
        """Behave like the original."""
        CountingBuffer.n_blocks += n_blocks
        return super().seal(n_blocks)


class CountingPrf(ldp.KeyedPrf):
    """Keyed bits whose blocks are counted."""

    def buffer(self, n_blocks: int) -> BlockBuffer:
        """Behave like the original."""
        return CountingBuffer(self._cipher, n_blocks)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--subscribers", type=int, default=2_000_000)
    parser.add_argument("--few", type=int, default=20_000, help="subscribers where they are looped over")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--markdown", action="store_true", help="tables as in docs/performance.md")
    options = parser.parse_args()
    people, few = make_subscribers(options.subscribers), make_subscribers(options.few)
    aes, others = aes_speed(runs=options.runs), libraries()
    names = [library.name for library in others]
    rows = [["million subscribers/s", "1 thread", "2 threads", "blocks", "of AES", *names]]
    for name, job in JOBS.items():
        one, cells = ours(job, people, aes=aes, runs=options.runs)
        for library in others:
            sample, runs = (few, 1) if library.loops else (people, options.runs)
            cells.append(theirs(library.jobs.get(name), sample, ours=one, runs=runs))
        rows.append([name, *cells])
    write(rows, is_markdown=options.markdown)
    write(machine(aes), is_markdown=options.markdown)


def ours(job: Job, people: Subscribers, *, aes: float, runs: int) -> tuple[float, list[str]]:
    """Speed on one thread; and as cells: that, on two threads, blocks per subscriber, share of the bound."""
    one = speed(partial(job, people, ldp.KeyedPrf(KEY)), people, runs=runs)
    two = speed(partial(on_threads, job, people), people, runs=runs, clock=time.perf_counter)
    blocks = blocks_each(job, people.part(slice(0, 100_000)))
    return one, [f"{one:.1f}", f"{two:.1f}", f"{blocks:.1f}", f"{one * blocks / aes:.0%}"]


def theirs(job: Peer | None, people: Subscribers, *, ours: float, runs: int) -> str:
    """Speed on one thread, and how many times as fast ours is."""
    if job is None:
        return "-"
    found = speed(partial(job, people), people, runs=runs)
    return f"{found:.3f} ({ours / found:,.0f}x)"


def on_threads(job: Job, people: Subscribers) -> Counts:
    """Counts by threads with a part of the subscribers each: the same as by one."""
    ends = np.linspace(0, people.pseudonyms.size, THREADS + 1).astype(int)
    prf = ldp.KeyedPrf(KEY)
    with ThreadPoolExecutor(THREADS) as pool:
        parts = pool.map(lambda ends: job(people.part(slice(*ends)), prf), pairwise(ends.tolist()))
        return [np.sum(counts, axis=0) for counts in zip(*parts, strict=True)]


def blocks_each(job: Job, people: Subscribers) -> float:
    """AES blocks per subscriber."""
    CountingBuffer.n_blocks = 0
    job(people, CountingPrf(KEY))
    return CountingBuffer.n_blocks / people.pseudonyms.size


def aes_speed(*, runs: int) -> float:
    """Million AES blocks per second on one thread, at the size that the mechanisms use."""
    buffer, times = ldp.KeyedPrf(KEY).buffer(BUFFER_BLOCKS), 500

    def seal() -> None:
        for _ in range(times):
            buffer.seal(BUFFER_BLOCKS)

    return times * BUFFER_BLOCKS / seconds(seal, runs=runs) / 1e6


def speed(run: Run, people: Subscribers, *, runs: int, clock: Clock = time.process_time) -> float:
    """Million subscribers per second."""
    return people.pseudonyms.size / seconds(run, runs=runs, clock=clock) / 1e6


def seconds(run: Run, *, runs: int, clock: Clock = time.process_time) -> float:
    """Least time of the runs, after one that compiles."""
    run()
    times = []
    for _ in range(runs):
        started = clock()
        run()
        times.append(clock() - started)
    return min(times)


def machine(aes: float) -> list[Row]:
    """Describe the machine of the measurement, and time the start of a fresh process."""
    with tempfile.TemporaryDirectory() as empty:
        without_cache = cold_start(NUMBA_CACHE_DIR=empty)
        with_cache = min(cold_start(NUMBA_CACHE_DIR=empty) for _ in range(3))
    return [
        ["machine", ""],
        ["processor", f"{processor_name()}, {os.cpu_count()} cores"],
        ["AES-128 blocks, 1 thread", f"{aes:.0f} million/s"],
        ["import and first call of each kernel, compiled before", f"{with_cache:.1f} s"],
        ["the same, nothing compiled", f"{without_cache:.1f} s"],
    ]


def cold_start(**environment: str) -> float:
    """Seconds of processor time of a fresh process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "benchmarks.cold_start"], check=True, env=os.environ | environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def processor_name() -> str:
    """Model, where the system tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


def write(rows: Sequence[Row], *, is_markdown: bool) -> None:
    """Print a table, its first row the heading."""
    if is_markdown:
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "|" + "---|" * len(rows[0]))
    else:
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
        lines = ["  ".join(cells).rstrip() for cells in padded]
    sys.stdout.write("\n".join(lines) + "\n\n")


if __name__ == "__main__":
    main()
