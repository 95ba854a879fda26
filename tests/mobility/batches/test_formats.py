"""Equal rows in every format give the same counts and tallies."""

import csv
import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mobility.batches import outcomes, reading
from mobility.vault.models.batch import Batch

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
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
    yield "tab", delimited(header, rows, delimiter="\t"), CSV_UTF8 | {"delimiter": "tab"}
    accented = delimited([*header, "é"], [[*row, "è"] for row in rows])
    yield "latin-1", accented.decode().encode("latin-1"), CSV_UTF8 | {"encoding": "latin-1"}
    yield "parquet", parquet(header, rows, row_group_size=1000), {"format": "parquet"}
    uncoded = parquet(header, rows, use_dictionary=False, compression="zstd")
    yield "parquet-plain", uncoded, {"format": "parquet"}


def test_every_format_gives_the_same_tallies(make_pipeline, extract, tmp_path):
    plain = None
    for name, data, source in forms_of(*rows_of(extract[0])):
        pipeline = make_pipeline(slug=name, n_shards=1)
        (tmp_path / name).write_bytes(data)
        (batch,) = pipeline.upload(tmp_path / name)
        assert (batch.state, batch.source) == (Batch.State.DONE, source), batch.failure
        found = outcomes.summary(batch)
        rejected = found.pop("rejected_lines")
        assert {reason: each["first"] for reason, each in rejected.items()} == batch.rejected_lines
        found["rejected_in"] = {reason: each["columns"] for reason, each in rejected.items()}
        for depends in ("batch", "source", "seconds", "rows_per_second", "peak_rss_mb"):
            del found[depends]
        plain = plain or (found, pipeline.tallies())
        assert (found, pipeline.tallies()) == plain, name
    assert (plain[0]["rows_accepted"] > 1000, plain[0]["timezone"]) == (True, "Europe/Paris")
    columns = {"bad_timestamp": ["timestamp"], "empty_subscriber": ["msisdn"], "unknown_value": ["region"]}
    assert plain[0]["rejected_in"] == columns
    assert plain[0]["rows_rejected"].keys() == columns.keys()
    assert any(map(any, plain[1].values()))


def test_chunks_that_disagree_on_the_encoding_are_read_in_order(make_pipeline, extract, tmp_path, request):
    lines = [line for line in extract[0].read_bytes().splitlines(keepends=True) if line.isascii()]
    for row in (2, 3, *range(len(lines) - 40, len(lines) - 30)):
        lines[row] = "é".encode() + lines[row]
    lines[-50] = "é".encode("latin-1") + lines[-50]  # alone in a file that is UTF-8
    path = tmp_path / "mixed.csv"
    path.write_bytes(b"".join(lines))
    whole = make_pipeline(slug="whole")
    (in_order,) = whole.upload(path)
    assert in_order.rows_rejected["bad_text"] == 1
    request.getfixturevalue("small_chunks")
    pipeline = make_pipeline(slug="chunks")
    (batch,) = pipeline.upload(path)
    assert (batch.reads_whole, batch.source) == (True, in_order.source)
    assert (batch.rows_rejected, batch.rejected_lines) == (in_order.rows_rejected, in_order.rejected_lines)
    assert pipeline.tallies() == whole.tallies()


def test_two_last_tasks_may_both_judge_the_file(pipeline, extract, monkeypatch):
    """One of them begins again while the other has all chunks before it."""
    judge = reading.judge

    def late(batch, study):
        reading.read_as_a_whole(batch)
        return judge(batch, study)

    monkeypatch.setattr(reading, "judge", late)
    (batch,) = pipeline.upload(extract[0])
    assert (batch.state, batch.failure, batch.reads_whole) == (Batch.State.DONE, "", True)
