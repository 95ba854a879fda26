"""Kernels that read timestamps from text: ISO 8601, numbers since 1970, and patterns.

Each form is read to (kind, seconds since 1970, offset in seconds), one text at a time. NAIVE: local time of
the study, counted as if it were UTC; INSTANT: the offset must be subtracted; UNREADABLE.
"""

import numba
import numpy as np
from numpy.typing import NDArray

from mobility.extracts.rows.lookups import word_at
from reports.studies.studyfile.formats import pattern_parts

DAY_S = 86_400
NAIVE, INSTANT, UNREADABLE = 0, 1, 2
# Years 1 to 9999: what lies beyond was written in another unit.
FIRST_S, LAST_S = -62_135_596_800, 253_402_300_799
_MAX_DIGITS = 18  # of a number that fits in 64 bits
_YEAR, _MONTH, _DAY, _HOUR, _MINUTE, _SECOND, _FRACTION, _OFFSET = range(8)
_FIELDS = ("%Y", "%m", "%d", "%H", "%M", "%S", "%f", "%z")
_LITERAL = -1
# ISO 8601 to the second, as little-endian words: 0 in place of each digit, and the separators between them.
_FIXED = 19
_DATE, _CLOCK_T, _CLOCK_BLANK = (
    np.uint64(int.from_bytes(text, "little")) for text in (b"0000-00-", b"00T00:00", b"00 00:00")
)
_SECONDS = np.uint64(int.from_bytes(b":00", "little"))
# Added to seconds in the same form, each digit that is none of "00" to "59" shows.
_TO_60, _BEYOND_60 = np.uint64(0x060A00), np.uint64(0xF0F0FF)
_DATE_MARKS, _CLOCK_MARKS = np.uint64(0xFF0000FF00000000), np.uint64(0x0000FF0000FF0000)
_SIXES, _HIGH = np.uint64(0x0606060606060606), np.uint64(0xF0F0F0F0F0F0F0F0)


def pattern_steps(pattern: str) -> NDArray[np.int64]:
    """Steps of a pattern, shape (n, 3): field or _LITERAL; byte, or fewest digits; most digits."""
    parts = pattern_parts(pattern)
    steps = []
    for part, after in zip(parts, [*parts[1:], ""], strict=True):
        if part not in _FIELDS:
            steps.append((_LITERAL, ord(part), 0))
        elif part == "%Y":
            steps.append((_YEAR, 4, 4))
        else:
            # Where a number follows at once, only the width tells where this one ends.
            steps.append((_FIELDS.index(part), 2 if after in _FIELDS[:6] else 1, 2))
    return np.array(steps, np.int64)


# Here, next to all that it calls: the cache of a compiled function does not see changes in other files.
@numba.njit(cache=True, nogil=True)
def read_texts(data, begins, ends, per_second, steps, kinds, stamps):  # type: ignore[no-untyped-def]
    """Read all texts, trimmed: numbers if `per_second` is set, a pattern if it has `steps`, else ISO 8601."""
    is_iso = per_second == 0 and len(steps) == 0
    month_text, month_day, days = np.uint64(0), np.int64(0), np.int64(0)  # of the last row: rarely another
    date, clock, minute = np.uint64(0), np.uint64(0), np.int64(0)  # the same of its minute
    for row in range(len(begins)):
        if is_iso:
            begin = np.uint64(begins[row])
            if ends[row] - begins[row] == _FIXED and begin + np.uint64(24) <= np.uint64(len(data)):
                is_known = date and word_at(data, begin) == date
                is_known = is_known and word_at(data, begin + np.uint64(8)) == clock
                seconds = (word_at(data, begin + np.uint64(16)) & np.uint64(0xFFFFFF)) ^ _SECONDS
                if is_known and not (seconds | (seconds + _TO_60)) & _BEYOND_60:
                    kinds[row], stamps[row] = NAIVE, minute + _pair(seconds, 1)
                    continue
            head, day_and_hour, seconds = _fixed_width(data, np.uint64(begins[row]), np.uint64(ends[row]))
            if head != month_text and head:
                month_text = head
                month_day, days = _month(head)
            if head and 1 <= _pair(day_and_hour, 0) <= days and _is_clock(day_and_hour, seconds):
                kind, shift = _offset_after(data, begins[row] + _FIXED, ends[row])
                kinds[row] = kind
                day = month_day + _pair(day_and_hour, 0)
                before = day * DAY_S + _pair(day_and_hour, 3) * 3600 + _pair(day_and_hour, 6) * 60
                stamps[row] = before + _pair(seconds, 1) - shift
                date, clock, minute = word_at(data, begin), word_at(data, begin + np.uint64(8)), before
                continue
        start, end = _trimmed(data, begins[row], ends[row])
        if per_second > 0:
            kind, stamp, shift = _read_epoch(data, start, end, per_second)
        elif len(steps) > 0:
            kind, stamp, shift = _read_pattern(data, start, end, steps)
        else:
            kind, stamp, shift = _read_iso(data, start, end)
        kinds[row] = kind
        stamps[row] = stamp - shift


