"""Text against Python's csv module and codecs, line by line, however the stream is cut."""

import csv
import gzip
import io
import re
import resource
import tracemalloc
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mobility.base.errors import BatchFormatError
from mobility.extracts.readers import Layout, Source, text
from mobility.extracts.readers import csv as reader
from mobility.extracts.readers.compression import buffered, compression_of, decompressed
from mobility.extracts.readers.opening import read_extract
from reports.studies.studyfile.formats import DELIMITERS
from tests.mobility.extracts.readers.any_file import Dribble, slow_row
from tests.mobility.extracts.rows.small_extract import texts_of

COLUMNS = ("a", "b")


class Found(NamedTuple):
    """Everything that a stream held: (line, value of each column), and the lines that are no rows."""

    rows: list[tuple[int, *tuple[bytes, ...]]]
    misshapen: list[int]
    bad_text: list[int] = []


class Pieces(io.RawIOBase):
    """A stream of these pieces, which no one need hold in memory, and which may raise an error."""

    def __init__(self, pieces) -> None:
        super().__init__()
        self._pieces, self._left = iter(pieces), b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:
        self._left = self._left or next(self._pieces, b"")
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


def read(data: bytes, columns=COLUMNS, *, piece: int = 1 << 20, delimiter=None, source=None) -> Found:
    rows, misshapen, bad_text = [], [], []
    last = 1
    layout = Layout(columns=tuple(columns), delimiter=delimiter)
    for block in read_extract(Dribble(data, piece=piece), layout=layout, source=source):
        assert list(block.columns) == list(columns)
        lines = block.lines.tolist()
        here = sorted(lines + block.misshapen.tolist() + block.bad_text.tolist())
        assert not here or here[0] > last  # blocks come in order and share no line
        last = here[-1] if here else last
        rows += list(zip(lines, *(block.columns[name].to_list() for name in columns), strict=True))
        misshapen += block.misshapen.tolist()
        bad_text += block.bad_text.tolist()
    return Found(rows, misshapen, bad_text)


def failure(data: bytes, columns=COLUMNS, *, delimiter=None) -> str:
    with pytest.raises(BatchFormatError) as caught:
        read(data, columns, delimiter=delimiter)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def by_the_book(data: bytes, columns=COLUMNS, *, separator: str = ",") -> Found:
    found, encoding = Found([], [], []), ""
    header, *lines = re.split(rb"\r\n|\n|\r", data)
    names = next(csv.reader([header.decode("latin-1")], delimiter=separator))
    for number, line in enumerate(lines, start=2):
        if line:
            values, encoding = slow_row(line, names, columns, encoding, separator=separator)
            match values:
                case "wrong_columns":
                    found.misshapen.append(number)
                case "bad_text":
                    found.bad_text.append(number)
                case _:
                    found.rows.append((number, *values))
    return found


def test_end_of_a_line_that_two_blocks_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 16)
    data = b"a,b\r1,2\r3,4\r5,6\r" + b"\n7\n8,9\n"
    assert read(data) == Found([(2, b"1", b"2"), (3, b"3", b"4"), (4, b"5", b"6"), (6, b"8", b"9")], [5])


QUOTED = (
    '"x"', '"x,y"', '"x""y"', '""""', '""', 'x"y"', ' "x"', '"x"y', '"x" ', '"x"y"z"', '"x""', '"x', '"',
    '"""',
)  # fmt: skip
PLAIN = {"separator": ",", "end": "\n", "is_final_end": False, "piece": 40, "block": 60, "columns": COLUMNS}


