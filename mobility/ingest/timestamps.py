"""ISO 8601 timestamps to UTC seconds, study day and minute of the local day.

Durations are computed in UTC. A local time that exists twice takes the first; one that does not exist is
rejected.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numba
import numpy as np
from numpy.typing import NDArray

DAY_S = 86_400
# Outcome of a timestamp, in the order in which reasons are reported.
VALID, BAD, NONEXISTENT, OUTSIDE_PERIOD = 0, 1, 2, 3
_NAIVE, _WITH_OFFSET, _UNREADABLE = 0, 1, 2
_MARGIN_DAYS = 2  # offsets of the Earth's zones stay well within


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyClock:
    """The study's time zone as a table: from `utc_from[i]` on, local = UTC + `offset_s[i]` (int64 seconds).

    The table ends at `utc_end`; `local_start` is local midnight of day 1 counted as if UTC.
    """

    utc_from: NDArray[np.int64]
    offset_s: NDArray[np.int64]
    utc_end: int
    local_start: int
    days: int

    @property
    def origin(self) -> int:
        """UTC second from which event times are counted (they fit in 32 bits)."""
        return int(self.utc_from[0])


def study_clock(timezone: str, *, first_day: date, days: int) -> StudyClock:
    """Table of UTC offsets from two days before the study to two days after it."""
    zone = ZoneInfo(timezone)
    local_start = int(datetime.combine(first_day, datetime.min.time(), UTC).timestamp())
    start = local_start - _MARGIN_DAYS * DAY_S
    end = local_start + (days + _MARGIN_DAYS) * DAY_S
    changes = [start]
    for hour in range(start, end, 3600):
        if _offset(zone, hour) != _offset(zone, hour + 3600):
            changes.append(_first_second_after_change(zone, hour, hour + 3600))
    return StudyClock(
        utc_from=np.array(changes, dtype=np.int64),
        offset_s=np.array([_offset(zone, second) for second in changes], dtype=np.int64),
        utc_end=end,
        local_start=local_start,
        days=days,
    )


def _offset(zone: ZoneInfo, utc_second: int) -> int:
    offset = datetime.fromtimestamp(utc_second, zone).utcoffset() or timedelta()
    return int(offset.total_seconds())


def _first_second_after_change(zone: ZoneInfo, low: int, high: int) -> int:
    before = _offset(zone, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
    return high


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimes:
    """Per row, shape (n,): outcome, seconds since the clock's origin, study day, minute of the local day."""

    outcome: NDArray[np.uint8]
    second: NDArray[np.uint32]
    day: NDArray[np.uint8]
    minute: NDArray[np.int16]


def event_times(data: NDArray[np.uint8], offsets: NDArray[np.int64], *, clock: StudyClock) -> EventTimes:
    """Read one timestamp per row.

    Parameters
    ----------
    data : ndarray of uint8; the texts one after the other
    offsets : ndarray of int64, shape (n + 1,); text i is data[offsets[i]:offsets[i + 1]]
    clock : the study's

    Notes
    -----
    Read are `YYYY-MM-DDTHH:MM[:SS[.fraction]]` (or a blank for T), then nothing, `Z` or `+HH[[:]MM]`.
    Fractions are cut off. Without an offset the time is local time of the study.
    """
    n = len(offsets) - 1
    times = EventTimes(
        outcome=np.empty(n, np.uint8),
        second=np.zeros(n, np.uint32),
        day=np.zeros(n, np.uint8),
        minute=np.zeros(n, np.int16),
    )
    _event_times(
        data, offsets, clock.utc_from, clock.offset_s, clock.utc_end, clock.local_start, clock.days,
        times.outcome, times.second, times.day, times.minute,
    )  # fmt: skip
    return times


@numba.njit(cache=True, nogil=True)
def _event_times(  # type: ignore[no-untyped-def]
    data, offsets, utc_from, offset_s, utc_end, local_start, days, outcome, second, day, minute
):
    for row in range(len(offsets) - 1):
        kind, stamp, shift = _parse(data, offsets[row], offsets[row + 1])
        if kind == _UNREADABLE:
            outcome[row] = BAD
            continue
        if kind == _WITH_OFFSET:
            utc = stamp - shift
            segment = _segment_of_utc(utc, utc_from, utc_end)
        else:
            segment = _segment_of_local(stamp, utc_from, offset_s, utc_end)
            utc = stamp - offset_s[max(segment, 0)]
        if segment == -2:
            outcome[row] = NONEXISTENT
            continue
        local = utc + offset_s[max(segment, 0)] - local_start
        if segment < 0 or local < 0 or local >= days * DAY_S:
            outcome[row] = OUTSIDE_PERIOD
            continue
        outcome[row] = VALID
        second[row] = utc - utc_from[0]
        day[row] = local // DAY_S + 1
        minute[row] = local % DAY_S // 60


