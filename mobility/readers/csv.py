"""CSV with a header, plain or gzip.

A row is a physical line: a quote that is never closed spoils its own line and none after it, and the line
numbers of bad rows are those that an editor shows. Blank lines are no rows. Quotes mean what they mean to
Python's csv module, except that they cannot hold the end of a line.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import BinaryIO, TypeAlias, cast

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mobility.errors import BatchFormatError
from mobility.readers import RowBlock

BLOCK_BYTES = 4 << 20  # also the longest line that can be read
BUFFER_BYTES = 64 << 10
GZIP_MAGIC = b"\x1f\x8b"
UTF8_BOM = b"\xef\xbb\xbf"
LINE_END = re.compile(rb"\r\n|\n|\r")
_COMMA, _QUOTE, _LF, _CR = b',"\n\r'
_UNWANTED = -1

Source: TypeAlias = "io.BufferedReader[io.RawIOBase]"
Bytes = NDArray[np.uint8]


class LineTooLongError(Exception):
    """A line does not fit into a block."""


def read_csv(stream: BinaryIO, *, columns: Sequence[str]) -> Iterator[RowBlock]:
    """Blocks of a CSV stream; see `Reader`."""
    line = 1
    try:
        parts = _whole_lines(_plain(stream))
        first = next(parts, np.empty(0, np.uint8))
        header = LINE_END.split(first.tobytes(), maxsplit=1)[0]
        slots = _slots(header, columns=columns)
        for part in chain([first], parts):
            block, n_lines = _block(part, line=line, columns=columns, slots=slots)
            line += n_lines
            yield block
    except LineTooLongError:
        raise BatchFormatError(
            f"after line {line - 1}: a line has more than {BLOCK_BYTES} bytes; is this a CSV file?"
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise BatchFormatError(
            "the gzip stream is damaged or ends early: compress the file again and send it whole"
        ) from None


def _plain(stream: BinaryIO) -> Source:
    buffered = io.BufferedReader(cast(io.RawIOBase, stream), BUFFER_BYTES)
    if buffered.peek(2)[:2] != GZIP_MAGIC:
        return buffered
    return io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=buffered)), BUFFER_BYTES)


def _whole_lines(source: Source) -> Iterator[Bytes]:
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


def _slots(header: bytes, *, columns: Sequence[str]) -> NDArray[np.int64]:
    """Of each column of the file its place in `columns`, or _UNWANTED; each of `columns` has one."""
    line = header.removeprefix(UTF8_BOM)
    if not line.strip():
        raise BatchFormatError("line 1 is empty: expected a header with the names of the columns")
    try:
        names = next(csv.reader([line.decode()]))
    except (UnicodeDecodeError, csv.Error):
        raise BatchFormatError("line 1: the header is not text in UTF-8 with commas") from None
    missing = [name for name in columns if name not in names]
    if missing:
        raise BatchFormatError(
            f"line 1: no column {_listed(missing)}; expected {_listed(columns)} as the study file says, "
            f"found {len(names)} columns, none of that name"
        )
    twice = [name for name in columns if names.count(name) > 1]
    if twice:
        raise BatchFormatError(f"line 1: column {_listed(twice)} appears more than once")
    return np.array([columns.index(name) if name in columns else _UNWANTED for name in names], np.int64)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _block(
    data: Bytes, *, line: int, columns: Sequence[str], slots: NDArray[np.int64]
) -> tuple[RowBlock, int]:
    """Rows of a part whose first line has number `line`, and how many lines it has; overwrites `data`."""
    n_lines = _most_lines(data)
    # A row has at least its commas and the end of its line; one place more serves lines that are no rows.
    n_rows = min(n_lines, (len(data) + 1) // len(slots) + 1)
    begins, ends = np.empty((2, len(columns), n_rows), np.int32)
    lines, misshapen = np.empty(n_rows, np.int64), np.empty(n_lines, np.int64)
    n_rows, n_misshapen, n_lines = _split(data, line, slots, begins, ends, lines, misshapen)
    block = RowBlock(
        columns={
            name: _column(data, begins[slot, :n_rows], ends[slot, :n_rows])
            for slot, name in enumerate(columns)
        },
        lines=lines[:n_rows],
        misshapen=misshapen[:n_misshapen],
    )
    return block, n_lines


def _column(data: Bytes, begins: NDArray[np.int32], ends: NDArray[np.int32]) -> pa.Array:
    offsets = np.zeros(len(begins) + 1, np.int32)
    np.cumsum(ends - begins, out=offsets[1:])
    texts = np.empty(offsets[-1], np.uint8)
    _gather(data, begins, ends, texts)
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
def _split(data, line, slots, begins, ends, lines, misshapen):  # type: ignore[no-untyped-def]
    """Find the wanted fields of each row, and the lines that are none; returns how many rows, such, lines."""
    n_rows, n_misshapen, n_lines, at = 0, 0, 0, 0
    while at < len(data):
        line_begin, column, is_whole = at, 0, True
        while True:
            begin, end, at, is_closed = _field(data, at)
            is_whole &= is_closed
            if column < len(slots) and slots[column] >= 0:
                begins[slots[column], n_rows] = begin
                ends[slots[column], n_rows] = end
            column += 1
            if at == len(data) or data[at] != _COMMA:
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
def _field(data, at):  # type: ignore[no-untyped-def]
    """(begin, end, place of the comma or line end after it, whether its quote is closed) of one field."""
    if at == len(data) or data[at] != _QUOTE:
        end = _field_end(data, at)
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
    after = _field_end(data, at)
    for i in range(at, after):
        data[end] = data[i]
        end += 1
    return begin, end, after, is_closed


@numba.njit(cache=True, nogil=True)
def _field_end(data, at):  # type: ignore[no-untyped-def]
    while at < len(data) and data[at] != _COMMA and data[at] != _LF and data[at] != _CR:
        at += 1
    return at


@numba.njit(cache=True, nogil=True)
def _gather(data, begins, ends, texts):  # type: ignore[no-untyped-def]
    at = 0
    for row in range(len(begins)):
        for i in range(begins[row], ends[row]):
            texts[at] = data[i]
            at += 1
