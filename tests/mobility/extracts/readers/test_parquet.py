"""Parquet against pyarrow reading the whole file at once, and its bounds; pages, before they are read."""

import io
from contextlib import contextmanager
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobility.base.errors import BatchFormatError, SealBrokenError
from mobility.batches import staging
from mobility.batches.staging import UploadReader
from mobility.batches.storages import Pieces, staging_storage
from mobility.extracts.profiles.errors import PreviewError
from mobility.extracts.profiles.sample import read_sample
from mobility.extracts.readers import Layout, Source, Texts, parquet, parquet_footer, parquet_pages
from mobility.extracts.readers.compression import buffered
from mobility.extracts.readers.opening import read_extract
from mobility.extracts.readers.parquet import group_sizes
from mobility.extracts.readers.parquet_pages import check_pages
from mobility.extracts.readers.thrift import NoPageError, Thrift
from mobility.extracts.rows.events import NO_VALUE
from mobility.extracts.rows.lookups import CodeTable
from tests.mobility.batches.staged import staged
from tests.mobility.extracts.readers.any_file import written

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


def read(stream: Any, *names: str, timestamp: str | None = None):
    return read_extract(stream, layout=Layout(columns=names, timestamp=timestamp, timestamp_format="epoch_s"))


def blocks_of(*args: Any, **options: Any):
    return list(read(*args, **options))


@contextmanager
def counted_memory():
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    try:
        yield counted
    finally:
        pa.set_memory_pool(usual)


def values_of(blocks, name: str) -> list[Any]:
    return [value for block in blocks for value in block.columns[name].to_list()]


def as_text(value: Any) -> bytes:
    if value is None:
        return b""
    return value if isinstance(value, bytes) else str(value).encode()


OPTIONS = st.fixed_dictionaries({
    "row_group_size": st.integers(1, 50), "use_dictionary": st.booleans(), "store_schema": st.booleans(),
    "compression": st.sampled_from(["none", "snappy", "gzip", "zstd", "lz4", "brotli"]),
    "data_page_version": st.sampled_from(["1.0", "2.0"]), "data_page_size": st.sampled_from([10, 1 << 20]),
})  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, dict[str, Any]]:
    names = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=4, unique=True))
    n = draw(st.integers(0, 40))
    columns = {
        name: pa.array(draw(st.lists(TYPES[name][1], min_size=n, max_size=n)), TYPES[name][0])
        for name in names
    }
    unit = draw(st.sampled_from(["s", "ms", "us", "ns"]))
    zone = draw(st.sampled_from([None, "UTC", "Europe/Paris"]))
    columns["time"] = pa.array(draw(st.lists(STAMPS, min_size=n, max_size=n)), pa.timestamp(unit, tz=zone))
    return pa.table(columns), draw(OPTIONS)


@settings(max_examples=80)
@given(made=tables(), batch=st.integers(1, 45))
def test_whatever_pyarrow_reads_at_once_is_read_in_blocks(made, batch) -> None:
    table, options = made
    data = written(table, **options)
    whole = pq.read_table(io.BytesIO(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "BATCH_ROWS", [batch])
        blocks = blocks_of(UploadReader(staged(data)), *table.column_names, timestamp="time")
    for name in table.column_names[:-1]:
        assert values_of(blocks, name) == [as_text(value) for value in whole[name].to_pylist()], name
    times = [time for block in blocks for time in block.columns["time"].cast(pa.int64()).to_pylist()]
    assert times == whole["time"].cast(pa.int64()).to_pylist()
    assert [line for block in blocks for line in block.lines.tolist()] == list(range(1, len(table) + 1))
    assert all(len(block.lines) <= batch for block in blocks)


def test_rows_that_are_no_text_are_named_and_the_others_kept() -> None:
    names = pa.array([b"1", b"\xff", b"3", b"\xc3\xa9", b"5", None], pa.binary())
    table = pa.table({"a": names, "b": pa.array(["x", "x", "y\0", "z", None, "x"]).dictionary_encode()})
    for group in (1, 2, 6):
        blocks = blocks_of(io.BytesIO(written(table, row_group_size=group)), "b", "a")
        assert values_of(blocks, "a") == [b"1", "é".encode(), b"5", b""]
        assert values_of(blocks, "b") == [b"x", b"z", b"", b"x"]
        assert [line for block in blocks for line in block.lines.tolist()] == [1, 4, 5, 6]
        assert [line for block in blocks for line in block.bad_text.tolist()] == [2, 3]


def test_texts_of_a_dictionary_that_no_row_has_are_not_judged() -> None:
    values = pa.array([b"\xff", b"x", b"y", b"\0"], pa.binary())
    table = pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([1, 2, None, 1], pa.int32()), values)})
    (block,) = blocks_of(io.BytesIO(written(table)), "a")
    assert (block.texts("a").to_list(), len(block.bad_text)) == ([b"x", b"y", b"", b"x"], 0)
    assert len(block.texts("a").begins) > len(values)  # else the file has no such texts


