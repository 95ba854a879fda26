"""Text against Python's csv module, line by line, however the stream is cut."""

import csv
import gzip
import io
import re
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mobility.errors import BatchFormatError
from mobility.readers import Layout, Source
from mobility.readers import csv as reader
from mobility.readers.opening import read_extract
from reports.studyfile.formats import DELIMITERS, Delimiter

COLUMNS = ("a", "b")
MARKER = b"33699887766"


def gzipped(data: bytes) -> bytes:
    """The same bytes in every process: they name a test."""
    return gzip.compress(data, mtime=0)


class Found(NamedTuple):
    """Everything that a stream held: (line, value of each column), and the lines that are no rows."""

    rows: list[tuple[int, *tuple[bytes, ...]]]
    misshapen: list[int]
    bad_text: list[int] = []


class Dribble(io.RawIOBase):
    """A stream that gives a few bytes at a time, as a network or a pipe may."""

    def __init__(self, data: bytes, *, piece: int) -> None:
        super().__init__()
        self._data = io.BytesIO(data)
        self._piece = piece

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        return self._data.readinto(buffer[: self._piece])


@pytest.fixture(params=[16, 32, 64, reader.BLOCK_BYTES])
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", request.param)


def read(
    data: bytes,
    columns: Sequence[str] = COLUMNS,
    *,
    piece: int = 1 << 20,
    delimiter: Delimiter | None = None,
    source: Source | None = None,
) -> Found:
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


def failure(data: bytes, columns: Sequence[str] = COLUMNS, *, delimiter: Delimiter | None = None) -> str:
    with pytest.raises(BatchFormatError) as caught:
        read(data, columns, delimiter=delimiter)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def by_the_book(data: bytes, columns: Sequence[str] = COLUMNS, *, separator: str = ",") -> Found:
    """Python's csv module on each physical line, and its codecs on each row; Latin-1 keeps all bytes."""
    rows, misshapen, bad_text = [], [], []
    encoding = None
    header, *lines = re.split(r"\r\n|\n|\r", data.decode("latin-1"))
    names = next(csv.reader([header], delimiter=separator))
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        values, *rest = csv.reader([f"{line}\n", "sentinel\n"], delimiter=separator)
        if rest != [["sentinel"]] or len(values) != len(names):  # an open quote takes the sentinel in
            misshapen.append(number)
            continue
        wanted = [values[names.index(name)].encode("latin-1") for name in columns]
        theirs = encoding_by_the_book(wanted)
        encoding = encoding or theirs
        if theirs not in (None, encoding) or b"\0" in b"".join(wanted):
            bad_text.append(number)
            continue
        rows.append((number, *(value.decode(encoding or "ascii").encode() for value in wanted)))
    return Found(rows, misshapen, bad_text)


def encoding_by_the_book(values: list[bytes]) -> str | None:
    """Encoding that the values of a row speak for; a row that is no text speaks for none."""
    if b"\0" in b"".join(values) or all(value.isascii() for value in values):
        return None
    try:
        for value in values:
            value.decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


@pytest.mark.usefixtures("_blocks")
def test_line_numbers_with_blank_and_misshapen_lines_in_any_block() -> None:
    data = b"a,b\n1,2\n\n3,4\n5\n6,7\n\n\n8\n9\n1,2\n3\n4\n5,6,7\n6\n7\n8\n1,1\n\n2,2\n\n3\n"
    assert read(data) == Found(
        rows=[
            (2, b"1", b"2"), (4, b"3", b"4"), (6, b"6", b"7"), (11, b"1", b"2"), (18, b"1", b"1"),
            (20, b"2", b"2"),
        ],
        misshapen=[5, 9, 10, 12, 13, 14, 15, 16, 17, 22],
    )  # fmt: skip


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("is_final_end", [True, False])
def test_ends_of_lines(*, end: bytes, is_final_end: bool) -> None:
    lines = [b"a,b", b"1,2", b"", b"3,4", b"5", b"", b"6,7"]
    data = end.join(lines) + end * is_final_end
    for piece in (2, 3, 1000):
        assert read(data, piece=piece) == Found([(2, b"1", b"2"), (4, b"3", b"4"), (7, b"6", b"7")], [5])


def test_end_of_a_line_that_two_blocks_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 16)
    data = b"a,b\r1,2\r3,4\r5,6\r" + b"\n7\n8,9\n"
    assert read(data) == Found([(2, b"1", b"2"), (3, b"3", b"4"), (4, b"5", b"6"), (6, b"8", b"9")], [5])


