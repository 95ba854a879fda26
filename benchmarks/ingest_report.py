"""Tables of the ingest benchmark; docs/performance.md has their main columns."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from benchmarks.ingest_peers import DOERS, GROUPERS, PARSERS

FRAME_BYTES: Final = 4 << 20  # as staging seals them
TIMES: Final = 64
PACKAGES: Final = ("numpy", "numba", "pyarrow", "polars", "pandas", "multi-freq-ldpy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """Cost of a batch.

    batch_s : from the first task to the end of the batch
    end_to_end_s : of the command, with its start, reading and sealing of the file
    cpu_s : of the command and the worker's processes
    idle_mb, peak_mb : proportional set size of the worker's processes before, and of all processes above that
    """

    name: str
    rows: int
    file_bytes: int
    batch_s: float
    end_to_end_s: float
    cpu_s: float
    idle_mb: float
    peak_mb: float

    @property
    def speed(self) -> float:
        """Rows a second of the batch."""
        return self.rows / self.batch_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """Time of another library for a file."""

    name: str
    form: str
    rows: int
    seconds: float
    peak_mb: float

    @property
    def speed(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds


def formats(ingested: Sequence[Ingested], parsed: Sequence[Parsed]) -> str:
    """A row per format: ours, then others at the same file with how many times as fast they are."""
    others = [*PARSERS, *GROUPERS]
    names = ["file", "MB", "M rows/s", "with sealing and start", "CPU ns a row", "peak MB", *others]
    rows = []
    for ours in ingested:
        cells = [_one_of(parsed, name=name, form=ours.name) for name in others]
        rows.append([ours.name, f"{ours.file_bytes / 1e6:,.0f}", *_speeds(ours), *_compared(cells, ours)])
    first = ingested[0]
    lines = [_table(names, rows), ""]
    for name in DOERS:
        job = _one_of(parsed, name=name, form="csv")
        lines.append(
            f"{name}, the job on {job.rows:,} rows: {_millions(job.speed)} M rows/s, {job.peak_mb:,.0f} MB; "
            f"ours ({first.name}) is {first.speed / job.speed:,.0f} times as fast."
        )
    return "\n".join(lines)


def pairs(ingested: Sequence[Ingested]) -> str:
    """Return a row per run, with the processor time of every second one relative to the one before."""
    names = ["study", "M rows/s", "with sealing and start", "CPU ns a row", "peak MB", "CPU"]
    ratios = [later.cpu_s / first.cpu_s for first, later in zip(ingested[::2], ingested[1::2], strict=True)]
    rows = [
        [each.name, *_speeds(each), f"{ratios[place // 2]:.2f}x" if place % 2 else ""]
        for place, each in enumerate(ingested)
    ]
    return f"{_table(names, rows)}\n\nMedian of the pairs: {median(ratios):.2f}x."


def growth(ingested: Sequence[Ingested]) -> str:
    """Return a row per size, with time and memory relative to the first."""
    names = ["rows", "M rows/s", "with sealing and start", "CPU ns a row", "peak MB", "time", "memory"]
    first = ingested[0]
    rows = [
        [
            f"{each.rows:,}",
            *_speeds(each),
            f"{each.batch_s / first.batch_s:.1f}x for {each.rows / first.rows:.0f}x the rows",
            f"{each.peak_mb / first.peak_mb:.1f}x",
        ]
        for each in ingested
    ]
    return _table(names, rows)


def processes(ingested: Sequence[Ingested]) -> str:
    """One process, then two."""
    one, two = ingested
    names = ["processes", "M rows/s", "with sealing and start", "CPU ns a row", "peak MB", "speed"]
    rows = [
        [count, *_speeds(each), f"{each.speed / one.speed:.2f}x"] for count, each in (("1", one), ("2", two))
    ]
    return _table(names, rows)


def small(timed: Sequence[tuple[float, float]]) -> str:
    """Seconds of each batch from its first task to its end, and of its command."""
    rows = [
        ["processes that have just started" if i == 0 else "warm", f"{batch:.2f}", f"{command:.2f}"]
        for i, (batch, command) in enumerate(timed)
    ]
    return _table(("worker", "batch s", "command s"), rows)


def stages(timed: Sequence[tuple[str, float]], *, rows: int) -> str:
    """Processor time of each stage; `timed` holds what, and nanoseconds a row."""
    total = sum(nanoseconds for _, nanoseconds in timed)
    body = [[what, f"{each:.1f}", f"{100 * each / total:.0f} %"] for what, each in timed]
    body.append(["together", f"{total:.0f}", ""])
    return _table([f"stage, of {rows:,} rows", "CPU ns a row", "share"], body)


def machine(*, database: str) -> str:
    """Describe the machine of the measurement."""
    model = next(
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    )
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    load = os.getloadavg()[2]
    return (
        f"{model}, {os.cpu_count()} cores, load {load:.1f} in the last 15 minutes, {database}; {packages}.\n"
        f"One core of it: {_gigabytes_a_second(_first_touch)} GB/s into memory that is new to the process, "
        f"{_gigabytes_a_second(_copy)} GB/s copied, {_gigabytes_a_second(_seal)} GB/s AES-256-GCM."
    )


def _gigabytes_a_second(job: Callable[[], int]) -> str:
    """Speed of a job that returns how many bytes it did: what the figures above depend on."""
    started = time.perf_counter()
    size = job()
    return f"{size / 1e9 / (time.perf_counter() - started):.1f}"


def _first_touch() -> int:
    """A virtual machine may have to ask its host for every page."""
    size = 1 << 30
    np.empty(size, np.uint8)[::4096] = 1
    return size


def _copy() -> int:
    source, target = np.ones(FRAME_BYTES, np.uint8), np.ones(FRAME_BYTES, np.uint8)
    for _ in range(TIMES):
        target[:] = source
    return TIMES * FRAME_BYTES


def _seal() -> int:
    cipher, plain, sealed = AESGCM(bytes(32)), bytes(FRAME_BYTES), bytearray(FRAME_BYTES + 16)
    for _ in range(TIMES):
        cipher.encrypt_into(bytes(12), plain, None, sealed)
    return TIMES * FRAME_BYTES


def _speeds(each: Ingested) -> list[str]:
    return [
        _millions(each.speed),
        _millions(each.rows / each.end_to_end_s),
        f"{each.cpu_s / each.rows * 1e9:.0f}",
        f"{each.peak_mb:,.0f}",
    ]


def _compared(others: Sequence[Parsed], ours: Ingested) -> list[str]:
    return [
        f"{_millions(each.speed)} ({each.speed / ours.speed:.1f}x, {each.peak_mb:,.0f} MB)" for each in others
    ]


def _one_of(parsed: Sequence[Parsed], *, name: str, form: str) -> Parsed:
    return next(each for each in parsed if each.name == name and each.form == form)


def _millions(speed: float) -> str:
    return f"{speed / 1e6:.2f}" if speed < 1e6 else f"{speed / 1e6:.1f}"


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