@numba.njit(cache=True, nogil=True)
def _fixed_width(data, begin, end):  # type: ignore[no-untyped-def]
    """Digits of `YYYY-MM-`, `DDTHH:MM` and `:SS`, 8 to a word, each in its byte; zeros if it is not that.

    Later bytes are ignored. A month without digits is no month, so that zeros are always refused.
    """
    none = np.uint64(0), np.uint64(0), np.uint64(0)
    if end < begin + np.uint64(_FIXED) or begin + np.uint64(24) > np.uint64(len(data)):
        return none
    date = word_at(data, begin) ^ _DATE
    clock = word_at(data, begin + np.uint64(8))
    clock ^= _CLOCK_T if (clock >> np.uint64(16)) & np.uint64(0xFF) == 84 else _CLOCK_BLANK
    seconds = (word_at(data, begin + np.uint64(16)) & np.uint64(0xFFFFFF)) ^ _SECONDS
    # A digit is 0 to 9 here, and a separator is 0.
    beyond = (date + (_SIXES & ~_DATE_MARKS)) | (clock + (_SIXES & ~_CLOCK_MARKS))
    beyond |= (seconds + np.uint64(0x060600)) | date | clock | seconds
    if beyond & _HIGH or (date & _DATE_MARKS) | (clock & _CLOCK_MARKS) | (seconds & np.uint64(0xFF)):
        return none
    return date, clock, seconds


@numba.njit(cache=True, nogil=True, inline="always")
def _pair(digits, place):  # type: ignore[no-untyped-def]
    """Number of the two digits from a place on; inlined, or it would be compiled for each place."""
    both = digits >> np.uint64(8 * place)
    return np.int64((both & np.uint64(0xFF)) * np.uint64(10) + ((both >> np.uint64(8)) & np.uint64(0xFF)))


@numba.njit(cache=True, nogil=True)
def _month(digits):  # type: ignore[no-untyped-def]
    """(the day before it since 1970, its days) of `YYYY-MM-`; no days if there is no such month."""
    year, month = _pair(digits, 0) * 100 + _pair(digits, 2), _pair(digits, 5)
    if year < 1 or month < 1 or month > 12:
        return np.int64(0), np.int64(0)
    return np.int64(_days_since_1970(year, month, np.int64(1)) - 1), np.int64(_days_in_month(year, month))


@numba.njit(cache=True, nogil=True)
def _is_clock(day_and_hour, seconds):  # type: ignore[no-untyped-def]
    return _pair(day_and_hour, 3) < 24 and _pair(day_and_hour, 6) < 60 and _pair(seconds, 1) < 60


@numba.njit(cache=True, nogil=True)
def _offset_after(data, at, end):  # type: ignore[no-untyped-def]
    """(kind, offset in seconds) of what follows the seconds: a fraction, an offset, blanks, or nothing."""
    while end > at and _is_blank(data[end - 1]):  # not before: a blank ends the time
        end -= 1
    if at == end:
        return NAIVE, 0
    after = _after_fraction(data, at, end)
    return _offset(data, after, end) if after >= 0 else (UNREADABLE, 0)


@numba.njit(cache=True, nogil=True)
def _trimmed(data, start, end):  # type: ignore[no-untyped-def]
    """(start, end) without the blanks that `bytes.strip` takes away, as it does from the other columns."""
    while start < end and _is_blank(data[start]):
        start += 1
    while end > start and _is_blank(data[end - 1]):
        end -= 1
    return start, end


@numba.njit(cache=True, nogil=True)
def _is_blank(byte):  # type: ignore[no-untyped-def]
    return byte == 32 or 9 <= byte <= 13


@numba.njit(cache=True, nogil=True)
def _read_iso(data, start, end):  # type: ignore[no-untyped-def]
    """`YYYY-MM-DDTHH:MM[:SS[.fraction]]` (or a blank for T), then nothing, `Z` or `+HH[[:]MM]`."""
    unreadable = (UNREADABLE, np.int64(0), np.int64(0))
    if end - start < 16 or data[start + 4] != 45 or data[start + 7] != 45 or data[start + 13] != 58:
        return unreadable
    if data[start + 10] not in (84, 32):
        return unreadable
    year, month = _digits(data, start, start + 4), _digits(data, start + 5, start + 7)
    day = _digits(data, start + 8, start + 10)
    hour, minute = _digits(data, start + 11, start + 13), _digits(data, start + 14, start + 16)
    second, at = _iso_second(data, start + 16, end)
    if not _is_time(year, month, day, hour, minute, second):
        return unreadable
    kind, shift = _offset(data, at, end)
    return kind, _seconds(year, month, day, hour, minute, second), np.int64(shift)


