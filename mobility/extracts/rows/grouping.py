"""Inner loops that bring the events of a shard together by subscriber, in machine code.

Two stable partitions by the pseudonym's next bits leave little to sort: mostly one subscriber, whose events
came in time order. From the second one on a range of pseudonyms stays in the processor's cache until its
visits are written.
"""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from mobility.extracts.readers import read_only

RANGE_ROWS = 8192  # 192 KiB of records: with the place they are sorted in they stay in the L2 cache
BUCKET_ROWS = 4
INSERTION_ROWS = 48  # longer runs are sorted by the library
QUARTER_S = np.uint32(900)
# Words of a record: pseudonym; second and cell; then lanes of 16 bits: the day, and each slot's code.
PSEUDONYM, MOMENT, LANES = 0, 1, 2
LANES_A_WORD = 4
# Places in `counts`.
VISITS, SUBSCRIBERS, DUPLICATES, CONFLICTS = range(4)
_LANE_BITS = np.uint64(16)
_LANE_MASK = np.uint64(0xFFFF)
_HALF, _LOWER_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)


def partition(
    pseudonym: NDArray[np.uint64],
    second: NDArray[np.uint32],
    cell: NDArray[np.uint32],
    day: NDArray[np.unsignedinteger[Any]],
    codes: NDArray[np.uint16],
) -> tuple[NDArray[np.uint64], NDArray[np.int64], np.uint64, np.uint64]:
    """Records of events, shape (n,), with their codes, shape (n, slots), by range of pseudonyms.

    Returns
    -------
    records, uint64, shape (n, words); where those of each range end, int64, shape (ranges,); the lowest
    pseudonym; how many bits wide a range is
    """
    low, width, n_ranges = _ranges_of(pseudonym)
    keys, fields = (read_only(pseudonym), read_only(second)), (read_only(cell), read_only(day))
    records, ends = _partition(*keys, *fields, read_only(codes), low, width, n_ranges)
    return records, ends, low, width


