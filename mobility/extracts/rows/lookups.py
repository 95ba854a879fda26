"""Texts of a column to numbers: codes of values and cells, and pseudonyms of subscribers.

Codes are in an open hash table; a hash only gives the place, the bytes decide. A pseudonym is what is
left of an identifier: its keyed PRF.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Self

import numba
import numpy as np
from numpy.typing import NDArray

from ldp.kernels.cmac import cmac64_of
from mobility.extracts.profiles.definition import ValueTable
from mobility.extracts.readers import Scalar, Texts, read_only
from mobility.extracts.readers.bits import ones
from mobility.extracts.rows.events import NO_VALUE

UNKNOWN: Final = -1
_WORD, _HALF, _ONE = np.uint64(8), np.uint64(32), np.uint64(1)
_BLANK = 32
_PLUS, _MINUS, _POINT, _COMMA, _ZERO, _NINE = b"+-.,09"
_DIGITS = np.uint64(18)  # of a number, before and after the point
_LONGEST = 1 << 31
# Odd numbers with about as many ones as zeros: a product's high bits depend on all bits of a word.
_MULTIPLIERS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
# A slot of a table: the first, second and last 8 bytes of a text; its length and its place among the texts,
# 32 bits each (0 = free).
_HEAD, _NEXT, _TAIL, _SIZE_AND_PLACE = np.arange(4, dtype=np.uint64)
_COVERED = np.uint64(24)  # bytes that these words cover
_TRIES = 32  # multipliers, until one gives each text of a table a different slot
_MAX_BITS = 20  # of the index of a set of pseudonyms: 8 MiB at most


class CodeTable:
    """Code of each text that a column may hold.

    Parameters
    ----------
    codes : code by text, trimmed, in UTF-8; each in [0, 2**31)
    prefix_bytes : how many leading bytes of a text count; 0 = all of it
    empty : code of a text of nothing but blanks
    otherwise : code of any other text
    """

    def __init__(
        self,
        codes: Mapping[bytes, int],
        *,
        prefix_bytes: int = 0,
        empty: int = int(NO_VALUE),
        otherwise: int = UNKNOWN,
    ) -> None:
        self._options = (prefix_bytes or _LONGEST, empty, otherwise)
        ends = np.cumsum([0, *map(len, codes)], dtype=np.int32)
        self._data = np.frombuffer(b"".join(codes), np.uint8)
        self._begins = ends[:-1]
        self._codes = np.fromiter(codes.values(), np.int32, len(codes))
        size = 2 << (2 * len(codes)).bit_length()
        self._slots = np.zeros((size, 4), np.uint64)
        _fill(self._data, self._begins, ends[1:], self._slots)
        # Texts of up to 8 bytes without NUL are a word each: operators' codes, nearly all that is looked up.
        is_short = not prefix_bytes and all(0 < len(text) <= _WORD and b"\0" not in text for text in codes)
        self._short = _words_of(codes, size=size, otherwise=otherwise) if is_short else None

    @classmethod
    def of(cls, table: ValueTable, *, empty: int = int(NO_VALUE)) -> "Self | NumberTable":
        """Table of an indicator: `empty` without a value, UNKNOWN where the row must be rejected."""
        if table.cuts:
            return NumberTable(table.cuts, empty=empty)
        otherwise = UNKNOWN if table.otherwise is None else table.otherwise
        return cls(table.codes, prefix_bytes=table.prefix_bytes, empty=empty, otherwise=otherwise)

    def codes(self, texts: Texts, out: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """Code of each row's text, shape (n,); in `out` if there is one."""
        return _codes_of_rows(texts, self, self._look_up, out)

    def _look_up(self, texts: Texts, codes: NDArray[np.int32]) -> None:
        if self._short is not None:
            _look_up_short(texts.data, texts.begins, texts.ends, *self._options[1:], *self._short, codes)
        else:
            _look_up(
                texts.data, texts.begins, texts.ends, *self._options, self._data, self._begins, self._codes,
                self._slots, codes,
            )  # fmt: skip


