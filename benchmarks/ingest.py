"""Speed and memory of `manage.py ingest`, and what other libraries do with the same files in the same run.

    python -m benchmarks.ingest [--rows 20000000] [--parts formats growth ... slots] [--postgres]

Prints tables; docs/performance.md has their main columns. Files are written to a temporary folder (TMPDIR;
100 million rows take 20 GB with what is staged) and removed. Every batch is checked against what its file
truly holds.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import ingest_report, ingest_stages
from benchmarks.ingest_files import FORMATS, ROWS_PER_SUBSCRIBER, Format, Truth, write_csv
from benchmarks.ingest_peers import DOERS, GROUPERS, PARSERS
from benchmarks.ingest_report import Ingested, Parsed
from benchmarks.ingest_study import write_study
from benchmarks.installation import ROOT, Installation
from benchmarks.memory import Watch, processor_seconds, watched

PARTS: Final = ("formats", "growth", "processes", "small", "stages", "slots")
GROWTH: Final = (0.1, 1, 5)  # of the rows: 2, 20 and 100 million
WARM_ROWS: Final = 2_000_000
JOB_ROWS: Final = 1_000_000  # of what loops over people in Python
SMALL_ROWS, SMALL_TIMES = 1000, 5
PAIRS: Final = 3


class Bench:
    """One installation, and its studies.

    Parameters
    ----------
    folder : for files and the installation
    processes : of its worker
    """

    def __init__(self, folder: Path, installation: Installation, *, processes: int) -> None:
        self.folder = folder
        self.processes = processes
        self._installation = installation
        self._is_warm: set[tuple[str, bool]] = set()
        self._n_studies = 0

    def ingest(self, path: Path, truth: Truth, *, form: Format, has_slots: bool = False) -> Ingested:
        """Take a file into fresh studies, after a smaller one of its format: once for time, once for memory.

        Raises
        ------
        SystemExit : a batch does not hold what the file holds
        """
        self._warm_up(form, rows=min(WARM_ROWS, truth.rows), has_slots=has_slots)
        truth = truth.at_any_hour() if has_slots else truth
        say(f"ingesting {path.name}, {truth.rows:,} rows, {self.processes} processes")
        watch = Watch([worker.pid for worker in self._installation.workers])
        subscribers = truth.rows // ROWS_PER_SUBSCRIBER
        slugs = [self._new_study(subscribers=subscribers, has_slots=has_slots) for _ in range(2)]
        cpu_before = processor_seconds(watch.processes()) + children_seconds()
        started = time.perf_counter()
        batch = self._take_in(slugs[0], path, truth, watch)
        end_to_end_s = time.perf_counter() - started
        cpu_s = processor_seconds(watch.processes()) + children_seconds() - cpu_before
        # Looking at memory takes time: the first run went without.
        with watched(watch) as peak:
            self._take_in(slugs[1], path, truth, watch)
        return Ingested(
            name="with slots" if has_slots else form.name,
            rows=truth.rows,
            file_bytes=path.stat().st_size,
            batch_s=batch["seconds"],
            end_to_end_s=end_to_end_s,
            cpu_s=cpu_s,
            idle_mb=peak.idle / 1e6,
            peak_mb=peak.above_idle_mb,
        )

    def ingest_small(self, path: Path, truth: Truth) -> tuple[float, float]:
        """Seconds of a batch, and of its command, in a fresh study; processes are as they are."""
        slug = self._new_study(subscribers=truth.rows // ROWS_PER_SUBSCRIBER)
        started = time.perf_counter()
        batch = self._take_in(slug, path, truth, Watch())
        return batch["seconds"], time.perf_counter() - started

    def _take_in(self, slug: str, path: Path, truth: Truth, watch: Watch) -> dict[str, Any]:
        with self._installation.command("ingest", slug, str(path)) as command:
            watch.roots.append(command.pid)
            output, errors = command.communicate()
        watch.roots.remove(command.pid)
        if command.returncode != 0:
            raise SystemExit(f"ingest of {path.name} failed\n{errors}")
        batch: dict[str, Any] = json.loads(output)
        check(batch, truth)
        return batch

    def _warm_up(self, form: Format, *, rows: int, has_slots: bool) -> None:
        """Let every process load its kernels, for this format and with or without slots."""
        if (form.name, has_slots) in self._is_warm:
            return
        self._is_warm.add((form.name, has_slots))
        plain = self.folder / "warm.csv"
        truth = write_csv(plain, rows=rows)
        path = form.make(plain)
        slug = self._new_study(subscribers=rows // ROWS_PER_SUBSCRIBER, has_slots=has_slots)
        expected = form.truth_of(truth)
        self._take_in(slug, path, expected.at_any_hour() if has_slots else expected, Watch())
        for file in {plain, path}:
            file.unlink()

    def _new_study(self, *, subscribers: int, has_slots: bool = False) -> str:
        self._n_studies += 1
        slug = f"bench-{self._n_studies}"
        folder = self.folder / "studies"
        study = write_study(folder, slug=slug, subscribers=subscribers, has_slots=has_slots)
        self._installation.manage("create_study", str(study))
        return slug


def check(batch: dict[str, Any], truth: Truth) -> None:
    """Compare what a batch counted with what its file holds.

    Raises
    ------
    SystemExit : they differ
    """
    expected = {
        "rows_read": truth.rows,
        "rows_accepted": truth.accepted,
        "rows_ignored": truth.ignored,
        "rows_rejected": truth.rejected,
        "subscriber_days": sum(truth.visitors),
        "subscribers_new": truth.subscribers,
    }
    for name, value in expected.items():
        if batch[name] != value:
            raise SystemExit(f"{name} must be {value}, got {batch[name]}")


def children_seconds() -> float:
    """Processor time of the commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_peer(name: str, path: Path, *, form: str) -> Parsed:
    """Let another library work on the file in its own process."""
    say(f"{name} on {path.name}")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.ingest_peers", name, str(path)],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"{name} failed on {path.name}")
    return Parsed(name=name, form=form, **json.loads(done.stdout))


