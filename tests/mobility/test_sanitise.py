"""Which answer of whom stands where, and that it is the one which the frozen layout of keyed bits gives."""

from decimal import Decimal
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ldp import IndicatorRequest, PlanSpec, Sanitiser, build_plan
from ldp.entropy import KeyedPrf
from ldp.params import Mechanism
from mobility.ingest.events import NO_VALUE
from mobility.sanitise import StudySanitiser, differing_reports
from tests.mobility import keyed

NONE = int(NO_VALUE)
KEY = bytes(range(16))
DAYS = 5
# Static and daily indicators mixed: slots count those of one kind only.
INDICATORS = (
    ("static", 3, None),
    ("daily", 10, 2),
    ("static", 37, None),
    ("daily", 4, None),
    ("static", 2, None),
)
PSEUDONYMS = np.array([0, 1, 2, 3, 5, 8, 13, 21, 2**32, 2**63, 2**64 - 2, 2**64 - 1], np.uint64)
# Golden answers of these subscribers, day by day and indicator by indicator: a change would give everyone a
# second answer, and spend epsilon twice.
GOLDEN_ASKED = [0, 2, 1, 4, 0, 1, 4, 2, 2, 1, 1, 2]
GOLDEN_STATIC = [
    [0, 18, 1],
    [2, 5, 0],
    [0, 24, 1],
    [0, 10, 0],
    [0, 7, 0],
    [1, 24, 1],
    [0, 8, 0],
    [1, 11, 1],
    [1, 24, 1],
    [1, 36, 1],
    [0, 1, 1],
    [1, 24, 1],
]
GOLDEN_DAILY = [
    [NONE, 2, 7, 2, NONE, 2, 7, 2, NONE, 2],
    [5, 2, NONE, 2, NONE, 2, 5, 2, NONE, 2],
    [NONE, 1, NONE, 1, 1, 1, NONE, 1, 1, 1],
    [0, 1, NONE, 1, NONE, 1, NONE, 1, 0, 1],
    [NONE, 0, NONE, 0, NONE, 0, 3, 0, 3, 0],
    [NONE, 1, 1, 1, NONE, 1, 1, 1, NONE, 1],
    [NONE, 3, NONE, 3, 1, 3, 1, 3, NONE, 3],
    [NONE, 2, 7, 2, NONE, 2, 7, 2, NONE, 2],
    [1, 1, NONE, 1, NONE, 1, 1, 1, NONE, 1],
    [NONE, 3, 2, 3, NONE, 3, NONE, 3, 2, 3],
    [NONE, 2, 1, 2, 1, 2, NONE, 2, NONE, 2],
    [6, 1, NONE, 1, NONE, 1, NONE, 1, 6, 1],
]


def plan_of(mechanism: str, *, version: int = 1, epsilon: str = "1") -> PlanSpec:
    return build_plan(
        mechanism=mechanism,  # type: ignore[arg-type]
        unit="profile",
        version=version,
        days=DAYS,
        epsilon=Decimal(epsilon),
        indicators=[
            IndicatorRequest(slug=f"i{i}", kind=kind, domain_size=size, max_values=max_values)  # type: ignore[arg-type]
            for i, (kind, size, max_values) in enumerate(INDICATORS)
        ],
    )


SAMPLED, SPLIT = plan_of("smp-grr"), plan_of("spl-grr")
STATIC = [i for i, (kind, *_) in enumerate(INDICATORS) if kind == "static"]
DAILY = [i for i, (kind, *_) in enumerate(INDICATORS) if kind == "daily"]

plans = st.sampled_from([SAMPLED, SPLIT])
crowds = st.lists(st.integers(0, 2**64 - 1), max_size=30, unique=True).map(
    lambda some: np.array(sorted(some), np.uint64)
)


def sanitiser_of(plan: PlanSpec, key: bytes = KEY) -> StudySanitiser:
    return StudySanitiser(plan, prf=KeyedPrf(key))


