"""Any file at all, and what must become of it: a slow reading of text in plain Python, one line at a time.

Used by `test_broken_files.py` for seconds and by `scripts/fuzz_readers.py` for as long as one likes.
"""

import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from mobility.base.errors import BatchFormatError
from mobility.extracts.chunk_plans import ChunkPlan
from mobility.extracts.readers import Source
from mobility.extracts.readers import csv as reader
from mobility.extracts.readers.chunks import plan_chunks, read_chunk
from mobility.extracts.readers.compression import PARQUET_MAGIC, REFUSED, compression_of
from mobility.extracts.rows.counts import LINES_KEPT, RowCounts
from mobility.extracts.rows.events import concatenate
from tests.mobility.extracts.rows.small_extract import FIRST_DAY, coder_of, definition_of

COLUMNS = ("who", "when", "where", "gender", "other", "age")
WANTED = ("who", "when", "where", "gender", "age")
DEFINITION = definition_of(('cell = "where"', 'cell = "where"\ndelimiter = "comma"'))
BOM = b"\xef\xbb\xbf"
PARIS = ZoneInfo("Europe/Paris")
ISO = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-](0\d|1[0-8])(:?[0-5]\d)?)?")

VALUES = [
    ["336001", " 336002\t", "roam-22801-000000012345", "", "é", '"33""6"', '"336', "\0", " ", "x" * 200],
    [
        "2017-03-25T12:00:00", "2017-03-26 07:30", "2017-03-25T12:00:00.5Z", "2017-03-26T02:30:00", "soon",
        "", "2017-03-25T23:59:59+0100", "2017-03-24T23:30:00-01", "1999-12-31T12:00:00",
        "2017-03-26T05:59:59", "2017-03-25T23:59", "2017-03-26T03:00", "2017-13-01T12:00:00",
        "2017-02-29T12:00", " 2017-03-25T12:00:00 ", "2017-03-25T24:00:00", "2017-03-25T12:00:00+19:00",
        "2017-03-25T12:00:0a", "0000-01-01T00:00:00", "9999-12-31T23:59:59",
    ],
    ["c1", "c2", " c1", "c9", "", '"c1"', "c" * 70],
    ["F", "M", "", "f", " M", '"F"'],
    ["", "x", "é", '"a,b"', "\0", "\xa0" * 9],
    ["65+", "<18", "18-64", "Ä", "", "66+"],
]  # fmt: skip
usual_lines = st.tuples(*(st.sampled_from([values[0], *values]) for values in VALUES)).map(",".join)
odd_lines = st.sampled_from(["", " ", "x", ",,,,,", ",,,,,,", ",".join(COLUMNS)]) | st.text(max_size=30)
headers = st.sampled_from(
    [",".join(COLUMNS)] * 8
    + ['"who",when,where,gender,é,age', "who,when", "", "age,other,gender,where,when,who", "who,who,x,x,x,x"]
)


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    lines = [draw(headers), *draw(st.lists(usual_lines | usual_lines | usual_lines | odd_lines, max_size=30))]
    ends = draw(st.lists(st.sampled_from(["\n", "\n", "\r\n", "\r"]), min_size=1, max_size=3))
    encoding = draw(st.sampled_from(["utf-8", "latin-1"]))
    text = "".join(line + ends[number % len(ends)] for number, line in enumerate(lines))
    data = text.encode(encoding, "replace")
    return draw(altered(draw(st.sampled_from([b"", b"", BOM])) + data[: len(data) - draw(st.integers(0, 2))]))


def altered(data: bytes) -> st.SearchStrategy[bytes]:
    place = st.integers(0, max(len(data) - 1, 0))
    put = st.binary(max_size=3) | st.sampled_from([b"\n", b'"', b"\0"])
    change = st.tuples(place, st.integers(0, 3), put)
    return st.just(data) | st.lists(change, max_size=4).map(lambda changes: _changed(data, changes))


