"""The 28 totals of FIMU: the whole week in every format, attributes inline and in a subscriber extract."""

import gzip
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from mobility.demo.extract import write_extract
from mobility.demo.population import load_facts, load_study
from mobility.models import Batch
from mobility.profiles import SUBSCRIBERS
from reports.studyfile import StudyDefinition
from tests.mobility.services.conftest import Pipeline

pytestmark = [pytest.mark.slow, pytest.mark.django_db(databases=["default", "vault"])]
PATTERNS = load_facts()["presence_patterns"]
WINDOWS = [(first, last) for first in range(1, 8) for last in range(first, 8)]
FORMATS = ("csv", "gzip", "zstd", "parquet")


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of the demo's rows in one file, with those that are malformed."""
    folder = tmp_path_factory.mktemp("week")
    write_extract(folder, seed=1)
    days = sorted(folder.glob("*.csv"))
    path = folder / "week.csv"
    with path.open("wb") as out:
        for number, day in enumerate(days):
            header, _, rows = day.read_bytes().partition(b"\n")
            out.write(rows if number else header + b"\n" + rows)
            day.unlink()
    return path


def table_of(week: Path) -> pa.Table:
    """The rows that have the shape of the header, as text."""
    names = week.open().readline().strip().split(",")
    return csv.read_csv(
        week,
        parse_options=csv.ParseOptions(invalid_row_handler=lambda _: "skip"),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
    )


@pytest.fixture(scope="module")
def apart(week: Path) -> tuple[pa.Table, pa.Table]:
    """Events without attributes, and the attributes of each subscriber."""
    study = load_study()
    table = table_of(week)
    static = [each for each in study.indicators if each.column]
    for each in static:
        table = table.filter(pc.is_in(table[each.column], pa.array(each.categories)))
    columns = [str(each.column) for each in static]
    people = table.group_by("msisdn", use_threads=False).aggregate([(name, "first") for name in columns])
    return (
        table.select([study.extract.subscriber, study.extract.timestamp, str(study.extract.cell)]),
        people.select(["msisdn", *(f"{name}_first" for name in columns)]).rename_columns(
            ["msisdn", *columns]
        ),
    )


def written(table: pa.Table, path: Path) -> Path:
    """The table in the format that the name of the file ends with."""
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=200_000)
        return path
    if path.suffix == ".zstd":
        with pa.output_stream(str(path), compression="zstd") as out:
            csv.write_csv(table, out)
        return path
    with gzip.open(path, "wb", 1) if path.suffix == ".gzip" else path.open("wb") as file:
        csv.write_csv(table, file)
    return path


def totals(pipeline: Pipeline) -> Iterator[tuple[int, int]]:
    """Visitors of each window, as counted and as published."""
    for first, last in WINDOWS:
        known = sum(n for days, n in PATTERNS.items() if "1" in days[first - 1 : last])
        yield pipeline.visitors(first, last), known


def compressed(week: Path, name: str) -> Path:
    """The extract as it is, malformed rows and all; Parquet cannot hold these."""
    path = week.with_name(f"inline.{name}")
    if name == "csv":
        return week
    if name == "parquet":
        return written(table_of(week), path)
    with gzip.open(path, "wb", 1) if name == "gzip" else pa.output_stream(str(path), compression=name) as out:
        out.write(week.read_bytes())
    return path


@pytest.mark.parametrize("name", FORMATS)
def test_totals_hold_with_attributes_inline(
    make_pipeline: Callable[..., Pipeline], week: Path, name: str
) -> None:
    pipeline = make_pipeline(expected_subscribers=100_000)
    (batch,) = pipeline.upload(compressed(week, name))
    assert batch.state == Batch.State.DONE, batch.failure
    assert all(counted == known for counted, known in totals(pipeline))


@pytest.mark.parametrize("name", FORMATS)
def test_totals_hold_with_attributes_in_a_subscriber_extract(
    make_pipeline: Callable[..., Pipeline],
    definition: StudyDefinition,
    apart: tuple[pa.Table, pa.Table],
    tmp_path: Path,
    name: str,
) -> None:
    events, people = apart
    extract = replace(definition.extract, attributes="subscribers")
    pipeline = make_pipeline(expected_subscribers=100_000, extract=extract)
    (known,) = pipeline.upload(written(people, tmp_path / f"people.{name}"), profile=SUBSCRIBERS)
    (batch,) = pipeline.upload(written(events, tmp_path / f"events.{name}"))
    assert (known.state, batch.state) == (Batch.State.DONE, Batch.State.DONE), known.failure + batch.failure
    assert known.checks["subscribers"] > 88_935  # not everybody stays long enough to be a visitor
    assert all(counted == expected for counted, expected in totals(pipeline))
    # Everybody has an answer to the static question that they are asked.
    static = sum(pipeline.answers(each.slug, 1, 7) for each in definition.indicators if each.column)
    daily = pipeline.answers("visit_duration", 1, 7)
    assert static + daily == 88_935