def measure_formats(bench: Bench, *, rows: int, names: Sequence[str]) -> str:
    """Each of the formats, with those who only parse it, and the job by others on a smaller file."""
    plain = bench.folder / "extract.csv"
    truth = write_csv(plain, rows=rows)
    ingested, parsed = [], []
    for form in (FORMATS[name] for name in names):
        say(f"writing {form.name}")
        path = form.make(plain)
        ingested.append(bench.ingest(path, form.truth_of(truth), form=form))
        parsed += [run_peer(name, path, form=form.name) for name in (*PARSERS, *GROUPERS)]
        if path != plain:
            path.unlink()
    plain.unlink()
    write_csv(plain, rows=min(JOB_ROWS, rows))
    parsed += [run_peer(name, plain, form="csv") for name in DOERS]
    plain.unlink()
    return ingest_report.formats(ingested, parsed)


def measure_growth(bench: Bench, *, rows: int) -> str:
    """The plain file in three sizes."""
    sizes = [int(rows * share) for share in GROWTH]
    return ingest_report.growth([ingest_plain(bench, rows=size) for size in sizes])


def measure_processes(folder: Path, *, rows: int, is_postgres: bool) -> str:
    """The plain file by one process and by two."""
    ingested = []
    for processes in (1, 2):
        place = folder / f"{processes}-processes"
        with Installation(place, is_postgres=is_postgres, processes=processes) as installation:
            ingested.append(ingest_plain(Bench(place, installation, processes=processes), rows=rows))
    return ingest_report.processes(ingested)


def measure_small(folder: Path, *, is_postgres: bool) -> str:
    """A small file, again and again, from processes that have just started on."""
    with Installation(folder, is_postgres=is_postgres) as installation:
        bench, path = Bench(folder, installation, processes=2), folder / "small.csv"
        truth = write_csv(path, rows=SMALL_ROWS)
        return ingest_report.small([bench.ingest_small(path, truth) for _ in range(SMALL_TIMES)])


def measure_slots(bench: Bench, *, rows: int) -> str:
    """The plain file into studies without slots and with them, in turn."""
    plain = bench.folder / "extract.csv"
    truth = write_csv(plain, rows=rows)
    turns = [False, True] * PAIRS
    ingested = [bench.ingest(plain, truth, form=FORMATS["csv"], has_slots=turn) for turn in turns]
    plain.unlink()
    return ingest_report.pairs(ingested)


def ingest_plain(bench: Bench, *, rows: int) -> Ingested:
    """Write a plain file, ingest it and remove it."""
    plain = bench.folder / "extract.csv"
    truth = write_csv(plain, rows=rows)
    try:
        return bench.ingest(plain, truth, form=FORMATS["csv"])
    finally:
        plain.unlink()


def measure(options: argparse.Namespace, folder: Path) -> Sequence[str]:
    """A section for each of the parts that are asked for."""
    tables = []
    if {"formats", "growth", "slots"} & set(options.parts):
        with Installation(folder, is_postgres=options.postgres) as installation:
            bench = Bench(folder, installation, processes=2)
            if "formats" in options.parts:
                tables.append(
                    "### Formats\n\n" + measure_formats(bench, rows=options.rows, names=options.formats)
                )
            if "growth" in options.parts:
                tables.append("### Growth\n\n" + measure_growth(bench, rows=options.rows))
            if "slots" in options.parts:
                tables.append("### Slots\n\n" + measure_slots(bench, rows=options.rows))
    if "processes" in options.parts:
        table = measure_processes(folder, rows=options.rows, is_postgres=options.postgres)
        tables.append(f"### Processes\n\n{table}")
    if "small" in options.parts:
        say(f"ingesting {SMALL_ROWS:,} rows, {SMALL_TIMES} times")
        table = measure_small(folder / "small", is_postgres=options.postgres)
        tables.append(f"### A file of {SMALL_ROWS:,} rows\n\n{table}")
    if "stages" in options.parts:
        say("stages of a batch")
        timed, rows = ingest_stages.measure(folder / "stages", rows=options.rows)
        tables.append("### Where the time goes\n\n" + ingest_report.stages(timed, rows=rows))
    return tables


def say(text: str) -> None:
    """Progress for anyone who waits."""
    sys.stderr.write(f"{text}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--formats", nargs="+", choices=list(FORMATS), default=list(FORMATS))
    parser.add_argument("--postgres", action="store_true", help="two PostgreSQL servers instead of SQLite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mobility-bench-") as name:
        tables = measure(options, Path(name))
    database = "PostgreSQL" if options.postgres else "SQLite"
    sys.stdout.write("\n\n".join([*tables, ingest_report.machine(database=database)]) + "\n")


if __name__ == "__main__":
    main()
