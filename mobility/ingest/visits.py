"""Events of a shard to visits: who was there on which day, from when to when, with which static values."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mobility import places
from mobility.ingest.events import NO_VALUE, Events
from mobility.ingest.grouping import group_ranges, partition, ranges_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Visits:
    """One place per (pseudonym, day), sorted by both.

    pseudonym : uint64 (n,) ; day : uint8 (n,) ; first, last : uint32 (n,), seconds since the clock's origin
    """

    pseudonym: NDArray[np.uint64]
    day: NDArray[np.uint8]
    first: NDArray[np.uint32]
    last: NDArray[np.uint32]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticValues:
    """One place per pseudonym, sorted: the value of its earliest event (smallest code in a tie).

    pseudonym : uint64 (n,) ; codes : uint16 (n, slots), NO_VALUE where every value was empty
    conflicting : number of (pseudonym, slot) whose events in this batch disagree
    """

    pseudonym: NDArray[np.uint64]
    codes: NDArray[np.uint16]
    conflicting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedEvents:
    """What a batch says about one shard; `duplicates`: rows with the same subscriber, second, cell."""

    visits: Visits
    values: StaticValues
    duplicates: int

    def without(self, pseudonyms: NDArray[np.uint64]) -> "GroupedEvents":
        """Nothing of those in the sorted list `pseudonyms`; the counts stay."""
        visits = places.other_rows(self.visits.pseudonym, pseudonyms)
        values = places.other_rows(self.values.pseudonym, pseudonyms)
        return GroupedEvents(
            visits=Visits(
                pseudonym=self.visits.pseudonym[visits],
                day=self.visits.day[visits],
                first=self.visits.first[visits],
                last=self.visits.last[visits],
            ),
            values=StaticValues(
                pseudonym=self.values.pseudonym[values],
                codes=self.values.codes[values],
                conflicting=self.values.conflicting,
            ),
            duplicates=self.duplicates,
        )


def group_events(events: Events) -> GroupedEvents:
    """Group the events of one shard; the result does not depend on their order."""
    n, slots = events.codes.shape
    low, width, n_ranges = ranges_of(events.pseudonym)
    records, ends = partition(
        events.pseudonym, events.second, events.cell, events.day, events.codes, low, width, n_ranges
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
    visits, values = [part.visits for part in parts], [part.values for part in parts]
    return GroupedEvents(
        visits=Visits(
            pseudonym=np.concatenate([part.pseudonym for part in visits]),
            day=np.concatenate([part.day for part in visits]),
            first=np.concatenate([part.first for part in visits]),
            last=np.concatenate([part.last for part in visits]),
        ),
        values=StaticValues(
            pseudonym=np.concatenate([part.pseudonym for part in values]),
            codes=np.concatenate([part.codes for part in values]),
            conflicting=sum(part.conflicting for part in values),
        ),
        duplicates=sum(part.duplicates for part in parts),
    )
