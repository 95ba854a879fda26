"""Text of an extract: which bytes are UTF-8, which can only be Latin-1, and what leaves as UTF-8."""

import numba
import numpy as np
from numpy.typing import NDArray

from mobility.extracts.readers import Texts
from mobility.extracts.readers.bits import WIDTH, high_bits, trailing_zeros

UTF8, LATIN1 = "utf-8", "latin-1"
# Of a row: nothing but ASCII; UTF-8 with more than that; bytes that are no UTF-8; NUL bytes (in no text).
ASCII_ROW, UTF8_ROW, OTHER_ROW, NUL_ROW = 0, 1, 2, 3


def is_plain(data: NDArray[np.uint8]) -> bool:
    """Return whether all bytes are ASCII and none is NUL, as in nearly all extracts."""
    return not len(data) or (int(data.max()) < 128 and int(data.min()) > 0)


@numba.njit(cache=True, nogil=True)
def is_utf8(data, n):  # type: ignore[no-untyped-def]
    """Return whether all of data[:n] is UTF-8; WIDTH bytes more must exist."""
    after = 0  # the end of the last character that is not ASCII
    for at in range(0, n, WIDTH):
        high = high_bits(data, at)
        while high:
            place = at + np.int64(trailing_zeros(high))
            high &= high - np.uint64(1)
            if place >= after and place < n:
                length = _utf8_length(data, place, n)
                if length == 0:
                    return False
                after = place + length
    return True


def kinds_of_rows(
    data: NDArray[np.uint8], begins: NDArray[np.int32], ends: NDArray[np.int32]
) -> NDArray[np.uint8]:
    """Kind of each row of fields `data[begins[slot, row]:ends[slot, row]]`: the worst of its fields."""
    kinds = np.zeros(begins.shape[1], np.uint8)
    for slot in range(begins.shape[0]):
        _worst_kinds(data, begins[slot], ends[slot], kinds)
    return kinds


def encoding_of(kinds: NDArray[np.uint8]) -> str:
    """Encoding that the first row with more than ASCII speaks for; empty when there is none."""
    telling = kinds[(kinds == UTF8_ROW) | (kinds == OTHER_ROW)]
    if not len(telling):
        return ""
    return UTF8 if telling[0] == UTF8_ROW else LATIN1


def is_bad(kinds: NDArray[np.uint8], *, encoding: str) -> NDArray[np.bool_]:
    """Rows that are no text of the file's encoding.

    Notes
    -----
    Any bytes are Latin-1, but UTF-8 in a file of Latin-1 is a row that someone else wrote.
    """
    bad: NDArray[np.bool_] = (kinds == NUL_ROW) | (kinds == (UTF8_ROW if encoding == LATIN1 else OTHER_ROW))
    return bad


@numba.njit(cache=True, nogil=True)
def _worst_kinds(data, begins, ends, kinds):  # type: ignore[no-untyped-def]
    for row in range(len(begins)):
        kinds[row] = max(kinds[row], _kind(data, np.int64(begins[row]), np.int64(ends[row])))


@numba.njit(cache=True, nogil=True)
def _kind(data, begin, end):  # type: ignore[no-untyped-def]
    kind, at = ASCII_ROW, begin
    while at < end:
        if data[at] == 0:
            return NUL_ROW
        if data[at] < 128:
            at += 1
            continue
        length = _utf8_length(data, at, end)
        kind = max(kind, UTF8_ROW if length else OTHER_ROW)
        at += max(length, 1)
    return kind


@numba.njit(cache=True, nogil=True)
def _utf8_length(data, at, end):  # type: ignore[no-untyped-def]
    """Bytes of the character that begins here with a byte from 128 on (RFC 3629), or 0 if none does."""
    first = data[at]
    if 0xC2 <= first <= 0xDF:
        length = 2
    elif 0xE0 <= first <= 0xEF:
        length = 3
    elif 0xF0 <= first <= 0xF4:
        length = 4
    else:
        return 0
    if at + length > end:
        return 0
    for i in range(at + 1, at + length):
        if data[i] & 0xC0 != 0x80:
            return 0
    # Written too long, surrogates, and beyond U+10FFFF: the second byte tells.
    second = data[at + 1]
    if (first == 0xE0 and second < 0xA0) or (first == 0xED and second > 0x9F):
        return 0
    if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second > 0x8F):
        return 0
    return length


def latin1_as_utf8(texts: Texts) -> Texts:
    """A copy of texts in Latin-1, one per row, in UTF-8."""
    begins, ends = texts.begins, texts.ends
    lengths, offsets = np.empty(len(begins), np.int64), np.zeros(len(begins) + 1, np.int32)
    _latin1_lengths(texts.data, begins, ends, lengths)
    np.cumsum(lengths, out=offsets[1:])
    data = np.empty(offsets[-1], np.uint8)
    _gather_latin1(texts.data, begins, ends, data)
    return Texts(data=data, begins=offsets[:-1], ends=offsets[1:])


@numba.njit(cache=True, nogil=True)
def _latin1_lengths(data, begins, ends, lengths):  # type: ignore[no-untyped-def]
    for row in range(len(begins)):
        length = ends[row] - begins[row]
        for i in range(begins[row], ends[row]):
            length += data[i] >> 7
        lengths[row] = length


@numba.njit(cache=True, nogil=True)
def _gather_latin1(data, begins, ends, texts):  # type: ignore[no-untyped-def]
    """Copy fields of Latin-1 one after the other into `texts`, as UTF-8."""
    at = 0
    for row in range(len(begins)):
        for i in range(begins[row], ends[row]):
            byte = data[i]
            if byte < 128:
                texts[at] = byte
                at += 1
            else:
                texts[at] = 0xC0 | (byte >> 6)
                texts[at + 1] = 0x80 | (byte & 0x3F)
                at += 2
