"""The first rows of files of every kind, from their first bytes alone."""

import gzip
import io
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mobility.profiles.errors import PreviewError
from mobility.profiles.sample import PARQUET_BYTES, PLAIN_BYTES, ROWS, read_sample

CSV = "id;Année;n\r\n" + "".join(f"a{i};été;{i}\r\n" for i in range(500))


def first(data: bytes, n: int) -> tuple[bytes, int]:
    return data[:n], len(data)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_text_is_found_out(encoding: str) -> None:
    data, size = first(CSV.encode(encoding), 300)
    found = read_sample(data, size=size)
    assert found.names == ("id", "Année", "n")
    assert found.rows[0] == ("a0", "été", "0")
    assert (found.delimiter, found.encoding) == ("semicolon", encoding.removesuffix("-sig"))
    assert found.column("Année") == ["été"] * len(found.rows)
    assert found.column("no such") == []


def test_a_line_that_is_cut_is_left_out() -> None:
    data = CSV.encode()
    for n in range(100, 140):
        found = read_sample(data[:n], size=len(data))
        whole = [line for line in data[:n].split(b"\r\n")[1:-1] if line]
        assert len(found.rows) == len(whole), n
        assert found.misshapen == 0


def test_the_last_line_of_a_whole_file_counts_without_its_end() -> None:
    assert read_sample(b"a,b\n1,2", size=7).rows == (("1", "2"),)
    assert read_sample(b"a,b\n1,2", size=8).rows == ()


def test_only_so_many_rows_are_kept_and_other_rows_are_counted() -> None:
    found = read_sample(b"a,b\n" + b"1,2\n" * 1000, size=4004)
    assert len(found.rows) == ROWS
    found = read_sample(b'a,b\n1,2\n\n1,2,3\n" x ,y",2\n', size=27)
    assert (found.rows, found.misshapen) == ((("1", "2"), ("x ,y", "2")), 1)


def test_a_delimiter_can_be_named() -> None:
    assert read_sample(b"a,b;c\n1,2;3\n", size=12, delimiter="semicolon").names == ("a,b", "c")
    assert read_sample(b"a,b;c,d\n1,2;3,4\n", size=16).names == ("a", "b;c", "d")


def test_columns_of_one_name_cannot_be_told_apart() -> None:
    assert read_sample(b"a,a,b\n1,2,3\n", size=12).column("a") == []


@pytest.mark.parametrize("n", [250, 10**6])
def test_gzip(n: int) -> None:
    data, size = first(gzip.compress((CSV * 3).encode(), 1), n)
    found = read_sample(data, size=size)
    assert (found.compression, found.rows[0]) == ("gzip", ("a0", "été", "0"))
    assert len(found.rows) > 10


@pytest.mark.parametrize("n", [200_000, 10**7])
def test_zstd(n: int) -> None:
    plain = "".join(f"{i * 7919 % 1_000_003},{i * 104_729 % 99_991}\n" for i in range(60_000))
    data, size = first(pa.compress(f"a,b\n{plain}".encode(), codec="zstd", asbytes=True), n)
    found = read_sample(data, size=size)
    assert (found.compression, len(found.rows)) == ("zstd", ROWS)