def test_each_dictionary_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[int] = []
    monkeypatch.setattr(CodeTable, "_look_up", noting(CodeTable._look_up, looked_up))
    monkeypatch.setattr(parquet, "BATCH_ROWS", [100])
    names = [f"value-{n % 300}" for n in range(1000)] + ["value-7", None] * 50
    table, codes = CodeTable({f"value-{n}".encode(): n for n in range(300)}), []
    data = written(pa.table({"a": pa.array(names)}), row_group_size=1000)
    for block in read(io.BytesIO(data), "a"):
        codes += table.codes(block.texts("a")).tolist()
    assert codes == [n % 300 for n in range(1000)] + [7, int(NO_VALUE)] * 50
    assert looked_up == [301, 2]  # the texts of each row group, and the empty one
    monkeypatch.setattr(parquet, "MAX_LOOKED_UP", 1)
    found = [code for block in read(io.BytesIO(data), "a") for code in table.codes(block.texts("a")).tolist()]
    assert (found, looked_up[2:]) == (codes, [100] * 10 + [2])


def noting(look_up: Any, sizes: list[int]) -> Any:
    def noted(table: CodeTable, texts: Texts, codes: Any) -> None:
        sizes.append(len(texts.begins))
        look_up(table, texts, codes)

    return noted


@pytest.mark.parametrize("places", [[0, 2], [-1, 0], [2, None], [-1, None]])
def test_places_outside_a_dictionary_are_refused(places: list[int | None]) -> None:
    with pytest.raises(pa.ArrowInvalid):
        parquet._places(pa.array(places, pa.int32()), n_texts=2)


def test_columns_are_found_by_their_whole_name_and_others_are_not_read() -> None:
    noise = [[str(n)] * 3 for n in range(1000)]
    table = pa.table({"a": ["1"] * 1000, "odd.name": ["2"] * 1000, "odd": [{"name": "3"}] * 1000, "x": noise})
    source, layout = Source(), Layout(columns=("odd.name", "a"))
    blocks = list(read_extract(io.BytesIO(written(table)), layout=layout, source=source))
    assert (values_of(blocks, "odd.name"), source.facts()) == ([b"2"] * 1000, {"format": "parquet"})


def test_memory_has_a_bound_in_a_row_group_of_any_size() -> None:
    n = 1_000_000
    table = pa.table({"a": pa.array([f"subscriber-{i:020d}" for i in range(n)]), "b": ["x"] * n})
    data = written(table, row_group_size=n, compression="none")
    del table
    with counted_memory() as memory:
        rows = sum(len(block.lines) for block in read(io.BytesIO(data), "a", "b"))
    assert rows == n
    assert 0 < memory.max_memory() < 20 << 20


