"""Kernels that cut text into lines and lines into fields.

A block whose quotes and line ends are the usual ones, none and LF or CRLF, is cut 64 bytes at a time; any
other byte by byte, to the same end. Both take bytes `data[:n]` and may read WIDTH bytes beyond.

begins, ends : int32 (wanted columns, rows), filled with the place of each field in `data`
lines : int64, filled with the numbers of the lines that are rows, and from its end with those of the others
"""

import numba
import numpy as np
from numpy.typing import NDArray

from mobility.extracts.readers.bits import WIDTH, high_bits, matches, ones, trailing_zeros, unusual

QUOTE, LF, CR = b'"\n\r'
# Bytes of a block beyond fields, delimiters and line ends.
QUOTES, LONE_CRS, HIGH_BITS, NULS = 1, 2, 4, 8
SPARE, SPARE_LASTS = 9, 2  # numbers that `find_ends` writes at a time
_ONE = np.uint64(1)
_ALL = np.uint64(2**64 - 1)
Places = NDArray[np.int32]
Lines = NDArray[np.int64]


class Room:
    """Buffers of the kernels below; they are reused for each block."""

    def __init__(self) -> None:
        self._places = np.empty(0, np.int32)
        self._lines = np.empty(0, np.int64)

    def fields(self, n_rows: int, n_columns: int) -> tuple[Places, Places]:
        """Room for the begins and ends of fields, each of shape (n_columns, n_rows)."""
        size = n_rows * n_columns
        if len(self._places) < 2 * size:
            self._places = np.empty(2 * size, np.int32)
        begins, ends = self._places[: 2 * size].reshape(2, n_columns, n_rows)
        return begins, ends

    def lines(self, n_lines: int) -> Lines:
        """Room for the numbers of lines."""
        if len(self._lines) < n_lines:
            self._lines = np.empty(n_lines, np.int64)
        return self._lines[:n_lines]


@numba.njit(cache=True, nogil=True)
def find_ends(data, n, delimiter, ends, lasts):  # type: ignore[no-untyped-def]
    """Find where fields and lines end: (ends, lines, line ends of any kind, facts of the text).

    Fills `ends`, of n + 2 + SPARE places, with the place of each delimiter and line feed, and `lasts`, of
    n + 1 + SPARE_LASTS, with the place in `ends` of each line feed. The first end stands for a line feed
    before the data, the last for one after it if it has none.
    """
    count, n_lines = _ONE, np.uint64(0)
    ends[0] = -1
    line_ends = quotes = high = nuls = lone = carry = np.uint64(0)
    for at in range(0, n, WIDTH):
        inside = _ALL if n - at >= WIDTH else (_ONE << np.uint64(n - at)) - _ONE
        feeds = matches(data, at, LF) & inside
        left = (matches(data, at, delimiter) & inside) | feeds
        quotes |= matches(data, at, QUOTE) & inside
        if carry | (unusual(data, at) & inside & ~left):
            returns = matches(data, at, CR) & inside
            line_ends += ones(returns & ~feeds)
            lone |= ((returns << _ONE) | carry) & ~feeds
            carry = returns >> np.uint64(WIDTH - 1)
            high |= high_bits(data, at) & inside
            nuls |= matches(data, at, 0) & inside
        # Always the same number of steps: a processor guesses right then. Surplus entries are overwritten.
        place = n_lines
        n_lines += ones(feeds)
        while True:
            for step in range(SPARE_LASTS):
                before = left & ((_ONE << (trailing_zeros(feeds) & np.uint64(63))) - _ONE)
                lasts[place + np.uint64(step)] = np.int32(count + ones(before))
                feeds &= feeds - _ONE
            place += np.uint64(SPARE_LASTS)
            if place >= n_lines:
                break
        base = np.uint64(at)
        place = count
        count += ones(left)
        while place < count:
            for step in range(SPARE):
                ends[place + np.uint64(step)] = np.int32(base + trailing_zeros(left))
                left &= left - _ONE
            place += np.uint64(SPARE)
    line_ends += n_lines
    has = (QUOTES if quotes else 0) | (HIGH_BITS if high else 0) | (NULS if nuls else 0)
    if n > 0 and data[n - 1] != LF:
        has |= LONE_CRS if data[n - 1] == CR else 0
        ends[count] = n
        lasts[n_lines] = np.int32(count)
        count += _ONE
        n_lines += _ONE
    return np.int64(count), np.int64(n_lines), np.int64(line_ends) + 1, has | (LONE_CRS if lone else 0)


