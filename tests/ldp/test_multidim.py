"""Who answers what and when, and the sanitiser that ties plan, key and mechanism together."""

from collections import Counter
from decimal import Decimal
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp import KeyedPrf, LdpError, Sanitiser, choose_days, choose_indicator, grr_channel
from ldp.channels import WORD
from ldp.entropy import BUFFER_BLOCKS, CHOOSE_DAYS, CHOOSE_INDICATOR
from ldp.mechanisms import grr
from tests.ldp.exact import FixedPrf, make_plan, reference_words

KEY = bytes(range(50, 66))
PRF = KeyedPrf(KEY)
PEOPLE = np.arange(60_000, dtype=np.uint64)


def reference_draw(pseudonym: int, *, bound: int, purpose: int, indicator: int, value: int) -> int:
    counter = 0
    while True:
        first, _ = reference_words(
            KEY,
            pseudonym=pseudonym,
            purpose=purpose,
            indicator=indicator,
            plan_version=0,
            value=value,
            counter=counter,
        )
        if first < WORD // bound * bound:
            return first % bound
        counter += 1


def reference_days(pseudonym: int, *, days: int, max_values: int, indicator: int) -> int:
    left, bitmap = list(range(days)), 0
    for step in range(max_values):
        bound = days - step
        draw = reference_draw(pseudonym, bound=bound, purpose=CHOOSE_DAYS, indicator=indicator, value=step)
        bitmap |= 1 << left[draw]
        left[draw] = left[0]
        left = left[1:]
    return bitmap


@given(pseudonyms=st.lists(st.integers(0, 2**64 - 1), max_size=20), d=st.integers(1, 255))
def test_chosen_indicator_is_that_of_the_reference(pseudonyms: list[int], d: int) -> None:
    asked = choose_indicator(np.array(pseudonyms, np.uint64), prf=PRF, d=d)
    assert asked.dtype == np.uint8
    assert asked.tolist() == [
        reference_draw(x, bound=d, purpose=CHOOSE_INDICATOR, indicator=0, value=0) for x in pseudonyms
    ]


@pytest.mark.parametrize("d", [2, 7])
def test_each_indicator_is_chosen_equally_often(d: int) -> None:
    counts = np.bincount(choose_indicator(PEOPLE, prf=PRF, d=d), minlength=d)
    standard_error = np.sqrt(PEOPLE.size / d * (1 - 1 / d))
    assert counts.size == d
    assert np.all(np.abs(counts - PEOPLE.size / d) < 5 * standard_error)


@given(pseudonym=st.integers(0, 2**64 - 1), days=st.integers(1, 62), data=st.data())
def test_chosen_days_are_those_of_the_reference(pseudonym: int, days: int, data: st.DataObject) -> None:
    m = data.draw(st.integers(1, days))
    bitmap = int(
        choose_days(np.array([pseudonym], np.uint64), prf=PRF, days=days, max_values=m, indicator=4)[0]
    )
    assert bitmap.bit_count() == m
    assert bitmap < 2**days
    if m < days:
        assert bitmap == reference_days(pseudonym, days=days, max_values=m, indicator=4)


@pytest.mark.parametrize(("days", "m"), [(5, 2), (4, 3), (7, 1)])
def test_each_set_of_days_is_equally_likely(days: int, m: int) -> None:
    bitmaps = choose_days(PEOPLE, prf=PRF, days=days, max_values=m, indicator=1)
    counts = Counter(bitmaps.tolist())
    sets = {sum(1 << day for day in chosen) for chosen in combinations(range(days), m)}
    assert set(counts) == sets
    p = 1 / len(sets)
    assert all(abs(n - PEOPLE.size * p) < 5 * np.sqrt(PEOPLE.size * p * (1 - p)) for n in counts.values())


