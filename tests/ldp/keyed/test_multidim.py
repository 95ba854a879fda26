"""Tests of the choice of questions, and of the sanitiser that ties plan, key and mechanism together."""

from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp import KeyedPrf, KeyedStream, Sanitiser, choose_days, choose_indicator, grr_channel
from ldp.codes import NO_ANSWER
from ldp.kernels.entropy import BUFFER_BLOCKS, CHOOSE_DAYS, CHOOSE_INDICATOR
from ldp.keyed import grr
from ldp.keyed.multidim import asked_answers, smp_answers, smp_counts, spl_answers, spl_counts
from ldp.protocols.channels import WORD
from tests.ldp.exact import FixedPrf, make_plan, reference_below, refuses

KEY = bytes(range(50, 66))
PRF = KeyedPrf(KEY)
PEOPLE = np.arange(60_000, dtype=np.uint64)


def reference_days(pseudonym: int, *, days: int, max_values: int, indicator: int) -> int:
    left, bitmap = list(range(days)), 0
    for step in range(max_values):
        bound = days - step
        fields = {"purpose": CHOOSE_DAYS, "indicator": indicator, "plan_version": 0, "value": step}
        draw = reference_below(KEY, bound, pseudonym=pseudonym, **fields)
        bitmap |= 1 << left[draw]
        left[draw] = left[0]
        left = left[1:]
    return bitmap


@given(pseudonyms=st.lists(st.integers(0, 2**64 - 1), max_size=20), d=st.integers(1, 255))
def test_chosen_indicator_is_that_of_the_reference(pseudonyms: list[int], d: int) -> None:
    asked = choose_indicator(np.array(pseudonyms, np.uint64), prf=PRF, d=d)
    assert asked.dtype == np.uint8
    fields = {"purpose": CHOOSE_INDICATOR, "indicator": 0, "plan_version": 0, "value": 0}
    assert asked.tolist() == [reference_below(KEY, d, pseudonym=x, **fields) for x in pseudonyms]


