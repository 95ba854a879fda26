"""Places of people: the last event of each quarter-hour, and from these the cell of the longest stay.

The result of two files is that of both as one, in any order and with any repetition of rows:
of each quarter-hour the latest event, and of one second the smallest code (docs/adr/0012-main-cell.md).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self

import numba
import numpy as np
from numpy.typing import NDArray

from mobility.extracts.rows.arrays import ParallelArrays
from mobility.extracts.rows.events import Events
from mobility.extracts.rows.grouping import QUARTER_S, last_in_quarters, partition
from mobility.extracts.rows.nights import Nights
from mobility.vault.state import positions
from mobility.vault.state.columns import Column, from_steps, steps

NO_CELL: Final = np.uint32(0xFFFFFFFF)
N_COLUMNS: Final = 3
N_NARROW: Final = 6
Pseudonyms = NDArray[np.uint64]
Who = Callable[[Pseudonyms], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts(ParallelArrays):
    """Where people were last seen in each quarter-hour of a day or of a night, sorted by person and time.

    pseudonym : uint64 (n,), rising; as often as there are quarter-hours in which the person was seen
    second : uint32 (n,), since the clock's origin ; cell : uint32 (n,), code of the cell
    """

    pseudonym: Pseudonyms
    second: NDArray[np.uint32]
    cell: NDArray[np.uint32]

    @classmethod
    def empty(cls) -> Self:
        return cls(
            pseudonym=np.empty(0, np.uint64), second=np.empty(0, np.uint32), cell=np.empty(0, np.uint32)
        )

    def without(self, pseudonyms: Pseudonyms) -> "Whereabouts":
        """Select those of people who are not among the sorted `pseudonyms`."""
        return self.take(positions.other_rows(self.pseudonym, pseudonyms))

    def columns(self) -> list[Column]:
        """Return the N_COLUMNS columns that `of_columns` reads."""
        return [steps(self.pseudonym), self.second, self.cell]

    @classmethod
    def of_columns(cls, columns: list[Column]) -> Self:
        differences, second, cell = columns
        return cls(pseudonym=from_steps(differences), second=second, cell=cell)

    def narrow_columns(self, known: Pseudonyms) -> list[Column]:
        """Return the N_NARROW columns that `of_narrow_columns` reads: 5 bytes of each place instead of 16.

        Parameters
        ----------
        known : sorted, each once; the columns do not repeat these people
        """
        n, first = len(self), self.second.min(initial=np.iinfo(np.uint32).max) // QUARTER_S
        others, times = np.empty(n, np.uint64), np.zeros(len(known) + n, np.uint8)
        quarter, rest = np.empty(n, np.uint8), np.empty(n, np.uint16)
        n_others = _narrowed(self.pseudonym, self.second, first, known, others, times, quarter, rest)
        return [
            steps(others[:n_others]),
            times[: len(known) + n_others],
            np.array([first], np.uint32),
            quarter,
            rest,
            self.cell.astype(np.min_scalar_type(self.cell.max(initial=0))),
        ]

    @classmethod
    def of_narrow_columns(cls, columns: list[Column], known: Pseudonyms) -> Self:
        differences, times, first, quarter, rest, cell = columns
        everyone, _ = positions.union([known, from_steps(differences)])
        return cls(
            pseudonym=np.repeat(everyone, times),
            second=(quarter + first) * QUARTER_S + rest,
            cell=cell.astype(np.uint32),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceRules:
    """Rules for keeping places; a study that derives nothing from places has none.

    of_day : whose cells of the day are kept; None = no one's
    of_night : whose cells of the night are kept; nights : when they are
    midnights : int64 (days + 1,), seconds at which days begin, if the study has slots; None = it has none
    """

    of_day: Who | None
    of_night: Who | None
    nights: Nights | None
    midnights: NDArray[np.int64] | None = None


def whereabouts_by_day(
    events: Events, day: NDArray[np.unsignedinteger[Any]], *, of_whom: Who | None = None
) -> dict[int, Whereabouts]:
    """Return the kept places of some events, for each day that has any.

    Parameters
    ----------
    day : uint8 (n,); the day to which each event counts, 0 = none
    of_whom : None = of everyone
    """
    rows = np.flatnonzero(day)
    n = len(rows)
    no_codes = np.empty((n, 0), np.uint16)
    records, ends, low, width = partition(
        events.pseudonym[rows], events.second[rows], events.cell[rows], day[rows], no_codes
    )
    seen, days = np.empty(n, np.uint64), np.empty(n, np.uint8)
    second, cell = np.empty(n, np.uint32), np.empty(n, np.uint32)
    n_kept = last_in_quarters(records, ends, low, width, seen, days, second, cell)
    kept = Whereabouts(pseudonym=seen[:n_kept], second=second[:n_kept], cell=cell[:n_kept])
    if of_whom is None:
        return kept.by_key(days[:n_kept], 256)
    is_wanted = of_whom(kept.pseudonym)
    return kept.take(is_wanted).by_key(days[:n_kept][is_wanted], 256)


def join_whereabouts(parts: list[dict[int, Whereabouts]]) -> dict[int, Whereabouts]:
    """Return the pieces of a shard, in rising order of pseudonyms, as one."""
    days = sorted({day for part in parts for day in part})
    return {day: Whereabouts.joined([part[day] for part in parts if day in part]) for day in days}


def merge_whereabouts(one: Whereabouts, other: Whereabouts) -> Whereabouts:
    """Merge the kept places of both."""
    if not len(one) or not len(other):
        return one if len(one) else other
    n = len(one) + len(other)
    merged = Whereabouts(
        pseudonym=np.empty(n, np.uint64), second=np.empty(n, np.uint32), cell=np.empty(n, np.uint32)
    )
    n_kept = _merge(
        one.pseudonym, one.second, one.cell, other.pseudonym, other.second, other.cell,
        merged.pseudonym, merged.second, merged.cell,
    )  # fmt: skip
    return merged.take(slice(n_kept))


def longest_stays(seen: Whereabouts, *, until: int | None = None) -> tuple[Pseudonyms, NDArray[np.uint32]]:
    """Everyone who is there, sorted, and the cell in which each stayed longest (the smallest code in a tie).

    A stay lasts from an event to the next one that is kept; in seconds, so that every second counts once.

    Parameters
    ----------
    until : second at which the last stay ends; None = with its event, as a visit does
    """
    people, cells = np.empty(len(seen), np.uint64), np.empty(len(seen), np.uint32)
    n = _longest(seen.pseudonym, seen.second, seen.cell, -1 if until is None else until, people, cells)
    return people[:n], cells[:n]


@numba.njit(cache=True, nogil=True)
def _narrowed(who, when, first, known, others, times, quarter, rest):  # type: ignore[no-untyped-def]
    """Write quarter-hours from `first` on, and people who are not known; how many these are.

    A state holds fewer than 256 quarter-hours: those of a day, and the day before at most.

    times : zeros; how often each person is there, of the known ones and the others in rising order
    """
    person, n_others = 0, 0
    for i in range(len(who)):
        if i == 0 or who[i] != who[i - 1]:
            person += i > 0
            while person - n_others < len(known) and known[person - n_others] < who[i]:
                person += 1
            if person - n_others == len(known) or known[person - n_others] != who[i]:
                others[n_others] = who[i]
                n_others += 1
        times[person] += 1
        of = when[i] // QUARTER_S
        quarter[i], rest[i] = of - first, when[i] - of * QUARTER_S
    return n_others


@numba.njit(cache=True, nogil=True)
def _merge(  # type: ignore[no-untyped-def]
    who, when, where, other_who, other_when, other_where, merged_who, merged_when, merged_where
):
    """Write both in order, the later one of a quarter-hour only; how many these are."""
    i, j, n = 0, 0, 0
    while i < len(who) or j < len(other_who):
        if j == len(other_who):
            is_first = True
        elif i == len(who):
            is_first = False
        elif who[i] != other_who[j]:
            is_first = who[i] < other_who[j]
        else:
            # Of one second the smallest code comes first, and nothing of that second replaces it.
            is_first = when[i] < other_when[j] or (when[i] == other_when[j] and where[i] <= other_where[j])
        if is_first:
            person, second, cell = who[i], when[i], where[i]
            i += 1
        else:
            person, second, cell = other_who[j], other_when[j], other_where[j]
            j += 1
        is_new = (
            n == 0 or person != merged_who[n - 1] or second // QUARTER_S != merged_when[n - 1] // QUARTER_S
        )
        if is_new:
            n += 1
        if is_new or second > merged_when[n - 1]:
            merged_who[n - 1], merged_when[n - 1], merged_where[n - 1] = person, second, cell
    return n


@numba.njit(cache=True, nogil=True)
def _longest(who, when, where, until, people, cells):  # type: ignore[no-untyped-def]
    n, start = 0, np.int64(0)
    while start < len(who):
        end = start + 1
        while end < len(who) and who[end] == who[start]:
            end += 1
        longest = np.int64(-1)
        for i in range(start, end):  # a hundred quarter-hours at most
            if _is_among(where, start, i):
                continue
            stay = np.int64(0)
            for j in range(i, end):
                if where[j] == where[i]:
                    left_at = np.int64(when[j + 1]) if j + 1 < end else max(until, np.int64(when[j]))
                    stay += left_at - np.int64(when[j])
            if stay > longest or (stay == longest and where[i] < cells[n]):
                longest, cells[n] = stay, where[i]
        people[n] = who[start]
        n += 1
        start = end
    return n


@numba.njit(cache=True, nogil=True)
def _is_among(where, start, i):  # type: ignore[no-untyped-def]
    """Return whether the cell at `i` also occurs between `start` and it."""
    while start < i and where[start] != where[i]:
        start += 1
    return start < i
