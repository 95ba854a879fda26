"""The same rows in every format: the same counts, and the same tallies byte for byte."""

import csv
import gzip
import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mobility.models import Batch
from mobility.services import outcomes
from reports.studyfile import StudyDefinition
from tests.mobility.services.conftest import Pipeline

pytestmark = [pytest.mark.database, pytest.mark.django_db(databases=["default", "vault"])]
Make = Callable[..., Pipeline]
CSV_UTF8 = {"format": "csv", "delimiter": "comma", "encoding": "utf-8"}


def zstd(data: bytes) -> bytes:
    """Two frames, as when compressed files are put together."""
    codec = pa.Codec("zstd")
    cut = len(data) // 2
    return bytes(codec.compress(data[:cut], asbytes=True) + codec.compress(data[cut:], asbytes=True))


def rows_of(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header, and the rows that have its shape: no other can stand in Parquet."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, [row for row in rows if len(row) == len(header)]


def delimited(header: list[str], rows: list[list[str]], *, delimiter: str = ",") -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()


def parquet(header: list[str], rows: list[list[str]], **options: Any) -> bytes:
    """Empty values are nulls, so that these are read too."""
    columns = zip(*([value or None for value in row] for row in rows), strict=True)
    arrays = [pa.array(column, pa.string()) for column in columns]
    file = io.BytesIO()
    pq.write_table(pa.table(dict(zip(header, arrays, strict=True))), file, **options)
    return file.getvalue()


def forms_of(header: list[str], rows: list[list[str]]) -> Iterator[tuple[str, bytes, dict[str, str]]]:
    """Name, bytes, and what is to be found out about them."""
    plain = delimited(header, rows)
    yield "csv", plain, CSV_UTF8
    yield "bom", b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n"), CSV_UTF8
    yield "gzip", gzip.compress(plain, 1), CSV_UTF8 | {"compression": "gzip"}
    yield "zstd", zstd(plain), CSV_UTF8 | {"compression": "zstd"}
    for name, delimiter in (("tab", "\t"), ("semicolon", ";"), ("pipe", "|")):
        yield name, delimited(header, rows, delimiter=delimiter), CSV_UTF8 | {"delimiter": name}
    yield (
        "latin-1",
        delimited([*header, "é"], [[*row, "è"] for row in rows]).decode().encode("latin-1"),
        (CSV_UTF8 | {"encoding": "latin-1"}),
    )
    yield "parquet", parquet(header, rows, row_group_size=1000), {"format": "parquet"}
    yield (
        "parquet-plain",
        parquet(header, rows, use_dictionary=False, compression="zstd"),
        {"format": "parquet"},
    )


def outcome(batch: Batch) -> dict[str, Any]:
    """What an upload did, without what depends on how it came."""
    assert batch.state == Batch.State.DONE, batch.failure
    found = outcomes.summary(batch)
    for name in ("batch", "source", "seconds", "rows_per_second", "peak_rss_mb"):
        del found[name]
    return found


@pytest.mark.long
def test_every_format_gives_the_same_tallies(
    make_pipeline: Make, extract: list[Path], tmp_path: Path
) -> None:
    """Two days, each of them in every format, in a study of its own with the same key."""
    seen: dict[str, tuple[list[dict[str, Any]], dict[str, bytes]]] = {}
    for form in range(10):
        pipeline = make_pipeline(slug=f"form-{form}")
        results = []
        for day in extract[:2]:
            name, data, source = list(forms_of(*rows_of(day)))[form]
            path = tmp_path / name
            path.write_bytes(data)
            (batch,) = pipeline.upload(path)
            results.append(outcome(batch))
            assert batch.source == source
        seen[name] = results, pipeline.tallies()
    assert seen["csv"][0][0]["rows_accepted"] > 1000
    assert any(result["rows_rejected"] for result in seen["csv"][0])
    assert any(map(any, seen["csv"][1].values()))
    for name, found in seen.items():
        assert found == seen["csv"], name
    assert seen["csv"][0][0]["timezone"] == "Europe/Paris"


def test_numbers_and_timestamps_of_parquet_are_those_of_the_text(
    make_pipeline: Make, definition: StudyDefinition, tmp_path: Path
) -> None:
    """Subscribers as integers, decimals, dictionaries; times as instants, local times and epochs."""
    people = [33_600_000_000 + n for n in range(150)]
    hours = (8, 11)
    local = [f"2017-06-01T{hour:02d}:30:00" for _ in people for hour in hours]
    instants = [1_496_298_600 + (hour - 8) * 3600 for _ in people for hour in hours]  # 08:30 in Paris
    who = [person for person in people for _ in hours]
    header = [definition.extract.subscriber, definition.extract.timestamp, definition.extract.cell]
    header += [indicator.column for indicator in definition.indicators if indicator.column]
    cell = definition.area.cells[0].cell_id if definition.area else ""
    rest = [cell, *(each.categories[0] for each in definition.indicators if each.column)]
    text = delimited(header, [[str(w), t, *rest] for w, t in zip(who, local, strict=True)])
    columns: dict[str, tuple[pa.Array, pa.Array]] = {
        "integers": (
            pa.array(who, pa.int64()),
            pa.array(instants, pa.timestamp("s", tz="UTC")).cast(pa.timestamp("ms", tz="UTC")),
        ),
        "decimals": (pa.array(who, pa.decimal128(20, 0)), pa.array(local, pa.string())),
        "dictionary": (
            pa.array(map(str, who), pa.string()).dictionary_encode(),
            pa.array(local).cast(pa.timestamp("us")),
        ),
        "unsigned": (pa.array(who, pa.uint64()), pa.array(instants, pa.timestamp("s", tz="Asia/Tokyo"))),
        "large": (pa.array(map(str, who), pa.large_string()), pa.array(local).cast(pa.timestamp("ns"))),
        "bytes": (pa.array([b" %d " % w for w in who], pa.binary()), pa.array(local, pa.large_string())),
    }
    plain = make_pipeline(slug="text")
    (tmp_path / "text.csv").write_bytes(text)
    wanted = outcome(plain.upload(tmp_path / "text.csv")[0])
    assert wanted["subscriber_days"] == 150
    for name, pair in columns.items():
        pipeline = make_pipeline(slug=name)
        arrays = [*pair, *(pa.array([value] * len(who)) for value in rest)]
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table(dict(zip(header, arrays, strict=True))), path)
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
def test_timestamp_formats_of_the_study_file_hold_for_text_and_numbers(
    make_pipeline: Make, definition: StudyDefinition, tmp_path: Path, form: str, stamps: list[Any]
) -> None:
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
            path.write_bytes(
                delimited(list(table), [[str(w), str(t)] for w, t in zip(who, when, strict=True)])
            )
        (batch,) = pipeline.upload(path)
        results.append((outcome(batch), pipeline.tallies()))
        assert batch.subscriber_days == 200
    assert results[0] == results[1]
