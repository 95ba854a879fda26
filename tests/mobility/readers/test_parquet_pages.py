"""Pages of Parquet files: what is known of them before they are read."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobility.errors import BatchFormatError
from mobility.readers import Layout, parquet_pages
from mobility.readers.opening import read_extract
from mobility.readers.parquet_pages import NoPageError, _Thrift, check_pages

FEW = ["a", "b", None] * 400
MANY = [f"value-{n:06d}" for n in range(1200)]
WRITERS = [
    {"data_page_version": version, "compression": compression, "data_page_size": size, "row_group_size": rows}
    for version in ("1.0", "2.0")
    for compression in ("none", "zstd")
    for size in (50, 1 << 20)
    for rows in (100, 5000)
]


def by_place(table: pa.Table, **options: Any) -> set[str]:
    """Columns that are known to have nothing but places in dictionaries."""
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    metadata = pq.ParquetFile(file).metadata
    columns = {name: place for place, name in enumerate(table.column_names)}
    return check_pages(
        io.BufferedReader(file), metadata=metadata, columns=columns, groups=range(metadata.num_row_groups)
    )  # type: ignore[type-var]


@pytest.mark.parametrize("options", WRITERS, ids=lambda options: "-".join(map(str, options.values())))
def test_columns_that_are_in_a_dictionary_throughout(options: dict[str, Any]) -> None:
    table = pa.table({"few": FEW, "many": MANY, "number": range(1200)})
    assert by_place(table, use_dictionary=False, **options) == set()
    assert by_place(table, use_dictionary=["few"], **options) == {"few"}
    assert by_place(table, **options) == {"few", "many", "number"}
    # A dictionary that becomes too large is given up: the rest of the column are values.
    written = options | {"data_page_size": 50, "row_group_size": 5000}
    assert by_place(table, dictionary_pagesize_limit=500, write_batch_size=10, **written) == {"few"}


def test_one_row_group_without_dictionary_is_enough() -> None:
    file = io.BytesIO()
    table = pa.table({"a": ["x"] * 10})
    with pq.ParquetWriter(file, table.schema, use_dictionary=True) as writer:
        writer.write_table(table)
    only = file.getvalue()
    metadata = pq.ParquetFile(io.BytesIO(only)).metadata
    assert check_pages(io.BufferedReader(file), metadata=metadata, columns={"a": 0}, groups=range(1)) == {"a"}  # type: ignore[type-var]
    mixed = pa.table({"a": ["x"] * 10 + MANY})
    assert by_place(mixed, row_group_size=10, dictionary_pagesize_limit=30, write_batch_size=1) == set()


def bomb(*, n: int = 8) -> bytes:
    """`n` MiB of one character in a single page, which compression makes a few hundred bytes."""
    table = pa.table({"a": ["x" * (1 << 20)] * n, "b": ["y"] * n, "unwanted": ["z" * (1 << 20)] * n})
    file = io.BytesIO()
    pq.write_table(table, file, use_dictionary=False, compression="zstd", data_page_size=1 << 30)
    return file.getvalue()


def test_pages_that_need_too_much_memory_are_refused_before_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = bomb()
    assert len(data) < 10_000
    monkeypatch.setattr(parquet_pages, "MAX_OPEN_BYTES", 4 << 20)
    counted, usual = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(counted)
    try:
        with pytest.raises(BatchFormatError) as caught:
            list(read_extract(io.BytesIO(data), layout=Layout(columns=("a", "b"))))
    finally:
        pa.set_memory_pool(usual)
    assert str(caught.value) == (
        "row group 1 of the Parquet file has pages of 8 MiB, more than 4: write pages of a megabyte"
    )
    assert counted.max_memory() < 1 << 20
    blocks = list(read_extract(io.BytesIO(data), layout=Layout(columns=("b",))))
    assert sum(len(block.lines) for block in blocks) == 8


def test_the_bound_is_of_all_columns_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_pages, "MAX_OPEN_BYTES", 12 << 20)
    data = bomb()
    assert list(read_extract(io.BytesIO(data), layout=Layout(columns=("a", "b"))))
    with pytest.raises(BatchFormatError, match="pages of 16 MiB, more than 12"):
        list(read_extract(io.BytesIO(data), layout=Layout(columns=("a", "unwanted"))))


def test_statistics_may_make_a_header_long() -> None:
    table = pa.table({"a": ["m" * 3000, "n" * 3000]})
    assert by_place(table, use_dictionary=False) == set()
    assert by_place(table) == {"a"}


def varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def test_every_kind_of_thrift_value_is_passed_over() -> None:
    """Written by the specification of the compact protocol; the last field shows that all were."""
    value = b"".join(
        [
            b"\x11", b"\x12", b"\x13\x05",  # true, false, a byte
            b"\x14" + varint(7), b"\x15" + varint(8), b"\x16" + varint(1 << 40),  # zigzag: -4, 4, 2^39
            b"\x17" + bytes(8), b"\x18" + varint(300) + b"\xff" * 300,  # a double, a text
            b"\x19\x25" + varint(1) + varint(2), b"\x1a\x21\x01\x02",  # a list of numbers, a set of truths
            b"\x19\xf8" + varint(20) + b"\x01x" * 20,  # a long list of texts
            b"\x1c\x15\x02\x00",  # a struct
            b"\x05" + varint(200) + varint(42),  # field 100, written out
            b"\x00",
        ]
    )  # fmt: skip
    fields = _Thrift(value).struct()
    assert (fields[1], fields[2], fields[3], fields[4], fields[5], fields[6]) == (
        True,
        False,
        5,
        -4,
        4,
        1 << 39,
    )
    assert fields[12] == {1: 1}
    assert fields[100] == 21
    for length in range(len(value)):
        with pytest.raises(IndexError):
            _Thrift(value[:length]).struct()


@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_header_or_none(data: bytes) -> None:
    thrift = _Thrift(data)
    try:
        assert isinstance(thrift.struct(), dict)
    except (IndexError, NoPageError):
        return
    assert thrift.at <= len(data)


def test_structs_in_structs_have_an_end() -> None:
    with pytest.raises(NoPageError):
        _Thrift(b"\x1c" * 1000).struct()
