"""Lists of opt-outs: one subscriber on each line, however the text is written."""

import gzip
import io

import pyarrow as pa
import pytest

from mobility.base.errors import BatchFormatError
from mobility.extracts.readers import Source
from mobility.extracts.readers import csv as reader
from mobility.extracts.rows.counts import RowCounts
from mobility.extracts.rows.opt_out_lists import LONGEST_BYTES, opted_out_of, read_list
from tests.mobility.extracts.rows.small_extract import PSEUDONYM_KEY, pseudonym_of

NAME = "msisdn"


def read(data: bytes, source: Source | None = None) -> tuple[list[int], RowCounts]:
    counts, found = RowCounts(), []
    for block in read_list(io.BytesIO(data), name=NAME, source=source):
        found += opted_out_of(block, counts, name=NAME, pseudonym_key=PSEUDONYM_KEY).tolist()
    assert (counts.rows_read, len(found)) == (counts.accepted + counts.rejected.total(), counts.accepted)
    return found, counts


def names(*people: str) -> list[int]:
    return [pseudonym_of(person) for person in people]


@pytest.mark.parametrize(
    "data",
    [b"alice\nbob\n", b"alice\r\nbob", b"alice\rbob\r", b"\n\nalice\n\r\n\nbob\n\n",
     b"\xef\xbb\xbfalice\nbob\n", b"  alice\t\nbob  \n", b'"alice"\n"bob"\n', b"msisdn\nalice\nbob\n",
     b"\n msisdn\nalice\nbob\n", b"MSISDN\nalice\nbob\n", b'"Msisdn"\nalice\nbob\n',
     b'\xef\xbb\xbf"msisdn"\r\nalice\r\nbob\r\n', gzip.compress(b"alice\nbob\n", mtime=0),
     pa.compress(b"alice\nbob\n", codec="zstd", asbytes=True)],
)  # fmt: skip
def test_two_people(data: bytes) -> None:
    found, counts = read(data)
    assert (found, counts.rows_read, counts.accepted) == (names("alice", "bob"), 2, 2)


def test_only_a_first_line_is_a_header() -> None:
    assert read(b"alice\nmsisdn\n")[0] == names("alice", "msisdn")
    assert (read(b"msisdn\nmsisdn\n")[0], read(b"phone\n")[0]) == (names("msisdn"), names("phone"))
    for nobody in (b"", b"\n\n", b"msisdn\n"):
        found, counts = read(nobody)
        assert (found, counts.rows_read) == ([], 0)


def test_names_are_text_of_either_encoding() -> None:
    for encoding in ("utf-8", "latin-1"):
        source = Source()
        assert read("Zoé\nÄnne\n".encode(encoding), source)[0] == names("Zoé", "Änne")
        assert source.facts() == {"format": "csv", "encoding": encoding}
    found, counts = read(b"\xef\xbb\xbfalice\n\xe4nne\n")  # a byte order mark says UTF-8
    assert (found, counts.rejected) == (names("alice"), {"bad_text": 1})


MISFITS = {
    "wrong_columns": [
        b"alice,bob", b"alice;bob", b"alice\tbob", b"alice|", b'ali"ce', b'"alice', b"a" * (LONGEST_BYTES + 1)
    ],
    "bad_text": [b"ali\0ce", b"\xc3\xa4\xff"],
    "empty_subscriber": [b'""', b"   "],
}  # fmt: skip


@pytest.mark.parametrize(("reason", "line"), [(why, line) for why in MISFITS for line in MISFITS[why]])
def test_line_that_is_no_subscriber(line: bytes, reason: str) -> None:
    found, counts = read("Zoé\n".encode() + line + b"\nbob\n\nx,y\n")
    assert (found, counts.lines.pop(reason)[0]) == (names("Zoé", "bob"), 2)
    others = counts.rejected - counts.rejected.__class__({reason: 1})
    assert others == {"wrong_columns": 1}


def test_lines_of_misfits_are_in_order() -> None:
    _, counts = read(b"a;b\na,b\na;b\n\nalice\na,b\n")
    assert counts.lines == {"wrong_columns": [1, 2, 3, 6]}
    longest = "a" * LONGEST_BYTES
    assert read(longest.encode())[0] == names(longest)


def test_blocks_together_are_the_whole(monkeypatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 64)
    people = [f"s{i}" for i in range(500)]
    found, counts = read("\n".join(["msisdn", *people[:250], "a;b", *people[250:]]).encode())
    assert (found, counts.lines) == (names(*people), {"wrong_columns": [252]})
    assert read(b"msisdn\n" * 60)[0] == names("msisdn") * 59


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PAR1" + bytes(8), "send the opt-out list as text, with one subscriber on each line"),
        (b"PK\x03\x04" + bytes(8), "the file is a zip archive"),
        (gzip.compress(b"alice\n" * 99, mtime=0)[:-9], "the gzip stream is damaged or ends early"),
        ("alice\n".encode("utf-16"), "the file is text in UTF-16"),
    ],
)
def test_other_files_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(BatchFormatError, match=message) as caught:
        read(data)
    assert "alice" not in str(caught.value)
