"""Timestamps to UTC seconds, study day and minute of the local day.

Durations are computed in UTC. A local time that exists twice takes the first; one that does not exist is
rejected.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mobility.extracts.readers import Column, Texts, read_only
from mobility.extracts.rows.arrays import ParallelArrays
from mobility.extracts.rows.timestamp_texts import (
    DAY_S,
    FIRST_S,
    INSTANT,
    LAST_S,
    NAIVE,
    UNREADABLE,
    pattern_steps,
    read_texts,
)
from reports.studies.studyfile.formats import EPOCH_MS, EPOCH_S, ISO

# Outcome of a timestamp, in the order in which reasons are reported.
VALID, BAD, NONEXISTENT, OUTSIDE_PERIOD = 0, 1, 2, 3
_PER_SECOND = {EPOCH_S: 1, EPOCH_MS: 1000}
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_NO_STEPS = np.empty((0, 3), np.int64)
_MARGIN_DAYS = 2  # offsets of the Earth's zones stay well within


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)  # one clock is only the same as itself
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


@lru_cache(maxsize=64)
def study_clock(timezone: str, *, first_day: date, days: int) -> StudyClock:
    """Table of UTC offsets from two days before the study to two days after it; kept, one for all tasks."""
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
class EventTimes(ParallelArrays):
    """Per row, shape (n,): outcome, UTC seconds since 1970, study day, minute of the local day.

    Day and minute are those of valid times; the second is also that of times outside the period.
    """

    outcome: NDArray[np.uint8]
    utc: NDArray[np.int64]
    day: NDArray[np.unsignedinteger[Any]]
    minute: NDArray[np.int16]


def day_type(days: int) -> type[np.unsignedinteger[Any]]:
    """Return the type of study days: only studies of events have more than a byte holds."""
    return np.uint8 if days < 256 else np.uint16


def times_of(column: Column, *, clock: StudyClock, form: str) -> EventTimes:
    """Event times of a column of texts in the format `form`, or of Arrow timestamps."""
    if isinstance(column, Texts):
        return event_times(column, clock=clock, form=form)
    return event_times_of(column, clock=clock)


def event_times(texts: Texts, *, clock: StudyClock, form: str = ISO) -> EventTimes:
    """Read one timestamp per row from text.

    Parameters
    ----------
    texts : of the n rows
    clock : the study's
    form : as `reports.studies.studyfile.formats` allows them

    Notes
    -----
    Fractions of a second are cut off. Without an offset the time is local time of the study.
    """
    times = texts.once((clock, form), lambda: _times_of_texts(texts, clock=clock, form=form))
    return times if texts.of_row is None else times.take(texts.of_row)


def _times_of_texts(texts: Texts, *, clock: StudyClock, form: str) -> EventTimes:
    steps = _NO_STEPS if form == ISO or form in _PER_SECOND else pattern_steps(form)
    n = len(texts.begins)
    kinds, stamps = np.empty(n, np.uint8), np.empty(n, np.int64)
    read_texts(texts.data, texts.begins, texts.ends, _PER_SECOND.get(form, 0), steps, kinds, stamps)
    return _placed(kinds, stamps, clock=clock)


def event_times_of(column: pa.Array, *, clock: StudyClock) -> EventTimes:
    """Event times of a column of Arrow timestamps; without a time zone they are local time of the study."""
    ticks = column.cast(pa.int64())
    ticks = read_only((ticks.fill_null(0) if ticks.null_count else ticks).to_numpy())
    kinds, stamps = np.empty(len(ticks), np.uint8), np.empty(len(ticks), np.int64)
    _read_ticks(ticks, _TICKS[column.type.unit], NAIVE if column.type.tz is None else INSTANT, kinds, stamps)
    if column.null_count:
        kinds[column.is_null().to_numpy(zero_copy_only=False)] = UNREADABLE
    return _placed(kinds, stamps, clock=clock)


@numba.njit(cache=True, nogil=True)
def _read_ticks(ticks, per_second, kind, kinds, stamps):  # type: ignore[no-untyped-def]
    """Read numbers since 1970, `per_second` of them in a second, as `read_texts` reads texts."""
    for row in range(len(ticks)):
        stamp = ticks[row] // per_second
        stamps[row] = stamp
        kinds[row] = kind if FIRST_S <= stamp <= LAST_S else UNREADABLE


def _placed(kinds: NDArray[np.uint8], stamps: NDArray[np.int64], *, clock: StudyClock) -> EventTimes:
    n = len(stamps)
    times = EventTimes(
        outcome=np.empty(n, np.uint8),
        utc=np.empty(n, np.int64),
        day=np.empty(n, day_type(clock.days)),
        minute=np.empty(n, np.int16),
    )
    _place(
        kinds, stamps, clock.utc_from, clock.offset_s, clock.utc_end, clock.local_start, clock.days,
        times.outcome, times.utc, times.day, times.minute,
    )  # fmt: skip
    return times


@numba.njit(cache=True, nogil=True)
def _place(  # type: ignore[no-untyped-def]
    kinds, stamps, utc_from, offset_s, utc_end, local_start, days, outcome, utc, day, minute
):
    length_s = days * DAY_S
    # Of the last valid row: its kind, and which times of this kind are of the same day and offset.
    known, low, high, shift, midnight, today = INSTANT, np.int64(0), np.int64(0), np.int64(0), np.int64(0), 0
    for row in range(len(stamps)):
        stamp = stamps[row]
        if kinds[row] == known and low <= stamp < high:  # nearly always
            outcome[row], utc[row], day[row] = VALID, stamp - shift, today
            minute[row] = np.uint32(stamp - midnight) // np.uint32(60)
            continue
        day[row], minute[row], utc[row] = 0, 0, stamp
        if kinds[row] == UNREADABLE:
            outcome[row] = BAD
            continue
        if kinds[row] == INSTANT:
            segment = _segment_of_utc(stamp, utc_from, utc_end)
        else:
            segment = _segment_of_local(stamp, utc_from, offset_s, utc_end)
            # Far from the study the zone's rules are not at hand: its first or last offset is near enough.
            edge = 0 if stamp < local_start else len(offset_s) - 1
            utc[row] -= offset_s[segment if segment >= 0 else edge]
        if segment == -2:
            outcome[row] = NONEXISTENT
            continue
        local = utc[row] + offset_s[max(segment, 0)] - local_start
        if segment < 0 or local < 0 or local >= length_s:
            outcome[row] = OUTSIDE_PERIOD
            continue
        known, shift, today = kinds[row], stamp - utc[row], local // DAY_S + 1
        midnight = stamp - local % DAY_S
        low, high = _range_of(segment, kinds[row] == NAIVE, utc_from, offset_s, utc_end)
        low, high = max(low, midnight), min(high, midnight + DAY_S)
        outcome[row], day[row], minute[row] = VALID, today, local % DAY_S // 60


@numba.njit(cache=True, nogil=True)
def _range_of(segment, is_local, utc_from, offset_s, utc_end):  # type: ignore[no-untyped-def]
    """First time of a segment, and the first after it; of local times without those of earlier segments."""
    offset = offset_s[segment] if is_local else 0
    low = utc_from[segment] + offset
    high = (utc_from[segment + 1] if segment + 1 < len(utc_from) else utc_end) + offset
    if is_local:
        for earlier in range(segment):
            low = max(low, utc_from[earlier + 1] + offset_s[earlier])
    return low, high


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
