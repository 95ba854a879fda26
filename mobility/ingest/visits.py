"""Events of a shard to visits: who was there on which day, from when to when, with which static values."""

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from mobility.ingest.events import NO_VALUE, Events


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


def group_events(events: Events) -> GroupedEvents:
    """Group the events of one shard; the result does not depend on their order."""
    order = np.argsort(events.pseudonym)
    moment = (events.second.astype(np.uint64) << np.uint64(32)) | events.cell
    _order_within_subscribers(order, events.pseudonym, moment)
    pseudonym = events.pseudonym[order]
    new_subscriber, new_visit, duplicates = _boundaries(pseudonym, moment[order], events.day[order])
    visit_starts = np.flatnonzero(new_visit)
    visit_ends = np.append(visit_starts[1:], len(order))[: len(visit_starts)] - 1
    second = events.second[order]
    subscriber_starts = np.flatnonzero(new_subscriber)
    codes, conflicting = _static_codes(subscriber_starts, second, events.codes[order], NO_VALUE)
    return GroupedEvents(
        visits=Visits(
            pseudonym=pseudonym[visit_starts],
            day=events.day[order][visit_starts],
            first=second[visit_starts],
            last=second[visit_ends],
        ),
        values=StaticValues(
            pseudonym=pseudonym[subscriber_starts], codes=codes, conflicting=int(conflicting)
        ),
        duplicates=int(duplicates),
    )


@numba.njit(cache=True, nogil=True)
def _order_within_subscribers(order, pseudonym, moment):  # type: ignore[no-untyped-def]
    """Sort each subscriber's events by time and cell, in place; `order` is already sorted by pseudonym.

    A subscriber has few events, mostly in time order already: insertion beats a full sort. Long runs are
    sorted by the library.
    """
    n = len(order)
    start = 0
    while start < n:
        end = start + 1
        while end < n and pseudonym[order[end]] == pseudonym[order[start]]:
            end += 1
        if end - start > 64:
            run = order[start:end].copy()
            order[start:end] = run[np.argsort(moment[run])]
        else:
            for i in range(start + 1, end):
                row = order[i]
                j = i
                while j > start and moment[order[j - 1]] > moment[row]:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = row
        start = end


@numba.njit(cache=True, nogil=True)
def _boundaries(pseudonym, moment, day):  # type: ignore[no-untyped-def]
    """Where a subscriber and where a visit begins, and how many rows repeat the one before."""
    n = len(pseudonym)
    new_subscriber = np.empty(n, np.bool_)
    new_visit = np.empty(n, np.bool_)
    duplicates = 0
    for i in range(n):
        new_subscriber[i] = i == 0 or pseudonym[i] != pseudonym[i - 1]
        new_visit[i] = new_subscriber[i] or day[i] != day[i - 1]
        if not new_subscriber[i] and moment[i] == moment[i - 1]:
            duplicates += 1
    return new_subscriber, new_visit, duplicates


@numba.njit(cache=True, nogil=True)
def _static_codes(starts, second, codes, no_value):  # type: ignore[no-untyped-def]
    """First value of each subscriber and slot (rows in time order), and how many disagree."""
    n_slots = codes.shape[1]
    first = np.full((len(starts), n_slots), no_value, np.uint16)
    conflicting = 0
    for subscriber in range(len(starts)):
        end = starts[subscriber + 1] if subscriber + 1 < len(starts) else len(second)
        for slot in range(n_slots):
            answer = no_value
            answered_at = np.uint32(0)
            differs = False
            for row in range(starts[subscriber], end):
                code = codes[row, slot]
                if code in (no_value, answer):
                    continue
                if answer == no_value:
                    answer, answered_at = code, second[row]
                    continue
                differs = True
                if second[row] == answered_at and code < answer:
                    answer = code
            first[subscriber, slot] = answer
            conflicting += differs
    return first, conflicting