@settings(max_examples=250)
@given(
    lines=st.lists(st.text(alphabet='x1,;"\x00 é\xc3\xa9', max_size=8), max_size=12),
    separator=st.sampled_from(",;"), end=st.sampled_from(["\n", "\r\n", "\r"]), is_final_end=st.booleans(),
    piece=st.integers(2, 40), block=st.integers(16, 60),
    columns=st.permutations("abc").flatmap(lambda names: st.integers(1, 3).map(lambda n: names[:n])),
)  # fmt: skip
@example(**PLAIN, lines=["1,2,3", "", "4", "5,6,7", "", "", "8,9", "1,2,3,4", "1,1,1", "", "2,2,2"])
@example(**PLAIN, lines=[",,"] * 20)
@example(**PLAIN, lines=[f"1,{quoted},3" for quoted in QUOTED])
@example(**PLAIN, lines=['"",'])
@example(**PLAIN, lines=["é,\xc3\xa9,", "\xc3\xa9,x,x", "é,x,x"])
@example(**PLAIN, lines=[",,", "", ",,x", "   ", '"","",""'])
def test_any_text_is_read_as_the_csv_module_reads_each_line(
    *, lines, separator, end, is_final_end, piece, block, columns
) -> None:
    delimiter = "comma" if separator == "," else "semicolon"
    data = (end.join([separator.join("abc"), *lines]) + end * is_final_end).encode("latin-1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "BLOCK_BYTES", block)
        found = read(data, columns, piece=piece, delimiter=delimiter)
        assert found == by_the_book(data, columns, separator=separator)


def test_header_is_read_by_name() -> None:
    assert read(b"x,b,x,a,y\n1,2,3,4,5\n", ["a", "b"]) == Found([(2, b"4", b"2")], [])
    assert read(b"x,b,x,a,y\n1,2,3,4,5\n", ["b"]) == Found([(2, b"2")], [])
    assert read(b'\xef\xbb\xbf"a","b"\n1,2\n') == Found([(2, b"1", b"2")], [])
    assert read(b"\xef\xbb\xbfb,a\r\n1,2\n") == Found([(2, b"2", b"1")], [])
    assert read("é,b\n1,2\n".encode(), ["é"]) == Found([(2, b"1")], [])


def test_a_line_that_fits_in_no_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 20)
    rows = b"1,2\n" * 6
    assert len(read(b"a,b\n" + rows + b"x" * 17 + b",2\n").rows) == 7
    assert "line 8 is longer than" in failure(b"a,b\n" + rows + b"x" * 40 + b",2\n")
    assert "line 1 is longer than" in failure(b"x" * 40 + b",a,b\n1,2,3\n")


