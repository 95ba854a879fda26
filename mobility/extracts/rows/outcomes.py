"""Outcome of each row: accepted, or the first reason against it."""

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from mobility.extracts.cells.cells import EMPTY, OUTSIDE, CellCodes
from mobility.extracts.rows.counts import HOURS, IGNORED, REJECTED
from mobility.extracts.rows.lookups import UNKNOWN, Pseudonyms
from mobility.extracts.rows.timestamps import BAD, NONEXISTENT, OUTSIDE_PERIOD, VALID, EventTimes
from reports.studies.studyfile import VisitorRule

# Outcomes of well-formed rows; duplicates show later.
OUTCOMES = ("accepted", *REJECTED[2:], *IGNORED[:-1])
(
    _ACCEPTED, _EMPTY_SUBSCRIBER, _BAD_TIMESTAMP, _NONEXISTENT_TIME, _EMPTY_CELL, _UNKNOWN_VALUE, _OPTED_OUT,
    _OUTSIDE_PERIOD, _OUTSIDE_AREA, _OUTSIDE_HOURS, _DAY_CLOSED,
) = range(len(OUTCOMES))  # fmt: skip
NO_SUBSCRIBER, NO_CELL, NO_VALUES = 0, 1, 2  # places in `empties`; those of values follow
# Places in `facts`.
LOCATED, UNMATCHED, EMPTY_CELLS, FIRST, LAST, BAD_TIMES, N_REJECTED = range(7)
NEVER = np.iinfo(np.int64).max
_MINUTES, _HOURS, _ONE = np.uint32(60), np.uint32(HOURS), np.uint32(1)


class Coded(NamedTuple):
    """Facts of each well-formed row of a block, shape (n,); values (columns, n)."""

    subscribers: Pseudonyms
    has_opted_out: NDArray[np.bool_]
    times: EventTimes
    cells: NDArray[np.int32]
    values: NDArray[np.int32]


class Judged(NamedTuple):
    """Compute the outcomes of the rows of a block.

    n_accepted : how many count
    outcome : uint8 (n,); by place in OUTCOMES
    rows, rejected, unmatched : int32 (n,), of which the first are filled: places of rows that count, of those
        that are rejected, and of those whose cell is not listed
    tallies : int64, rows by outcome but accepted
    empties, facts : int64, by the places above
    """

    n_accepted: int
    outcome: NDArray[np.uint8]
    rows: NDArray[np.int32]
    rejected: NDArray[np.int32]
    unmatched: NDArray[np.int32]
    tallies: NDArray[np.int64]
    empties: NDArray[np.int64]
    facts: NDArray[np.int64]


def judged(
    coded: Coded,
    *,
    area: CellCodes,
    visitor: VisitorRule,
    closed: NDArray[np.bool_],
    hours: NDArray[np.int64],
) -> Judged:
    """Judge all rows of a block; `hours` grows by the accepted ones.

    Parameters
    ----------
    closed : shape (256,) or, in a long study, (days + 1,), by study day
    """
    n, times = len(coded.cells), coded.times
    outcome, (rows, rejected, unmatched) = np.empty(n, np.uint8), np.empty((3, n), np.int32)
    tallies, empties = np.zeros(len(OUTCOMES), np.int64), np.zeros(NO_VALUES + len(coded.values), np.int64)
    facts = np.array([0, 0, 0, NEVER, -NEVER, 0, 0], np.int64)
    n_accepted = _judge(
        coded.has_opted_out, coded.subscribers.is_empty, times.outcome, times.utc, times.day, times.minute,
        coded.cells, area.is_listed, area.first_valid, area.last_valid, coded.values,
        coded.values.min(axis=0, initial=0), visitor.from_minute, visitor.to_minute, closed, outcome, rows,
        rejected, unmatched, tallies, empties, facts, hours,
    )  # fmt: skip
    return Judged(n_accepted, outcome, rows, rejected, unmatched, tallies, empties, facts)


