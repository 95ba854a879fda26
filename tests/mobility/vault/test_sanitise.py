"""Places of answers, whose bits are those of the library: tests/ldp/keyed freezes these."""

from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp import KeyedPrf, Sanitiser
from ldp.geo.grid import Grid
from ldp.geo.location import LocationSpec
from ldp.keyed.noise.locations import LocationSanitiser
from ldp.privacy.plans import Mechanism
from ldp.protocols.numbers.threshold import Scale
from mobility.extracts.rows.events import NO_VALUE
from mobility.vault.sanitise import StudySanitiser
from mobility.vault.state.answers import differing_reports
from tests.mobility.vault import keyed

NONE = int(NO_VALUE)
KEY = bytes(range(16))
DAYS = 5
# Static and daily indicators mixed: slots count those of one kind only.
INDICATORS = [("static", 3), ("daily", 10, 2), ("static", 37), ("daily", 4), ("static", 2)]


def plan_of(mechanism: str, **options: object):
    return keyed.plan_of(mechanism, INDICATORS, days=DAYS, **options)


SAMPLED, SPLIT = plan_of("smp-grr"), plan_of("spl-grr")
STATIC = [i for i, (kind, *_) in enumerate(INDICATORS) if kind == "static"]
DAILY = [i for i, (kind, *_) in enumerate(INDICATORS) if kind == "daily"]

crowds = st.sets(st.integers(0, 2**64 - 1), max_size=30).map(lambda some: np.array(sorted(some), np.uint64))


def sanitiser_of(plan) -> StudySanitiser:
    return StudySanitiser(plan, prf=KeyedPrf(KEY))


@given(pseudonyms=crowds)
def test_sampled_subscriber_has_one_place_and_a_split_one_every_place(pseudonyms) -> None:
    sanitiser = sanitiser_of(SAMPLED)
    found = {
        int(pseudonyms[row]): (place.indicator, place.slot)
        for kind in ("static", "daily")
        for place in sanitiser.places(pseudonyms, kind=kind)
        for row in place.rows
    }
    assert found == {p: (keyed.asked(KEY, p, SAMPLED), 0) for p in pseudonyms.tolist()}
    for kind, in_plan_order in (("static", STATIC), ("daily", DAILY)):
        assert [place.indicator for place in sanitiser.places(pseudonyms, kind=kind)] == in_plan_order
        places = list(sanitiser_of(SPLIT).places(pseudonyms, kind=kind))
        assert [(place.slot, place.indicator) for place in places] == list(enumerate(in_plan_order))
        assert all(place.rows.tolist() == list(range(len(pseudonyms))) for place in places)


def many(n: int):
    return np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def test_reports_differ_if_any_of_their_words_does() -> None:
    known = np.array([[1, 2, 3]] * 6, np.uint16)
    rows = [[1, 2, 3], [1, 9, 3], [9, 2, 9], [1, 2, 9], [NONE, NONE, 9], [NONE, NONE, NONE]]
    fresh = np.array(rows, np.uint16)
    by_row = [differing_reports(known[[row]], fresh[[row]], starts=[0, 2]) for row in range(6)]
    assert by_row == [0, 1, 2, 1, 1, 0]
    for one, other in ((known, fresh), (fresh, known)):
        assert differing_reports(one, other, starts=[0, 2]) == 5
    assert differing_reports(known[:, :0], fresh[:, :0], starts=[]) == 0


# ADP takes GRR for 3, 10, 4 and 2 values, bits for 37.
# Streams set the days of answers themselves: tests/mobility/batches/test_daily_places.py.
EVERY = {mechanism: plan_of(mechanism) for mechanism in get_args(Mechanism) if mechanism != "smp-stream"}
SCALE = Scale(cuts=(120, 240, 540), unit="min")
NUMBER = {
    "number": keyed.plan_of("smp-grr", [*INDICATORS[:3], ("daily", 3, None, SCALE), INDICATORS[4]], days=DAYS)
}