def test_all_days_need_no_bits() -> None:
    def no_bits(pseudonym: int, *, value: int, counter: int) -> tuple[int, int]:
        raise AssertionError("bits were drawn")

    bitmaps = choose_days(PEOPLE[:3], prf=FixedPrf(no_bits), days=62, max_values=62, indicator=1)
    assert bitmaps.tolist() == [2**62 - 1] * 3


def test_chosen_days_do_not_depend_on_the_buffer() -> None:
    people = np.arange(BUFFER_BLOCKS + 5, dtype=np.uint64)
    bitmaps = choose_days(people, prf=PRF, days=7, max_values=3, indicator=0)
    for i in (0, BUFFER_BLOCKS - 1, BUFFER_BLOCKS, BUFFER_BLOCKS + 4):
        assert bitmaps[i] == reference_days(i, days=7, max_values=3, indicator=0)


def test_choices_draw_biased_words_again() -> None:
    prf = FixedPrf(lambda pseudonym, *, value, counter: (WORD - 1 if counter == 0 else 10 + value, 0))  # noqa: ARG005
    assert choose_indicator(PEOPLE[:2], prf=prf, d=7).tolist() == [3, 3]
    assert choose_days(PEOPLE[:1], prf=prf, days=7, max_values=1, indicator=0).tolist() == [0b1000]


@pytest.mark.parametrize("d", [0, 256])
def test_impossible_number_of_indicators_is_refused(d: int) -> None:
    with pytest.raises(LdpError, match=rf"d must be in \[1, 255\], got {d}"):
        choose_indicator(PEOPLE, prf=PRF, d=d)


@pytest.mark.parametrize(("days", "m"), [(7, 0), (7, 8), (63, 2)])
def test_impossible_number_of_days_is_refused(days: int, m: int) -> None:
    with pytest.raises(LdpError, match=f"1 <= max_values <= days <= 62 must hold, got {m} and {days}"):
        choose_days(PEOPLE, prf=PRF, days=days, max_values=m, indicator=0)


def test_sanitiser_answers_with_the_channel_indicator_and_version_of_its_plan() -> None:
    plan = make_plan(("static", 3), ("daily", 9), version=5, epsilon=Decimal("0.7"))
    sanitiser = Sanitiser(plan, PRF)
    values = (PEOPLE % np.uint64(9)).astype(np.int32)
    expected = grr.answers(
        values,
        pseudonyms=PEOPLE,
        prf=PRF,
        channel=grr_channel(epsilon=plan.indicators[1].epsilon, domain_size=9),
        indicator=1,
        plan_version=5,
    )
    assert np.array_equal(sanitiser.answer(1, PEOPLE, values), expected)


def test_who_is_asked_and_when_stays_across_plan_versions() -> None:
    old, new = (
        Sanitiser(make_plan(("static", 3), ("daily", 9), version=v, max_values=3), PRF) for v in (1, 2)
    )
    assert np.array_equal(old.asked(PEOPLE), choose_indicator(PEOPLE, prf=PRF, d=2))
    assert np.array_equal(old.asked(PEOPLE), new.asked(PEOPLE))
    days = choose_days(PEOPLE, prf=PRF, days=7, max_values=3, indicator=1)
    assert np.array_equal(old.answer_days(1, PEOPLE), days)
    assert np.array_equal(new.answer_days(1, PEOPLE), days)


def test_daily_indicator_without_a_limit_is_answered_every_day() -> None:
    assert set(Sanitiser(make_plan(("daily", 4)), PRF).answer_days(0, PEOPLE).tolist()) == {0b1111111}


def test_questions_that_make_no_sense_are_refused() -> None:
    with pytest.raises(LdpError, match="asked needs a mechanism that samples, got spl-grr"):
        Sanitiser(make_plan(("static", 3), mechanism="spl-grr"), PRF).asked(PEOPLE)
    with pytest.raises(LdpError, match="answer_days needs a daily indicator, got i0, which is static"):
        Sanitiser(make_plan(("static", 3)), PRF).answer_days(0, PEOPLE)
