"""Counts of people by slot of time and zone, from where they were last seen.

A person counts in a slot in the zone of their last event before its end, if that event lies in the slot or at
most `hold_minutes` before its end. An event in a cell without a zone counts nowhere, and still is the last.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self

import numba
import numpy as np
from numpy.typing import NDArray

from ldp.estimation.series.counts import SlotCounts
from mobility.extracts.rows.arrays import ParallelArrays
from mobility.extracts.rows.timestamps import study_clock
from mobility.vault.state import positions
from mobility.vault.state.columns import Column, from_steps, steps
from mobility.vault.state.stays import Whereabouts, merge_whereabouts
from reports.studies.slots import SlotClock
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.slots_definition import SlotsDefinition

NO_ZONE: Final = -1
WORDS: Final = 2  # of 64 bits: the longest day has 100 slots of 15 minutes
_MINUTE_S: Final = 60
_SIX, _BITS, _ONE = np.uint64(6), np.uint64(63), np.uint64(1)

Days = Mapping[int, Whereabouts]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsUsed(ParallelArrays):
    """Slots of a day in which people were counted, sorted by person.

    pseudonym : uint64 (n,), each once
    counted : uint64 (n, WORDS); bit i = counted in slot i of the day. Bits of slots that are not closed are
        of a closing that failed, and mean nothing
    """

    pseudonym: NDArray[np.uint64]
    counted: NDArray[np.uint64]

    @classmethod
    def empty(cls) -> Self:
        return cls(pseudonym=np.empty(0, np.uint64), counted=np.empty((0, WORDS), np.uint64))

    def without(self, pseudonyms: NDArray[np.uint64]) -> "SlotsUsed":
        """Select those of people who are not among the sorted `pseudonyms`."""
        return self.take(positions.other_rows(self.pseudonym, pseudonyms))

    def before(self, slot: int) -> "SlotsUsed":
        """Return what was counted in the slots of the day before `slot`."""
        kept = [min(max(slot - 64 * word, 0), 64) for word in range(WORDS)]
        masks = np.array([(1 << bits) - 1 for bits in kept], np.uint64)
        return SlotsUsed(pseudonym=self.pseudonym, counted=self.counted & masks)

    def columns(self) -> list[Column]:
        """Return the columns that `of_columns` reads."""
        return [steps(self.pseudonym), *self.counted.T]

    @classmethod
    def of_columns(cls, columns: list[Column]) -> Self:
        differences, *words = columns
        return cls(pseudonym=from_steps(differences), counted=np.stack(words, axis=1))


class SlotCounter:
    """Counts of the slots of one study.

    Parameters
    ----------
    definition : of a study with an area
    slots : what it says of slots
    """

    def __init__(self, definition: StudyDefinition, slots: SlotsDefinition) -> None:
        timezone, first_day, days = definition.timezone, definition.first_day, definition.days
        self.clock = SlotClock.of(timezone, first_day=first_day, days=days, minutes=slots.minutes)
        self.slots_per_day = slots.slots_per_day
        origin = study_clock(timezone, first_day=first_day, days=days).origin
        self._start, self._end = self.clock.start - origin, self.clock.end - origin
        self.midnights = np.append(self._start[np.diff(self.clock.day, prepend=0) > 0], self._end[-1:])
        # The earliest second at which the last event before a slot's end still counts.
        self._since = np.minimum(self._start, self._end - slots.hold_minutes * _MINUTE_S)
        self._zones_of_cell, self.n_zones = _zone_codes(definition, slots)

    def midnight(self, day: int) -> int:
        """Second at which a study day begins; that of the day after the last is the study's end."""
        return int(self.midnights[day - 1])

    def through_day(self, day: int) -> int:
        """Return the number of slots that have ended when a study day ends."""
        return int(self.clock.of_day(day).stop)

    def ended_at(self, slots: int) -> int:
        """Second at which the first `slots` slots have ended; 0 = before the study."""
        return int(self._end[slots - 1]) if slots else 0

    def days_of(self, first: int, through: int) -> frozenset[int]:
        """Days in whose state there may be events that count in slots `first` to `through` - 1."""
        if first >= through:
            return frozenset()
        earliest = self._day_at(int(self._since[first]))
        return frozenset(range(earliest, int(self.clock.day[through - 1]) + 1))

    def days_before(self, day: int) -> frozenset[int]:
        """Days before a study day with events that may count on it."""
        if day > int(self.clock.day[-1]):
            return frozenset()
        first = self.clock.of_day(day).start
        return self.days_of(first, first + 1) - {day}

    def counts(
        self, days: Days, used: Mapping[int, SlotsUsed], *, first: int, through: int
    ) -> tuple[SlotCounts, dict[int, SlotsUsed]]:
        """Counts of slots `first` to `through` - 1, and what was then counted of people on each day.

        Parameters
        ----------
        days : of all `days_of`, as far as anyone was seen
        used : what earlier closings counted, by day

        Returns
        -------
        counts; `used` of the days on which a person may be in more slots than count
        """
        counts = np.zeros((through - first, self.n_zones), np.int64)
        used_now = {}
        for day, begin, end in self._parts(first, through):
            seen = _joined(days, self.days_of(begin, end))
            of_day = self.clock.of_day(day)
            is_capped = of_day.stop - of_day.start > self.slots_per_day
            before = used.get(day, SlotsUsed.empty()).before(begin - of_day.start)
            people = _with_places_for(before, seen) if is_capped else SlotsUsed.empty()
            _count(
                seen.pseudonym, seen.second, seen.cell, self._zones_of_cell, self._since[begin:end],
                self._end[begin:end], begin - of_day.start, is_capped, self.slots_per_day, people.pseudonym,
                people.counted, counts[begin - first : end - first],
            )  # fmt: skip
            if is_capped:
                used_now[day] = people.take(np.flatnonzero(people.counted.any(axis=1)))
        return SlotCounts(first_slot=first, counts=counts), used_now

    def carried(self, days: Days, *, to: int) -> Whereabouts:
        """Last events of people before day `to` that may count on it, of the state of the days before."""
        seen = _joined(days, self.days_before(to))
        is_before = seen.second < self.midnight(to)
        seen = seen.take(is_before)
        is_last = np.append(seen.pseudonym[1:] != seen.pseudonym[:-1], True)[: len(seen)]
        first = self.clock.of_day(to).start
        return seen.take(is_last & (seen.second >= self._since[first]))

    def carried_into(self, seen: Whereabouts, *, day: int) -> Whereabouts:
        """Return what the state of a day holds of earlier days."""
        return seen.take(seen.second < self.midnight(day))

    def _parts(self, first: int, through: int) -> Iterator[tuple[int, int, int]]:
        """(day, first slot, end) of the slots of each day among some slots."""
        for day in range(int(self.clock.day[first]), int(self.clock.day[through - 1]) + 1):
            of_day = self.clock.of_day(day)
            yield day, max(first, of_day.start), min(through, of_day.stop)

    def _day_at(self, second: int) -> int:
        return max(int(np.searchsorted(self.midnights, second, side="right")), 1)


