"""Equal rows in every format give the same counts and tallies, and the 28 totals of FIMU."""

import csv
import gzip
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

from mobility.batches import outcomes
from mobility.demo.extract import write_extract
from mobility.demo.population import load_facts
from mobility.extracts.profiles.definition import SUBSCRIBERS
from mobility.vault.models.batch import Batch
from tests.mobility.pipeline import Pipeline

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
PATTERNS = load_facts()["presence_patterns"]
WINDOWS = [(first, last) for first in range(1, 8) for last in range(first, 8)]
CSV_UTF8 = {"format": "csv", "delimiter": "comma", "encoding": "utf-8"}


def zstd(data: bytes) -> bytes:
    """Two frames, as when compressed files are put together."""
    codec = pa.Codec("zstd")
    cut = len(data) // 2
    return bytes(codec.compress(data[:cut], asbytes=True) + codec.compress(data[cut:], asbytes=True))


def rows_of(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header, and the rows that have its shape: no other can be in Parquet."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, [row for row in rows if len(row) == len(header)]


def delimited(header: list[str], rows: list[list[str]], *, delimiter: str = ",") -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()


def parquet(header: list[str], rows: list[list[str]], **options: Any) -> bytes:
    columns = zip(*([value or None for value in row] for row in rows), strict=True)
    arrays = [pa.array(column, pa.string()) for column in columns]
    file = io.BytesIO()
    pq.write_table(pa.table(arrays, header), file, **options)
    return file.getvalue()


def forms_of(header: list[str], rows: list[list[str]]) -> Iterator[tuple[str, bytes, dict[str, str]]]:
    plain = delimited(header, rows)
    yield "csv", plain, CSV_UTF8
    yield "bom", b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n"), CSV_UTF8
    yield "gzip", gzip.compress(plain, 1), CSV_UTF8 | {"compression": "gzip"}
    yield "zstd", zstd(plain), CSV_UTF8 | {"compression": "zstd"}
    for name, delimiter in (("tab", "\t"), ("semicolon", ";"), ("pipe", "|")):
        yield name, delimited(header, rows, delimiter=delimiter), CSV_UTF8 | {"delimiter": name}
    accented = delimited([*header, "é"], [[*row, "è"] for row in rows])
    yield "latin-1", accented.decode().encode("latin-1"), CSV_UTF8 | {"encoding": "latin-1"}
    yield "parquet", parquet(header, rows, row_group_size=1000), {"format": "parquet"}
    uncoded = parquet(header, rows, use_dictionary=False, compression="zstd")
    yield "parquet-plain", uncoded, {"format": "parquet"}


def outcome(batch: Batch) -> dict[str, Any]:
    """Return the result of an upload, without the parts that depend on its way."""
    assert batch.state == Batch.State.DONE, batch.failure
    found = outcomes.summary(batch)
    for name in ("batch", "source", "seconds", "rows_per_second", "peak_rss_mb"):
        del found[name]
    return found


def test_every_format_gives_the_same_tallies(make_pipeline, extract, tmp_path):
    plain = None
    for name, data, source in forms_of(*rows_of(extract[0])):
        pipeline = make_pipeline(slug=name)
        (tmp_path / name).write_bytes(data)
        (batch,) = pipeline.upload(tmp_path / name)
        assert batch.source == source
        found = outcome(batch), pipeline.tallies()
        plain = plain or found
        assert found == plain, name
    assert (plain[0]["rows_accepted"] > 1000, plain[0]["timezone"]) == (True, "Europe/Paris")
    assert plain[0]["rows_rejected"]
    assert any(map(any, plain[1].values()))


def test_numbers_and_timestamps_of_parquet_are_those_of_the_text(make_pipeline, definition, tmp_path):
    people = [33_600_000_000 + n for n in range(150)]
    hours = (8, 11)
    local = [f"2017-06-01T{hour:02d}:30:00" for _ in people for hour in hours]
    instants = [1_496_298_600 + (hour - 8) * 3600 for _ in people for hour in hours]  # 08:30 in Paris
    who = [person for person in people for _ in hours]
    header = [definition.extract.subscriber, definition.extract.timestamp, definition.extract.cell]
    header += [indicator.column for indicator in definition.indicators if indicator.column]
    cell = definition.area.cells[0].cell_id if definition.area else ""
    rest = [cell, *(each.categories[0] for each in definition.indicators if each.column)]
    lines = [[str(w), t, *rest] for w, t in zip(who, local, strict=True)]
    text_of_who, text, naive = pa.array(map(str, who), pa.string()), pa.array(local), pa.timestamp
    seconds = pa.array(instants, pa.timestamp("s", tz="UTC"))
    columns = {
        "integers": (pa.array(who, pa.int64()), seconds.cast(pa.timestamp("ms", tz="UTC"))),
        "decimals": (pa.array(who, pa.decimal128(20, 0)), text),
        "dictionary": (text_of_who.dictionary_encode(), text.cast(naive("us"))),
        "unsigned": (pa.array(who, pa.uint64()), pa.array(instants, pa.timestamp("s", tz="Asia/Tokyo"))),
        "large": (text_of_who.cast(pa.large_string()), text.cast(naive("ns"))),
        "bytes": (pa.array([b" %d " % w for w in who], pa.binary()), text.cast(pa.large_string())),
    }
    plain = make_pipeline(slug="text")
    (tmp_path / "text.csv").write_bytes(delimited(header, lines))
    wanted = outcome(plain.upload(tmp_path / "text.csv")[0])
    assert wanted["subscriber_days"] == 150
    for name, pair in columns.items():
        pipeline = make_pipeline(slug=name)
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table([*pair, *(pa.array([value] * len(who)) for value in rest)], header), path)
        assert outcome(pipeline.upload(path)[0]) == wanted, name
        assert pipeline.tallies() == plain.tallies(), name


