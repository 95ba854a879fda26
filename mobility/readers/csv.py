"""CSV with a header, and the same with tabs, semicolons or pipes; in UTF-8 or Latin-1.

A row is a physical line: a quote that is never closed spoils its own line and none after it, and the line
numbers of bad rows are those that an editor shows. Blank lines are no rows. Quotes mean what they mean to
Python's csv module, except that they cannot hold the end of a line.

A file is in UTF-8 or in Latin-1. The first row that is more than ASCII tells, or the header; rows that
contradict it are bad, so that no value is ever read in two ways.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mobility.errors import BatchFormatError
from mobility.readers import Layout, RowBlock, Source
from mobility.readers.compression import Buffered
from mobility.readers.text import (
    OTHER_ROW,
    UTF8,
    encoding_of,
    gather,
    gather_latin1,
    is_bad,
    is_plain,
    is_utf8,
    kinds_of_rows,
    latin1_lengths,
)
from reports.studyfile.formats import DELIMITERS

BLOCK_BYTES = 4 << 20  # also the longest line that can be read
UTF8_BOM = b"\xef\xbb\xbf"
LINE_END = re.compile(rb"\r\n|\n|\r")
BYTES: dict[str, str] = dict(zip(DELIMITERS, ",;\t|", strict=True))
_QUOTE, _LF, _CR = b'"\n\r'
_UNWANTED = -1

Bytes = NDArray[np.uint8]


class LineTooLongError(Exception):
    """A line does not fit into a block."""


def read_csv(plain: Buffered, *, layout: Layout, source: Source) -> Iterator[RowBlock]:
    """Blocks of a stream of text; notes in `source` what it is.

    Raises
    ------
    BatchFormatError : the stream is no such text, or a column is missing; never shows content
    """
    line = 1
    try:
        parts = _whole_lines(plain)
        first = next(parts, np.empty(0, np.uint8))
        header = LINE_END.split(first.tobytes(), maxsplit=1)[0]
        splitter = _Splitter(layout=layout, source=source)
        splitter.read_header(header)
        for part in chain([first], parts):
            block, n_lines = splitter.block(part, line=line)
            line += n_lines
            yield block
    except LineTooLongError:
        raise BatchFormatError(
            f"after line {line - 1}: a line has more than {BLOCK_BYTES} bytes; is this a CSV file?"
        ) from None


def _whole_lines(source: Buffered) -> Iterator[Bytes]:
    """The stream in parts that end with a line, in a buffer that the next part overwrites."""
    buffer = bytearray(BLOCK_BYTES)
    data = np.frombuffer(buffer, np.uint8)
    held = 0
    while n := source.readinto(memoryview(buffer)[held:]):
        held += n
        # A carriage return at the very end may be half of the end of a line.
        cut = buffer.rfind(b"\n", 0, held) + 1 or buffer.rfind(b"\r", 0, held - 1) + 1
        if cut:
            yield data[:cut]
        elif held == BLOCK_BYTES:
            raise LineTooLongError
        buffer[: held - cut] = buffer[cut:held]
        held -= cut
    if held:
        yield data[:held]


@dataclass(slots=True)
class _Splitter:
    """Cuts lines into the wanted fields; `slots` has of each column of the file its place among them."""

    layout: Layout
    source: Source
    slots: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    delimiter: int = 0

    def read_header(self, line: bytes) -> None:
        """Find the delimiter and the columns; each of those wanted must be there, once."""
        text = self._header_text(line)
        self.source.delimiter, names = _columns_of(text, layout=self.layout)
        self.delimiter = ord(BYTES[self.source.delimiter])
        wanted = self.layout.columns
        self.slots = np.array([wanted.index(name) if name in wanted else _UNWANTED for name in names])

    def _header_text(self, line: bytes) -> str:
        plain = line.removeprefix(UTF8_BOM)
        if not plain.strip():
            raise BatchFormatError("line 1 is empty: expected a header with the names of the columns")
        if b"\x00" in plain:
            raise BatchFormatError(
                "line 1: NUL bytes in the header: this is no text in UTF-8 or Latin-1 "
                "(text in UTF-16 must be saved as UTF-8)"
            )
        kinds = kinds_of_rows(np.frombuffer(plain, np.uint8), *np.array([[[0]], [[len(plain)]]], np.int32))
        self.source.encoding = UTF8 if len(plain) < len(line) else encoding_of(kinds)
        if is_bad(kinds, encoding=self.source.encoding or UTF8).any():
            raise BatchFormatError("line 1: the header is marked as UTF-8 (byte order mark), but is none")
        return plain.decode(self.source.encoding or UTF8)

    def block(self, data: Bytes, *, line: int) -> tuple[RowBlock, int]:
        """Rows of a part whose first line has number `line`, and how many lines it has; overwrites `data`."""
        n_lines = _most_lines(data)
        # A row has at least its delimiters and the end of its line; one place more serves lines that are no
        # rows.
        n_rows = min(n_lines, (len(data) + 1) // len(self.slots) + 1)
        begins, ends = np.empty((2, len(self.layout.columns), n_rows), np.int32)
        lines, misshapen = np.empty(n_rows, np.int64), np.empty(n_lines, np.int64)
        # Most files are ASCII or UTF-8 throughout: then no row needs a look of its own.
        is_clean = is_utf8(data) if self.source.encoding == UTF8 else is_plain(data)
        n_rows, n_misshapen, n_lines = _split(
            data, self.delimiter, line, self.slots, begins, ends, lines, misshapen
        )
        begins, ends, lines = begins[:, :n_rows], ends[:, :n_rows], lines[:n_rows]
        bad_text, has_latin1 = lines[:0], False
        if not is_clean:
            begins, ends, lines, bad_text, has_latin1 = self._texts(data, begins, ends, lines)
        block = RowBlock(
            columns={
                name: _column(data, begins[slot], ends[slot], is_latin1=has_latin1)
                for slot, name in enumerate(self.layout.columns)
            },
            lines=lines,
            misshapen=misshapen[:n_misshapen],
            bad_text=bad_text,
        )
        return block, n_lines

    def _texts(
        self, data: Bytes, begins: NDArray[np.int32], ends: NDArray[np.int32], lines: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], bool]:
        """The rows that are text, the lines of those that are not, and whether any is to be transcoded."""
        kinds = kinds_of_rows(data, begins, ends)
        self.source.encoding = self.source.encoding or encoding_of(kinds)
        bad = is_bad(kinds, encoding=self.source.encoding)
        kept = np.flatnonzero(~bad)
        has_latin1 = bool((kinds[kept] == OTHER_ROW).any())
        return begins[:, kept], ends[:, kept], lines[kept], lines[bad], has_latin1


def _columns_of(header: str, *, layout: Layout) -> tuple[str, list[str]]:
    """The delimiter and the names of the columns."""
    wanted = layout.columns
    tried: Sequence[str] = [layout.delimiter] if layout.delimiter else DELIMITERS
    names = {delimiter: _names(header, BYTES[delimiter]) for delimiter in tried}
    fitting = [delimiter for delimiter in tried if all(names[delimiter].count(name) == 1 for name in wanted)]
    if len(fitting) > 1 and len({tuple(names[delimiter]) for delimiter in fitting}) > 1:
        raise BatchFormatError(
            f"line 1: the header fits {_listed(fitting)}: name the delimiter in [extract] of the study file"
        )
    if fitting:
        return fitting[0], names[fitting[0]]
    likely = max(tried, key=lambda delimiter: len(names[delimiter]))
    raise _misfit(names[likely], wanted=wanted, delimiter=likely)


def _names(header: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([header], delimiter=delimiter))
    except csv.Error:
        raise BatchFormatError("line 1: the header is too long for names of columns") from None


def _misfit(names: list[str], *, wanted: tuple[str, ...], delimiter: str) -> BatchFormatError:
    missing = [name for name in wanted if name not in names]
    if missing:
        return BatchFormatError(
            f"line 1: no column {_listed(missing)}; expected {_listed(wanted)} as the study file says, "
            f"found {len(names)} columns (separator: {delimiter}), none of that name"
        )
    twice = [name for name in wanted if names.count(name) > 1]
    return BatchFormatError(f"line 1: column {_listed(twice)} appears more than once")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _column(data: Bytes, begins: NDArray[np.int32], ends: NDArray[np.int32], *, is_latin1: bool) -> pa.Array:
    offsets = np.zeros(len(begins) + 1, np.int32)
    np.cumsum(latin1_lengths(data, begins, ends) if is_latin1 else ends - begins, out=offsets[1:])
    texts = np.empty(offsets[-1], np.uint8)
    (gather_latin1 if is_latin1 else gather)(data, begins, ends, texts)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(texts)]
    return pa.Array.from_buffers(pa.binary(), len(begins), buffers)


@numba.njit(cache=True, nogil=True)
def _most_lines(data):  # type: ignore[no-untyped-def]
    """At least the number of lines."""
    n = 1
    for i in range(len(data)):
        n += data[i] == _LF or data[i] == _CR
    return n


@numba.njit(cache=True, nogil=True)
def _split(data, delimiter, line, slots, begins, ends, lines, misshapen):  # type: ignore[no-untyped-def]
    """Find the wanted fields of each row, and the lines that are none; returns how many rows, such, lines."""
    n_rows, n_misshapen, n_lines, at = 0, 0, 0, 0
    while at < len(data):
        line_begin, column, is_whole = at, 0, True
        while True:
            begin, end, at, is_closed = _field(data, at, delimiter)
            is_whole &= is_closed
            if column < len(slots) and slots[column] >= 0:
                begins[slots[column], n_rows] = begin
                ends[slots[column], n_rows] = end
            column += 1
            if at == len(data) or data[at] != delimiter:
                break
            at += 1
        number = line + n_lines
        if number > 1 and at > line_begin:  # neither the header nor blank
            if is_whole and column == len(slots):
                lines[n_rows] = number
                n_rows += 1
            else:
                misshapen[n_misshapen] = number
                n_misshapen += 1
        n_lines += 1
        at += 2 if at + 1 < len(data) and data[at] == _CR and data[at + 1] == _LF else 1
    return n_rows, n_misshapen, n_lines


@numba.njit(cache=True, nogil=True)
def _field(data, at, delimiter):  # type: ignore[no-untyped-def]
    """(begin, end, place of the delimiter or line end after it, whether its quote is closed) of one field."""
    if at == len(data) or data[at] != _QUOTE:
        end = _field_end(data, at, delimiter)
        return at, end, end, True
    begin, end, is_closed = at, at, False  # unquoted where it stands
    at += 1
    while at < len(data) and data[at] != _LF and data[at] != _CR:
        if data[at] == _QUOTE:
            at += 1
            if at == len(data) or data[at] != _QUOTE:
                is_closed = True
                break
        data[end] = data[at]
        end += 1
        at += 1
    after = _field_end(data, at, delimiter)
    for i in range(at, after):
        data[end] = data[i]
        end += 1
    return begin, end, after, is_closed


@numba.njit(cache=True, nogil=True)
def _field_end(data, at, delimiter):  # type: ignore[no-untyped-def]
    while at < len(data) and data[at] != delimiter and data[at] != _LF and data[at] != _CR:
        at += 1
    return at