def test_rows_that_are_long_come_in_smaller_blocks() -> None:
    n = 150_000
    short, long = pa.table({"a": range(n)}), pa.table({"a": [f"{i:0100d}" for i in range(n)]})
    for table, rows in ((short, [96 << 10, n - (96 << 10)]), (long, [64 << 10] * 2 + [n - (128 << 10)])):
        data = written(table, row_group_size=n, use_dictionary=False)
        assert [len(block.lines) for block in read(io.BytesIO(data), "a")] == rows

    # Few are written out, and Arrow writes all out that is no place in a dictionary everywhere.
    mixed = pa.table({"a": [f"{i % 10:0100d}" for i in range(n)] + [f"{i:0100d}" for i in range(3000)]})
    data = written(mixed, row_group_size=n + 3000, dictionary_pagesize_limit=10_000, write_batch_size=1000)
    assert len(data) < 1 << 20
    assert next(len(block.lines) for block in read(io.BytesIO(data), "a")) == 64 << 10


def test_a_frame_that_was_altered_is_no_damaged_parquet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "FRAME_BYTES", 100)
    batch = staged(written(pa.table({"a": ["1"] * 100})))
    name = f"{batch.pk}/upload-000000"
    spoiled = bytearray(staging_storage().read_range(name))
    spoiled[10] ^= 1
    staging_storage().save(name, Pieces([bytes(spoiled)]))
    with pytest.raises(SealBrokenError, match="frame 0"):
        blocks_of(UploadReader(batch), "a")


def test_errors_of_the_disk_are_its_own() -> None:
    class Failing(io.BytesIO):
        def readinto(self, buffer: Any, /) -> int:
            if self.tell() < 8 and len(buffer) > 8:
                raise OSError(5, "Input/output error")
            return super().readinto(buffer)

    data = written(pa.table({"a": [str(n) for n in range(100_000)]}), compression="none")
    with pytest.raises(OSError, match=r"\[Errno 5\] Input/output error"):
        blocks_of(Failing(data), "a")


@settings(max_examples=150)
@given(data=st.data())
def test_no_alteration_crashes_the_reader(data: st.DataObject) -> None:
    table = pa.table({"a": [str(n) for n in range(50)], "b": list(range(50))})
    spoiled = bytearray(written(table, compression="none", write_page_checksum=data.draw(st.booleans())))
    for _ in range(data.draw(st.integers(1, 6))):
        spoiled[data.draw(st.integers(0, len(spoiled) - 1))] = data.draw(st.integers(0, 255))
    try:
        blocks = blocks_of(io.BytesIO(bytes(spoiled)), "a", "b")
    except BatchFormatError:
        return
    assert all(len(block.columns["a"]) == len(block.lines) for block in blocks)


def test_a_page_before_the_beginning_of_the_file_is_refused() -> None:
    table = pa.table({"a": [str(n) for n in range(50)], "b": list(range(50))})
    spoiled = bytearray(written(table, compression="none", write_page_checksum=True))
    spoiled[1082] = 129  # the place of the first page, in the footer
    with pytest.raises(BatchFormatError, match="damaged"):
        blocks_of(io.BytesIO(bytes(spoiled)), "a", "b")


ENCRYPTED = b"\x5c\x2c\x19\x18\x01a\x00\x00"  # with the key of a column
LEVELS = b"\x0c\x20\x29\x26\x00\x00\x00"  # a histogram of two levels, of which the column has one