@pytest.mark.usefixtures("_blocks")
def test_a_row_of_empty_values_is_a_row_and_a_blank_line_is_none() -> None:
    data = b'a,b,c\n,,\n\n,,x\n   \n"","",""\n'
    assert read(data) == Found([(2, b"", b""), (4, b"", b""), (6, b"", b"")], [5])


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("n", range(20))
def test_shortest_rows_that_there_are(n: int) -> None:
    """A block holds as many rows as it can."""
    lines = range(2, n + 3)
    assert read(b"a,b\n" + b",\n" * n + b",") == Found([(line, b"", b"") for line in lines], [])


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'"x"', b"x"),
        (b'"x,y"', b"x,y"),
        (b'"x""y"', b'x"y'),
        (b'""""', b'"'),
        (b'""', b""),
        (b'x"y"', b'x"y"'),
        (b' "x"', b' "x"'),
        (b'"x"y', b"xy"),
        (b'"x" ', b"x "),
        (b'"x"y"z"', b'xy"z"'),
        (b'"x""', None),
        (b'"x', None),
        (b'"', None),
        (b'"x,y', None),
        (b'"""', None),
    ],
)
def test_quotes(line: bytes, value: bytes | None) -> None:
    for end in (b"\n", b"\r\n"):
        data = b"a,b" + end + b"1," + line + end + b"3,4" + end
        if value is None:
            assert read(data) == Found([(3, b"3", b"4")], [2])
        else:
            assert read(data) == Found([(2, b"1", value), (3, b"3", b"4")], [])


def test_an_open_quote_spoils_one_line_however_long_the_file_is() -> None:
    data = b'a,b\n"1,2\n' + b"3,4\n" * 1000 + b'5,"6\n7,8'
    found = read(data)
    assert found.misshapen == [2, 1003]
    assert len(found.rows) == 1001


@settings(max_examples=400)
@given(
    lines=st.lists(st.text(alphabet='x1,;"\x00 é\xc3\xa9', max_size=8), max_size=12),
    separator=st.sampled_from(",;"),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    is_final_end=st.booleans(),
    piece=st.integers(2, 40),
    block=st.integers(16, 60),
    columns=st.permutations("abc").flatmap(lambda names: st.integers(1, 3).map(lambda n: names[:n])),
)
@example(lines=['"",'], separator=",", end="\n", is_final_end=False, piece=40, block=60, columns=["a", "b"])
@example(
    lines=["é,\xc3\xa9,", "\xc3\xa9,x,x", "é,x,x"],
    separator=",",
    end="\n",
    is_final_end=False,
    piece=40,
    block=60,
    columns=["a", "b"],
)
def test_any_text_is_read_as_the_csv_module_reads_each_line(
    *,
    lines: list[str],
    separator: str,
    end: str,
    is_final_end: bool,
    piece: int,
    block: int,
    columns: list[str],
) -> None:
    delimiter = "comma" if separator == "," else "semicolon"
    data = (end.join([separator.join("abc"), *lines]) + end * is_final_end).encode("latin-1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "BLOCK_BYTES", block)
        found = read(data, columns, piece=piece, delimiter=delimiter)
        assert found == by_the_book(data, columns, separator=separator)


def test_bytes_come_out_as_they_are() -> None:
    value = bytes(byte for byte in range(1, 128) if byte not in b',"\r\n') + "é€𝄞".encode()
    assert read(b"a,b\n1," + value + b"\n") == Found([(2, b"1", value)], [])


def test_latin1_comes_out_as_utf8() -> None:
    value = bytes(byte for byte in range(1, 256) if byte not in b',"\r\n')
    source = Source()
    found = read(b"a,b\n1,2\n1," + value + b"\n\xe9,2\n", source=source)
    utf8 = value.decode("latin-1").encode()
    assert found == Found([(2, b"1", b"2"), (3, b"1", utf8), (4, b"\xc3\xa9", b"2")], [])
    assert source.facts() == {"format": "csv", "delimiter": "comma", "encoding": "latin-1"}


def test_only_the_columns_asked_for_in_the_order_asked() -> None:
    data = b"x,b,x,a,y\n1,2,3,4,5\n"
    assert read(data, ["a", "b"]) == Found([(2, b"4", b"2")], [])
    assert read(data, ["b"]) == Found([(2, b"2")], [])


def test_byte_order_mark_and_quoted_header() -> None:
    assert read(b'\xef\xbb\xbf"a","b"\n1,2\n') == Found([(2, b"1", b"2")], [])
    assert read(b"\xef\xbb\xbfb,a\r\n1,2\n") == Found([(2, b"2", b"1")], [])
    assert read("é,b\n1,2\n".encode(), ["é"]) == Found([(2, b"1")], [])


@pytest.mark.parametrize("data", [b"a,b", b"a,b\n", b"a,b\r\n", b"a,b\n\n\n", gzipped(b"a,b\n")])
def test_header_alone_is_no_row(data: bytes) -> None:
    assert read(data) == Found([], [])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "line 1 is empty: expected a header with the names of the columns"),
        (b"\n\n", "line 1 is empty: expected a header with the names of the columns"),
        (b"\na,b\n1,2\n", "line 1 is empty: expected a header with the names of the columns"),
        (b"\xef\xbb\xbf", "line 1 is empty: expected a header with the names of the columns"),
        (gzipped(b""), "line 1 is empty: expected a header with the names of the columns"),
        (b"a:b\n1:2\n", "no column 'a', 'b'; expected 'a', 'b' as the profile says, found 1 columns"),
        (b"a,c\n1,2\n", "found 2 columns (separator: comma), none of that name"),
        (b"a|c,d|e\n", "found 3 columns (separator: pipe), none of that name"),
        (b"A,b\n1,2\n", "line 1: no column 'a'"),
        (b"a, b\n1,2\n", "line 1: no column 'b'"),
        (b"a,b,a\n1,2,3\n", "line 1: column 'a' appears more than once"),
        (b"\xef\xbb\xbf\xe9,a,b\n", "line 1: the header is marked as UTF-8 (byte order mark), but is none"),
        ("a,b\n1,2\n".encode("utf-16"), "the file is text in UTF-16: save it as UTF-8, and send it again"),
        ("a,b\n1,2\n".encode("utf-16-le"), "line 1: NUL bytes in the header: this is no text in UTF-8"),
    ],
)
def test_header_errors(data: bytes, text: str) -> None:
    assert text in failure(data)