def test_what_it_decompresses_to_is_bounded() -> None:
    plain = 50 * PLAIN_BYTES
    bomb = gzip.compress(b"a,b\n" + b"1,2\n" * (plain // 4))
    assert len(bomb) < 256 << 10
    tracemalloc.start()
    assert len(read_sample(bomb, size=len(bomb)).rows) == ROWS
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < plain * 0.9
    for codec in ("gzip", "zstd"):
        line = pa.compress(b"x" * (16 * PLAIN_BYTES), codec=codec, asbytes=True)
        with pytest.raises(PreviewError):
            read_sample(line, size=len(line))


def parquet(**columns: pa.Array) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def test_a_small_parquet_file() -> None:
    data = parquet(
        who=pa.array(["a", None]),
        number=pa.array([33_612_345_678, 5]),
        time=pa.array([0, 1_500_000_000_000_000], pa.timestamp("us")),
        nested=pa.array([[1], [2]]),
    )
    found = read_sample(data, size=len(data))
    assert found.names == ("who", "number", "time", "nested")
    assert found.rows[0][:3] == ("a", "33612345678", "1970-01-01 00:00:00.000000")
    assert found.rows[1][0] == ""
    assert found.format == "parquet"


def test_a_parquet_file_is_whole_or_not_shown() -> None:
    data = parquet(who=pa.array(["a"]))
    with pytest.raises(PreviewError, match="can only be previewed whole"):
        read_sample(data, size=len(data) + 1)
    with pytest.raises(PreviewError, match="damaged"):
        read_sample(data[:-9], size=len(data) - 9)


def test_columns_of_lists_records_and_one_name_keep_their_places() -> None:
    names = ["list", "a", "record", "a", "x"]
    columns = [
        pa.array([[1], [2]]),
        pa.array(["b", "c"]),
        pa.array([{"x": 1}] * 2),
        pa.array([4, 5]),
        pa.array([6, 7]),
    ]
    out = io.BytesIO()
    pq.write_table(pa.table(columns, names=names), out)
    found = read_sample(out.getvalue(), size=len(out.getvalue()))
    assert found.names == tuple(names)
    assert found.rows == (("", "b", "", "4", "6"), ("", "c", "", "5", "7"))


def test_a_parquet_file_without_rows() -> None:
    data = parquet(who=pa.array([], pa.string()))
    assert read_sample(data, size=len(data)).names == ("who",)
    assert read_sample(data, size=len(data)).rows == ()


def test_of_a_parquet_file_only_the_first_rows_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    plain = pq.ParquetFile.iter_batches

    def iter_batches(self: pq.ParquetFile, *args: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        for batch in plain(self, *args, **options):
            taken.append(len(batch))
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", iter_batches)
    data = parquet(who=pa.array([7] * 100_000))
    assert len(read_sample(data, size=len(data)).rows) == ROWS
    assert taken == [ROWS]


def test_a_parquet_file_of_large_pages_is_refused_before_they_are_read() -> None:
    out = io.BytesIO()
    long = pa.table({"secret": pa.array(["x" * (PARQUET_BYTES + 1)])})
    pq.write_table(long, out, compression="zstd")
    data = out.getvalue()
    assert len(data) < 256 << 10
    with pytest.raises(PreviewError, match="too large for a preview") as caught:
        read_sample(data, size=len(data))
    assert "secret" not in str(caught.value)


def test_only_blanks_that_ingest_takes_away_are_taken_away() -> None:
    text = "a\n \tx\x0b\n\u00a0y\u3000\n"
    assert read_sample(text.encode(), size=len(text.encode())).rows == (("x",), ("\u00a0y\u3000",))
    data = parquet(a=pa.array([" x\x0c", "\u00a0y"]))
    assert read_sample(data, size=len(data)).rows == (("x",), ("\u00a0y",))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "empty"),
        (b"\n1,2\n", "Line 1 is empty"),
        (b"a,b\n\x001,2\n", "NUL bytes"),
        (b"PK\x03\x04 secret", "a zip archive or a spreadsheet"),
        (b"\x1f\x8b secret", "gzip stream is damaged"),
        (b"\x28\xb5\x2f\xfd secret", "zstd stream cannot be read"),
        (b"\xff\xfea\x00", "UTF-16"),
        (gzip.compress(gzip.compress(b"a,b\n", mtime=0), mtime=0), "compressed once more"),
        (b"x" * 200_000, "too long"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_said_without_its_content(data: bytes, expected: str) -> None:
    with pytest.raises(PreviewError, match=expected) as caught:
        read_sample(data, size=len(data))
    assert "secret" not in str(caught.value)