def _ranges_of(pseudonym: NDArray[np.uint64]) -> tuple[np.uint64, np.uint64, int]:
    """The lowest pseudonym, how many bits wide a range of them is, and how many ranges there are."""
    low, high = (int(pseudonym.min()), int(pseudonym.max())) if len(pseudonym) else (0, 0)
    bits = (len(pseudonym) // RANGE_ROWS).bit_length()
    width = max((high - low).bit_length() - bits, 0)
    return np.uint64(low), np.uint64(width), 1 << bits


@numba.njit(cache=True, nogil=True)
def _partition(pseudonym, second, cell, day, codes, low, width, n_ranges):  # type: ignore[no-untyped-def]
    ends, last = np.zeros(n_ranges + 1, np.int64), np.uint64(n_ranges - 1)
    for i in range(len(pseudonym)):
        ends[_range(pseudonym[i], low, width, last) + _ONE] += 1
    ends = np.cumsum(ends)
    slots = codes.shape[1]
    records = np.empty((len(pseudonym), LANES + slots // LANES_A_WORD + 1), np.uint64)
    for i in range(len(pseudonym)):
        part = _range(pseudonym[i], low, width, last)
        at = np.uint64(ends[part])  # unsigned: no question whether it is negative
        ends[part] += 1
        records[at, PSEUDONYM] = pseudonym[i]
        records[at, MOMENT] = (np.uint64(second[i]) << _HALF) | np.uint64(cell[i])
        lanes = np.uint64(day[i])
        for slot in range(slots):
            word, shift = _lane(slot + 1)
            if shift == 0:
                records[at, word - 1], lanes = lanes, np.uint64(0)
            lanes |= np.uint64(codes[i, slot]) << shift
        records[at, LANES + slots // LANES_A_WORD] = lanes
    return records, ends[:-1]


@numba.njit(cache=True, nogil=True, inline="always")
def _lane(number):  # type: ignore[no-untyped-def]
    """(word, shift) of a lane."""
    return LANES + number // LANES_A_WORD, _LANE_BITS * np.uint64(number % LANES_A_WORD)


@numba.njit(cache=True, nogil=True, inline="always")
def _copy(records, i, target, j):  # type: ignore[no-untyped-def]
    target[j, 0], target[j, 1], target[j, 2] = records[i, 0], records[i, 1], records[i, 2]
    for word in range(3, records.shape[1]):
        target[j, word] = records[i, word]


@numba.njit(cache=True, nogil=True, inline="always")
def _range(pseudonym, low, width, last):  # type: ignore[no-untyped-def]
    """Number of the range of a pseudonym, of last + 1, a power of two. One of 64 bits is all there is."""
    return ((pseudonym - low) >> (width & np.uint64(63))) & last


@numba.njit(cache=True, nogil=True)
def group_ranges(  # type: ignore[no-untyped-def]
    records, ends, low, width, no_value, visited, day, first, last, pseudonym, values, counts
):
    """Write visits and values of all ranges, in rising order, and count them.

    visited, day, first, last : of `Visits`; pseudonym, values : of `StaticValues`; with room for n of each
    counts : int64 (4,), zeros
    """
    longest, start = 0, 0
    for part in range(len(ends)):
        longest, start = max(longest, ends[part] - start), ends[part]
    ordered = np.empty((longest, records.shape[1]), np.uint64)
    start = 0
    for part in range(len(ends)):
        n = ends[part] - start
        if n:
            lowest = low + (np.uint64(part) << width) if part else low
            _order(records[start : ends[part]], ordered[:n], lowest, width)
            _write_visits(ordered[:n], visited, day, first, last, counts)
            _write_values(ordered[:n], no_value, pseudonym, values, counts)
        start = ends[part]


@numba.njit(cache=True, nogil=True)
def last_in_quarters(  # type: ignore[no-untyped-def]
    records, ends, low, width, pseudonym, day, second, cell
):
    """Write where each person was last seen in each quarter-hour, in rising order; how often that is.

    Of several cells in one second the smallest code counts. Quarter-hours are those of the events' clock.

    pseudonym, day, second, cell : with room for all events
    """
    longest, start, n = 0, 0, np.int64(0)
    for part in range(len(ends)):
        longest, start = max(longest, ends[part] - start), ends[part]
    ordered = np.empty((longest, records.shape[1]), np.uint64)
    start = 0
    for part in range(len(ends)):
        rows = ends[part] - start
        if rows:
            lowest = low + (np.uint64(part) << width) if part else low
            _order(records[start : ends[part]], ordered[:rows], lowest, width)
            n = _write_last(ordered[:rows], pseudonym, day, second, cell, n)
        start = ends[part]
    return n


@numba.njit(cache=True, nogil=True)
def group_ranges_and_places(  # type: ignore[no-untyped-def]
    records, ends, low, width, no_value, visited, day, first, last, pseudonym, values, counts,
    midnights, seen, seen_day, second, cell,
):  # fmt: skip
    """Group records of day 0, too, which are no visits, and write places while a range is in the cache.

    midnights : int64 (days + 1,), seconds; a place is of the day in which it lies
    seen, seen_day, second, cell : as `last_in_quarters` writes them; returns how many it wrote
    """
    longest, start, n = 0, 0, np.int64(0)
    for part in range(len(ends)):
        longest, start = max(longest, ends[part] - start), ends[part]
    ordered = np.empty((longest, records.shape[1]), np.uint64)
    start = 0
    for part in range(len(ends)):
        rows = ends[part] - start
        if rows:
            lowest = low + (np.uint64(part) << width) if part else low
            _order(records[start : ends[part]], ordered[:rows], lowest, width)
            n = _write_places(ordered[:rows], midnights, seen, seen_day, second, cell, n)
            n_visits = _drop_others(ordered[:rows], counts)
            _write_visits(ordered[:n_visits], visited, day, first, last, counts)
            _write_values(ordered[:n_visits], no_value, pseudonym, values, counts)
        start = ends[part]
    return n


@numba.njit(cache=True, nogil=True)
def _write_places(records, midnights, pseudonym, day, second, cell, n):  # type: ignore[no-untyped-def]
    """Write the last of each quarter-hour as `_write_last`, of the day in which it lies."""
    today = 1
    for i in range(len(records)):
        who, when = records[i, PSEUDONYM], np.uint32(records[i, MOMENT] >> _HALF)
        if i == 0 or who != records[i - 1, PSEUDONYM]:
            today = 1
        while today < len(midnights) and when >= midnights[today]:
            today += 1
        if today == len(midnights):  # a night may end after the study
            continue
        is_new = n == 0 or who != pseudonym[n - 1] or today != day[n - 1]
        is_new = is_new or when // QUARTER_S != second[n - 1] // QUARTER_S
        if is_new:
            n += 1
        if is_new or when > second[n - 1]:
            pseudonym[n - 1], day[n - 1], second[n - 1] = who, today, when
            cell[n - 1] = np.uint32(records[i, MOMENT] & _LOWER_HALF)
    return n


@numba.njit(cache=True, nogil=True)
def _drop_others(records, counts):  # type: ignore[no-untyped-def]
    """Move ordered records of a day before those of none, and return how many; count what repeats others."""
    kept = 0
    for i in range(len(records)):
        if records[i, LANES] & _LANE_MASK:
            if kept < i:
                _copy(records, i, records, kept)
            kept += 1
        elif i and records[i, PSEUDONYM] == records[i - 1, PSEUDONYM]:
            counts[DUPLICATES] += records[i, MOMENT] == records[i - 1, MOMENT]
    return kept


@numba.njit(cache=True, nogil=True)
def _write_last(records, pseudonym, day, second, cell, n):  # type: ignore[no-untyped-def]
    """Write the last of each quarter-hour of ordered records, after the `n` that are there; how many then."""
    for i in range(len(records)):
        who, when = records[i, PSEUDONYM], np.uint32(records[i, MOMENT] >> _HALF)
        today = np.uint8(records[i, LANES] & _LANE_MASK)
        is_new = n == 0 or who != pseudonym[n - 1] or today != day[n - 1]
        is_new = is_new or when // QUARTER_S != second[n - 1] // QUARTER_S
        if is_new:
            n += 1
        if is_new or when > second[n - 1]:
            pseudonym[n - 1], day[n - 1], second[n - 1] = who, today, when
            cell[n - 1] = np.uint32(records[i, MOMENT] & _LOWER_HALF)
    return n


@numba.njit(cache=True, nogil=True)
def _order(records, ordered, lowest, width):  # type: ignore[no-untyped-def]
    """Write the records of a range ordered by pseudonym and moment."""
    bits = np.uint64(0)
    while (BUCKET_ROWS << bits) < len(records) and bits < width:
        bits += _ONE
    shift, last = width - bits, (_ONE << bits) - _ONE
    nexts = np.zeros((1 << bits) + 1, np.uint32)
    for i in range(len(records)):
        nexts[_range(records[i, PSEUDONYM], lowest, shift, last) + _ONE] += np.uint32(1)
    for bucket in range(1 << bits):
        nexts[bucket + 1] += nexts[bucket]
    for i in range(len(records)):
        row = np.uint64(i)
        bucket = _range(records[row, PSEUDONYM], lowest, shift, last)
        at = np.uint64(nexts[bucket])
        nexts[bucket] += np.uint32(1)
        _copy(records, row, ordered, at)
    held = np.empty((1, records.shape[1]), np.uint64)
    for i in range(1, len(ordered)):
        row = np.uint64(i)
        who, moment = ordered[row, PSEUDONYM], ordered[row, MOMENT]
        if not _is_after(ordered, row - _ONE, who, moment):  # nearly always
            continue
        bucket = _range(who, lowest, shift, last)
        start, end = nexts[bucket - _ONE] if bucket else np.uint32(0), nexts[bucket]
        if end - start > INSERTION_ROWS:
            _order_long_run(ordered, np.int64(start), np.int64(end))
        else:
            _move_down(ordered, row, held)


@numba.njit(cache=True, nogil=True, inline="always")
def _is_after(records, i, pseudonym, moment):  # type: ignore[no-untyped-def]
    return records[i, PSEUDONYM] > pseudonym or (
        records[i, PSEUDONYM] == pseudonym and records[i, MOMENT] > moment
    )


@numba.njit(cache=True, nogil=True)
def _move_down(records, i, held):  # type: ignore[no-untyped-def]
    """Put a record to its place among those before it, which are in order. `held` has room for one."""
    _copy(records, i, held, 0)
    while i > 0 and _is_after(records, i - _ONE, held[0, PSEUDONYM], held[0, MOMENT]):
        _copy(records, i - _ONE, records, i)
        i -= _ONE
    _copy(held, 0, records, i)


@numba.njit(cache=True, nogil=True)
def _order_long_run(records, start, end):  # type: ignore[no-untyped-def]
    run = records[start:end].copy()
    order = np.argsort(run[:, MOMENT].copy(), kind="mergesort")  # as below: sorting is compiled once
    order = order[np.argsort(run[order, PSEUDONYM], kind="mergesort")]
    for i in range(len(run)):
        _copy(run, order[i], records, start + i)


@numba.njit(cache=True, nogil=True)
def _write_visits(records, visited, day, first, last, counts):  # type: ignore[no-untyped-def]
    """Visits of ordered records, after those that are there."""
    n, duplicates = counts[VISITS], 0
    for i in range(len(records)):
        today, second = records[i, LANES] & _LANE_MASK, records[i, MOMENT] >> _HALF
        is_new = i == 0 or records[i, PSEUDONYM] != records[i - 1, PSEUDONYM]
        if not is_new and records[i, MOMENT] == records[i - 1, MOMENT]:
            duplicates += 1
        if is_new or today != records[i - 1, LANES] & _LANE_MASK:
            visited[n], day[n], first[n] = records[i, PSEUDONYM], today, second
            n += 1
        last[n - 1] = second
    counts[VISITS] = n
    counts[DUPLICATES] += duplicates


@numba.njit(cache=True, nogil=True)
def _write_values(records, no_value, pseudonym, values, counts):  # type: ignore[no-untyped-def]
    """First value of each subscriber and slot (the smallest code in a tie), after those that are there."""
    n_slots = values.shape[1]
    answered_at, differs = np.zeros(n_slots, np.uint64), np.zeros(n_slots, np.bool_)
    n = counts[SUBSCRIBERS]
    for i in range(len(records)):
        if i == 0 or records[i, PSEUDONYM] != records[i - 1, PSEUDONYM]:
            pseudonym[n] = records[i, PSEUDONYM]
            for slot in range(n_slots):
                values[n, slot] = no_value
                counts[CONFLICTS] += differs[slot]
                differs[slot] = False
            n += 1
        second = records[i, MOMENT] >> _HALF
        for slot in range(n_slots):
            word, shift = _lane(slot + 1)
            code = np.uint16((records[i, word] >> shift) & _LANE_MASK)
            answer = values[n - 1, slot]
            if code in (no_value, answer):
                continue
            differs[slot] |= answer != no_value
            if answer == no_value or (second == answered_at[slot] and code < answer):
                values[n - 1, slot], answered_at[slot] = code, second
    counts[SUBSCRIBERS] = n
    counts[CONFLICTS] += differs.sum()
