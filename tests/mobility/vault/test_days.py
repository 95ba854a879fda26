"""Sightings of a shard's day: merging files in any order, packing, and the raw daily values of them."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp.geo.grid import Grid
from ldp.kernels.entropy import KeyedPrf
from ldp.protocols.numbers.threshold import Scale
from mobility.extracts.rows.events import NO_VALUE
from mobility.extracts.rows.nights import nights_of
from mobility.vault.sanitise import StudySanitiser
from mobility.vault.state.columns import pack_columns, steps
from mobility.vault.state.daily import DailyValues
from mobility.vault.state.days import DaySightings, merge_sightings, sightings_by_day
from mobility.vault.state.slots import WORDS, SlotsUsed
from mobility.vault.state.stays import NO_CELL, Whereabouts
from mobility.vault.state.visits import Visits, group_events
from reports.studies.studyfile.definition import LocationDefinition
from tests.mobility.extracts.rows.night_study import night_study
from tests.mobility.extracts.rows.small_extract import (
    SANITISE_KEY,
    asked_of,
    made_of,
    make_events,
    whereabouts_of,
)

NONE = int(NO_VALUE)
PSEUDONYMS = [0, 1, 2**63, 2**64 - 1]
BY_DAY, BY_NIGHT = [(1, 5, 7), (1, 2000, 2**32 - 2), (2**64 - 1, 9, 0)], [(3, 80_000, 4)]

Seen = dict[int, tuple[int, int, tuple[int, ...]]]  # pseudonym -> first, last, static answers


def sightings_of(seen: Seen, *, slots: int) -> DaySightings:
    rows = [(pseudonym, *facts) for pseudonym, facts in sorted(seen.items())]
    names = {"pseudonym": np.uint64, "first": np.uint32, "last": np.uint32, "static": np.uint16}
    none = np.empty((len(rows), 0), np.uint16)
    return made_of(partial(DaySightings, parts=none), rows, slots=slots, **names)


def seen_in(sightings: DaySightings) -> Seen:
    pseudonyms = sightings.pseudonym.tolist()
    assert pseudonyms == sorted(set(pseudonyms))
    answers = map(tuple, sightings.static.tolist())
    spans = zip(sightings.first.tolist(), sightings.last.tolist(), answers, strict=True)
    return dict(zip(pseudonyms, spans, strict=True))


def merged_by_hand(parts: list[Seen]) -> Seen:
    merged: Seen = {}
    for part in parts:
        for pseudonym, (first, last, answers) in part.items():
            old_first, old_last, old_answers = merged.get(pseudonym, (first, last, answers))
            kept = tuple(new if old == NONE else old for old, new in zip(old_answers, answers, strict=True))
            merged[pseudonym] = min(first, old_first), max(last, old_last), kept
    return merged


@st.composite
def some_parts(draw: st.DrawFn) -> tuple[int, list[Seen]]:
    slots = draw(st.integers(0, 2))
    moments = st.sampled_from([0, 1, 7, 3600, 2**32 - 1])
    row = st.tuples(
        st.tuples(moments, moments).map(sorted).map(tuple),
        st.tuples(*[st.sampled_from([0, 1, 65_533, NONE])] * slots),
    ).map(lambda drawn: (*drawn[0], drawn[1]))
    return slots, draw(st.lists(st.dictionaries(st.sampled_from(PSEUDONYMS), row), max_size=4))


def merged(parts: list[Seen], *, slots: int) -> Seen:
    sightings = DaySightings.empty(words=slots)
    for part in parts:
        sightings = merge_sightings(sightings, sightings_of(part, slots=slots))
    return seen_in(sightings)


@given(drawn=some_parts(), gone=st.sets(st.sampled_from(PSEUDONYMS)))
def test_files_merge_to_the_whole_span_and_the_first_answer(drawn, gone) -> None:
    slots, parts = drawn
    whole = merged_by_hand(parts)
    assert merged(parts, slots=slots) == merged(parts + parts, slots=slots) == whole
    for order in permutations(parts):
        again = merged(list(order), slots=slots)
        assert all(again[name][:2] == seen[:2] for name, seen in whole.items())
    sightings = sightings_of(whole, slots=slots)
    unpacked = DaySightings.unpack(sightings.pack(), words=slots)
    assert not len(unpacked.stays) and not len(unpacked.nights)
    for name in ("pseudonym", "first", "last", "static"):
        one, other = getattr(unpacked, name), getattr(sightings, name)
        assert one.dtype == other.dtype and np.array_equal(one, other)
    left = seen_in(unpacked.without(np.array(sorted(gone), np.uint64)))
    assert left == {name: facts for name, facts in whole.items() if name not in gone}


@given(
    visits=st.dictionaries(
        st.tuples(st.sampled_from(PSEUDONYMS), st.sampled_from([1, 2, 61, 62])),
        st.sampled_from([(0, 0), (5, 9), (7, 2**32 - 1)]),
    ),
    words=st.integers(0, 2),
)
def test_visits_of_each_day_with_the_answers_of_their_subscribers(visits, words) -> None:
    keys = sorted(visits)
    people = sorted({name for name, _ in keys})
    answers = {name: tuple(10 * row + word for word in range(words)) for row, name in enumerate(people)}
    names = {"pseudonym": np.uint64, "day": np.uint8, "first": np.uint32, "last": np.uint32}
    those = made_of(Visits, [(*key, *visits[key]) for key in keys], **names)
    found = sightings_by_day(those, np.array(list(answers.values()), np.uint16).reshape(len(people), words))
    assert {
        (name, day): facts for day, sightings in found.items() for name, facts in seen_in(sightings).items()
    } == {(name, day): (*span, answers[name]) for (name, day), span in visits.items()}
    assert all(map(len, found.values()))


def rows_of(seen: Whereabouts) -> list[tuple[int, int, int]]:
    return list(zip(seen.pseudonym.tolist(), seen.second.tolist(), seen.cell.tolist(), strict=True))


@pytest.mark.parametrize("stays", [[], BY_DAY])
@pytest.mark.parametrize("nights", [[], BY_NIGHT])
@pytest.mark.parametrize("words", [0, 2])
def test_places_are_packed_with_the_day(stays, nights, words) -> None:
    seen = sightings_of({1: (5, 2000, (7,) * words)}, slots=words)
    whole = replace(seen, stays=whereabouts_of(*stays), nights=whereabouts_of(*nights))
    again = DaySightings.unpack(whole.pack(), words=words)
    assert (seen_in(again), rows_of(again.stays), rows_of(again.nights)) == (seen_in(seen), stays, nights)
    assert again.stays.pseudonym.dtype == np.uint64
    assert again.stays.cell.dtype == again.stays.second.dtype == np.uint32


@given(
    people=st.sets(st.sampled_from(PSEUDONYMS)),
    places=st.dictionaries(
        st.tuples(st.sampled_from([*PSEUDONYMS, 5, 2**63 + 1]), st.integers(3, 97)),
        st.tuples(st.integers(0, 899), st.sampled_from([0, 255, 256, 70_000])),
        min_size=1,
    ),
)
def test_places_of_slots_are_packed_for_people_with_and_without_a_visit(people, places) -> None:
    slots = [(who, quarter * 900 + rest, cell) for (who, quarter), (rest, cell) in sorted(places.items())]
    seen = sightings_of(dict.fromkeys(people, (5, 9, ())), slots=0)
    again = DaySightings.unpack(replace(seen, slots=whereabouts_of(*slots)).pack(), words=0)
    assert (seen_in(again), rows_of(again.slots)) == (seen_in(seen), slots)
    assert again.slots.pseudonym.dtype == np.uint64
    assert again.slots.second.dtype == again.slots.cell.dtype == np.uint32


def test_a_day_without_places_is_packed_as_before_there_were_any() -> None:
    seen = sightings_of({1: (5, 9, (7,)), 4: (6, 6, (NONE,))}, slots=1)
    packed = pack_columns([steps(seen.pseudonym), seen.first, seen.last - seen.first, *seen.static.T])
    assert (seen.pack(), seen_in(DaySightings.unpack(packed, words=1))) == (packed, seen_in(seen))


def test_whoever_is_taken_out_is_nowhere() -> None:
    nights = whereabouts_of((1, 80_000, 4), (3, 80_000, 4))
    people = sightings_of({1: (5, 9, ()), 3: (6, 6, ())}, slots=0)
    places = {"stays": whereabouts_of(*BY_DAY), "nights": nights, "slots": nights}
    used = SlotsUsed(pseudonym=np.array([1, 3], np.uint64), counted=np.ones((2, WORDS), np.uint64))
    left = replace(people, slots_used=used, **places).without(np.array([1], np.uint64))
    assert seen_in(left) == {3: (6, 6, ())}
    assert (rows_of(left.stays), rows_of(left.nights)) == (BY_DAY[2:], [(3, 80_000, 4)])
    assert (rows_of(left.slots), left.slots_used.pseudonym.tolist()) == ([(3, 80_000, 4)], [3])
    by_day = {name: {1: seen} for name, seen in places.items()}
    read = replace(group_events(make_events([], slots=0)), **by_day).without(np.array([1], np.uint64))
    assert [rows_of(getattr(read, name)[1]) for name in places] == [BY_DAY[2:], *[[(3, 80_000, 4)]] * 2]


def test_files_that_know_only_places_of_a_day_merge_with_others() -> None:
    """The early hours of the next date come in another file than the day, before or after it."""
    by_day = replace(sightings_of({1: (5, 9, (7,))}, slots=1), stays=whereabouts_of((1, 9, 2)))
    by_night = replace(DaySightings.empty(words=1), nights=whereabouts_of(*BY_NIGHT))
    for one, other in ((by_day, by_night), (by_night, by_day)):
        both = merge_sightings(one, other)
        assert seen_in(both) == {1: (5, 9, (7,))}
        assert (rows_of(both.stays), rows_of(both.nights)) == ([(1, 9, 2)], BY_NIGHT)
    assert rows_of(merge_sightings(by_night, by_night).nights) == BY_NIGHT


# --- raw daily values: codes of each indicator, and the main cell alone ------------------------------------
DEFINITION = night_study(first_day=date(2017, 6, 1), days=3, mechanism="spl-grr")
# Of day 1 on the events' clock, which starts two days before; local = UTC + 2 h.
DAY_START = 2 * 86_400 - 2 * 3600
# Grid codes of the four cells; two masts are in one square.
GRID = Grid(x0_m=0, y0_m=0, step_m=500, n_x=4, n_y=3)
LOCATION = LocationDefinition(
    level=Decimal("1.4"), radius_m=200, max_values=None, grid=GRID, places=(7, 11, 7, 0)
)


def daily_values(definition) -> DailyValues:
    return DailyValues(definition, StudySanitiser(definition.plan_spec(), prf=KeyedPrf(SANITISE_KEY)))


def daily_of(mechanism: str = "spl-grr", *, location: LocationDefinition | None = None) -> DailyValues:
    definition = night_study(first_day=date(2017, 6, 1), days=3, mechanism=mechanism)
    return daily_values(replace(definition, location=location))


def hours_of(*rows: tuple[int, float, int]) -> Whereabouts:
    return whereabouts_of(*((person, int(DAY_START + hour * 3600), cell) for person, hour, cell in rows))


# Everyone from 9 to 12 o'clock.
SEEN = DaySightings(
    pseudonym=np.arange(1, 5, dtype=np.uint64),
    first=np.full(4, DAY_START + 9 * 3600, np.uint32),
    last=np.full(4, DAY_START + 12 * 3600, np.uint32),
    static=np.empty((4, 0), np.uint16),
    parts=np.empty((4, 0), np.uint16),
    # Registry: 0 South, 1 North, 2 South, 3 without a zone.
    stays=hours_of((1, 9, 1), (1, 10, 0), (1, 12, 1), (2, 9, 3), (2, 12, 1), (3, 9, 2)),
    nights=hours_of((1, 22, 0), (1, 23, 1), (2, 22, 0), (2, 27, 1), (4, 23, 3), (9, 22, 1)),
)
EVERYBODY = np.arange(4)


def test_main_cells_are_places_in_the_registry_and_night_cells_count_until_the_night_ends() -> None:
    """Person 1 is last seen at 23 o'clock and stays until 6; person 2 moves at 3, after 5 hours."""
    daily, people = daily_of(), np.array([0, 1, 2, 3, 4, 9], np.uint64)
    cells = daily.main_cells(SEEN, people)
    assert (cells.dtype, cells.tolist()) == (np.uint32, [NO_CELL, 0, 3, 2, NO_CELL, NO_CELL])
    assert daily.night_cells(SEEN, people[[1, 2, 4, 5]], day=1).tolist() == [1, 0, 3, 1]
    assert int(nights_of(DEFINITION).end[0]) == DAY_START + 30 * 3600