@pytest.mark.parametrize(
    ("columns", "of_list"),
    [(b"", b"\x0c"), (b"CC", b"\x2c"), (b"C" * 9, b"\x9c"), (b"E", b"\x1c"), (b"L", b"\x1c")],
    ids=["none", "twice", "nine", "encrypted", "levels"],
)
def test_columns_that_arrow_would_end_the_process_for_are_refused(columns: bytes, of_list: bytes) -> None:
    data = written(pa.table({"a": ["x", "y"]}), compression="none", write_statistics=False)
    length = int.from_bytes(data[-8:-4], "little")
    body, footer = data[: -8 - length], data[-8 - length : -8]
    # The list of the columns of the only row group, up to the bytes of the group.
    start = footer.index(b"\x19\x1c\x19\x1c\x26") + 4
    reader = Thrift(footer, start)
    reader.struct()
    column = footer[start : reader.at]
    changed = columns.replace(b"C", column).replace(b"E", column[:-1] + ENCRYPTED + b"\x00")
    changed = changed.replace(b"L", column[:-2] + LEVELS + b"\x00\x00")
    footer = footer[: start - 1] + of_list + changed + footer[reader.at :]
    spoiled = body + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    if columns == b"L":  # the rows can be counted, but not read
        assert [rows for rows, _ in group_sizes(buffered(io.BytesIO(spoiled)))] == [2]
    else:
        with pytest.raises(BatchFormatError, match="damaged"):
            group_sizes(buffered(io.BytesIO(spoiled)))
    with pytest.raises(BatchFormatError, match="damaged"):
        blocks_of(io.BytesIO(spoiled), "a")
    with pytest.raises(PreviewError, match="damaged"):
        read_sample(spoiled, size=len(spoiled))


def test_long_values_of_a_dictionary_are_not_written_out_for_every_row() -> None:
    n, long = 70_000, "x" * 100_000
    texts = pa.array([long, *map(str, range(n))])
    places = pa.array([0] * n + list(range(n)), pa.int32())
    table = pa.table({"a": pa.DictionaryArray.from_arrays(places, texts)})
    data = written(table, dictionary_pagesize_limit=1 << 24, row_group_size=2 * n)
    with counted_memory() as memory:
        rows = sum(len(block.lines) for block in read(io.BytesIO(data), "a"))
    assert rows == 2 * n
    assert memory.max_memory() < 32 << 20


FEW = ["a", "b", None] * 400
MANY = [f"value-{n:06d}" for n in range(1200)]
WRITERS = [
    {"data_page_version": version, "compression": compression, "data_page_size": size, "row_group_size": rows}
    for version, compression in product(("1.0", "2.0"), ("none", "zstd"))
    for size, rows in product((50, 1 << 20), (100, 5000))
]


def by_place(table: pa.Table, **options) -> set[str]:
    data = written(table, **options)
    file, columns = buffered(io.BytesIO(data)), {name: place for place, name in enumerate(table.column_names)}
    row_groups = parquet_footer.read_row_groups(file, size=len(data), n_columns=len(columns))
    found = check_pages(file, row_groups=row_groups, columns=columns, groups=range(len(row_groups)))
    return found.by_place


@pytest.mark.parametrize("options", WRITERS, ids=lambda options: "-".join(map(str, options.values())))
def test_columns_that_are_in_a_dictionary_throughout(options) -> None:
    table = pa.table({"few": FEW, "many": MANY, "number": range(1200)})
    assert by_place(table, use_dictionary=False, **options) == set()
    assert by_place(table, use_dictionary=["few"], **options) == {"few"}
    assert by_place(table, **options) == {"few", "many", "number"}
    # A dictionary that becomes too large is given up: the rest of the column are values.
    small = options | {"data_page_size": 50, "row_group_size": 5000}
    assert by_place(table, dictionary_pagesize_limit=500, write_batch_size=10, **small) == {"few"}


def test_one_row_group_without_dictionary_is_enough() -> None:
    few, mixed = pa.table({"a": ["x"] * 10}), pa.table({"a": ["x"] * 10 + MANY})
    assert by_place(few) == {"a"}
    assert by_place(mixed, row_group_size=10, dictionary_pagesize_limit=30, write_batch_size=1) == set()
    long = pa.table({"a": ["m" * 3000, "n" * 3000]})  # statistics may make a header long
    assert (by_place(long, use_dictionary=False), by_place(long)) == (set(), {"a"})


