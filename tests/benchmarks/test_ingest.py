"""The ingest benchmark compares every batch with the truth, and its tables say what was measured."""

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from benchmarks import ingest, ingest_report, ingest_stages
from benchmarks.ingest_files import FORMATS, Truth, write_csv
from benchmarks.ingest_peers import GROUPERS, JOBS, PARSERS
from benchmarks.ingest_report import Ingested, Parsed
from benchmarks.ingest_stages import Timers
from benchmarks.memory import Watch, watched

ROWS = 20_000
TRUTH = Truth(
    rows=10, rejected={"bad_timestamp": 1}, ignored={"duplicate": 2}, subscribers=3, visitors=(2, 1)
)
BATCH: dict[str, Any] = {
    "rows_read": 10,
    "rows_accepted": 7,
    "rows_ignored": {"duplicate": 2},
    "rows_rejected": {"bad_timestamp": 1},
    "subscriber_days": 3,
    "subscribers_new": 3,
}
OURS = Ingested(
    name="csv",
    rows=20_000_000,
    file_bytes=1_480_000_000,
    batch_s=2.0,
    end_to_end_s=4.0,
    cpu_s=3.6,
    idle_mb=300,
    peak_mb=400,
)


def test_batch_that_holds_the_truth_passes() -> None:
    ingest.check(BATCH, TRUTH)


@pytest.mark.parametrize("name", BATCH)
def test_batch_that_holds_anything_else_is_refused(name: str) -> None:
    other = {"duplicate": 5} if isinstance(BATCH[name], dict) else BATCH[name] + 1
    with pytest.raises(SystemExit, match=name):
        ingest.check(BATCH | {name: other}, TRUTH)


@pytest.mark.parametrize("name", JOBS)
def test_peers_read_all_rows(name: str, tmp_path: Path) -> None:
    path = tmp_path / "extract.csv"
    truth = write_csv(path, rows=ROWS)
    expected = truth.without_misshapen() if name == "pyarrow parse" else truth
    assert JOBS[name](path) == expected.rows


@pytest.mark.parametrize("name", [*PARSERS, *GROUPERS])
def test_peers_read_every_format(name: str, tmp_path: Path) -> None:
    plain = tmp_path / "extract.csv"
    truth = write_csv(plain, rows=ROWS)
    for form in FORMATS.values():
        rows = JOBS[name](form.make(plain))
        assert form.truth_of(truth).without_misshapen().rows <= rows <= truth.rows


CHILD = """
import sys
print("ready", flush=True)
sys.stdin.readline()
held = bytearray(b"1") * 80_000_000
print("holding", flush=True)
sys.stdin.readline()
"""


def test_memory_of_a_child_counts_above_what_was_there() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with watched(Watch([process.pid])) as peak:
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "holding\n"
            seen = peak.samples
            while peak.samples < seen + 2:
                time.sleep(0.01)
        process.communicate("\n")
    assert 75 < peak.above_idle_mb < 85


def burn(steps: int) -> int:
    return sum(range(steps))


def test_timers_count_a_stage_without_those_inside_it() -> None:
    timers = Timers()
    inner = timers.around("inner", lambda: burn(3_000_000))

    def blocks() -> Iterator[int]:
        for _ in range(2):
            yield inner()

    outer = timers.around("outer", lambda: list(timers.around("blocks", blocks)()))
    assert outer() == [burn(3_000_000)] * 2
    assert timers.seconds["inner"] > 10 * (timers.seconds["outer"] + timers.seconds["blocks"]) > 0


def test_table_of_formats_has_speeds_and_ratios() -> None:
    peers = [
        Parsed(name=name, form="csv", rows=20_000_000, seconds=1.0, peak_mb=3000)
        for name in (*PARSERS, *GROUPERS)
    ]
    job = Parsed(name="pandas + multi-freq-ldpy", form="csv", rows=1_000_000, seconds=10, peak_mb=700)
    table = ingest_report.formats([OURS], [*peers, job])
    assert "| csv | 1,480 | 10.0 | 5.0 | 180 | 400 | 20.0 (2.0x, 3,000 MB) |" in table
    assert "0.10 M rows/s, 700 MB; ours (csv) is 100 times as fast" in table


def test_tables_of_growth_and_processes_compare_with_the_first() -> None:
    larger = replace(OURS, rows=100_000_000, batch_s=11.0, peak_mb=440)
    assert "5.5x for 5x the rows | 1.1x |" in ingest_report.growth([OURS, larger])
    assert "| 2 | 20.0 | 5.0 | 180 | 400 | 2.00x |" in ingest_report.processes(
        [OURS, replace(OURS, batch_s=1.0)]
    )


@pytest.mark.slow
def test_stages_are_those_of_the_pipeline(tmp_path: Path) -> None:
    timed, rows = ingest_stages.measure(tmp_path / "stages", rows=ROWS)
    assert rows == ROWS
    names = [name for name, _ in timed]
    assert names == [ingest_stages.RECEIVE, *(name for name, _ in ingest_stages.STAGES), ingest_stages.REST]
    assert [name for name, nanoseconds in timed if nanoseconds <= 0] == []


@pytest.mark.long
@pytest.mark.slow
def test_small_benchmark_runs_from_end_to_end() -> None:
    """Real workers and commands; totals that differ from the truth of a file would end it."""
    options = ["--rows", str(ROWS), "--parts", "formats", "--formats", "parquet"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.ingest", *options],
        cwd=settings.BASE_DIR, text=True, capture_output=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "### Formats"
    assert [line.split(" | ")[0] for line in lines[4:6]] == ["| parquet", ""]