@numba.njit(cache=True, nogil=True)
def _segment_of_utc(utc, utc_from, utc_end):  # type: ignore[no-untyped-def]
    """Place in the table; -1 outside it."""
    if utc < utc_from[0] or utc >= utc_end:
        return -1
    segment = len(utc_from) - 1
    while utc < utc_from[segment]:
        segment -= 1
    return segment


@numba.njit(cache=True, nogil=True)
def _segment_of_local(local, utc_from, offset_s, utc_end):  # type: ignore[no-untyped-def]
    """Place of the first occurrence of a local time; -1 outside the table, -2 if it does not exist."""
    last = len(utc_from) - 1
    if local < utc_from[0] + offset_s[0] or local >= utc_end + offset_s[last]:
        return -1
    for segment in range(last + 1):
        end = utc_from[segment + 1] if segment < last else utc_end
        if utc_from[segment] + offset_s[segment] <= local < end + offset_s[segment]:
            return segment
    return -2


@numba.njit(cache=True, nogil=True)
def _is_blank(byte):  # type: ignore[no-untyped-def]
    """What `bytes.strip` takes away, as it does from the other columns."""
    return byte == 32 or 9 <= byte <= 13


@numba.njit(cache=True, nogil=True)
def _digits(data, at, count):  # type: ignore[no-untyped-def]
    """Value of `count` digits, or -1."""
    value = 0
    for i in range(at, at + count):
        digit = data[i] - 48
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


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
def _parse(data, start, end):  # type: ignore[no-untyped-def]
    """(kind, seconds since 1970 as written, offset in seconds) of one text."""
    unreadable = (_UNREADABLE, np.int64(0), np.int64(0))
    while start < end and _is_blank(data[start]):
        start += 1
    while end > start and _is_blank(data[end - 1]):
        end -= 1
    if end - start < 16 or data[start + 4] != 45 or data[start + 7] != 45 or data[start + 13] != 58:
        return unreadable
    if data[start + 10] not in (84, 32):
        return unreadable
    year, month, day = _digits(data, start, 4), _digits(data, start + 5, 2), _digits(data, start + 8, 2)
    hour, minute = _digits(data, start + 11, 2), _digits(data, start + 14, 2)
    if year < 1 or month < 1 or month > 12 or day < 1 or day > _days_in_month(year, month):
        return unreadable
    if hour < 0 or hour > 23 or minute < 0 or minute > 59:
        return unreadable
    second, at = _parse_second(data, start + 16, end)
    if second < 0:
        return unreadable
    stamp = np.int64(_days_since_1970(year, month, day)) * DAY_S + hour * 3600 + minute * 60 + second
    kind, shift = _parse_offset(data, at, end)
    return kind, stamp, np.int64(shift)


@numba.njit(cache=True, nogil=True)
def _parse_second(data, at, end):  # type: ignore[no-untyped-def]
    """(second or -1, place after it): `:SS` and a fraction are optional."""
    if at >= end or data[at] != 58:
        return 0, at
    if end - at < 3:
        return -1, at
    second = _digits(data, at + 1, 2)
    if second < 0 or second > 59:
        return -1, at
    at += 3
    if at < end and data[at] in (46, 44):
        first = at + 1
        at = first
        while at < end and 48 <= data[at] <= 57:
            at += 1
        if at == first:
            return -1, at
    return second, at


@numba.njit(cache=True, nogil=True)
def _parse_offset(data, at, end):  # type: ignore[no-untyped-def]
    """(kind, offset in seconds) of what follows the time: nothing, Z, +HH, +HHMM or +HH:MM."""
    if at == end:
        return _NAIVE, 0
    if data[at] == 90 and at + 1 == end:
        return _WITH_OFFSET, 0
    length = end - at
    if data[at] not in (43, 45) or length not in (3, 5, 6):
        return _UNREADABLE, 0
    if length == 6 and data[at + 3] != 58:
        return _UNREADABLE, 0
    hours = _digits(data, at + 1, 2)
    minutes = 0 if length == 3 else _digits(data, end - 2, 2)
    if hours < 0 or hours > 18 or minutes < 0 or minutes > 59:
        return _UNREADABLE, 0
    shift = hours * 3600 + minutes * 60
    return _WITH_OFFSET, -shift if data[at] == 45 else shift