@numba.njit(cache=True, nogil=True)
def split_plain(  # type: ignore[no-untyped-def]
    data, found, lasts, n_columns, places, end_slot, first_line, n_headers, begins, ends, lines
):
    """Rows of a block without quotes and lone CRs: how many rows, lines that are none, and lines.

    found, lasts : of `find_ends`; places : uint64, the place in the file of each wanted column
    end_slot : place of the file's last column among those wanted, or -1
    first_line : number of the block's first line; its first `n_headers` are no rows
    """
    n_rows, n_misshapen, at = np.uint64(0), 0, _ONE  # unsigned: no question whether it is negative
    width = np.uint64(n_columns)
    for line in range(len(lasts)):
        last = np.uint64(lasts[line])
        begin, feed = found[at - _ONE] + 1, found[last]
        end = feed - 1 if feed > begin and data[np.uint64(feed) - _ONE] == CR else feed
        if line >= n_headers and (last > at or end > begin):  # neither a header nor blank
            if last + _ONE - at == width:
                for slot in range(len(places)):
                    place = at + places[slot]
                    begins[slot, n_rows] = found[place - _ONE] + 1
                    ends[slot, n_rows] = found[place]
                if end_slot >= 0:
                    ends[end_slot, n_rows] = end
                lines[n_rows] = first_line + line
                n_rows += _ONE
            else:
                n_misshapen += 1
                lines[len(lines) - n_misshapen] = first_line + line
        at = last + _ONE
    return np.int64(n_rows), n_misshapen, len(lasts)


@numba.njit(cache=True, nogil=True)
def split_any(  # type: ignore[no-untyped-def]
    data, n, delimiter, n_columns, slots, first_line, n_headers, begins, ends, lines
):
    """Rows of any block, as `split_plain`; removes quotes in place, and so overwrites `data`.

    slots : int64, of each column of the file its place among those wanted, or -1
    """
    n_rows, n_misshapen, number, at = 0, 0, first_line, np.int64(0)
    while at < n:
        line_begin, column, is_whole = at, 0, True
        while True:
            begin, end, at, is_closed = _field(data, at, n, delimiter)
            is_whole &= is_closed
            if column < n_columns and slots[column] >= 0:
                begins[slots[column], n_rows] = begin
                ends[slots[column], n_rows] = end
            column += 1
            if at == n or data[at] != delimiter:
                break
            at += 1
        if number >= first_line + n_headers and at > line_begin:  # neither a header nor blank
            if is_whole and column == n_columns:
                lines[n_rows] = number
                n_rows += 1
            else:
                n_misshapen += 1
                lines[len(lines) - n_misshapen] = number
        number += 1
        at += 2 if at + 1 < n and data[at] == CR and data[at + 1] == LF else 1
    return n_rows, n_misshapen, number - first_line


@numba.njit(cache=True, nogil=True)
def _field(data, at, n, delimiter):  # type: ignore[no-untyped-def]
    """(begin, end, place of the delimiter or line end after it, whether its quote is closed) of one field."""
    if at == n or data[at] != QUOTE:
        end = _field_end(data, at, n, delimiter)
        return at, end, end, True
    begin, end, is_closed = at, at, False  # unquoted in place
    at += 1
    while at < n and data[at] != LF and data[at] != CR:
        if data[at] == QUOTE:
            at += 1
            if at == n or data[at] != QUOTE:
                is_closed = True
                break
        data[end] = data[at]
        end += 1
        at += 1
    after = _field_end(data, at, n, delimiter)
    for i in range(at, after):
        data[end] = data[i]
        end += 1
    return begin, end, after, is_closed


@numba.njit(cache=True, nogil=True)
def _field_end(data, at, n, delimiter):  # type: ignore[no-untyped-def]
    while at < n and data[at] != delimiter and data[at] != LF and data[at] != CR:
        at += 1
    return at