class NumberTable:
    """Cuts that the number of each text reaches, as `ValueTable.code_of` says.

    Parameters
    ----------
    cuts : rising
    empty : code of a text of nothing but blanks
    """

    def __init__(self, cuts: Sequence[int], *, empty: int) -> None:
        self._cuts, self._empty = np.array(cuts, np.int64), empty

    def codes(self, texts: Texts, out: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """Code of each row's text, shape (n,); in `out` if there is one."""
        return _codes_of_rows(texts, self, self._look_up, out)

    def _look_up(self, texts: Texts, codes: NDArray[np.int32]) -> None:
        _reached(texts.data, texts.begins, texts.ends, self._cuts, self._empty, codes)


def _codes_of_rows(
    texts: Texts,
    table: CodeTable | NumberTable,
    look_up: Callable[[Texts, NDArray[np.int32]], None],
    out: NDArray[np.int32] | None,
) -> NDArray[np.int32]:
    """Look each text up, once if it is in a dictionary, and give each row the code of its text."""

    def looked_up(into: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        codes = np.empty(len(texts.begins), np.int32) if into is None else into
        look_up(texts, codes)
        return codes

    if texts.of_row is None:
        return looked_up(out)
    return of_rows(texts.once(table, looked_up), texts.of_row, out)


def of_rows(
    values: NDArray[Scalar], of_row: NDArray[np.int32], out: NDArray[Scalar] | None = None
) -> NDArray[Scalar]:
    """Value of each row's text: values[of_row], whose places a reader has checked."""
    found = np.empty(len(of_row), values.dtype) if out is None else out
    _take(read_only(values), read_only(of_row), found)
    return found


def trimmed(texts: Texts) -> Texts:
    """Return the same without the blanks around them (those of `bytes.strip`)."""
    begins, ends = np.empty((2, len(texts.begins)), np.int32)
    _trim(texts.data, texts.begins, texts.ends, begins, ends)
    return Texts(data=texts.data, begins=begins, ends=ends, of_row=texts.of_row)


class Pseudonyms(NamedTuple):
    """Per row, shape (n,): the pseudonym, and whether there is no subscriber at all."""

    values: NDArray[np.uint64]
    is_empty: NDArray[np.bool_]


def pseudonyms_of(texts: Texts, key: bytes) -> Pseudonyms:
    """AES-CMAC of each row's trimmed bytes under `key` (16 bytes), its first 8 bytes."""
    found = texts.once((pseudonyms_of, key), lambda: _pseudonyms(texts, key))
    if texts.of_row is None:
        return found
    return Pseudonyms(of_rows(found.values, texts.of_row), of_rows(found.is_empty, texts.of_row))


def _pseudonyms(texts: Texts, key: bytes) -> Pseudonyms:
    texts = trimmed(texts)
    return Pseudonyms(cmac64_of(key, texts.data, texts.begins, texts.ends), texts.begins == texts.ends)


class PseudonymSet:
    """Pseudonyms to be found again among many.

    Parameters
    ----------
    members : uint64, rising, each once
    """

    def __init__(self, members: NDArray[np.uint64]) -> None:
        self._members = members
        # Pseudonyms are spread evenly: their leading bits tell where to look, to about one place.
        bits = min(max(len(members).bit_length(), 1), _MAX_BITS)
        self._shift = np.uint64(64 - bits)
        firsts = np.arange(1 << bits, dtype=np.uint64) << self._shift
        self._starts = np.append(np.searchsorted(members, firsts), len(members)).astype(np.int64)

    def __len__(self) -> int:
        return len(self._members)

    def holds(self, pseudonyms: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return whether each is among them."""
        found = np.zeros(len(pseudonyms), np.bool_)
        if len(self._members):
            _find(pseudonyms, self._members, self._starts, self._shift, found)
        return found


# Places are unsigned from here on: negative ones would count from the end of an array, and what asks whether
# they do takes longer than all the rest.


@numba.njit(cache=True, nogil=True)
def _take(values, of_row, out):  # type: ignore[no-untyped-def]
    for row in range(len(of_row)):
        out[row] = values[np.uint32(of_row[row])]


@numba.njit(cache=True, nogil=True)
def _trim(data, begins, ends, trimmed_begins, trimmed_ends):  # type: ignore[no-untyped-def]
    for row in range(len(begins)):
        begin, end = without_blanks(data, np.uint64(begins[row]), np.uint64(ends[row]))
        trimmed_begins[row], trimmed_ends[row] = begin, end


@numba.njit(cache=True, nogil=True)
def without_blanks(data, begin, end):  # type: ignore[no-untyped-def]
    """(begin, end) without the blanks that `bytes.strip` takes away."""
    if begin < end and data[begin] > _BLANK and data[end - _ONE] > _BLANK:  # nearly always
        return begin, end
    while begin < end and _is_blank(data[begin]):
        begin += _ONE
    while end > begin and _is_blank(data[end - _ONE]):
        end -= _ONE
    return begin, end


@numba.njit(cache=True, nogil=True)
def _is_blank(byte):  # type: ignore[no-untyped-def]
    return byte == _BLANK or 9 <= byte <= 13


@numba.njit(cache=True, nogil=True)
def word_at(data, place):  # type: ignore[no-untyped-def]
    """8 bytes from a place on, which must all be there."""
    word = np.uint64(0)
    for byte in range(8):  # compiles to a single load
        word |= np.uint64(data[place + np.uint64(byte)]) << np.uint64(8 * byte)
    return word


@numba.njit(cache=True, nogil=True)
def words_of(data, begin, size):  # type: ignore[no-untyped-def]
    """The first, second and last 8 bytes of a text of at least one; they overlap where it is shorter."""
    if begin + _WORD > np.uint64(len(data)):
        word = _word_byte_by_byte(data, begin, size)
        return word, word, word
    # Without a branch on the size: processors guess wrongly where texts are of all lengths.
    missing = _WORD - min(size, _WORD)
    beyond, rest = missing << np.uint64(3), size + missing - _WORD
    head = (word_at(data, begin) << beyond) >> beyond
    following = (word_at(data, begin + min(rest, _WORD)) << beyond) >> beyond
    tail = (word_at(data, begin + rest) << beyond) >> beyond
    return head, following, tail


@numba.njit(cache=True, nogil=True)
def _word_byte_by_byte(data, begin, size):  # type: ignore[no-untyped-def]
    word = np.uint64(0)
    for byte in range(min(size, _WORD)):
        word |= np.uint64(data[begin + np.uint64(byte)]) << np.uint64(8 * byte)
    return word


@numba.njit(cache=True, nogil=True)
def slot_of(data, begin, size, words, last):  # type: ignore[no-untyped-def]
    """The first slot to look at, of last + 1."""
    head, following, tail = words
    mixed = (head ^ size) * _MULTIPLIERS[0] + (following ^ (tail >> _HALF) ^ (tail << _HALF)) * _MULTIPLIERS[
        1
    ]
    if size > _COVERED:
        at = _COVERED - _WORD
        while at + _WORD < size:
            mixed = (mixed ^ (mixed >> _HALF) ^ word_at(data, begin + at)) * _MULTIPLIERS[0]
            at += _WORD
    mixed = (mixed ^ (mixed >> _HALF)) * _MULTIPLIERS[1]
    return (mixed >> _HALF) & last


@numba.njit(cache=True, nogil=True)
def is_same(data, begin, other, other_begin, size):  # type: ignore[no-untyped-def]
    """Return whether two texts of the same size and words are the same."""
    at = _COVERED - _WORD
    while at + _WORD < size:
        if word_at(data, begin + at) != word_at(other, other_begin + at):
            return False
        at += _WORD
    return True


@numba.njit(cache=True, nogil=True)
def _fill(data, begins, ends, slots):  # type: ignore[no-untyped-def]
    last = np.uint64(len(slots) - 1)
    for place in range(len(begins)):
        begin, size = np.uint64(begins[place]), np.uint64(ends[place] - begins[place])
        if size == 0:
            continue
        words = words_of(data, begin, size)
        slot = slot_of(data, begin, size, words, last)
        while slots[slot, _SIZE_AND_PLACE]:
            slot = (slot + _ONE) & last
        slots[slot, _HEAD], slots[slot, _NEXT], slots[slot, _TAIL] = words
        slots[slot, _SIZE_AND_PLACE] = (size << _HALF) | np.uint64(place)


@numba.njit(cache=True, nogil=True)
def _look_up(  # type: ignore[no-untyped-def]
    data, begins, ends, prefix, empty, otherwise, known, known_begins, known_codes, slots, codes
):
    last = np.uint64(len(slots) - 1)
    for row in range(len(begins)):
        begin, end = without_blanks(data, np.uint64(begins[row]), np.uint64(ends[row]))
        if begin == end:
            codes[row] = empty
            continue
        size = min(end - begin, np.uint64(prefix))
        words = words_of(data, begin, size)
        slot = slot_of(data, begin, size, words, last)
        code = otherwise
        while True:
            found = slots[slot, _SIZE_AND_PLACE]
            if found == 0:
                break
            if _has_words(slots, slot, words) and found >> _HALF == size:
                place = found & np.uint64(0xFFFFFFFF)
                if is_same(data, begin, known, np.uint64(known_begins[place]), size):
                    code = known_codes[place]
                    break
            slot = (slot + _ONE) & last
        codes[row] = code


def _words_of(
    codes: Mapping[bytes, int], *, size: int, otherwise: int
) -> tuple[NDArray[np.uint64], NDArray[np.int32], np.uint64]:
    """Slots of `_look_up_short`: a text as a word (0 = free), its code, and the multiplier that places it."""
    words = np.array([int.from_bytes(text, "little") for text in codes], np.uint64)
    shift = np.uint64(64 - (size.bit_length() - 1))
    tries = [np.uint64(int(_MULTIPLIERS[0]) * (2 * n + 1) % 2**64) for n in range(_TRIES)]
    spread = (each for each in tries if len(np.unique((words * each) >> shift)) == len(words))
    multiplier = next(spread, tries[0])
    slots, slot_codes = np.zeros(size, np.uint64), np.full(size, otherwise, np.int32)
    for word, place, code in zip(words, (words * multiplier) >> shift, codes.values(), strict=True):
        slot = int(place)
        while slots[slot]:
            slot = (slot + 1) % size
        slots[slot], slot_codes[slot] = word, code
    return slots, slot_codes, multiplier


@numba.njit(cache=True, nogil=True)
def _look_up_short(  # type: ignore[no-untyped-def]
    data, begins, ends, empty, otherwise, slots, slot_codes, multiplier, codes
):
    """Look up, where each known text is a word."""
    end_of_data, shift = np.uint64(len(data)), np.uint64(64) - ones(np.uint64(len(slots) - 1))
    for row in range(len(begins)):
        begin, end = np.uint64(begins[row]), np.uint64(ends[row])
        beyond = _WORD - (end - begin)
        if beyond < _WORD and begin + _WORD <= end_of_data:  # of 1 to 8 bytes
            beyond <<= np.uint64(3)
            word = (word_at(data, begin) << beyond) >> beyond
            slot = (word * multiplier) >> shift
            if slots[slot] == word:  # nearly always; no known text has blanks around it
                codes[row] = slot_codes[slot]
                continue
        codes[row] = _short_code(data, begin, end, empty, otherwise, slots, slot_codes, multiplier, shift)


@numba.njit(cache=True, nogil=True)
def _short_code(  # type: ignore[no-untyped-def]
    data, begin, end, empty, otherwise, slots, slot_codes, multiplier, shift
):
    """Code of one text."""
    begin, end = without_blanks(data, begin, end)
    size = end - begin
    if size == 0 or size > _WORD:
        return empty if size == 0 else otherwise
    word = _word_byte_by_byte(data, begin, size)
    slot, last = (word * multiplier) >> shift, np.uint64(len(slots) - 1)
    while slots[slot] != word and slots[slot]:
        slot = (slot + _ONE) & last
    return slot_codes[slot]


@numba.njit(cache=True, nogil=True)
def _reached(data, begins, ends, cuts, empty, codes):  # type: ignore[no-untyped-def]
    for row in range(len(begins)):
        begin, end = without_blanks(data, np.uint64(begins[row]), np.uint64(ends[row]))
        if begin == end:
            codes[row] = empty
            continue
        is_number, whole = _whole_number(data, begin, end)
        codes[row] = np.searchsorted(cuts, whole, side="right") if is_number else UNKNOWN


@numba.njit(cache=True, nogil=True)
def _whole_number(data, begin, end):  # type: ignore[no-untyped-def]
    """Return whether a text is a decimal number, and the largest integer that is not above it."""
    sign = data[begin]
    at = begin + _ONE if sign in (_PLUS, _MINUS) else begin
    whole, first = np.int64(0), at
    while at < end and _ZERO <= data[at] <= _NINE:
        whole = 10 * whole + np.int64(data[at] - _ZERO)
        at += _ONE
        if at - first > _DIGITS:
            return False, np.int64(0)
    if at == first:
        return False, np.int64(0)
    has_rest = False
    if at < end and data[at] in (_POINT, _COMMA):
        at += _ONE
        first = at
        while at < end and _ZERO <= data[at] <= _NINE and at - first < _DIGITS:
            has_rest |= data[at] != _ZERO
            at += _ONE
    if sign == _MINUS:
        whole = -whole - np.int64(has_rest)
    return at == end, whole


@numba.njit(cache=True, nogil=True)
def _has_words(slots, slot, words):  # type: ignore[no-untyped-def]
    head, following, tail = words
    different = (slots[slot, _HEAD] ^ head) | (slots[slot, _NEXT] ^ following) | (slots[slot, _TAIL] ^ tail)
    return different == 0


@numba.njit(cache=True, nogil=True)
def _find(pseudonyms, members, starts, shift, found):  # type: ignore[no-untyped-def]
    for row in range(len(pseudonyms)):
        bucket = pseudonyms[row] >> shift
        for place in range(starts[bucket], starts[bucket + np.uint64(1)]):
            if members[place] == pseudonyms[row]:
                found[row] = True