@pytest.mark.parametrize(
    ("mechanism", "slots", "words", "starts"),
    [("smp-grr", (1, 1), (1, 1), ([0], [0])), ("spl-grr", (3, 2), (3, 2), ([0, 1, 2], [0, 1])),
     ("smp-oue", (1, 1), (3, 1), ([0], [0])), ("smp-adp", (1, 1), (3, 1), ([0], [0])),
     ("rsfd-grr", (3, 2), (3, 2), ([0, 1, 2], [0, 1])),
     ("rsfd-ouez", (3, 2), (5, 2), ([0, 1, 4], [0, 1])),
     ("rsfd-adp", (3, 2), (5, 2), ([0, 1, 4], [0, 1]))],
)  # fmt: skip
def test_room_for_raw_codes_and_for_words(mechanism, slots, words, starts) -> None:
    sanitiser = sanitiser_of(EVERY[mechanism])
    assert (sanitiser.slots("static"), sanitiser.slots("daily")) == slots
    assert (sanitiser.words("static"), sanitiser.words("daily")) == words
    assert (sanitiser.starts("static"), sanitiser.starts("daily")) == starts


@pytest.mark.parametrize("day", [2, 5])
@pytest.mark.parametrize("plan", [*EVERY.values(), *NUMBER.values()], ids=[*EVERY, *NUMBER])
def test_words_are_those_of_the_library(plan, day: int) -> None:
    """Codes of each indicator, in its place, of its reporters; raw codes as rows and visits leave them."""
    people = many(800)
    sanitiser, library = sanitiser_of(plan), Sanitiser(plan, KeyedPrf(KEY))
    rng = np.random.default_rng(3)
    values = [rng.integers(-1, spec.domain_size, 800).astype(np.int32) for spec in plan.indicators]
    raw = [np.where(column < 0, NONE, column).astype(np.uint16) for column in values]
    asked = library.asked(people) if plan.is_sampled else None
    static_raw = np.stack([raw[index] for index in STATIC], axis=1)
    if asked is not None:
        static_raw = np.full((800, 1), NONE, np.uint16)
        for index in STATIC:
            static_raw[asked == index, 0] = raw[index][asked == index]
    found = {
        "static": sanitiser.static_answers(people, static_raw),
        "daily": sanitiser.daily_answers(people, np.stack([raw[i] for i in DAILY], axis=1), day=day),
    }
    for index in DAILY:
        today = library.answer_days(index, people) >> np.uint64(day - 1) & np.uint64(1) == 1
        values[index] = np.where(today, values[index], -1).astype(np.int32)
    expected = library.reports(people, values, day=day)
    for kind in ("static", "daily"):
        others = np.ones(found[kind].shape, np.bool_)
        for place in sanitiser.places(people, kind=kind):
            block = np.ix_(place.rows, np.arange(place.words.start, place.words.stop))
            words = found[kind][block]
            if plan.is_renewed(place.indicator):  # the vault keeps answers, and the report follows from them
                only_today = np.full(len(words), 1 << (day - 1), np.uint64)
                by_day = sanitiser.renewed(place, people[place.rows], words, days=only_today)
                assert (np.delete(by_day, day - 1, axis=1) == NONE).all()
                words = by_day[:, day - 1]
            assert np.array_equal(words, expected[place.indicator][place.rows])
            others[block] = False
        assert (found[kind][others] == NONE).all()


@pytest.mark.parametrize("max_values", [None, 2])
def test_places_stand_beside_the_other_answers(max_values) -> None:
    grid = Grid(x0_m=0, y0_m=0, step_m=100, n_x=7, n_y=5)
    location = LocationSpec(level=Fraction(14, 10), radius_m=Fraction(200), grid=grid, max_values=max_values)
    sanitiser, plain = sanitiser_of(plan_of("smp-adp", location=location)), sanitiser_of(plan_of("smp-adp"))
    people, raw, days = many(60), np.ones((60, len(DAILY)), np.uint16), range(1, DAYS + 1)
    places = (np.arange(60) * 3 % grid.n_cells).astype(np.uint16)
    places[::17] = NO_VALUE  # seen in no cell of the registry
    answers = np.stack([sanitiser.daily_answers(people, raw, day=day, grid_codes=places) for day in days])
    others = np.stack([plain.daily_answers(people, raw, day=day) for day in days])
    assert np.array_equal(answers[:, :, :-1], others)
    is_answered = answers[:, :, -1] != NO_VALUE
    n_answers = [0 if place == NO_VALUE else max_values or DAYS for place in places]
    assert is_answered.sum(axis=0).tolist() == n_answers
    reports = np.tile(LocationSanitiser(location, KeyedPrf(KEY), 1).reports(people, places), (DAYS, 1))
    assert np.array_equal(answers[:, :, -1][is_answered], reports[is_answered])
    with pytest.raises(ValueError, match="grid_codes must be given"):
        sanitiser.daily_answers(people, raw, day=1)