@numba.njit(cache=True, nogil=True)
def _judge(  # type: ignore[no-untyped-def]
    has_opted_out, is_empty, time_outcome, utc, day, minute, cells, is_listed, first_valid, last_valid,
    values, least_values, from_minute, to_minute, is_closed, outcomes, rows, rejected, unmatched, tallies,
    empties, facts, hours,
):  # fmt: skip
    """Fill the outcome of each row and the places of accepted rows, and add to the tallies; how many count.

    has_opted_out, is_empty : bool (n,), of the subscriber
    time_outcome, utc, day, minute : of `EventTimes`
    cells : int32 (n,); is_listed, first_valid, last_valid : of `CellCodes`
    values : int32 (columns, n); code of each value, UNKNOWN or EMPTY; least_values : int32 (n,), or 0
    from_minute, to_minute : visitor hours, both included; is_closed : as `closed` of `judged`
    outcomes, rows, rejected, unmatched, tallies, empties, facts : of `Judged`; hours : int64 (days, 24)
    """
    n_accepted = n_rejected = located = n_unmatched = n_bad_times = empty_cells = n_in_hour = 0
    first, last, this_hour = facts[FIRST], facts[LAST], np.uint32(0)
    for row in range(len(is_empty)):
        if has_opted_out[row]:
            outcomes[row] = _OPTED_OUT
            tallies[_OPTED_OUT] += 1
            continue
        time, cell, outcome = time_outcome[row], cells[row], _ACCEPTED
        if time != VALID or is_empty[row] or least_values[row] < 0 or (is_listed and cell < 0):  # seldom
            has_unknown = least_values[row] < 0 and _has_unknown(values, row, empties)
            is_no_cell = is_listed and cell == EMPTY
            empties[NO_SUBSCRIBER] += is_empty[row]
            empties[NO_CELL] += is_no_cell
            n_bad_times += time == BAD
            if is_listed and not is_empty[row] and time not in (BAD, NONEXISTENT):
                located += cell >= 0
                empty_cells += cell == EMPTY
                if cell == OUTSIDE:
                    unmatched[n_unmatched] = row
                    n_unmatched += 1
            outcome = _rejected(is_empty[row], time, is_no_cell, has_unknown)
        else:
            located += is_listed
        if time not in (BAD, NONEXISTENT):
            first, last = min(first, utc[row]), max(last, utc[row])
        if outcome == _ACCEPTED:
            is_in_area = not is_listed or (cell >= 0 and first_valid[cell] <= day[row] <= last_valid[cell])
            is_in_hours = from_minute <= minute[row] <= to_minute
            outcome = _ignored(time, is_in_area, is_in_hours, is_closed[day[row]])
        else:
            rejected[n_rejected] = row
            n_rejected += 1
        outcomes[row] = outcome
        if outcome != _ACCEPTED:
            tallies[outcome] += 1
            continue
        rows[n_accepted] = row
        n_accepted += 1
        hour = (np.uint32(day[row]) - _ONE) * _HOURS + np.uint32(minute[row]) // _MINUTES
        if hour != this_hour:
            hours[this_hour // _HOURS, this_hour % _HOURS] += n_in_hour
            this_hour, n_in_hour = hour, 0
        n_in_hour += 1
    if n_in_hour:
        hours[this_hour // _HOURS, this_hour % _HOURS] += n_in_hour
    facts[LOCATED], facts[UNMATCHED], facts[EMPTY_CELLS], facts[N_REJECTED] = (
        located, n_unmatched, empty_cells, n_rejected
    )  # fmt: skip
    facts[FIRST], facts[LAST], facts[BAD_TIMES] = first, last, n_bad_times
    return n_accepted


@numba.njit(cache=True, nogil=True)
def _has_unknown(values, row, empties):  # type: ignore[no-untyped-def]
    """Return whether a value of a row is outside the categories; counts those that are empty."""
    has_unknown = False
    for column in range(len(values)):
        has_unknown |= values[column, row] == UNKNOWN
        empties[NO_VALUES + column] += values[column, row] == EMPTY
    return has_unknown


@numba.njit(cache=True, nogil=True)
def _rejected(is_empty, time_outcome, is_no_cell, has_unknown):  # type: ignore[no-untyped-def]
    if is_empty:
        return _EMPTY_SUBSCRIBER
    if time_outcome == BAD:
        return _BAD_TIMESTAMP
    if time_outcome == NONEXISTENT:
        return _NONEXISTENT_TIME
    if is_no_cell:
        return _EMPTY_CELL
    return _UNKNOWN_VALUE if has_unknown else _ACCEPTED


@numba.njit(cache=True, nogil=True)
def _ignored(time_outcome, is_in_area, is_in_hours, is_closed):  # type: ignore[no-untyped-def]
    if time_outcome == OUTSIDE_PERIOD:
        return _OUTSIDE_PERIOD
    if not is_in_area:
        return _OUTSIDE_AREA
    if not is_in_hours:
        return _OUTSIDE_HOURS
    return _DAY_CLOSED if is_closed else _ACCEPTED
