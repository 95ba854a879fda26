"""Encodings of text, against Python's codecs."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mobility.readers import Source
from mobility.readers.text import (
    ASCII_ROW,
    LATIN1,
    NUL_ROW,
    OTHER_ROW,
    UTF8,
    UTF8_ROW,
    encoding_of,
    gather_latin1,
    is_bad,
    is_plain,
    is_utf8,
    kinds_of_rows,
    latin1_lengths,
)
from tests.mobility.readers.test_csv import read

# Bytes at which the rules of UTF-8 change.
EDGES = bytes.fromhex("00417f80 8f909fa0bf c0c1c2dfe0e1ecedeeeff0f1f3f4f5ff")


def kind_of(value: bytes) -> int:
    """What Python says of a field."""
    if b"\0" in value:
        return NUL_ROW
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return OTHER_ROW
    return ASCII_ROW if value.isascii() else UTF8_ROW


def kinds(rows: list[list[bytes]]) -> list[int]:
    """Kinds of rows whose fields lie side by side, so that reading past an end shows."""
    fields = [field for row in rows for field in row]
    ends = np.cumsum([len(field) for field in fields], dtype=np.int32).reshape(len(rows), -1).T
    begins = ends - np.array([[len(field) for field in row] for row in rows], np.int32).T
    return kinds_of_rows(np.frombuffer(b"".join(fields), np.uint8), begins, ends).tolist()


@given(
    rows=st.lists(
        st.lists(
            st.lists(st.sampled_from(EDGES), max_size=6).map(bytes) | st.binary(max_size=5)
            | st.text(max_size=3).map(lambda text: text.encode("utf-8", "surrogatepass")),
            min_size=2, max_size=2,
        ),
        min_size=1, max_size=20,
    )
)  # fmt: skip
@example(rows=[[b"\xc3", b"\xa9"], [b"\xf0\x9f\x98", b"\x80"], [b"\xed\xa0\x80", b""], [b"\xc0\x80", b""]])
def test_a_row_is_the_worst_of_its_fields(rows: list[list[bytes]]) -> None:
    assert kinds(rows) == [max(kind_of(field) for field in row) for row in rows]


def test_every_pair_of_bytes_and_every_edge_of_longer_ones() -> None:
    pairs = [bytes([one, other]) for one in range(256) for other in range(256)]
    triples = [bytes([a, b, c]) for a in EDGES for b in EDGES for c in EDGES]
    quads = [bytes([a, b, c, 0x80]) for a in EDGES for b in EDGES for c in EDGES]
    values = pairs + triples + quads
    assert kinds([[value] for value in values]) == [kind_of(value) for value in values]


@given(values=st.lists(st.binary(max_size=8), min_size=1))
def test_latin1_leaves_as_utf8(values: list[bytes]) -> None:
    data = np.frombuffer(b"".join(values), np.uint8)
    ends = np.cumsum([len(value) for value in values], dtype=np.int32)
    begins = (ends - [len(value) for value in values]).astype(np.int32)
    expected = [value.decode("latin-1").encode() for value in values]
    assert latin1_lengths(data, begins, ends).tolist() == [len(value) for value in expected]
    texts = np.zeros(sum(map(len, expected)), np.uint8)
    gather_latin1(data, begins, ends, texts)
    assert texts.tobytes() == b"".join(expected)


@given(data=st.binary(max_size=40))
def test_plain_is_ascii_without_nul(data: bytes) -> None:
    assert is_plain(np.frombuffer(data, np.uint8)) == (data.isascii() and b"\0" not in data)


@given(data=st.binary(max_size=6) | st.lists(st.sampled_from(EDGES), max_size=6).map(bytes))
def test_utf8_as_a_whole(data: bytes) -> None:
    assert b"\0" in data or is_utf8(np.frombuffer(data + bytes(64), np.uint8), len(data)) == (
        kind_of(data) in (ASCII_ROW, UTF8_ROW)
    )


@pytest.mark.parametrize(
    ("rows", "encoding", "bad"),
    [
        ([ASCII_ROW, NUL_ROW], "", [False, True]),
        ([ASCII_ROW, UTF8_ROW, OTHER_ROW], UTF8, [False, False, True]),
        ([NUL_ROW, OTHER_ROW, UTF8_ROW], LATIN1, [True, False, True]),
    ],
)
def test_first_row_beyond_ascii_tells_the_encoding(rows: list[int], encoding: str, bad: list[bool]) -> None:
    found = np.array(rows, np.uint8)
    assert encoding_of(found) == encoding
    assert is_bad(found, encoding=encoding).tolist() == bad


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"a,b\n1,2\n", "utf-8"),
        (b"\xef\xbb\xbfa,b\n1,2\n", "utf-8"),
        ("a,b\n1,é\n".encode(), "utf-8"),
        (b"a,b\n1,\xe9\n", "latin-1"),
        (b"a,b,\xe9\n1,2,3\n", "latin-1"),
        ("a,b,é\n1,2,3\n".encode(), "utf-8"),
        (b"a,b,c\n1,2,\xe9\n", "utf-8"),  # nobody asked for the third column
        (b"a,b\n1,\0\xe9\n", "utf-8"),  # nor does a row that is no text say anything
    ],
)
def test_encoding_is_found_out_and_told(data: bytes, encoding: str) -> None:
    source = Source()
    read(data, source=source)
    assert source.facts() == {"format": "csv", "delimiter": "comma", "encoding": encoding}
