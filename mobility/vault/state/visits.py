"""Events of a shard to visits: who was there on which day, from when to when, with which static values."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mobility.extracts.rows.arrays import ParallelArrays
from mobility.extracts.rows.events import NO_VALUE, Events
from mobility.extracts.rows.grouping import group_ranges, group_ranges_and_places, partition
from mobility.vault.state import positions
from mobility.vault.state.stays import (
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
    day: NDArray[np.unsignedinteger[Any]]
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
    grouped = _all_hours(events) if rules.midnights is None else _visits_and_values(events, rules.midnights)
    if rules.of_day is not None:
        grouped = replace(grouped, stays=whereabouts_by_day(events, events.day, of_whom=rules.of_day))
    if rules.of_night is not None and rules.nights is not None:
        night = rules.nights.day_of(events.second)
        grouped = replace(grouped, nights=whereabouts_by_day(events, night, of_whom=rules.of_night))
    return grouped


def _all_hours(events: Events) -> GroupedEvents:
    """Visits and values, and what repeats others among the rows of nights."""
    is_visit = events.day != 0
    by_day = _visits_and_values(events if is_visit.all() else events.take(np.flatnonzero(is_visit)))
    # An event and what repeats it are either visits both, or neither is.
    by_night = _visits_and_values(events.take(np.flatnonzero(~is_visit)))
    return replace(by_day, duplicates=by_day.duplicates + by_night.duplicates)


def _visits_and_values(events: Events, midnights: NDArray[np.int64] | None = None) -> GroupedEvents:
    """Group events; with `midnights` those of day 0, too, and the places of people on each day."""
    n, n_codes = events.codes.shape
    records, ends, low, width = partition(
        events.pseudonym, events.second, events.cell, events.day, events.codes
    )
    visited, day = np.empty(n, np.uint64), np.empty(n, np.uint8)
    first, last = np.empty(n, np.uint32), np.empty(n, np.uint32)
    pseudonym, codes = np.empty(n, np.uint64), np.empty((n, n_codes), np.uint16)
    counts, slots = np.zeros(4, np.int64), dict[int, Whereabouts]()
    written = visited, day, first, last, pseudonym, codes, counts
    if midnights is not None:
        seen, of_day = np.empty(n, np.uint64), np.empty(n, np.uint8)
        second, cell = np.empty(n, np.uint32), np.empty(n, np.uint32)
        n_seen = group_ranges_and_places(
            records, ends, low, width, NO_VALUE, *written, midnights, seen, of_day, second, cell
        )
        places = Whereabouts(pseudonym=seen[:n_seen], second=second[:n_seen], cell=cell[:n_seen])
        slots = places.by_key(of_day[:n_seen], 256)
    else:
        group_ranges(records, ends, low, width, NO_VALUE, *written)
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
        slots=slots,
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