def test_a_line_that_fits_in_no_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 20)
    rows = b"1,2\n" * 6
    assert len(read(b"a,b\n" + rows + b"x" * 17 + b",2\n").rows) == 7
    assert "after line 7: a line has more than 20 bytes" in failure(b"a,b\n" + rows + b"x" * 40 + b",2\n")
    assert "after line 0: a line has more than 20 bytes" in failure(b"x" * 40 + b",a,b\n1,2,3\n")


def test_longest_line_of_the_real_size() -> None:
    value = b"x" * (reader.BLOCK_BYTES - 3)
    assert read(b"a,b\n1," + value + b"\n2,3\n").rows[0] == (2, b"1", value)
    assert "after line 1: a line has more than 4194304 bytes" in failure(b"a,b\n1,x" + value + b"\n2,3\n")


@pytest.mark.usefixtures("_blocks")
def test_gzip_of_several_members_wherever_they_are_cut() -> None:
    data = b"a,b\n1,2\n\n3\n4,5\n"
    for cut in range(len(data) + 1):
        packed = gzip.compress(data[:cut]) + gzip.compress(b"") + gzip.compress(data[cut:])
        for piece in (2, 1000):
            assert read(packed, piece=piece) == Found([(2, b"1", b"2"), (5, b"4", b"5")], [4])


def test_gzip_that_is_padded_with_zeros_is_whole() -> None:
    assert read(gzip.compress(b"a,b\n1,2\n") + bytes(100)) == Found([(2, b"1", b"2")], [])


DAMAGED = "the gzip stream is damaged or ends early"


def test_truncated_gzip_is_refused() -> None:
    packed = gzip.compress(b"a,b\n" + MARKER + b",2\n")
    for length in range(2, len(packed)):
        assert DAMAGED in failure(packed[:length])
    two = packed + packed
    for length in range(len(packed) + 1, len(two)):
        assert DAMAGED in failure(two[:length])


def test_garbage_after_gzip_is_refused() -> None:
    packed = gzip.compress(b"a,b\n1,2\n")
    for garbage in (b"1,2\n", b"\x00\x001,2\n", b"\x1f", b"\x1f\x8b"):
        assert DAMAGED in failure(packed + garbage)


