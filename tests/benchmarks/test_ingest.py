"""The ingest benchmark: files hold what their truth says, batches are compared with it, tables are right."""

import gzip
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from importlib import import_module
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.conf import settings

from benchmarks import ingest, ingest_files, ingest_stages
from benchmarks.ingest_files import BAD_TIMESTAMP, FORMATS, REJECTED, Truth, days_of, write_csv
from benchmarks.ingest_study import COLUMNS, DAYS, write_study
from tests.reference import read_extract, read_study

ROWS = 5_003  # no multiple of the days
TRUTH = Truth(
    rows=10, rejected={"bad_timestamp": 1}, ignored={"duplicate": 2}, subscribers=3, visitors=(2, 1)
)
BATCH = {
    "rows_read": 10, "rows_accepted": 7, "rows_ignored": {"duplicate": 2},
    "rows_rejected": {"bad_timestamp": 1}, "subscriber_days": 3, "subscribers_new": 3,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ingest-files")


@pytest.fixture(scope="module")
def plain(folder):
    path = folder / "extract.csv"
    return path, write_csv(path, rows=ROWS)


def test_truth_is_what_the_reference_finds_and_rows_are_as_announced_and_the_same_bytes_again(folder, plain):
    path, truth = plain
    found = read_extract([path], read_study(write_study(folder, slug="bench", subscribers=1000)))
    assert found["rows_read"] == truth.rows == ROWS
    assert found["accepted"] == truth.accepted
    assert (found["ignored"], found["rejected"]) == (truth.ignored, truth.rejected)
    assert set(truth.rejected) == set(REJECTED)
    per_day = Counter(day for days in found["presence"].values() for day in days)
    assert tuple(per_day[day] for day in range(1, DAYS + 1)) == truth.visitors
    assert len(found["presence"]) == truth.subscribers
    days = days_of(path)
    assert (len(days), sum(map(len, days.values()))) == (DAYS, truth.rows)
    with pytest.raises(ValueError, match=r"rows must be >= 200, got 199"):
        write_csv(folder / "small.csv", rows=199)
    lines = path.read_text().splitlines()
    assert lines[0] == ",".join(COLUMNS)
    assert len(lines) == truth.rows + 1
    assert 73 < path.stat().st_size / truth.rows < 75
    times = [time for line in lines[1:] if (time := line.split(",")[1]) != BAD_TIMESTAMP]
    assert times == sorted(times)
    assert sum(a.split(",")[0] == b.split(",")[0] for a, b in pairwise(lines)) < truth.rows / 100
    assert write_csv(folder / "again.csv", rows=ROWS) == truth
    assert (folder / "again.csv").read_bytes() == path.read_bytes()


def test_the_truth_at_any_hour_counts_repeated_rows_of_nights_too(folder):
    path = folder / "nights.csv"
    truth = write_csv(path, rows=8 * ROWS)
    study = read_study(write_study(folder, slug="bench", subscribers=1000))
    found = read_extract([path], replace(study, open_from=study.open_from.replace(hour=0)))
    all_hours = truth.at_any_hour()
    assert (found["ignored"], found["accepted"]) == (all_hours.ignored, all_hours.accepted)
    assert found["ignored"]["duplicate"] > truth.ignored["duplicate"]


def test_every_format_holds_the_plain_file(plain, monkeypatch):
    monkeypatch.setattr(ingest_files, "_COPY_BYTES", 50_000)  # several pieces
    path, truth = plain
    assert gzip.decompress(FORMATS["gzip"].make(path).read_bytes()) == path.read_bytes()
    with pa.input_stream(FORMATS["zstd"].make(path), compression="zstd") as stream:
        assert stream.read() == path.read_bytes()
    table, expected = pq.read_table(FORMATS["parquet"].make(path)), FORMATS["parquet"].truth_of(truth)
    assert table.num_rows == expected.rows == truth.rows - truth.rejected["wrong_columns"]
    assert table["timestamp"].null_count == expected.rejected["bad_timestamp"]
    assert expected.accepted == truth.accepted
    row = table.slice(0, 1).to_pylist()[0]
    first = path.read_text().splitlines()[1].split(",")
    assert [row["msisdn"], row["cell_id"], row["sleeping_area"]] == [first[0], first[2], first[8]]
    assert row["timestamp"].isoformat() == first[1]


def test_only_a_batch_that_holds_the_truth_passes():
    ingest.check(BATCH, TRUTH)
    for name, value in BATCH.items():
        other = {"duplicate": 5} if isinstance(value, dict) else value + 1
        with pytest.raises(SystemExit, match=name):
            ingest.check(BATCH | {name: other}, TRUTH)


def test_stages_are_functions_of_the_pipeline():
    for place, name in (function for _, functions in ingest_stages.STAGES for function in functions):
        module, _, kind = place.partition(":")
        owner = import_module(module)
        assert callable(getattr(getattr(owner, kind) if kind else owner, name)), name


@pytest.mark.long
def test_small_benchmark_runs_from_end_to_end():
    options = ["--rows", str(ROWS), "--parts", "formats", "--formats", "parquet"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.ingest", *options],
        cwd=settings.BASE_DIR, text=True, capture_output=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "### Formats"
    assert [line.split(" | ")[0] for line in lines[4:6]] == ["| parquet", ""]