def test_pages_that_need_too_much_memory_are_refused_before_they_are_read(monkeypatch) -> None:
    table = pa.table({"a": ["x" * (1 << 20)] * 8, "b": ["y"] * 8, "unwanted": ["z" * (1 << 20)] * 8})
    data = written(table, use_dictionary=False, compression="zstd", data_page_size=1 << 30)  # a page each
    assert len(data) < 10_000
    monkeypatch.setattr(parquet_pages, "MAX_OPEN_BYTES", 4 << 20)
    with counted_memory() as memory, pytest.raises(BatchFormatError) as caught:
        blocks_of(io.BytesIO(data), "a", "b")
    said = "row group 1 of the Parquet file has pages of 8 MiB, more than 4: write pages of about 1 MB"
    assert str(caught.value) == said
    assert memory.max_memory() < 1 << 20
    assert sum(len(block.lines) for block in read(io.BytesIO(data), "b")) == 8
    monkeypatch.setattr(parquet_pages, "MAX_OPEN_BYTES", 12 << 20)
    assert blocks_of(io.BytesIO(data), "a", "b")
    with pytest.raises(BatchFormatError, match="pages of 16 MiB, more than 12"):  # of all columns together
        blocks_of(io.BytesIO(data), "a", "unwanted")


def shared_pages(*, groups: int) -> bytes:
    """A file whose footer names its one row group again and again: rows without bytes."""
    metadata = io.BytesIO()
    data = written(pa.table({"a": ["x"] * 10_000}))
    one = pq.read_metadata(io.BytesIO(data))
    many = pq.read_metadata(io.BytesIO(data))
    for _ in range(groups - 1):
        many.append_row_groups(one)
    many.write_metadata_file(metadata)
    return data[: -8 - int.from_bytes(data[-8:-4], "little")] + metadata.getvalue()[4:]


TOO_MUCH = [
    (lambda: shared_pages(groups=2_000), "FREE_ROWS", 1_000_000, r"declares 20000000 rows in \d+ bytes"),
    (lambda: shared_pages(groups=11), "MAX_ROW_GROUPS", 10, "has 11 row groups, more than 10"),
    (
        lambda: written(pa.table({"a": ["x"]})), "MAX_FOOTER_BYTES", 100,
        "the footer of the Parquet file has 0 MiB, more than 0",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("made", "limit", "most", "said"), TOO_MUCH, ids=["rows", "row groups", "footer"])
def test_a_footer_that_announces_too_much_is_refused_with_its_reason(made, limit, most, said, monkeypatch):
    data = made()
    monkeypatch.setattr(parquet_footer, limit, most)
    monkeypatch.setattr(parquet_footer, "MAX_ROWS_PER_BYTE", 1)
    with pytest.raises(BatchFormatError, match=said):
        blocks_of(io.BytesIO(data), "a")
    with pytest.raises(BatchFormatError, match=said):
        group_sizes(buffered(io.BytesIO(data)))


def test_a_column_of_too_many_pages_is_refused_at_the_first_page_too_many(monkeypatch) -> None:
    data = written(pa.table({"a": list(map(str, range(5_000)))}), use_dictionary=False, data_page_size=1,
                   write_batch_size=1)  # fmt: skip
    assert sum(len(block.lines) for block in read(io.BytesIO(data), "a")) == 5_000
    monkeypatch.setattr(parquet_pages, "MAX_PAGES", 100, raising=False)
    with pytest.raises(BatchFormatError, match="column “a” has more than 100 pages in row group 1"):
        blocks_of(io.BytesIO(data), "a")


def varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def test_every_kind_of_thrift_value_is_passed_over() -> None:
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
    fields = Thrift(value).struct()
    assert [fields[number] for number in range(1, 7)] == [True, False, 5, -4, 4, 1 << 39]
    assert (fields[12], fields[100]) == ({1: 1}, 21)
    for length in range(len(value)):
        with pytest.raises(IndexError):
            Thrift(value[:length]).struct()
    with pytest.raises(NoPageError):  # structs in structs have an end
        Thrift(b"\x1c" * 1000).struct()
    with pytest.raises(NoPageError):  # and so do lists in lists
        Thrift(b"\x19" * 10_000).struct()
    with pytest.raises(NoPageError):  # Arrow takes this field, 2 ** 16 + 4, for field 4
        Thrift(b"\x05\x88\x80\x08\x00\x00").struct()