def test_altered_gzip_is_refused_or_makes_no_difference() -> None:
    data = b"a,b\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(40))
    packed = gzip.compress(data)
    whole = read(packed)
    refused = 0
    for place in range(len(packed)):
        for bit in (0x01, 0x80):
            altered = bytearray(packed)
            altered[place] ^= bit
            try:
                assert read(bytes(altered)) == whole
            except BatchFormatError:
                refused += 1
    assert refused > 1.8 * (len(packed) - 10)  # the header says little


def spoiled_files() -> Iterator[bytes]:
    """Files that cannot be read, full of subscribers."""
    row = MARKER + b",2017-05-31T12:00:00\n"
    yield row * 3  # the header forgotten
    yield b"x" + row.replace(b"2017", b"\xff") * 3
    yield b'"' + row * 3
    yield row * 3 + b"a,b\n"
    yield b"a:b\n" + row
    yield b"a," + MARKER + b"\n" + row
    yield b"a,b,a," + MARKER + b"\n" + row
    yield b"a,b\n" + row * 5 + MARKER * 10
    yield b"a,b\n" + row * 5 + b'"' + MARKER * 10 + b'"\n'
    yield gzipped(b"a,b\n" + row * 100)[:-9]
    yield gzipped(b"a,b\n" + row * 100) + row
    yield gzipped(row * 100)


@pytest.mark.parametrize("data", list(spoiled_files()))
def test_no_failure_shows_what_stands_in_the_file(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 64)
    text = failure(data)
    assert MARKER.decode() not in text
    assert "2017" not in text


@pytest.mark.parametrize("line", [b"\n", b"1\n", b"1,2\n", b",\n", b'"",""\n', b'"\n'])
def test_memory_has_a_bound(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 1 << 16)
    data = b"a,b\n" + line * ((4 << 20) // len(line))
    layout = Layout(columns=COLUMNS)
    list(read_extract(io.BytesIO(data[:1000]), layout=layout))  # compiled before it is measured
    tracemalloc.start()
    lines = sum(
        len(block.lines) + len(block.misshapen) for block in read_extract(io.BytesIO(data), layout=layout)
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lines == (0 if line == b"\n" else (4 << 20) // len(line))
    assert peak < 40 << 16


SEPARATORS = {"comma": b",", "semicolon": b";", "tab": b"\t", "pipe": b"|"}


@pytest.mark.parametrize("name", DELIMITERS)
def test_delimiter_is_found_or_named(name: Delimiter) -> None:
    """The other delimiters are characters like any other."""
    byte, others = (
        SEPARATORS[name],
        b"".join(other for other in SEPARATORS.values() if other != SEPARATORS[name]),
    )
    data = byte.join([b"x", b"b", b"a"]) + b"\n" + byte.join([b"1", others, b'"' + byte + b'"']) + b"\n4\n"
    for delimiter in (None, name):
        source = Source()
        assert read(data, delimiter=delimiter, source=source) == Found([(2, byte, others)], [3])
        assert source.delimiter == name


def test_delimiter_that_was_named_is_not_guessed() -> None:
    assert "found 1 columns (separator: semicolon)" in failure(b"a,b\n1,2\n", delimiter="semicolon")


def test_one_column_needs_no_delimiter() -> None:
    assert read(b"a\n1\n2,3\n", ["a"]) == Found([(2, b"1")], [3])


def test_header_that_fits_two_delimiters_must_be_named() -> None:
    data = b"p;a;b;q,a,b,r\n1,2,3,4\n"
    assert failure(data) == (
        "line 1: the header fits 'comma', 'semicolon': say which one it is, in the profile"
    )
    assert read(data, delimiter="comma") == Found([(2, b"2", b"3")], [])


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize(("first", "later"), [("utf-8", "latin-1"), ("latin-1", "utf-8")])
def test_encoding_of_the_first_block_holds_for_all(first: str, later: str) -> None:
    source = Source()
    values = ["é".encode(first), *[b"2"] * 20, "é".encode(later), b"\0", "ü".encode(first)]
    found = read(b"a,b\n" + b"".join(b"1," + value + b"\n" for value in values), source=source)
    assert found.bad_text == [23, 24]
    assert [row[2] for row in found.rows] == ["é".encode(), *[b"2"] * 20, "ü".encode()]
    assert source.encoding == first