@pytest.mark.parametrize("line", [b"\n", b"1\n", b"1,2\n", b",\n", b'"",""\n', b'"\n'])
def test_memory_has_a_bound(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 1 << 16)
    data = b"a,b\n" + line * ((4 << 20) // len(line))
    layout = Layout(columns=COLUMNS)
    list(read_extract(io.BytesIO(data[:1000]), layout=layout))  # compiled before it is measured
    tracemalloc.start()
    blocks = read_extract(io.BytesIO(data), layout=layout)
    lines = sum(len(block.lines) + len(block.misshapen) for block in blocks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lines == (0 if line == b"\n" else (4 << 20) // len(line))
    assert peak < 40 << 16


SEPARATORS = {"comma": b",", "semicolon": b";", "tab": b"\t", "pipe": b"|"}


@pytest.mark.parametrize("name", DELIMITERS)
def test_delimiter_is_found_or_named(name) -> None:
    byte = SEPARATORS[name]
    others = b"".join(other for other in SEPARATORS.values() if other != byte)
    data = byte.join([b"x", b"b", b"a"]) + b"\n" + byte.join([b"1", others, b'"' + byte + b'"']) + b"\n4\n"
    for delimiter in (None, name):
        source = Source()
        assert read(data, delimiter=delimiter, source=source) == Found([(2, byte, others)], [3])
        assert source.delimiter == name


def test_delimiter_that_was_named_is_not_guessed_and_one_that_is_not_clear_must_be() -> None:
    assert "header (separator: semicolon; fields: 1)" in failure(b"a,b\n1,2\n", delimiter="semicolon")
    assert read(b"a\n1\n2,3\n", ["a"]) == Found([(2, b"1")], [3])  # one column needs none
    data = b"p;a;b;q,a,b,r\n1,2,3,4\n"
    fits_two = "line 1: the header matches “comma”, “semicolon”: choose one of them in the profile"
    assert (failure(data), read(data, delimiter="comma")) == (fits_two, Found([(2, b"2", b"3")], []))


# Bytes at which the rules of UTF-8 change.
EDGES = bytes.fromhex("00417f80 8f909fa0bf c0c1c2dfe0e1ecedeeeff0f1f3f4f5ff")


def kind_of(value: bytes) -> int:
    if b"\0" in value:
        return text.NUL_ROW
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return text.OTHER_ROW
    return text.ASCII_ROW if value.isascii() else text.UTF8_ROW


def kinds(rows: list[list[bytes]]) -> list[int]:
    """Kinds of rows whose fields lie side by side, so that reading past an end shows."""
    fields = [field for row in rows for field in row]
    ends = np.cumsum([len(field) for field in fields], dtype=np.int32).reshape(len(rows), -1)
    begins = ends - np.array([[len(field) for field in row] for row in rows], np.int32)
    begins, ends = np.array([begins.T, ends.T], order="C")  # as readers have them
    return text.kinds_of_rows(np.frombuffer(b"".join(fields), np.uint8), begins, ends).tolist()


some_bytes = (
    st.lists(st.sampled_from(EDGES), max_size=6).map(bytes)
    | st.binary(max_size=5)
    | st.text(max_size=3).map(lambda text: text.encode("utf-8", "surrogatepass"))
)


@given(rows=st.lists(st.lists(some_bytes, min_size=2, max_size=2), min_size=1, max_size=20))
@example(rows=[[b"\xc3", b"\xa9"], [b"\xf0\x9f\x98", b"\x80"], [b"\xed\xa0\x80", b""], [b"\xc0\x80", b""]])
def test_a_row_is_the_worst_of_its_fields(rows: list[list[bytes]]) -> None:
    assert kinds(rows) == [max(kind_of(field) for field in row) for row in rows]


def test_every_pair_of_bytes_and_every_edge_of_longer_ones() -> None:
    pairs = [bytes([one, other]) for one in range(256) for other in range(256)]
    triples = [bytes([a, b, c]) for a in EDGES for b in EDGES for c in EDGES]
    values = pairs + triples + [bytes([a, b, c, 0x80]) for a in EDGES for b in EDGES for c in EDGES]
    assert kinds([[value] for value in values]) == [kind_of(value) for value in values]


@given(values=st.lists(st.binary(max_size=8), min_size=1))
def test_latin1_leaves_as_utf8(values: list[bytes]) -> None:
    expected = [value.decode("latin-1").encode() for value in values]
    assert text.latin1_as_utf8(texts_of(values)).to_list() == expected


@given(data=st.binary(max_size=40) | st.lists(st.sampled_from(EDGES), max_size=6).map(bytes))
def test_plain_is_ascii_and_utf8_as_a_whole(data: bytes) -> None:
    assert text.is_plain(np.frombuffer(data, np.uint8)) == (data.isascii() and b"\0" not in data)
    assert b"\0" in data or text.is_utf8(np.frombuffer(data + bytes(64), np.uint8), len(data)) == (
        kind_of(data) in (text.ASCII_ROW, text.UTF8_ROW)
    )


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"a,b\n1,2\n", "utf-8"), (b"\xef\xbb\xbfa,b\n1,2\n", "utf-8"), ("a,b\n1,é\n".encode(), "utf-8"),
        (b"a,b\n1,\xe9\n", "latin-1"), (b"a,b,\xe9\n1,2,3\n", "latin-1"),
        ("a,b,é\n1,2,3\n".encode(), "utf-8"), (b"a,b,c\n1,2,\xe9\n", "utf-8"),  # not asked for
        (b"a,b\n1,\0\xe9\n", "utf-8"),  # nor does a row that is no text say anything
    ],
)  # fmt: skip
def test_encoding_is_found_out_and_told(data: bytes, encoding: str) -> None:
    source = Source()
    read(data, source=source)
    assert source.facts() == {"format": "csv", "delimiter": "comma", "encoding": encoding}