# stayed_in, slept_in, duration (3 to 4 hours is the third band)
CODES = {
    "visit": [[0, NONE, 2], [NONE, NONE, 2], [0, NONE, 2], [NONE, NONE, 2]],
    "night": [[NONE, 1, NONE], [NONE, 0, NONE], [NONE, NONE, NONE], [NONE, NONE, NONE]],
}


@pytest.mark.parametrize("part", CODES)
def test_codes_of_each_indicator_in_plan_order(part) -> None:
    for people in (EVERYBODY, np.array([0, 2])):
        codes = daily_of().codes(SEEN, people, day=1, part=part)
        assert (codes.dtype, codes.tolist()) == (np.uint16, [CODES[part][person] for person in people])


# One cell lies 7.50 km to the east of the first, the next 13.41 km away, the last 23.47 km.
NUMBERS = {
    "visit_duration": ((120, 180, 181), "visit", [2, 2, 2, 2]),
    "event_count": ((1, 2, 3), "visit", [3, 2, 1, 0]),
    "distance_from_home": ((7, 8, 23), "night", [1, 3, NONE, NONE]),  # they slept in 1, 0, nowhere and 3
}


@pytest.mark.parametrize("derive", NUMBERS)
def test_numbers_of_a_day_reach_the_cuts_up_to_them(derive) -> None:
    cuts, part, expected = NUMBERS[derive]
    names = {"scale": Scale(cuts=cuts), "categories": ("a", "b", "c"), "derive": derive}
    indicators = [
        replace(each, **names) if each.slug == "duration" else each for each in DEFINITION.indicators
    ]
    of_number = replace(
        DEFINITION, indicators=tuple(indicators), plan=replace(DEFINITION.plan, mechanism="smp-grr")
    )
    found = daily_values(of_number).codes(SEEN, EVERYBODY, day=1, part=part)
    assert found[:, -1].tolist() == expected