def raw_static(draw: st.DrawFn, plan: PlanSpec, pseudonyms: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Raw codes as rows and visits leave them: under a sampled plan only that of the indicator asked."""
    codes = np.full((len(pseudonyms), 1 if plan.is_sampled else len(STATIC)), NONE, np.uint16)
    for row, pseudonym in enumerate(pseudonyms.tolist()):
        asked = [keyed.asked(KEY, pseudonym, plan)] if plan.is_sampled else STATIC
        for slot, index in enumerate(index for index in asked if index in STATIC):
            size = plan.indicators[index].domain_size
            codes[row, slot] = draw(st.integers(0, size - 1) | st.just(NONE))
    return codes


def expected(pseudonym: int, plan: PlanSpec, index: int, raw: int) -> int:
    return NONE if raw == NONE else keyed.answer(KEY, pseudonym, plan, index, raw)


@pytest.mark.parametrize(
    ("mechanism", "kinds", "static", "daily"),
    [
        ("smp-grr", "sds", 1, 1), ("smp-grr", "sss", 1, 0), ("smp-grr", "d", 0, 1), ("smp-grr", "dd", 0, 1),
        ("spl-grr", "sds", 2, 1), ("spl-grr", "sss", 3, 0), ("spl-grr", "d", 0, 1), ("spl-grr", "dds", 1, 2),
    ],
)  # fmt: skip
def test_slots(mechanism: str, kinds: str, static: int, daily: int) -> None:
    plan = build_plan(
        mechanism=mechanism,  # type: ignore[arg-type]
        unit="profile",
        version=1,
        days=DAYS,
        epsilon=Decimal(1),
        indicators=[
            IndicatorRequest(slug=f"i{i}", kind={"s": "static", "d": "daily"}[kind], domain_size=3)  # type: ignore[arg-type]
            for i, kind in enumerate(kinds)
        ],
    )
    sanitiser = sanitiser_of(plan)
    assert (sanitiser.slots("static"), sanitiser.slots("daily")) == (static, daily)


@given(pseudonyms=crowds)
def test_sampled_subscriber_has_one_place(pseudonyms: NDArray[np.uint64]) -> None:
    sanitiser = sanitiser_of(SAMPLED)
    found = {
        int(pseudonyms[row]): (place.indicator, place.slot)
        for kind in ("static", "daily")
        for place in sanitiser.places(pseudonyms, kind=kind)
        for row in place.rows
    }
    assert found == {p: (keyed.asked(KEY, p, SAMPLED), 0) for p in pseudonyms.tolist()}
    in_plan_order = [
        [place.indicator for place in sanitiser.places(pseudonyms, kind=k)] for k in ("static", "daily")
    ]
    assert in_plan_order == [STATIC, DAILY]


@given(pseudonyms=crowds)
def test_split_subscriber_has_every_place(pseudonyms: NDArray[np.uint64]) -> None:
    for kind, indexes in (("static", STATIC), ("daily", DAILY)):
        places = list(sanitiser_of(SPLIT).places(pseudonyms, kind=kind))
        assert [(place.indicator, place.slot) for place in places] == list(
            zip(indexes, range(len(indexes)), strict=True)
        )
        assert all(place.rows.tolist() == list(range(len(pseudonyms))) for place in places)


@settings(max_examples=60)
@given(plan=plans, pseudonyms=crowds, data=st.data())
def test_static_answers_are_those_of_the_keyed_blocks(
    plan: PlanSpec, pseudonyms: NDArray[np.uint64], data: st.DataObject
) -> None:
    codes = data.draw(st.composite(raw_static)(plan, pseudonyms))
    before = codes.copy()
    answers = sanitiser_of(plan).static_answers(pseudonyms, codes)
    assert answers.dtype == np.uint16
    assert np.array_equal(codes, before)
    for row, pseudonym in enumerate(pseudonyms.tolist()):
        indexes = [keyed.asked(KEY, pseudonym, plan)] if plan.is_sampled else STATIC
        assert answers[row].tolist() == [
            expected(pseudonym, plan, index, int(codes[row, slot])) for slot, index in enumerate(indexes)
        ]


@settings(max_examples=60)
@given(plan=plans, pseudonyms=crowds, day=st.integers(1, DAYS), data=st.data())
def test_daily_answers_are_those_of_the_keyed_blocks_on_the_days_picked(
    plan: PlanSpec, pseudonyms: NDArray[np.uint64], day: int, data: st.DataObject
) -> None:
    codes = np.full((len(pseudonyms), len(DAILY)), NONE, np.uint16)
    for row in range(len(pseudonyms)):
        for column, index in enumerate(DAILY):
            size = plan.indicators[index].domain_size
            codes[row, column] = data.draw(st.integers(0, size - 1) | st.just(NONE))
    answers = sanitiser_of(plan).daily_answers(pseudonyms, codes, day=day)
    assert answers.dtype == np.uint16
    for row, pseudonym in enumerate(pseudonyms.tolist()):
        wanted = [
            expected(pseudonym, plan, index, int(codes[row, column]))
            if day in keyed.answer_days(KEY, pseudonym, plan, index)
            else NONE
            for column, index in enumerate(DAILY)
        ]
        if plan.is_sampled:
            index = keyed.asked(KEY, pseudonym, plan)
            wanted = [wanted[DAILY.index(index)] if index in DAILY else NONE]
        assert answers[row].tolist() == wanted


def test_golden_answers_of_a_sampled_plan() -> None:
    asked = [keyed.asked(KEY, pseudonym, SAMPLED) for pseudonym in PSEUDONYMS.tolist()]
    assert asked == GOLDEN_ASKED
    sanitiser = sanitiser_of(SAMPLED)
    codes = np.array([[1 if index in STATIC else NONE] for index in asked], np.uint16)
    assert sanitiser.static_answers(PSEUDONYMS, codes).ravel().tolist() == [
        answers[STATIC.index(index)] if index in STATIC else NONE
        for index, answers in zip(asked, GOLDEN_STATIC, strict=True)
    ]


def test_golden_answers_of_every_indicator() -> None:
    """Under a split plan with five times the epsilon the channels are those of epsilon 1."""
    sanitiser = sanitiser_of(plan_of("spl-grr", epsilon="5"))
    ones = np.ones((len(PSEUDONYMS), len(STATIC)), np.uint16)
    assert sanitiser.static_answers(PSEUDONYMS, ones).tolist() == GOLDEN_STATIC
    ones = np.ones((len(PSEUDONYMS), len(DAILY)), np.uint16)
    by_day = [sanitiser.daily_answers(PSEUDONYMS, ones, day=day) for day in range(1, DAYS + 1)]
    assert np.concatenate(by_day, axis=1).tolist() == GOLDEN_DAILY


def test_golden_answers_are_those_of_the_blocks() -> None:
    plan = plan_of("spl-grr", epsilon="5")
    for pseudonym, asked, static, daily in zip(
        PSEUDONYMS.tolist(), GOLDEN_ASKED, GOLDEN_STATIC, GOLDEN_DAILY, strict=True
    ):
        assert keyed.asked(KEY, pseudonym, SAMPLED) == asked
        assert [keyed.answer(KEY, pseudonym, plan, index, 1) for index in STATIC] == static
        assert daily == [
            keyed.answer(KEY, pseudonym, plan, index, 1)
            if day in keyed.answer_days(KEY, pseudonym, plan, index)
            else NONE
            for day in range(1, DAYS + 1)
            for index in DAILY
        ]


def many(n: int) -> NDArray[np.uint64]:
    return np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def test_an_answer_does_not_depend_on_who_else_is_there() -> None:
    """Any worker and any retry, with any shard and chunk, gives the same."""
    pseudonyms = many(3000)
    codes = np.tile(np.array([2, 30, 1], np.uint16), (3000, 1))
    sanitiser = sanitiser_of(SPLIT)
    whole = sanitiser.static_answers(pseudonyms, codes)
    some = np.array([2999, 7, 0, 1234])
    assert np.array_equal(sanitiser.static_answers(pseudonyms[some], codes[some]), whole[some])
    assert np.array_equal(sanitiser_of(SPLIT).static_answers(pseudonyms, codes), whole)


def test_same_value_gives_the_same_answer_every_day_and_another_value_independent_bits() -> None:
    pseudonyms = many(4000)
    sanitiser = sanitiser_of(SPLIT)
    ones, twos = (np.full((4000, 2), code, np.uint16) for code in (1, 2))
    first, later = (sanitiser.daily_answers(pseudonyms, ones, day=day)[:, 1] for day in (1, 4))
    other = sanitiser.daily_answers(pseudonyms, twos, day=4)[:, 1]
    assert np.array_equal(first, later)
    # Kept with p = e^0.2 / (e^0.2 + 3) = 0.289: independently, both are kept by p * p of the subscribers.
    both = int(((first == 1) & (other == 2)).sum())
    expected_both, deviation = 4000 * 0.289**2, (4000 * 0.289**2 * (1 - 0.289**2)) ** 0.5
    assert abs(both - expected_both) < 5 * deviation


def test_another_plan_version_or_key_draws_anew() -> None:
    pseudonyms = many(1000)
    codes = np.zeros((1000, 3), np.uint16)
    whole = sanitiser_of(SPLIT).static_answers(pseudonyms, codes)
    for other in (sanitiser_of(plan_of("spl-grr", version=2)), sanitiser_of(SPLIT, bytes(range(1, 17)))):
        answers = other.static_answers(pseudonyms, codes)
        assert (answers[:, 1] != whole[:, 1]).sum() > 500


def test_who_is_asked_what_survives_a_new_plan_version() -> None:
    pseudonyms = many(500)

    def rows_of(plan: PlanSpec) -> list[list[int]]:
        return [place.rows.tolist() for place in sanitiser_of(plan).places(pseudonyms, kind="daily")]

    assert rows_of(SAMPLED) == rows_of(plan_of("smp-grr", version=2, epsilon="3"))


def test_nobody_at_all() -> None:
    nobody = np.empty(0, np.uint64)
    for plan in (SAMPLED, SPLIT):
        sanitiser = sanitiser_of(plan)
        slots = sanitiser.slots("static")
        assert sanitiser.static_answers(nobody, np.empty((0, slots), np.uint16)).shape == (0, slots)
        answers = sanitiser.daily_answers(nobody, np.empty((0, len(DAILY)), np.uint16), day=1)
        assert answers.shape == (0, sanitiser.slots("daily"))


def test_reports_differ_if_any_of_their_words_does() -> None:
    """Two reports, of two words and of one; missing ones differ from nothing."""
    known = np.array([[1, 2, 3]] * 6, np.uint16)
    fresh = np.array(
        [[1, 2, 3], [1, 9, 3], [9, 2, 9], [1, 2, 9], [NONE, NONE, 9], [NONE, NONE, NONE]], np.uint16
    )
    by_row = [differing_reports(known[[row]], fresh[[row]], starts=[0, 2]) for row in range(6)]
    assert by_row == [0, 1, 2, 1, 1, 0]
    assert (
        differing_reports(known, fresh, starts=[0, 2]) == differing_reports(fresh, known, starts=[0, 2]) == 5
    )
    assert differing_reports(known[:, :0], fresh[:, :0], starts=[]) == 0


# --- every mechanism ---------------------------------------------------------------------------------------

# ADP takes GRR for 3, 10, 4 and 2 values, bits for 37.
EVERY = {mechanism: plan_of(mechanism) for mechanism in get_args(Mechanism)}


@pytest.mark.parametrize(
    ("mechanism", "slots", "words", "starts"),
    [
        ("smp-grr", (1, 1), (1, 1), ([0], [0])),
        ("spl-grr", (3, 2), (3, 2), ([0, 1, 2], [0, 1])),
        ("smp-oue", (1, 1), (3, 1), ([0], [0])),
        ("smp-adp", (1, 1), (3, 1), ([0], [0])),
        ("rsfd-grr", (3, 2), (3, 2), ([0, 1, 2], [0, 1])),
        ("rsfd-ouez", (3, 2), (5, 2), ([0, 1, 4], [0, 1])),
        ("rsfd-adp", (3, 2), (5, 2), ([0, 1, 4], [0, 1])),
    ],
)
def test_room_for_raw_codes_and_for_words(
    mechanism: str, slots: tuple[int, int], words: tuple[int, int], starts: tuple[list[int], list[int]]
) -> None:
    sanitiser = sanitiser_of(EVERY[mechanism])
    assert (sanitiser.slots("static"), sanitiser.slots("daily")) == slots
    assert (sanitiser.words("static"), sanitiser.words("daily")) == words
    assert (sanitiser.starts("static"), sanitiser.starts("daily")) == starts


@pytest.mark.parametrize("mechanism", EVERY)
def test_words_are_those_of_the_library(mechanism: str) -> None:
    """Of each indicator, in its place, of those who report on it; raw codes as rows and visits leave them."""
    plan, people = EVERY[mechanism], many(800)
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
        "daily": sanitiser.daily_answers(people, np.stack([raw[i] for i in DAILY], axis=1), day=2),
    }
    for index in DAILY:
        today = library.answer_days(index, people) >> np.uint64(1) & np.uint64(1) == 1
        values[index] = np.where(today, values[index], -1).astype(np.int32)
    expected = library.reports(people, values)
    for kind in ("static", "daily"):
        others = np.ones(found[kind].shape, np.bool_)
        for place in sanitiser.places(people, kind=kind):
            block = np.ix_(place.rows, np.arange(place.words.start, place.words.stop))
            assert np.array_equal(found[kind][block], expected[place.indicator][place.rows])
            others[block] = False
        assert (found[kind][others] == NONE).all()