@given(
    words=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20),
    parts=st.lists(st.integers(1, 2**40), min_size=1, max_size=6),
)
def test_chosen_indicator_is_where_the_word_falls_among_the_shares(words, parts) -> None:
    rest = [WORD * part // sum(parts) for part in parts[1:]]
    shares = [WORD - sum(rest), *rest]
    edges = [sum(shares[:i]) + step for i in range(1, len(shares) + 1) for step in (-1, 0)]
    words += [edge for edge in edges if edge < WORD]
    prf = FixedPrf(lambda pseudonym, *, value, counter: (words[pseudonym], 0))  # noqa: ARG005
    asked = choose_indicator(np.arange(len(words), dtype=np.uint64), prf=prf, d=len(shares), shares=shares)
    assert asked.dtype == np.uint8
    for word, index in zip(words, asked.tolist(), strict=True):
        assert sum(shares[:index]) <= word < sum(shares[: index + 1])


@given(pseudonym=st.integers(0, 2**64 - 1), days=st.integers(1, 62), data=st.data())
def test_chosen_days_are_those_of_the_reference(pseudonym: int, days: int, data: st.DataObject) -> None:
    m = data.draw(st.integers(1, days))
    people = np.array([pseudonym], np.uint64)
    bitmap = int(choose_days(people, prf=PRF, days=days, max_values=m, indicator=4)[0])
    assert bitmap.bit_count() == m
    assert bitmap < 2**days
    if m < days:
        assert bitmap == reference_days(pseudonym, days=days, max_values=m, indicator=4)


@pytest.mark.parametrize(("days", "m"), [(5, 2), (4, 3), (7, 1)])
def test_each_set_of_days_is_equally_likely(days: int, m: int) -> None:
    counts = Counter(choose_days(PEOPLE, prf=PRF, days=days, max_values=m, indicator=1).tolist())
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


def test_who_is_asked_and_when_stays_across_plan_versions() -> None:
    kinds = (("static", 3), ("daily", 9))
    old, new = (Sanitiser(make_plan(*kinds, version=v, max_values=3), PRF) for v in (1, 2))
    assert np.array_equal(old.asked(PEOPLE), choose_indicator(PEOPLE, prf=PRF, d=2))
    assert np.array_equal(old.asked(PEOPLE), new.asked(PEOPLE))
    days = choose_days(PEOPLE, prf=PRF, days=7, max_values=3, indicator=1)
    assert np.array_equal(old.answer_days(1, PEOPLE), days)
    assert np.array_equal(new.answer_days(1, PEOPLE), days)
    everyone = Sanitiser(make_plan(("daily", 4)), PRF).answer_days(0, PEOPLE)  # without a limit
    assert set(everyone.tolist()) == {0b1111111}


SIZES = (3, 2, 8, 37, 65534)
CHANNELS = [grr_channel(epsilon=Fraction(1 + i, 2), domain_size=k) for i, k in enumerate(SIZES)]
MANY = BUFFER_BLOCKS + 777


def make_profiles(n: int) -> np.ndarray:
    """Every code of the small domains, both ends of the large one, and missing values."""
    rng = np.random.default_rng(8)
    profiles = np.stack([rng.integers(0, k, n).astype(np.uint16) for k in SIZES])
    profiles[4, ::3] = rng.integers(65530, 65534, profiles[4, ::3].size)
    profiles[rng.random(profiles.shape) < 0.1] = NO_ANSWER
    return profiles


def one_by_one(profiles: np.ndarray, pseudonyms: np.ndarray) -> np.ndarray:
    values = np.where(profiles == NO_ANSWER, -1, profiles.astype(np.int32)).astype(np.int32)
    keyed = {"pseudonyms": pseudonyms, "prf": PRF, "plan_version": 7}
    return np.stack(
        [grr.answers(values[i], channel=channel, indicator=i, **keyed) for i, channel in enumerate(CHANNELS)]
    )


ARGUMENTS = {"prf": PRF, "channels": CHANNELS, "plan_version": 7}


@pytest.mark.parametrize("n", [0, 1, 2, 5, BUFFER_BLOCKS, MANY])
@pytest.mark.parametrize("shares", [None, [WORD // part for part in (2, 4, 8, 16, 16)]])
def test_whole_profiles_get_the_answers_of_each_indicator_alone(n, shares) -> None:
    pseudonyms, profiles = KeyedStream(KEY).words(n), make_profiles(n)
    before = profiles.copy()
    expected = one_by_one(profiles, pseudonyms)
    chosen = choose_indicator(pseudonyms, prf=PRF, d=5, shares=shares)
    asked, answers = smp_answers(profiles, pseudonyms=pseudonyms, **ARGUMENTS, shares=shares)
    assert (asked.dtype, answers.dtype) == (np.uint8, np.uint16)
    assert np.array_equal(asked, chosen)
    assert np.array_equal(answers, expected[chosen, np.arange(n)])
    everything = spl_answers(profiles, pseudonyms=pseudonyms, **ARGUMENTS)
    assert np.array_equal(everything, expected)
    sampled = smp_counts(profiles, pseudonyms=pseudonyms, **ARGUMENTS, shares=shares)
    split = spl_counts(profiles, pseudonyms=pseudonyms, **ARGUMENTS)
    for indicator, size in enumerate(SIZES):
        found = np.bincount(answers[asked == indicator], minlength=NO_ANSWER + 1)
        assert np.array_equal(sampled[indicator], found[:size])
        assert np.array_equal(split[indicator], np.bincount(everything[indicator], minlength=2**16)[:size])
    assert np.array_equal(profiles, before)


@pytest.mark.parametrize("n", [0, 1, 5, MANY])
def test_answers_are_those_of_the_indicator_that_stands_beside_the_code(n: int) -> None:
    pseudonyms, profiles = KeyedStream(KEY).words(n), make_profiles(n)
    asked = (np.arange(n) * 7 % 5).astype(np.uint8)
    codes = profiles[asked, np.arange(n)]
    answers = asked_answers(codes, asked=asked, pseudonyms=pseudonyms, **ARGUMENTS)
    assert np.array_equal(answers, one_by_one(profiles, pseudonyms)[asked, np.arange(n)])


def test_profiles_may_be_a_part_of_others() -> None:
    pseudonyms, profiles = KeyedStream(KEY).words(50), make_profiles(200)
    upside_down = np.ascontiguousarray(profiles[::-1])
    backwards = upside_down[::-1, 50:100], profiles[:, 149:99:-1]
    for part in (profiles[:, 20:70], profiles[:, ::4], np.asfortranarray(profiles[:, :50]), *backwards):
        expected = one_by_one(part, pseudonyms)
        assert np.array_equal(spl_answers(part, pseudonyms=pseudonyms, **ARGUMENTS), expected)
        asked, answers = smp_answers(part, pseudonyms=pseudonyms, **ARGUMENTS)
        assert np.array_equal(answers, expected[asked, np.arange(50)])


def test_whole_profiles_draw_biased_words_again() -> None:
    """Two indicators with 4 and 6 values; codes are not 0, which is in the block of the choice."""
    channels = [grr_channel(epsilon=Fraction(1), domain_size=k) for k in (4, 6)]
    t = max(channel.threshold for channel in channels)
    top = WORD - 1  # biased for a choice among 3 and for a replacement among 3 or 5
    bits = {
        (0, 0): [(0, 9), (1, 9), (1, 9), (0, 9)],
        (1, 0): [(t, top), (0, top), (t, top), (t, 4)],
        (1, 1): [(0, top), None, (0, 7), None],
        (1, 2): [(0, 5), None, None, None],
    }
    prf = FixedPrf(lambda pseudonym, *, value, counter: bits[min(value, 1), counter][pseudonym])
    arguments = {"pseudonyms": PEOPLE[:4], "prf": prf, "channels": channels, "plan_version": 1}
    asked, answers = smp_answers(np.array([[1] * 4, [2] * 4], np.uint16), **arguments)
    assert asked.tolist() == [0, 1, 1, 0]
    assert answers.tolist() == [3, 2, 3, 2]
    split = spl_answers(np.array([[1] * 4, [2] * 4], np.uint16), **arguments)
    assert split.tolist() == [[3, 1, 2, 2], [0, 2, 3, 5]]


def test_whole_profiles_choose_again_where_the_word_is_biased() -> None:
    def bits(pseudonym: int, *, value: int, counter: int) -> tuple[int, int]:
        if value == 0:
            return (WORD - 1 if counter <= pseudonym else pseudonym + counter), 0
        return 0, 0

    profiles, three = np.array([[1] * 4, [2] * 4, [1] * 4], np.uint16), CHANNELS[:1] * 3
    settings = {"pseudonyms": PEOPLE[:4], "prf": FixedPrf(bits), "plan_version": 1}
    asked, answers = smp_answers(profiles, channels=three, **settings)
    assert asked.tolist() == [1, 0, 2, 1]  # person i takes word 2 i + 1 modulo 3
    assert answers.tolist() == [2, 1, 1, 2]


@pytest.mark.parametrize("function", [smp_answers, smp_counts, spl_answers, spl_counts])
def test_profiles_that_do_not_fit_are_refused(function) -> None:
    for changes, message in (
        ({"profiles": np.zeros((5, 3), np.uint16)}, r"uint16 of shape \(5, 4\), got uint16 of \(5, 3\)"),
        ({"profiles": np.zeros((4, 4), np.uint16)}, r"uint16 of shape \(5, 4\), got uint16 of \(4, 4\)"),
        ({"profiles": np.zeros((5, 4), np.int32)}, r"uint16 of shape \(5, 4\), got int32 of \(5, 4\)"),
        ({"pseudonyms": np.zeros(4, np.int64)}, "pseudonyms must be uint64"),
        ({"channels": []}, r"number of channels must be in \[1, 255\], got 0"),
        ({"plan_version": 256}, r"plan_version must be in \[0, 255\], got 256"),
    ):
        profiles = {"profiles": np.zeros((5, 4), np.uint16), "pseudonyms": PEOPLE[:4]}
        arguments = ARGUMENTS | profiles | changes
        refuses(message, function, arguments.pop("profiles"), **arguments)


@pytest.mark.parametrize("function", [smp_answers, smp_counts, spl_answers, spl_counts])
@pytest.mark.parametrize(("row", "size"), [*enumerate(SIZES)])
def test_code_outside_its_domain_is_refused_asked_or_not(function, row, size) -> None:
    for column in (0, 5, MANY - 1):
        profiles = make_profiles(MANY)
        profiles[row, column] = size
        message = rf"code of indicator {row} must be < {size} or 65535, got {size}"
        refuses(message, function, profiles, pseudonyms=PEOPLE[:MANY], **ARGUMENTS)


def test_what_cannot_be_chosen_is_refused() -> None:
    for shares in ([WORD], [WORD - 1, 2], [WORD, 0], [WORD // 2] * 3):
        message = f"shares must be 2 positive integers with sum {WORD}, got"
        refuses(message, choose_indicator, PEOPLE, prf=PRF, d=2, shares=shares)
    for d in (0, 256):
        refuses(rf"d must be in \[1, 255\], got {d}", choose_indicator, PEOPLE, prf=PRF, d=d)
    for days, m in ((7, 0), (7, 8), (63, 2)):
        message = f"1 <= max_values <= days <= 62 must hold, got {m} and {days}"
        refuses(message, choose_days, PEOPLE, prf=PRF, days=days, max_values=m, indicator=0)
    split, sampled = (Sanitiser(make_plan(("static", 3), mechanism=m), PRF) for m in ("spl-grr", "smp-grr"))
    refuses("asked needs a mechanism that samples, got spl-grr", split.asked, PEOPLE)
    refuses("needs a daily indicator, got i0, which is static", sampled.answer_days, 0, PEOPLE)


def test_codes_that_do_not_fit_what_is_asked_are_refused() -> None:
    codes, asked = np.array([2, 8], np.uint16), np.array([0, 2], np.uint8)
    answer = partial(asked_answers, pseudonyms=PEOPLE[:2], **ARGUMENTS)
    refuses("code of indicator 2 must be < 8 or 65535", answer, codes, asked=asked)
    refuses("asked must be < 5, got 5", answer, codes, asked=asked + np.uint8(3))
    refuses(r"asked must be uint8 of shape \(2,\), got uint8 of", answer, codes, asked=asked[:1])
    refuses(r"codes must be uint16 of shape \(2,\), got uint16 of", answer, codes[:1], asked=asked)