def _changed(data: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for place, n, put in sorted(changes, reverse=True):
        data = data[:place] + put + data[place + n :]
    return data


def written(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


@st.composite
def packed(draw: st.DrawFn) -> bytes:
    text = draw(texts())
    cut = draw(st.integers(0, len(text)))
    parts = [text[:cut], text[cut:]] if draw(st.booleans()) else [text]
    if draw(st.booleans()):
        data = b"".join(gzip.compress(part, draw(st.integers(0, 9)), mtime=0) for part in parts)
    else:
        data = b"".join(bytes(pa.Codec("zstd").compress(part, asbytes=True)) for part in parts)
    return draw(altered(data))


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    n = draw(st.integers(0, 30))
    columns = {
        name: draw(st.lists(st.none() | st.sampled_from(values), min_size=n, max_size=n))
        for name, values in zip(COLUMNS, VALUES, strict=True)
    }
    table = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
    options = {"row_group_size": draw(st.integers(1, 31)), "use_dictionary": draw(st.booleans())}
    compression = draw(st.sampled_from(["none", "snappy", "zstd"]))
    return draw(altered(written(table, **options, compression=compression)))


files = texts() | texts() | packed() | tables() | st.binary(max_size=200)


# --- a slow reading ----------------------------------------------------------------------------------------
class NoExtractError(Exception):
    """This is no extract of the study."""


def slow_counts(data: bytes) -> dict[str, Any]:
    header, *lines = re.split(rb"\r\n|\n|\r", data)
    names, encoding = _names(header)
    counts: dict[str, Counter[str]] = {"ignored": Counter(), "rejected": Counter()}
    kept: dict[str, list[int]] = {}
    accepted = 0
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        values, encoding = slow_row(line, names, WANTED, encoding)
        kind, reason = ("rejected", values) if isinstance(values, str) else _judged(values)
        if kind == "accepted":
            accepted += 1
            continue
        counts[kind][reason] += 1
        if kind == "rejected":
            kept.setdefault(reason, []).append(number)
    lines_kept = {reason: numbers[:LINES_KEPT] for reason, numbers in kept.items()}
    return {"accepted": accepted, **{kind: dict(each) for kind, each in counts.items()}, "lines": lines_kept}


def _names(header: bytes) -> tuple[list[str], str]:
    plain = header.removeprefix(BOM)
    encoding = "utf-8" if len(plain) < len(header) else _encoding(plain)
    if not plain.strip() or b"\0" in plain:
        raise NoExtractError
    try:
        (names,) = _csv_rows([plain.decode(encoding or "utf-8")])
    except (UnicodeDecodeError, csv.Error):
        raise NoExtractError from None
    if any(names.count(name) != 1 for name in WANTED):
        raise NoExtractError
    return names, encoding


def _csv_rows(lines: Iterable[str], **options: str) -> list[list[str]]:
    """Rows of fields of any length; the limit is one for the whole process, so it is put back."""
    before = csv.field_size_limit(1 << 24)
    try:
        return list(csv.reader(lines, **options))
    finally:
        csv.field_size_limit(before)


def _encoding(text: bytes) -> str:
    if text.isascii():
        return ""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def slow_row(
    line: bytes, names: list[str], wanted: Sequence[str], encoding: str, *, separator: str = ","
) -> tuple[list[bytes] | str, str]:
    """The values wanted of a line, as UTF-8, or why it is no row; and the file's encoding after it."""
    # An open quote takes the sentinel in. Latin-1 keeps all bytes.
    values, *rest = _csv_rows([line.decode("latin-1") + "\n", "sentinel\n"], delimiter=separator)
    if rest != [["sentinel"]] or len(values) != len(names):
        return "wrong_columns", encoding
    raw = [values[names.index(name)].encode("latin-1") for name in wanted]
    if b"\0" in b"".join(raw):
        return "bad_text", encoding
    # Not of the row as a whole: a character cannot begin in one value and end in the next.
    theirs = {_encoding(value) for value in raw} - {""}
    said = "latin-1" if "latin-1" in theirs else "utf-8" if theirs else ""
    encoding = encoding or said
    if said not in ("", encoding):
        return "bad_text", encoding
    return [value.decode(encoding or "ascii").encode() for value in raw], encoding


def _judged(values: list[bytes]) -> tuple[str, str]:
    who, when, cell, gender, age = (value.strip() for value in values)
    where, local = cell.decode(), _local(when)
    if not who:
        return "rejected", "empty_subscriber"
    if isinstance(local, str):
        return "rejected", local
    if not where:
        return "rejected", "empty_cell"
    for value, place in ((gender, 0), (age, 2)):
        if value and value.decode() not in DEFINITION.indicators[place].categories:
            return "rejected", "unknown_value"
    if local is None or not 0 <= (local.date() - FIRST_DAY).days < DEFINITION.days:
        return "ignored", "outside_period"
    if where not in ("c1", "c2"):
        return "ignored", "outside_area"
    return ("ignored", "outside_hours") if local.hour < 6 else ("accepted", "")


def _local(when: bytes) -> datetime | str | None:
    try:
        stated = datetime.fromisoformat(when.decode() if ISO.fullmatch(when) else "")
    except ValueError:
        return "bad_timestamp"
    if stated.year != 2017:
        return None
    if stated.tzinfo is not None:
        return stated.astimezone(PARIS).replace(tzinfo=None)
    if datetime(2017, 3, 26, 2) <= stated < datetime(2017, 3, 26, 3):
        return "nonexistent_time"
    return stated


class Dribble(io.RawIOBase):
    """A stream that gives a few bytes at a time, from any place, as a network or a pipe may."""

    def __init__(self, data: bytes, *, piece: int) -> None:
        super().__init__()
        self._data = io.BytesIO(data)
        self._piece = piece

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        return self._data.readinto(buffer[: self._piece])

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._data.seek(offset, whence)


def check(data: bytes, *, block: int, step: int, piece: int = 1 << 20) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "BLOCK_BYTES", block)
        whole = outcomes(data, [ChunkPlan.whole(len(data))], piece=piece)
        if is_text(data):
            plans = cut(len(data), step)
            if max(map(len, re.split(rb"\r\n|\n|\r", data))) < block - 2:
                check_text(data, whole)
        else:
            plans = plan_chunks(io.BytesIO(data), size=len(data), target_bytes=step)  # type: ignore[arg-type]
        parts = outcomes(data, plans or [ChunkPlan.whole(len(data))], piece=piece)
    if whole is None:
        assert parts is None
    elif parts is not None and len(parts[2]) <= 1:  # else they disagree on the encoding, and the whole counts
        assert parts[:2] == whole[:2]


def check_text(data: bytes, found: tuple[bytes, RowCounts, set[str]] | None) -> None:
    try:
        expected = slow_counts(data)
    except NoExtractError:
        assert found is None
        return
    assert found is not None
    counts = found[1]
    told = counts.to_json()
    assert {name: told[name] for name in expected} == expected
    assert counts.rows_read == counts.accepted + counts.ignored.total() + counts.rejected.total()


def is_text(data: bytes) -> bool:
    return not (compression_of(data[:8]) or data.startswith((PARQUET_MAGIC, *REFUSED)))


def cut(size: int, step: int) -> list[ChunkPlan]:
    begins = range(0, size, step)
    return [ChunkPlan(kind="bytes", begin=begin, end=min(begin + step, size)) for begin in begins]


def outcomes(data: bytes, plans: list[ChunkPlan], *, piece: int = 1 << 20):
    coder = coder_of(DEFINITION)
    counts, events, encodings = RowCounts(), [], set()
    try:
        for plan in plans:
            source, part = Source(), RowCounts()
            stream: Any = Dribble(data, piece=piece) if is_text(data) else io.BytesIO(data)
            blocks = read_chunk(stream, plan, layout=coder.layout, source=source)
            events += [coder.events_of(block, part) for block in blocks]
            counts.add(part)
            encodings |= {source.encoding} - {""}
    except BatchFormatError:
        return None
    return concatenate(events, slots=coder.slots).pack(), counts, encodings
