"""Change that a batch makes to the events of one shard: day by day, as presence of a study of one day.

Each event belongs to one day and never comes back on another. So the state of a day and shard is that of
subscribers in a study of a single day (`Presence`): key, answer, and how much of it is published. Undone
days, rows that come again and publications that cover too few follow the rules of people.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ldp.estimation.tallies import Delta
from ldp.keyed.events import event_keys
from mobility.extracts.rows.arrays import ParallelArrays
from mobility.extracts.rows.events import NO_VALUE, Events, people_of
from mobility.vault.state import changes
from mobility.vault.state.answered import AnsweredEvents
from mobility.vault.state.presence import SAME, Presence
from mobility.vault.studies import OpenStudy

Days = dict[int, Presence]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventChange:
    """Change of a shard, and the state of the days that differ.

    duplicates : rows that were there already
    by_day : rows of each day, with duplicates
    """

    change: changes.Change
    days: Days
    duplicates: int = 0
    by_day: dict[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRows(ParallelArrays):
    """Rows of a batch in a shard, one place per row: key of the event, day, and its sanitised reports.

    person : as of `people_of`; of no use in a study without a limit for people
    """

    key: NDArray[np.uint64]
    day: NDArray[np.uint16]
    static: NDArray[np.uint16]
    person: NDArray[np.uint64]
    second: NDArray[np.uint32]

    def of_days(self, *, closed: frozenset[int]) -> "EventRows":
        """Return the rows of days that were not closed while the file was read."""
        return self.take(np.flatnonzero(~np.isin(self.day, sorted(closed))))

    def within(self, answered: AnsweredEvents, *, most: int) -> tuple["EventRows", AnsweredEvents]:
        """Return the rows without the answers of further events of a person; and all answered ones then."""
        answered = answered.admit(self.key, person=self.person, second=self.second, most=most)
        static = self.static.copy()
        static[~np.isin(self.key, answered.key)] = NO_VALUE
        return replace(self, static=static), answered


def event_rows(study: OpenStudy, pieces: Iterable[Events]) -> EventRows:
    """Give each row its key and its reports; equal rows are in one piece."""
    found = []
    for events in pieces:
        key = event_keys(events.pseudonym, prf=study.event_prf)
        rows = EventRows(
            key=key,
            day=events.day.astype(np.uint16),
            static=study.sanitiser.event_answers(key, events.codes),
            person=people_of(events),
            second=events.second,
        )
        found.append(rows)
    return EventRows.joined(found)


def add_events(
    study: OpenStudy, rows: EventRows, before: Mapping[int, Presence], *, number: int
) -> EventChange:
    """Add the rows that are not there yet.

    Parameters
    ----------
    before : state of each day that has any
    number : of the next publication
    """
    sanitiser = study.day_sanitiser
    order = np.argsort(rows.day, kind="stable")
    found, first = np.unique(rows.day[order], return_index=True)
    by_day, of_days, after = {}, {}, Days()
    of_day = np.split(order, first[1:]) if len(found) else []
    for day, places in zip(found.tolist(), of_day, strict=True):
        keys, first_of = np.unique(rows.key[places], return_index=True)  # two by chance alike count once
        arrived = changes.DayArrivals(
            day=1,
            pseudonym=keys,
            static=rows.static[places[first_of]],
            daily=np.empty((len(keys), 0), np.uint16),
        )
        was = _without_undone(before.get(day, Presence.empty(sanitiser)), number=number)
        change = changes.add_days(was, [arrived], number=number, sanitiser=sanitiser)
        by_day[day] = len(places)
        of_days[day] = change
        if change.places:
            after[day] = change.presence
    whole = _joined(study, of_days)
    duplicates = len(rows.key) - whole.subscriber_days
    return EventChange(change=whole, days=after, duplicates=duplicates, by_day=by_day)


def remove_events(study: OpenStudy, before: Mapping[int, Presence], *, number: int) -> EventChange:
    """Undo days; what is published of them stays noted until the next publication is out."""
    of_days = {
        day: changes.remove_day(was, day=1, number=number, sanitiser=study.day_sanitiser)
        for day, was in before.items()
    }
    after = {day: change.presence for day, change in of_days.items()}
    return EventChange(change=_joined(study, of_days), days=after, by_day={})


def exact_events(study: OpenStudy, days: Mapping[int, Presence]) -> Delta:
    """Return the contribution of the state of some days, from nothing."""
    delta = Delta.zero(study.plan)
    for day, state in days.items():
        _put(delta, changes.exact_tallies(state, study.day_sanitiser), day=day)
    return delta


def _without_undone(state: Presence, *, number: int) -> Presence:
    """Return the state without events that were undone, once nothing is published of them."""
    state = state.as_of(number)
    return state.take(np.flatnonzero((state.days != 0) | (state.published != SAME)))


def _joined(study: OpenStudy, of_days: Mapping[int, changes.Change]) -> changes.Change:
    """All days together, as one change of a shard without people."""
    delta = Delta.zero(study.plan)
    for day, change in of_days.items():
        _put(delta, change.delta, day=day)
    all_of = list(of_days.values())
    return replace(
        changes.nothing(study.day_sanitiser),
        delta=delta,
        subscribers=sum(each.subscribers for each in all_of),
        subscriber_days=sum(each.subscriber_days for each in all_of),
        subscribers_new=sum(each.subscribers_new for each in all_of),
        reports=sum(each.reports for each in all_of),
    )


def _put(delta: Delta, of_day: Delta, *, day: int) -> None:
    """Add the counts of a study of one day as those of a day, in place."""
    delta.visitors[0, day] += of_day.visitors[0, 1]
    for mine, theirs in zip(delta.counts, of_day.counts, strict=True):
        mine[:, 0, day] += theirs[:, 0, 1]
    for mine, theirs in zip(delta.n_reports, of_day.n_reports, strict=True):
        mine[0, day] += theirs[0, 1]