# --- compressed streams: members, frames and pieces of any size, and bombs that stay small ------------------
DATA = b"a,b\n1,2\n\n3\n4,5\n"
FOUND = Found([(2, b"1", b"2"), (5, b"4", b"5")], [4])
DAMAGED = "the gzip stream is damaged or ends early"
SKIPPABLE = b"\x5a\x2a\x4d\x18" + b"\x03\x00\x00\x00" + b"any"


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


def failing_disk(data: bytes):
    for start in range(0, len(data), 10):
        yield data[start : start + 10]
    raise OSError(5, "Input/output error")


class TestCompressed:
    @pytest.mark.parametrize("block", [16, 64, reader.BLOCK_BYTES])
    @pytest.mark.parametrize(("pack", "between"), [(gzip.compress, b""), (zstd, SKIPPABLE)])
    def test_several_members_or_frames_wherever_they_are_cut(self, pack, between, block, monkeypatch) -> None:
        monkeypatch.setattr(reader, "BLOCK_BYTES", block)
        for cut in range(len(DATA) + 1):
            packed = pack(DATA[:cut]) + pack(b"") + between + pack(DATA[cut:])
            assert (read(packed, piece=5), read(between + packed)) == (FOUND, FOUND)

    def test_truncated_gzip_is_refused(self) -> None:
        assert read(gzip.compress(DATA) + bytes(100)) == FOUND  # padded with zeros it is complete
        packed = gzip.compress(b"a,b\n33699887766,2\n")
        two = packed + packed
        for length in [*range(2, len(packed)), *range(len(packed) + 1, len(two))]:
            assert DAMAGED in failure(two[:length])
        for garbage in (b"1,2\n", b"\x00\x001,2\n", b"\x1f", b"\x1f\x8b"):
            assert DAMAGED in failure(packed + garbage)

    @pytest.mark.parametrize(("pack", "least"), [(gzip.compress, 0.9), (zstd, 0.1)])
    def test_altered_bytes_are_refused_or_make_no_difference(self, pack, least) -> None:
        packed = pack(b"a,b\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(40)))
        whole, refused = read(packed), 0
        for place in range(len(packed)):
            try:
                found = read(packed[:place] + bytes([packed[place] ^ 0x80]) + packed[place + 1 :])
                assert found == whole or pack is zstd
            except BatchFormatError:
                refused += 1
        assert refused > least * (len(packed) - 10)  # the header says little

    def test_compression_is_told_by_the_first_bytes(self) -> None:
        assert compression_of(gzip.compress(b"")) == "gzip"
        assert compression_of(zstd(b"")) == compression_of(SKIPPABLE) == "zstd"
        assert compression_of(b"a,b\n") == compression_of(b"") == ""
        for pack, name in ((gzip.compress, "gzip"), (zstd, "zstd")):
            source = Source()
            read(pack(DATA), source=source)
            assert source.compression == name

    @pytest.mark.parametrize("pack", [gzip.compress, zstd])
    def test_a_bomb_is_never_larger_than_a_few_buffers(self, pack: type[bytes]) -> None:
        size = 1 << 28
        packed = pack(bytes(size))
        assert len(packed) < size // 900
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        pool = pa.default_memory_pool()
        tracemalloc.start()
        plain = decompressed(buffered(io.BytesIO(packed)), compression=compression_of(packed))
        total, arrow, part = 0, 0, bytearray(1 << 16)
        while n := plain.readinto(part):
            total += n
            arrow = max(arrow, pool.bytes_allocated())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert total == size
        assert peak < 4 << 20
        assert arrow < 8 << 20
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40 << 10  # KiB

    @pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
    def test_errors_of_the_disk_are_not_the_files(self, pack: type[bytes]) -> None:
        with pytest.raises(OSError, match=r"\[Errno 5\] Input/output error"):
            list(read_extract(Pieces(failing_disk(pack(DATA * 100)[:-12])), layout=Layout(columns=COLUMNS)))