def test_places_are_kept_of_those_who_answer() -> None:
    people = np.arange(200, dtype=np.uint64)
    asked = [asked_of(person, d=4) for person in range(200)]
    rules = daily_of("smp-grr").rules
    assert rules.of_day(people).tolist() == [index == 1 for index in asked]
    assert rules.of_night(people).tolist() == [index == 2 for index in asked]
    assert daily_of("spl-grr").rules.of_day(people).all()
    rules = daily_of("smp-grr", location=LOCATION).rules  # everyone reports a place
    assert rules.of_day(people).all()
    assert 0 < rules.of_night(people).sum() < 200


def test_places_are_squares_of_the_grid() -> None:
    daily = daily_of(location=LOCATION)
    codes = daily.grid_codes(SEEN, EVERYBODY, part="visit")
    assert (codes.dtype, codes.tolist()) == (np.uint16, [7, 0, 7, NONE])
    assert daily.grid_codes(SEEN, EVERYBODY, part="night").tolist() == [NONE] * 4
    assert daily_of().grid_codes(SEEN, EVERYBODY, part="visit") is None


def test_a_study_without_places_has_no_rules() -> None:
    few = tuple(each for each in DEFINITION.indicators if each.slug in ("gender", "duration"))
    plain = replace(DEFINITION, indicators=few)
    assert daily_values(plain).rules is None
    of_places = daily_values(replace(plain, location=LOCATION)).rules
    assert of_places.of_day is not None
    assert of_places.of_night is None
