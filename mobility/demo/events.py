"""The events of one day: stays of the visitors, and the noise of a feed that no rule may count."""

from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from ldp.kernels.streams import KeyedStream
from mobility.demo.population import Indices, Population
from mobility.extracts.rows.arrays import ParallelArrays

HOUR_S: Final = 3600
DAY_S: Final = 24 * HOUR_S
OPENING_S: Final = 6 * HOUR_S  # 06:00:00
OPEN_S: Final = DAY_S - 1 - OPENING_S  # longest possible visit: up to 23:59:59
LAST_BAND_LOW_S: Final = 10 * HOUR_S

EVENTS_MIN, EVENTS_EXTRA = 8, 22  # a present subscriber has 8 to 30 events a day
# The noise: one in this many.
PASSING_ABSENT: Final = 30  # of the subscribers who are absent that day
PASSING_OTHERS: Final = 3  # of those who only ever pass through
ELSEWHERE: Final = 12  # of the people of the day: events at cells of other areas
NIGHT: Final = 16  # of the people of the day: events before the opening
DUPLICATE: Final = 200  # rows
MALFORMED: Final = 1000  # rows
WITH_OFFSET: Final = 20  # rows that carry the offset of the time zone
NIGHT_EDGES_S: Final = np.array([0, 600, OPENING_S - 1])  # 00:00:00, 00:10:00, 05:59:59


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Cells by number: those of the area in file order, then those of other areas; and where people live."""

    n_inside: int
    n_outside: int
    centre: Indices  # cells of the festival
    home: Indices  # cell of each person


@dataclass(frozen=True, slots=True, kw_only=True)
class Events(ParallelArrays):
    """Events of one day as columns; seconds count from local midnight."""

    person: Indices
    second: Indices
    cell: Indices
    has_offset: NDArray[np.bool_]
    is_malformed: NDArray[np.bool_]  # to be written with an error in each

    @classmethod
    def plain(cls, *, person: Indices, second: Indices, cell: Indices) -> Self:
        no = np.zeros(person.size, np.bool_)
        return cls(person=person, second=second, cell=cell, has_offset=no, is_malformed=no)


def day_events(population: Population, *, day: int, places: Places, stream: KeyedStream) -> Events:
    """All rows of study day `day`, in time order.

    People are numbered: first the subscribers of the population, then those who only ever pass through.
    """
    present = np.flatnonzero(population.is_present(day))
    passing = _passing(population, day=day, n_people=places.home.size, stream=stream)
    people = np.concatenate([present, passing])
    events = Events.joined(
        [
            _stays(present, bands=population.durations[present, day - 1], places=places, stream=stream),
            _short_visits(passing, places=places, stream=stream),
            _elsewhere(people, places=places, stream=stream),
            _nights(people, places=places, stream=stream),
        ]
    )
    events = replace(events, has_offset=_one_in(events.person.size, WITH_OFFSET, stream=stream))
    # Copies of rows, so that nothing of the truth depends on a malformed one.
    copies = events.take(_chosen(events.person.size, DUPLICATE, stream=stream))
    broken = events.take(_chosen(events.person.size, MALFORMED, stream=stream))
    broken = replace(broken, is_malformed=np.ones(broken.person.size, np.bool_))
    events = Events.joined([events, copies, broken])
    return events.take(np.argsort(events.second, kind="stable"))


def _passing(population: Population, *, day: int, n_people: int, stream: KeyedStream) -> Indices:
    """People with a visit too short to count: absent subscribers, and others."""
    absent = np.flatnonzero(~population.is_present(day))
    others = np.arange(population.n_subscribers, n_people)
    return np.concatenate(
        [
            absent[_chosen(absent.size, PASSING_ABSENT, stream=stream)],
            others[_chosen(others.size, PASSING_OTHERS, stream=stream)],
        ]
    )


def _stays(people: Indices, *, bands: NDArray[np.int32], places: Places, stream: KeyedStream) -> Events:
    low = (bands.astype(np.int64) + 1) * HOUR_S
    span = np.where(low == LAST_BAND_LOW_S, OPEN_S + 1 - low, HOUR_S)
    length = low + _below(span, stream=stream)
    special = stream.uniform_int(people.size, 0, 100)
    length = np.where(special == 0, low, np.where(special == 1, low + span - 1, length))  # ends of the band
    start = _start(length, special=special, stream=stream)
    draws = stream.uniform_int(2 * people.size, 0, EVENTS_EXTRA + 1).reshape(2, -1)
    return _visits(
        people,
        start=start,
        length=length,
        n_events=EVENTS_MIN + draws.min(axis=0),
        places=places,
        stream=stream,
    )


def _short_visits(people: Indices, *, places: Places, stream: KeyedStream) -> Events:
    length = stream.uniform_int(people.size, 0, HOUR_S)
    special = stream.uniform_int(people.size, 0, 100)
    length[special < 10] = HOUR_S - 1  # one second less than a visit
    start = _start(length, special=special, stream=stream)
    n_events = stream.uniform_int(people.size, 1, 6)
    return _visits(people, start=start, length=length, n_events=n_events, places=places, stream=stream)


def _start(length: Indices, *, special: Indices, stream: KeyedStream) -> Indices:
    """First second of a visit: rather late in the day, and for some right at an end of the hours."""
    slack = OPEN_S - length
    delay = np.maximum(_below(slack + 1, stream=stream), _below(slack + 1, stream=stream))
    delay = np.where(special == 2, 0, np.where(special == 3, slack, delay))
    return OPENING_S + delay


def _visits(
    people: Indices,
    *,
    start: Indices,
    length: Indices,
    n_events: Indices,
    places: Places,
    stream: KeyedStream,
) -> Events:
    """Events inside the area: one at each end of the visit where there are two, the others between."""
    owner = np.repeat(np.arange(people.size), n_events)
    offset = _below(length[owner] + 1, stream=stream)
    first = np.cumsum(n_events) - n_events
    offset[first] = 0
    several = n_events > 1
    offset[first[several] + 1] = length[several]
    # At both ends of the visit people are near home, in between at the festival, now and then a cell further.
    is_near_home = np.isin(offset * 6 // (length[owner] + 1), (0, 5))
    centre = places.centre[stream.uniform_int(people.size, 0, places.centre.size)]
    step = np.where(_one_in(owner.size, 5, stream=stream), stream.uniform_int(owner.size, -1, 2), 0)
    cell = np.where(is_near_home, places.home[people][owner], centre[owner]) + step
    return Events.plain(
        person=people[owner], second=start[owner] + offset, cell=cell.clip(0, places.n_inside - 1)
    )


def _elsewhere(people: Indices, *, places: Places, stream: KeyedStream) -> Events:
    """Events at cells outside the area, at any time: before, during and after a visit."""
    chosen = people[_chosen(people.size, ELSEWHERE, stream=stream)]
    person = np.repeat(chosen, stream.uniform_int(chosen.size, 1, 4))
    return Events.plain(
        person=person,
        second=stream.uniform_int(person.size, 0, DAY_S),
        cell=places.n_inside + stream.uniform_int(person.size, 0, places.n_outside),
    )


def _nights(people: Indices, *, places: Places, stream: KeyedStream) -> Events:
    """Events at home before the opening."""
    chosen = people[_chosen(people.size, NIGHT, stream=stream)]
    person = np.repeat(chosen, stream.uniform_int(chosen.size, 1, 3))
    edge = NIGHT_EDGES_S[stream.uniform_int(person.size, 0, NIGHT_EDGES_S.size)]
    second = stream.uniform_int(person.size, 0, OPENING_S)
    second = np.where(_one_in(person.size, 4, stream=stream), edge, second)
    return Events.plain(person=person, second=second, cell=places.home[person])


def _one_in(n: int, share: int, *, stream: KeyedStream) -> NDArray[np.bool_]:
    return np.equal(stream.uniform_int(n, 0, share), 0)


def _chosen(n: int, share: int, *, stream: KeyedStream) -> Indices:
    return np.flatnonzero(_one_in(n, share, stream=stream))


def _below(bounds: Indices, *, stream: KeyedStream) -> Indices:
    """One number of [0, bound) for each bound; bounds are far below 2**32, so the bias is negligible."""
    words = stream.words(bounds.size) >> np.uint64(32)
    return (words * bounds.astype(np.uint64) >> np.uint64(32)).astype(np.int64)
