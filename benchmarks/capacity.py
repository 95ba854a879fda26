"""Estimate the capacity for a number of subscribers from measured costs of batches.

    python -m benchmarks.capacity --subscribers 100000000 --rows-per-subscriber 15
    python -m benchmarks.scale_out --json benchmarks/capacity_measured.json    # measure again

Constants are not typed here: they are fitted to three of the measured batches, and their predictions are
compared with all others, whose files, subscribers or workers are different. Prints the constants, the errors
and the needs. Ends with 1 if a prediction of the work (processor time of workers, log of the databases) is
off by more than a third. A country is far outside of what was measured: the last lines say how far.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MEASURED: Final = Path(__file__).with_name("capacity_measured.json")
N_FITTED: Final = 3  # the first batches of one worker: constants come from them
CHUNK_BYTES: Final = 64 << 20  # MOBILITY_CHUNK_BYTES
CHUNKS_WANTED: Final = 8  # of a file that is too small for chunks of that size
MIN_CHUNK_BYTES, GRAIN_BYTES = 8 << 20, 4 << 20
SHARD_SUBSCRIBERS: Final = 100_000  # of a shard, as long as there may be more shards
SHARDS_MIN, SHARDS_MAX = 4, 1024
TOLERANCE: Final = 1 / 3
BUSY: Final = 0.6  # share of the processors' time that is planned for


def chunks_of(file_bytes: int) -> int:
    """Chunks that a file of plain text is cut into (a test compares mobility.batches.reading)."""
    wanted = min(max(file_bytes // CHUNKS_WANTED, MIN_CHUNK_BYTES), CHUNK_BYTES)
    return max(math.ceil(file_bytes / (wanted // GRAIN_BYTES * GRAIN_BYTES)), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A batch to be, or several alike: what the model takes.

    file_bytes, subscribers : of all files together
    shards : of the study; every file brings each up to date
    """

    workers: int
    rows: int
    file_bytes: int
    subscribers: int
    shards: int
    files: int = 1

    @property
    def tasks(self) -> int:
        """Chunks that are read and shards that are brought up to date."""
        return self.files * (chunks_of(math.ceil(self.file_bytes / self.files)) + self.shards)

    @classmethod
    def of(cls, measured: Mapping[str, Any]) -> "Work":
        """The work of a measured batch."""
        names = ("workers", "rows", "file_bytes", "subscribers", "shards")
        return cls(**{name: measured[name] for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """A quantity as a sum: so much for a row, for a subscriber, for a task."""

    per_row: float = 0.0
    per_subscriber: float = 0.0
    per_task: float = 0.0

    def of(self, work: Work) -> float:
        """Return the needs of a batch."""
        return self.per_row * work.rows + self.per_subscriber * work.subscribers + self.per_task * work.tasks


# The inputs of each quantity.
SHAPES: Final[Mapping[str, tuple[str, ...]]] = {
    "worker_cpu_s": ("per_row", "per_subscriber", "per_task"),
    "database_cpu_s": ("per_subscriber", "per_task"),
    "wal_bytes": ("per_subscriber", "per_task"),
    "stored_bytes": ("per_subscriber",),
    "commits": ("per_task",),
    "messages": ("per_task",),
    "received": ("per_row", "per_task"),
    "sent": ("per_row", "per_subscriber"),
}
WORKLOADS: Final[Mapping[str, Callable[[Work], float]]] = {
    "per_row": lambda work: work.rows,
    "per_subscriber": lambda work: work.subscribers,
    "per_task": lambda work: work.tasks,
}
WORDS: Final[Mapping[str, str]] = {
    "worker_cpu_s": "processor time of workers, s",
    "database_cpu_s": "processor time of databases, s",
    "wal_bytes": "log of the databases (WAL), bytes",
    "stored_bytes": "growth of the vault, bytes",
    "commits": "commits",
    "messages": "messages of the broker",
    "received": "received by workers, bytes",
    "sent": "sent by workers, bytes",
    "rows_per_second": "rows a second",
}
JUDGED: Final = ("worker_cpu_s", "wal_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Constants of a machine.

    costs : by quantity
    fixed_s : of a batch, of any size
    waiting : seconds that a batch takes for each second of processors that its workers need
    peak_mb : memory of a worker with one process
    """

    costs: Mapping[str, Cost]
    fixed_s: float
    waiting: float
    peak_mb: float

    def predict(self, work: Work) -> dict[str, float]:
        """Every quantity of a batch, and how fast it is."""
        found = {name: cost.of(work) for name, cost in self.costs.items()}
        seconds = self.fixed_s + self.waiting * found["worker_cpu_s"] / work.workers
        return found | {"rows_per_second": work.rows / seconds}


def quantities(measured: Mapping[str, Any]) -> dict[str, float]:
    """Return the quantities of a measured batch, by the names of the model."""
    sums = {"received": sum(measured["worker_received"]), "sent": sum(measured["worker_sent"])}
    speed = {"rows_per_second": measured["rows"] / measured["batch_s"]}
    return {name: float(measured[name]) for name in SHAPES if name in measured} | sums | speed


def split(
    batches: Sequence[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Batches that constants come from, and those that predictions are compared with."""
    fitted = [each for each in batches if each["workers"] == 1][:N_FITTED]
    return fitted, [each for each in batches if each not in fitted]


def fit(batches: Sequence[Mapping[str, Any]]) -> Model:
    """Constants by least squares of relative errors, none below zero.

    Raises
    ------
    ValueError : too few batches of one worker
    """
    chosen, _ = split(batches)
    if len(chosen) < N_FITTED:
        raise ValueError(f"{N_FITTED} batches of one worker are needed, got {len(chosen)}")
    works = [Work.of(each) for each in chosen]
    seen = [quantities(each) for each in chosen]
    costs = {name: _cost(name, works, [each[name] for each in seen]) for name in SHAPES}
    cpu = np.array([[1.0, costs["worker_cpu_s"].of(work)] for work in works])
    fixed_s, waiting = _least_squares(cpu, np.array([each["batch_s"] for each in chosen]))
    peak_mb = max(each["peak_mb"] for each in batches)
    return Model(costs=costs, fixed_s=fixed_s, waiting=waiting, peak_mb=peak_mb)


def _cost(name: str, works: Sequence[Work], values: Sequence[float]) -> Cost:
    parts = SHAPES[name]
    table = np.array([[WORKLOADS[part](work) for part in parts] for work in works], np.float64)
    found = _least_squares(table, np.array(values, np.float64))
    return Cost(**dict(zip(parts, found, strict=True)))


def _least_squares(table: NDArray[np.float64], values: NDArray[np.float64]) -> list[float]:
    """Coefficients, none negative: those that would be are left out, the most negative one first."""
    weights = 1 / np.maximum(np.abs(values), 1e-12)
    scaled, target = table * weights[:, None], values * weights
    used = list(range(table.shape[1]))
    while used:
        found, *_ = np.linalg.lstsq(scaled[:, used], target, rcond=None)
        if found.min() >= 0:
            break
        used.pop(int(found.argmin()))
    result = [0.0] * table.shape[1]
    for place, value in zip(used, found if used else [], strict=True):
        result[place] = float(value)
    return result


def errors(model: Model, batches: Sequence[Mapping[str, Any]]) -> list[tuple[Work, dict[str, float]]]:
    """Relative errors for batches that no constant comes from; +0.1 = predicted a tenth too much."""
    found = []
    for measured in split(batches)[1]:
        predicted, seen = model.predict(Work.of(measured)), quantities(measured)
        relative = {name: predicted[name] / seen[name] - 1 for name in predicted if seen[name]}
        found.append((Work.of(measured), relative))
    return found


def shards_of(subscribers: int) -> int:
    """Return the shards of a study that announces `subscribers` (a test compares mobility.plans.studies)."""
    needed = max(math.ceil(subscribers / SHARD_SUBSCRIBERS), SHARDS_MIN)
    return min(1 << (needed - 1).bit_length(), SHARDS_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Capacity for one day.

    cores : of workers, busy to BUSY within the hours; database_cores also
    staging_bytes : at most, if all of the day's files lay there at once
    """

    rows: int
    shards: int
    tasks: int
    cpu_hours: float
    cores: float
    database_cores: float
    memory_gb: float
    wal_bytes: float
    wal_bytes_per_s: float
    commits: float
    stored_bytes: float
    network_bytes: float
    network_bytes_per_s: float
    staging_bytes: float
    messages: float


def needs(
    model: Model, *, subscribers: int, rows_per_subscriber: int, row_bytes: int, hours: float, files: int
) -> Needs:
    """Return the capacity for a day of `subscribers`, all present, processed within some hours.

    Parameters
    ----------
    files : that the day comes in; each brings every shard up to date
    """
    rows = subscribers * rows_per_subscriber
    shards = shards_of(subscribers)
    work = Work(
        workers=1, rows=rows, file_bytes=rows * row_bytes, subscribers=subscribers * files,
        shards=shards, files=files,
    )  # fmt: skip
    found = model.predict(work)
    seconds = hours * 3600
    cores = found["worker_cpu_s"] / seconds / BUSY
    network = found["received"] + found["sent"]
    return Needs(
        rows=rows, shards=shards, tasks=work.tasks, cpu_hours=found["worker_cpu_s"] / 3600, cores=cores,
        database_cores=found["database_cpu_s"] / seconds / BUSY,
        memory_gb=math.ceil(cores) * model.peak_mb / 1000,
        wal_bytes=found["wal_bytes"], wal_bytes_per_s=found["wal_bytes"] / seconds, commits=found["commits"],
        stored_bytes=found["stored_bytes"], network_bytes=network, network_bytes_per_s=network / seconds,
        staging_bytes=rows * row_bytes + found["sent"], messages=found["messages"],
    )  # fmt: skip


def tables(
    model: Model, checked: Sequence[tuple[Work, dict[str, float]]], day: Needs, *, hours: float
) -> str:
    """Constants, errors and needs; docs/scaling.md has the main ones."""
    lines = ["| quantity | a row | a subscriber | a task |", "| --- | --- | --- | --- |"]
    for name, cost in model.costs.items():
        cells = [f"{each:.3g}" if each else "" for each in (cost.per_row, cost.per_subscriber, cost.per_task)]
        lines.append(f"| {WORDS[name]} | {' | '.join(cells)} |")
    heads = ["workers", "rows", "subscribers", *WORDS.values()]
    lines += [
        "",
        f"A batch takes {model.fixed_s:.1f} s, and {model.waiting:.2f} s for each second of processors that",
        "its workers need, divided by their number. "
        f"A worker with one process has {model.peak_mb:,.0f} MB at most.",
        "",
        f"| {' | '.join(heads)} |",
        "| --- " * len(heads) + "|",
    ]
    for work, relative in checked:
        cells = [f"{100 * relative[name]:+.0f} %" if name in relative else "" for name in WORDS]
        lines.append(f"| {work.workers} | {work.rows:,} | {work.subscribers:,} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_needs_lines(day, hours=hours)])


def _needs_lines(day: Needs, *, hours: float) -> list[str]:
    facts = {
        "rows": f"{day.rows:,}",
        "shards; tasks": f"{day.shards:,}; {day.tasks:,}",
        "processor time of workers": f"{day.cpu_hours:,.2f} hours",
        f"cores of workers, for {hours:g} hours, {100 * BUSY:.0f} % busy": f"{day.cores:,.2f}",
        "cores of databases, likewise": f"{day.database_cores:,.2f}",
        "memory of workers": f"{day.memory_gb:,.1f} GB",
        "log of the databases (WAL)": f"{day.wal_bytes / 1e9:,.1f} GB, {day.wal_bytes_per_s / 1e6:,.1f} MB/s",
        "commits": f"{day.commits:,.0f}, {day.commits / hours / 3600:,.1f}/s",
        "growth of the vault at most": f"{day.stored_bytes / 1e9:,.1f} GB",
        "network of workers": f"{day.network_bytes / 1e9:,.0f} GB, {day.network_bytes_per_s / 1e6:,.0f} MB/s",
        "staging at most": f"{day.staging_bytes / 1e9:,.0f} GB",
        "messages of the broker": f"{day.messages:,.0f}",
    }
    return ["| a day | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in facts.items())]


def reach(day: Needs, batches: Sequence[Mapping[str, Any]], *, subscribers: int) -> str:
    """Describe in words how far a day is outside of the measured range."""
    rows, shards = (max(each[name] for each in batches) for name in ("rows", "shards"))
    fullest = max(each["subscribers"] / each["shards"] for each in batches)
    return (
        f"of the largest measured batches: {day.rows / rows:,.0f} times the rows, "
        f"{day.shards / shards:,.0f} times the shards;\n"
        f"{subscribers / day.shards:,.0f} subscribers a shard, measured are up to {fullest:,.0f}\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--subscribers", type=int, default=100_000_000)
    parser.add_argument("--rows-per-subscriber", type=int, default=15)
    parser.add_argument("--row-bytes", type=int, default=74)
    parser.add_argument("--hours", type=float, default=8.0, help="in which a day must be taken in")
    parser.add_argument("--files", type=int, default=1, help="that a day comes in")
    parser.add_argument("--measured", type=Path, default=MEASURED, help="what scale_out --json has written")
    options = parser.parse_args()
    batches = json.loads(options.measured.read_text())
    model = fit(batches)
    checked = errors(model, batches)
    day = needs(
        model, subscribers=options.subscribers, rows_per_subscriber=options.rows_per_subscriber,
        row_bytes=options.row_bytes, hours=options.hours, files=options.files,
    )  # fmt: skip
    sys.stdout.write(tables(model, checked, day, hours=options.hours) + "\n")
    worst = max((abs(relative[name]) for _, relative in checked for name in JUDGED), default=math.inf)
    sys.stdout.write(f"\n{reach(day, batches, subscribers=options.subscribers)}")
    sys.stdout.write(f"\nworst error of processor time of workers and log: {100 * worst:.0f} %\n")
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
