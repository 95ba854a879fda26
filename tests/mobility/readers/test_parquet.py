"""Parquet against pyarrow reading the whole file at once, and its bounds."""

import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobility.errors import BatchFormatError, SealBrokenError
from mobility.readers import Layout, RowBlock, Source, parquet
from mobility.readers.opening import read_extract
from mobility.services import staging
from mobility.services.staging import UploadReader
from mobility.storages import Pieces, staging_storage
from tests.mobility.staged import staged

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
STAMPS = st.none() | st.integers(-(2**33), 2**33)
TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "string": (pa.string(), st.none() | TEXT),
    "large": (pa.large_string(), st.none() | TEXT),
    "view": (pa.string_view(), st.none() | TEXT),
    "binary": (pa.binary(), st.none() | TEXT.map(str.encode)),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), st.none() | st.sampled_from(["a", "bb", "Ä", ""])),
    "int8": (pa.int8(), st.none() | st.integers(-128, 127)),
    "int64": (pa.int64(), st.none() | st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.none() | st.integers(0, 2**64 - 1)),
    "decimal": (pa.decimal128(38, 0), st.none() | st.integers(-(10**37), 10**37).map(Decimal)),
    "null": (pa.null(), st.none()),
}  # fmt: skip


def written(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def sealed(plain: bytes) -> UploadReader:
    return UploadReader(staged(plain))


def blocks_of(stream: Any, *names: str, timestamp: str | None = None) -> list[RowBlock]:
    layout = Layout(columns=names, timestamp=timestamp, timestamp_format="epoch_s")
    return list(read_extract(stream, layout=layout))


def values_of(blocks: list[RowBlock], name: str) -> list[Any]:
    return [value for block in blocks for value in block.columns[name].to_list()]


def as_text(value: Any) -> bytes:
    """What a CSV file would hold."""
    if value is None:
        return b""
    return value if isinstance(value, bytes) else str(value).encode()


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, dict[str, Any]]:
    """Columns of some types in some order, and a way to write them."""
    names = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=4, unique=True))
    n = draw(st.integers(0, 40))
    columns = {
        name: pa.array(draw(st.lists(TYPES[name][1], min_size=n, max_size=n)), TYPES[name][0])
        for name in names
    }
    unit = draw(st.sampled_from(["s", "ms", "us", "ns"]))
    zone = draw(st.sampled_from([None, "UTC", "Europe/Paris"]))
    columns["time"] = pa.array(draw(st.lists(STAMPS, min_size=n, max_size=n)), pa.timestamp(unit, tz=zone))
    options = {
        "row_group_size": draw(st.integers(1, 50)),
        "use_dictionary": draw(st.booleans()),
        "compression": draw(st.sampled_from(["none", "snappy", "gzip", "zstd", "lz4", "brotli"])),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
        "data_page_size": draw(st.sampled_from([10, 1 << 20])),
        "store_schema": draw(st.booleans()),
    }
    return pa.table(columns), options