@pytest.mark.parametrize(
    ("form", "stamps"),
    [
        ("epoch_s", [1_496_298_600, 1_496_309_400]),
        ("epoch_ms", [1_496_298_600_000, 1_496_309_400_999]),
        ("%d/%m/%Y %H:%M:%S", ["01/06/2017 08:30:00", "1/6/2017 11:30:00"]),
        ("%Y%m%d%H%M%S", [20170601083000, 20170601113000]),
    ],
)
def test_timestamp_formats_hold_for_text_and_numbers(make_pipeline, definition, tmp_path, form, stamps):
    indicators = tuple(each for each in definition.indicators if each.column is None)
    profile = replace(definition.extract, cell=None, timestamp_format=form)
    results = []
    for slug in ("text", "numbers"):
        pipeline = make_pipeline(slug=slug, extract=profile, indicators=indicators, area=None)
        who, when = zip(*((w, t) for w in range(200) for t in stamps), strict=True)
        table = {definition.extract.subscriber: list(who), definition.extract.timestamp: list(when)}
        path = tmp_path / slug
        if slug == "numbers":
            pq.write_table(pa.table(table), path)
        else:
            rows = [[str(w), str(t)] for w, t in zip(who, when, strict=True)]
            path.write_bytes(delimited(list(table), rows))
        (batch,) = pipeline.upload(path)
        results.append((outcome(batch), pipeline.tallies()))
        assert batch.subscriber_days == 200
    assert results[0] == results[1]


@pytest.fixture(scope="module")
def week(tmp_path_factory):
    """All of the demo's rows in one file, with those that are malformed."""
    folder = tmp_path_factory.mktemp("week")
    write_extract(folder, seed=1)
    path = folder / "week.csv"
    with path.open("wb") as out:
        for number, day in enumerate(sorted(folder.glob("fimu*.csv"))):
            out.write(day.read_bytes().partition(b"\n")[2] if number else day.read_bytes())
            day.unlink()
    return path


def check_totals(pipeline: Pipeline) -> None:
    for first, last in WINDOWS:
        published = sum(n for days, n in PATTERNS.items() if "1" in days[first - 1 : last])
        assert pipeline.visitors(first, last) == published


@pytest.mark.slow
def test_totals_hold_with_attributes_inline(make_pipeline, week):
    pipeline = make_pipeline()
    (batch,) = pipeline.upload(week)
    assert batch.state == Batch.State.DONE, batch.failure
    check_totals(pipeline)


@pytest.mark.slow
@pytest.mark.long
def test_totals_hold_with_attributes_in_a_subscriber_extract(make_pipeline, definition, week, tmp_path):
    """Parquet holds the rows that have the shape of the header, as text."""
    names = week.open().readline().strip().split(",")
    table = arrow_csv.read_csv(
        week,
        parse_options=arrow_csv.ParseOptions(invalid_row_handler=lambda _: "skip"),
        convert_options=arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
    )
    static = [each for each in definition.indicators if each.column]
    for each in static:
        table = table.filter(pc.is_in(table[each.column], pa.array(each.categories)))
    columns = [str(each.column) for each in static]
    first = table.group_by("msisdn", use_threads=False).aggregate([(name, "first") for name in columns])
    people = first.select(["msisdn", *(f"{name}_first" for name in columns)])
    pq.write_table(people.rename_columns(["msisdn", *columns]), tmp_path / "people.parquet")
    events = table.select(["msisdn", "timestamp", "cell_id"])
    pq.write_table(events, tmp_path / "events.parquet", row_group_size=200_000)

    pipeline = make_pipeline(extract=replace(definition.extract, attributes="subscribers"))
    (known,) = pipeline.upload(tmp_path / "people.parquet", profile=SUBSCRIBERS)
    (batch,) = pipeline.upload(tmp_path / "events.parquet")
    assert (known.state, batch.state) == (Batch.State.DONE, Batch.State.DONE), known.failure + batch.failure
    assert known.checks["subscribers"] > 88_935  # not everyone stays long enough to be a visitor
    check_totals(pipeline)
    # Everyone has an answer to the static question that they are asked.
    answers = sum(pipeline.answers(each.slug, 1, 7) for each in (*static, definition.indicators[-1]))
    assert answers == 88_935
