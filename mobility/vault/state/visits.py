"""Events of a shard to visits: who was there on which day, from when to when, with which static values."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mobility.extracts.rows.arrays import ParallelArrays
from mobility.extracts.rows.events import NO_VALUE, Events
from mobility.extracts.rows.grouping import group_ranges, partition
from mobility.vault.state import positions
from mobility.vault.state.stays import (
    DayOf,
    PlaceRules,
    Whereabouts,
    join_whereabouts,
    whereabouts_by_day,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visits(ParallelArrays):
    """One place per (pseudonym, day), sorted by both.

    pseudonym : uint64 (n,) ; day : uint8 (n,) ; first, last : uint32 (n,), seconds since the clock's origin
    """

    pseudonym: NDArray[np.uint64]
    day: NDArray[np.uint8]
    first: NDArray[np.uint32]
    last: NDArray[np.uint32]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticValues(ParallelArrays):
    """One place per pseudonym, sorted: the value of its earliest event (smallest code in a tie).

    pseudonym : uint64 (n,) ; codes : uint16 (n, slots), NO_VALUE where every value was empty
    conflicting : number of (pseudonym, slot) whose events in this batch disagree
    """

    pseudonym: NDArray[np.uint64]
    codes: NDArray[np.uint16]
    conflicting: int = 0

    @classmethod
    def names(cls) -> list[str]:
        return ["pseudonym", "codes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedEvents:
    """Content of a batch for one shard.

    duplicates : rows with the same subscriber, second, cell
    stays, nights : where people were on each day and in the night that begins on it, if the study asks
    slots : where people were on each day, at any hour, if the study has slots
    """

    visits: Visits
    values: StaticValues
    duplicates: int
    stays: dict[int, Whereabouts] = field(default_factory=dict)
    nights: dict[int, Whereabouts] = field(default_factory=dict)
    slots: dict[int, Whereabouts] = field(default_factory=dict)

    def without(self, pseudonyms: NDArray[np.uint64]) -> "GroupedEvents":
        """Nothing of those in the sorted list `pseudonyms`; the counts stay."""
        visits = positions.other_rows(self.visits.pseudonym, pseudonyms)
        values = positions.other_rows(self.values.pseudonym, pseudonyms)
        return replace(
            self,
            visits=self.visits.take(visits),
            values=replace(self.values.take(values), conflicting=self.values.conflicting),
            stays={day: seen.without(pseudonyms) for day, seen in self.stays.items()},
            nights={day: seen.without(pseudonyms) for day, seen in self.nights.items()},
            slots={day: seen.without(pseudonyms) for day, seen in self.slots.items()},
        )


def group_events(events: Events, *, rules: PlaceRules | None = None) -> GroupedEvents:
    """Group the events of one shard; the result does not depend on their order.

    Parameters
    ----------
    rules : of a study that derives anything from places; there events of day 0 are for nights and slots only
    """
    if rules is None:
        return _visits_and_values(events)
    is_visit = events.day != 0
    by_day = _visits_and_values(events if is_visit.all() else events.take(np.flatnonzero(is_visit)))
    # An event and what repeats it are either visits both, or neither is.
    by_night = _visits_and_values(events.take(np.flatnonzero(~is_visit)))
    grouped = replace(by_day, duplicates=by_day.duplicates + by_night.duplicates)
    if rules.of_day is not None:
        grouped = replace(grouped, stays=whereabouts_by_day(events, events.day, of_whom=rules.of_day))
    if rules.of_night is not None and rules.nights is not None:
        night = rules.nights.day_of(events.second)
        grouped = replace(grouped, nights=whereabouts_by_day(events, night, of_whom=rules.of_night))
    if rules.slot_day is not None:
        grouped = replace(grouped, slots=whereabouts_by_day(events, _slot_days(events, rules.slot_day)))
    return grouped


def _slot_days(events: Events, slot_day: DayOf) -> NDArray[np.uint8]:
    """Day of each event; those outside the visitor hours have none yet."""
    others = np.flatnonzero(events.day == 0)
    if not len(others):
        return events.day
    day = events.day.copy()
    day[others] = slot_day(events.second[others])
    return day


def _visits_and_values(events: Events) -> GroupedEvents:
    n, slots = events.codes.shape
    records, ends, low, width = partition(
        events.pseudonym, events.second, events.cell, events.day, events.codes
    )
    visited, day = np.empty(n, np.uint64), np.empty(n, np.uint8)
    first, last = np.empty(n, np.uint32), np.empty(n, np.uint32)
    pseudonym, codes = np.empty(n, np.uint64), np.empty((n, slots), np.uint16)
    counts = np.zeros(4, np.int64)
    group_ranges(records, ends, low, width, NO_VALUE, visited, day, first, last, pseudonym, codes, counts)
    n_visits, n_subscribers, duplicates, conflicting = counts.tolist()
    # Copies give the room for as many visits as events back.
    return GroupedEvents(
        visits=Visits(
            pseudonym=visited[:n_visits].copy(),
            day=day[:n_visits].copy(),
            first=first[:n_visits].copy(),
            last=last[:n_visits].copy(),
        ),
        values=StaticValues(
            pseudonym=pseudonym[:n_subscribers].copy(),
            codes=codes[:n_subscribers].copy(),
            conflicting=conflicting,
        ),
        duplicates=duplicates,
    )


def join_groups(parts: list[GroupedEvents]) -> GroupedEvents:
    """Groups of the pieces of a shard, in rising order of pseudonyms, as one; at least one."""
    values = [part.values for part in parts]
    conflicting = sum(part.conflicting for part in values)
    return GroupedEvents(
        visits=Visits.joined([part.visits for part in parts]),
        values=replace(StaticValues.joined(values), conflicting=conflicting),
        duplicates=sum(part.duplicates for part in parts),
        stays=join_whereabouts([part.stays for part in parts]),
        nights=join_whereabouts([part.nights for part in parts]),
        slots=join_whereabouts([part.slots for part in parts]),
    )