@numba.njit(cache=True, nogil=True)
def _read_epoch(data, start, end, per_second):  # type: ignore[no-untyped-def]
    """A whole number of units since 1970, `per_second` of them in a second; a decimal fraction is cut off."""
    unreadable = (UNREADABLE, np.int64(0), np.int64(0))
    is_negative = start < end and data[start] == 45
    at = start + (1 if is_negative else 0)
    first, value = at, np.int64(0)
    while at < end and 48 <= data[at] <= 57 and at - first < _MAX_DIGITS:
        value = value * 10 + (data[at] - 48)
        at += 1
    if at == first or _after_fraction(data, at, end) != end:
        return unreadable
    stamp = (-value if is_negative else value) // per_second
    if stamp < FIRST_S or stamp > LAST_S:
        return unreadable
    return INSTANT, stamp, np.int64(0)


@numba.njit(cache=True, nogil=True)
def _read_pattern(data, start, end, steps):  # type: ignore[no-untyped-def]
    """Parse all of a text as `pattern_steps` describes."""
    unreadable = (UNREADABLE, np.int64(0), np.int64(0))
    fields = np.zeros(6, np.int64)
    at, kind, shift = start, NAIVE, 0
    for step in range(len(steps)):
        field, least, most = steps[step, 0], steps[step, 1], steps[step, 2]
        if field == _LITERAL:
            if at >= end or data[at] != least:
                return unreadable
            at += 1
        elif field == _FRACTION:
            first = at
            at = _after_digits(data, at, end)
            if at == first:
                return unreadable
        elif field == _OFFSET:
            kind, shift = _offset(data, at, end)
            if kind != INSTANT:  # the pattern promises one
                return unreadable
            at = end
        else:
            first = at
            at = min(_after_digits(data, at, end), first + most)
            if at - first < least:
                return unreadable
            fields[field] = _digits(data, first, at)
    year, month, day, hour, minute, second = fields
    if at != end or not _is_time(year, month, day, hour, minute, second):
        return unreadable
    return kind, _seconds(year, month, day, hour, minute, second), np.int64(shift)


@numba.njit(cache=True, nogil=True)
def _digits(data, at, end):  # type: ignore[no-untyped-def]
    """Value of the digits from a place to an end, or -1."""
    value = 0
    for i in range(at, end):
        digit = data[i] - 48
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


@numba.njit(cache=True, nogil=True)
def _after_digits(data, at, end):  # type: ignore[no-untyped-def]
    while at < end and 48 <= data[at] <= 57:
        at += 1
    return at


@numba.njit(cache=True, nogil=True)
def _after_fraction(data, at, end):  # type: ignore[no-untyped-def]
    """Place after an optional fraction; a point or comma without digits is none, and is -1."""
    if at >= end or data[at] not in (46, 44):
        return at
    after = _after_digits(data, at + 1, end)
    return after if after > at + 1 else -1


@numba.njit(cache=True, nogil=True)
def _is_time(year, month, day, hour, minute, second):  # type: ignore[no-untyped-def]
    if year < 1 or month < 1 or month > 12 or day < 1 or day > _days_in_month(year, month):
        return False
    return 0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59


@numba.njit(cache=True, nogil=True)
def _seconds(year, month, day, hour, minute, second):  # type: ignore[no-untyped-def]
    return np.int64(_days_since_1970(year, month, day)) * DAY_S + hour * 3600 + minute * 60 + second


@numba.njit(cache=True, nogil=True)
def _days_since_1970(year, month, day):  # type: ignore[no-untyped-def]
    """Days of the proleptic Gregorian calendar (years counted from March, so that leap days come last)."""
    y = year - (1 if month <= 2 else 0)
    era = y // 400
    year_of_era = y - era * 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


@numba.njit(cache=True, nogil=True)
def _days_in_month(year, month):  # type: ignore[no-untyped-def]
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@numba.njit(cache=True, nogil=True)
def _iso_second(data, at, end):  # type: ignore[no-untyped-def]
    """(second or -1, place after it): `:SS` and a fraction are optional."""
    if at >= end or data[at] != 58:
        return 0, at
    if end - at < 3:
        return -1, at
    after = _after_fraction(data, at + 3, end)
    return (_digits(data, at + 1, at + 3), after) if after >= 0 else (-1, at)


@numba.njit(cache=True, nogil=True)
def _offset(data, at, end):  # type: ignore[no-untyped-def]
    """(kind, offset in seconds) of what follows the time: nothing, Z, +HH, +HHMM or +HH:MM."""
    if at == end:
        return NAIVE, 0
    if data[at] == 90 and at + 1 == end:
        return INSTANT, 0
    length = end - at
    if data[at] not in (43, 45) or length not in (3, 5, 6):
        return UNREADABLE, 0
    if length == 6 and data[at + 3] != 58:
        return UNREADABLE, 0
    hours = _digits(data, at + 1, at + 3)
    minutes = 0 if length == 3 else _digits(data, end - 2, end)
    if hours < 0 or hours > 18 or minutes < 0 or minutes > 59:
        return UNREADABLE, 0
    shift = hours * 3600 + minutes * 60
    return INSTANT, -shift if data[at] == 45 else shift
