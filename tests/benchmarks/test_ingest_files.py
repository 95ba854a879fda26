"""Files of the ingest benchmark hold what their truth says, by the tests' own reference, in every format."""

import gzip
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import ingest_files
from benchmarks.ingest_files import BAD_TIMESTAMP, FORMATS, REJECTED, Truth, days_of, write_csv
from benchmarks.ingest_study import COLUMNS, DAYS, write_study
from tests.reference import read_extract, read_study

ROWS = 20_003  # no multiple of the days


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ingest-files")


@pytest.fixture(scope="module")
def plain(folder: Path) -> tuple[Path, Truth]:
    path = folder / "extract.csv"
    return path, write_csv(path, rows=ROWS)


def test_truth_is_what_the_reference_finds(folder: Path, plain: tuple[Path, Truth]) -> None:
    path, truth = plain
    study = read_study(write_study(folder, slug="bench", subscribers=1000))
    found = read_extract([path], study)
    assert found["rows_read"] == truth.rows == ROWS
    assert found["accepted"] == truth.accepted
    assert found["ignored"] == truth.ignored
    assert found["rejected"] == truth.rejected
    assert set(truth.rejected) == set(REJECTED)
    per_day = Counter(day for days in found["presence"].values() for day in days)
    assert tuple(per_day[day] for day in range(1, DAYS + 1)) == truth.visitors
    assert len(found["presence"]) == truth.subscribers


def test_rows_have_the_announced_shape(plain: tuple[Path, Truth]) -> None:
    path, truth = plain
    lines = path.read_text().splitlines()
    assert lines[0] == ",".join(COLUMNS)
    assert len(lines) == truth.rows + 1
    assert 73 < path.stat().st_size / truth.rows < 75
    times = [time for line in lines[1:] if (time := line.split(",")[1]) != BAD_TIMESTAMP]
    assert times == sorted(times)
    neighbours = sum(a.split(",")[0] == b.split(",")[0] for a, b in pairwise(lines))
    assert neighbours < truth.rows / 100


def test_same_size_gives_the_same_bytes(folder: Path, plain: tuple[Path, Truth]) -> None:
    again = folder / "again.csv"
    assert write_csv(again, rows=ROWS) == plain[1]
    assert again.read_bytes() == plain[0].read_bytes()


def test_packed_files_hold_the_plain_one(plain: tuple[Path, Truth], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_files, "_COPY_BYTES", 100_000)  # several pieces
    path, _ = plain
    assert gzip.decompress(FORMATS["gzip"].make(path).read_bytes()) == path.read_bytes()
    with pa.input_stream(FORMATS["zstd"].make(path), compression="zstd") as stream:
        assert stream.read() == path.read_bytes()


def test_parquet_holds_the_rows_that_have_all_columns(plain: tuple[Path, Truth]) -> None:
    path, truth = plain
    table = pq.read_table(FORMATS["parquet"].make(path))
    expected = FORMATS["parquet"].truth_of(truth)
    assert table.num_rows == expected.rows == truth.rows - truth.rejected["wrong_columns"]
    assert table["timestamp"].null_count == expected.rejected["bad_timestamp"]
    assert expected.accepted == truth.accepted
    row = table.slice(0, 1).to_pylist()[0]
    first = path.read_text().splitlines()[1].split(",")
    assert [row["msisdn"], row["cell_id"], row["sleeping_area"]] == [first[0], first[2], first[8]]
    assert row["timestamp"].isoformat() == first[1]


def test_days_of_a_file_are_all_of_its_rows(plain: tuple[Path, Truth]) -> None:
    path, truth = plain
    days = days_of(path)
    assert len(days) == DAYS
    assert sum(map(len, days.values())) == truth.rows


def test_file_without_subscribers_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"rows must be >= 200, got 199"):
        write_csv(folder / "small.csv", rows=199)