def slot_counter(definition: StudyDefinition) -> SlotCounter | None:
    """Return what counts slots in a study; None if it has none."""
    return None if definition.slots is None else SlotCounter(definition, definition.slots)


def merge_used(one: SlotsUsed, other: SlotsUsed) -> SlotsUsed:
    """Return what is in either."""
    if not len(one) or not len(other):
        return one if len(one) else other
    everyone, rows_of = positions.union([one.pseudonym, other.pseudonym])
    counted = np.zeros((len(everyone), WORDS), np.uint64)
    for used, rows in zip((one, other), rows_of, strict=True):
        counted[rows] |= used.counted
    return SlotsUsed(pseudonym=everyone, counted=counted)


def _joined(days: Days, wanted: frozenset[int]) -> Whereabouts:
    joined = Whereabouts.empty()
    for day in sorted(wanted & days.keys()):
        joined = merge_whereabouts(joined, days[day])
    return joined


def _with_places_for(used: SlotsUsed, seen: Whereabouts) -> SlotsUsed:
    is_first = np.append(True, seen.pseudonym[1:] != seen.pseudonym[:-1])[: len(seen)]
    of_seen = seen.pseudonym[is_first]
    return merge_used(SlotsUsed(pseudonym=of_seen, counted=np.zeros((len(of_seen), WORDS), np.uint64)), used)


def _zone_codes(definition: StudyDefinition, slots: SlotsDefinition) -> tuple[NDArray[np.int32], int]:
    """Code of the zone of each cell at each level, (cells, levels), NO_ZONE for none; and how many codes."""
    area = definition.area
    cells, zones = (area.cells, area.zones) if area is not None else ((), ())
    place = {zone: code for code, zone in enumerate(zones)}
    smallest = np.array([place.get(cell.zone or "", NO_ZONE) for cell in cells], np.int32)
    codes, n_zones = [smallest], len(zones)
    for level in slots.levels:
        within = [NO_ZONE if zone is None else n_zones + zone for zone in level.within]
        codes.append(np.array([*within, NO_ZONE], np.int32)[smallest])  # NO_ZONE takes the last place
        n_zones += len(level.zones)
    return np.ascontiguousarray(np.stack(codes, axis=1)), n_zones


@numba.njit(cache=True, nogil=True)
def _count(  # type: ignore[no-untyped-def]
    who, when, where, zones_of_cell, since, end, place, is_capped, most, people, counted, counts
):
    """Add the people of each slot and zone, and mark the slots of people if these are capped, in place.

    when, where : columns of `Whereabouts`, as is the first one
    zones_of_cell : int32 (cells, levels)
    since, end : int64 (slots,), of one day; events count from `since` on, and before `end`
    place : of the first slot in its day
    people, counted : of `SlotsUsed`, all of `who` among them, if capped; counts : int64 (slots, zones)
    """
    begin, person = 0, 0
    while begin < len(who):
        stop = begin + 1
        while stop < len(who) and who[stop] == who[begin]:
            stop += 1
        used = 0
        if is_capped:
            while people[person] != who[begin]:
                person += 1
            used = _bits(counted[person])
        seen = begin  # events before it are before the slot's end
        for slot in range(len(end)):
            while seen < stop and when[seen] < end[slot]:
                seen += 1
            if seen == begin or when[seen - 1] < since[slot]:
                continue
            cell = where[seen - 1]
            if zones_of_cell[cell, 0] < 0:
                continue
            if is_capped:
                if used >= most:
                    break
                used += 1
                bit = np.uint64(place + slot)
                counted[person, bit >> _SIX] |= _ONE << (bit & _BITS)
            for level in range(zones_of_cell.shape[1]):
                zone = zones_of_cell[cell, level]
                if zone >= 0:
                    counts[slot, zone] += 1
        begin = stop


@numba.njit(cache=True, nogil=True)
def _bits(words):  # type: ignore[no-untyped-def]
    n = 0
    for word in words:
        left = word
        while left:
            left &= left - _ONE
            n += 1
    return n