@settings(max_examples=150)
@given(made=tables(), batch=st.integers(1, 45))
def test_whatever_pyarrow_reads_at_once_is_read_in_blocks(
    made: tuple[pa.Table, dict[str, Any]], batch: int
) -> None:
    table, options = made
    data = written(table, **options)
    whole = pq.read_table(io.BytesIO(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "BATCH_ROWS", batch)
        blocks = blocks_of(sealed(data), *table.column_names, timestamp="time")
    for name in table.column_names:
        values = whole[name].to_pylist() if name != "time" else whole[name].cast(pa.int64()).to_pylist()
        found = values_of(blocks, name) if name != "time" else [
            value for block in blocks for value in block.columns[name].cast(pa.int64()).to_pylist()
        ]  # fmt: skip
        assert found == (values if name == "time" else [as_text(value) for value in values]), name
    lines = [line for block in blocks for line in block.lines.tolist()]
    assert lines == list(range(1, len(table) + 1))
    assert all(len(block.lines) <= batch for block in blocks)


def test_rows_that_are_no_text_are_named_and_the_others_kept() -> None:
    table = pa.table(
        {
            "a": pa.array([b"1", b"\xff", b"3", b"\xc3\xa9", b"5", None], pa.binary()),
            "b": pa.array(["x", "x", "y\0", "z", None, "x"]).dictionary_encode(),
        }
    )
    for group in (1, 2, 6):
        blocks = blocks_of(io.BytesIO(written(table, row_group_size=group)), "b", "a")
        assert values_of(blocks, "a") == [b"1", "é".encode(), b"5", b""]
        assert values_of(blocks, "b") == [b"x", b"z", b"", b"x"]
        assert [line for block in blocks for line in block.lines.tolist()] == [1, 4, 5, 6]
        assert [line for block in blocks for line in block.bad_text.tolist()] == [2, 3]


def test_other_columns_are_not_read() -> None:
    noise = [[str(n)] * 3 for n in range(1000)]
    data = written(pa.table({"a": ["1"] * 1000, "odd.name": ["2"] * 1000, "x": noise}))
    source = Source()
    blocks = list(read_extract(io.BytesIO(data), layout=Layout(columns=("odd.name", "a")), source=source))
    assert values_of(blocks, "odd.name") == [b"2"] * 1000
    assert source.facts() == {"format": "parquet"}


def test_columns_of_nested_names_are_not_mistaken() -> None:
    data = written(pa.table({"a": [{"b": "inner"}], "a.b": ["outer"]}))
    assert values_of(blocks_of(io.BytesIO(data), "a.b"), "a.b") == [b"outer"]


def test_memory_has_a_bound_in_a_row_group_of_any_size() -> None:
    """A million rows in one group: 30 MB of values that differ."""
    n = 1_000_000
    table = pa.table({"a": pa.array([f"subscriber-{i:020d}" for i in range(n)]), "b": ["x"] * n})
    data = written(table, row_group_size=n, compression="none")
    del table
    usual, counted = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(counted)
    try:
        rows = sum(
            len(block.lines) for block in read_extract(io.BytesIO(data), layout=Layout(columns=("a", "b")))
        )
    finally:
        pa.set_memory_pool(usual)
    assert rows == n
    assert 0 < counted.max_memory() < 20 << 20


def test_a_frame_that_was_altered_is_no_damaged_parquet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage that was tampered with says so, and is not blamed on the sender's file."""
    monkeypatch.setattr(staging, "FRAME_BYTES", 100)
    batch = staged(written(pa.table({"a": ["1"] * 100})))
    name = f"{batch.pk}/upload-000000"
    spoiled = bytearray(staging_storage().read_range(name))
    spoiled[10] ^= 1
    staging_storage().save(name, Pieces([bytes(spoiled)]))
    with pytest.raises(SealBrokenError, match="frame 0"):
        blocks_of(UploadReader(batch), "a")


class Failing(io.BytesIO):
    """A disk that fails when the columns are read."""

    def readinto(self, buffer: Any, /) -> int:
        if self.tell() < 8 and len(buffer) > 8:
            raise OSError(5, "Input/output error")
        return super().readinto(buffer)


def test_errors_of_the_disk_are_its_own() -> None:
    data = written(pa.table({"a": [str(n) for n in range(100_000)]}), compression="none")
    with pytest.raises(OSError, match="Input/output error") as caught:
        blocks_of(Failing(data), "a")
    assert caught.value.errno == 5


@settings(max_examples=300)
@given(data=st.data())
def test_no_alteration_crashes_the_reader(data: st.DataObject) -> None:
    """Bytes changed anywhere: the file is refused, or read without an error of another kind."""
    table = pa.table({"a": [str(n) for n in range(50)], "b": list(range(50))})
    spoiled = bytearray(written(table, compression="none", write_page_checksum=data.draw(st.booleans())))
    for _ in range(data.draw(st.integers(1, 6))):
        spoiled[data.draw(st.integers(0, len(spoiled) - 1))] = data.draw(st.integers(0, 255))
    try:
        blocks = blocks_of(io.BytesIO(bytes(spoiled)), "a", "b")
    except BatchFormatError:
        return
    assert all(len(block.columns["a"]) == len(block.lines) for block in blocks)


def test_long_values_of_a_dictionary_are_not_written_out_for_every_row() -> None:
    """70,000 rows that share a value of 100 kB, in a dictionary with more entries than rows of a block."""
    n, long = 70_000, "x" * 100_000
    texts = pa.array([long, *map(str, range(n))])
    places = pa.array([0] * n + list(range(n)), pa.int32())
    table = pa.table({"a": pa.DictionaryArray.from_arrays(places, texts)})
    data = written(table, dictionary_pagesize_limit=1 << 24, row_group_size=2 * n)
    usual, counted = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(counted)
    try:
        rows = sum(
            len(block.lines) for block in read_extract(io.BytesIO(data), layout=Layout(columns=("a",)))
        )
    finally:
        pa.set_memory_pool(usual)
    assert rows == 2 * n
    assert counted.max_memory() < 32 << 20
