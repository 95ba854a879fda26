"""Reports of a plan as words: bit for bit those of its mechanism, and tallies of them."""

from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ldp
from ldp import NO_ANSWER, grr_channel, oue_channel
from ldp.codes import WORD_BITS
from ldp.keyed.designs import renewed
from ldp.keyed.tallying import tally_words
from ldp.keyed.words import to_words
from ldp.privacy.plans import Mechanism
from ldp.privacy.report_words import n_words, plan_words
from tests.ldp.exact import make_plan, refuses

DAYS = 5
SIZES = [2, 14, 15, 16, 30, 31, 63, 64, 65, 74, 75, 76, 200]

reports_st = st.lists(st.none() | st.integers(0, 2**200 - 1), min_size=DAYS, max_size=DAYS)
people_st = st.lists(st.tuples(st.integers(0, 2**DAYS - 1), reports_st), max_size=12)


def words_of(reports: list[int | None], k: int) -> np.ndarray:
    """Bits of each report, 64 to a word as the mechanisms give them, as words."""
    groups = range(-(-k // 64))
    rows = [[(report or 0) >> 64 * g & 2**64 - 1 for g in groups] for report in reports]
    packed = np.array(rows, np.uint64).reshape(len(reports), len(groups))
    values = np.array([-1 if report is None else 0 for report in reports], np.int32)
    return to_words(packed, values=values, channel=oue_channel(epsilon=Fraction(1), domain_size=k))


@pytest.mark.parametrize("k", [*SIZES, 1000])
def test_words_hold_fifteen_bits_each_lowest_first(k: int) -> None:
    reports = [0, 1, 2**k - 1, 1 << k - 1, (1 << k) // 3, None, 0b1011 << max(k - 4, 0) & 2**k - 1]
    words = words_of(reports, k)
    channel = oue_channel(epsilon=Fraction(1), domain_size=k)
    assert words.dtype == np.uint16
    assert words.shape == (len(reports), n_words(channel)) == (len(reports), -(-k // 15))
    for row, report in zip(words.tolist(), reports, strict=True):
        if report is None:
            assert set(row) == {NO_ANSWER}
        else:
            assert sum(word << WORD_BITS * i for i, word in enumerate(row)) == report
            assert max(row) < 2**15


def test_codes_are_one_word() -> None:
    channel = grr_channel(epsilon=Fraction(1), domain_size=300)
    codes = np.array([0, 299, NO_ANSWER], np.uint16)
    assert n_words(channel) == 1
    words = to_words(codes, values=np.array([0, 0, -1], np.int32), channel=channel)
    assert words.tolist() == [[0], [299], [NO_ANSWER]]


@pytest.mark.parametrize(
    ("mechanism", "static", "daily"),
    [("smp-grr", 1, 1), ("spl-grr", 3, 1), ("smp-oue", 5, 1), ("rsfd-ouez", 8, 1), ("rsfd-adp", 8, 1)],
)
def test_room_for_the_reports_of_a_person(mechanism: str, static: int, daily: int) -> None:
    """For 3, 30 and 61 values GRR takes one word each, bits take 1, 2 and 5."""
    kinds = [("static", 3), ("daily", 10), ("static", 30), ("static", 61)]
    plan = make_plan(*kinds, mechanism=mechanism)
    assert (plan_words(plan, kind="static"), plan_words(plan, kind="daily")) == (static, daily)
    assert plan_words(make_plan(("daily", 10), mechanism=mechanism), kind="static") == 0


def slow(people: list[tuple[int, list[int | None]]], k: int) -> tuple[np.ndarray, np.ndarray]:
    counts, n_reports = np.zeros((k, DAYS + 1, DAYS + 1), np.int64), np.zeros((DAYS + 1, DAYS + 1), np.int64)
    for bitmap, reports in people:
        previous = 0
        for day in (day for day in range(1, DAYS + 1) if bitmap >> day - 1 & 1):
            report = reports[day - 1]
            if report is not None:
                n_reports[previous, day] += 1
                for value in range(k):
                    counts[value, previous, day] += report >> value & 1
            previous = day
    return counts, n_reports


@given(people=people_st, k=st.sampled_from(SIZES), sign=st.sampled_from([1, -1]))
@settings(max_examples=40)
def test_tallies_count_each_bit_and_each_report_once(people, k, sign) -> None:
    fitting = [(b, [None if r is None else r % 2**k for r in reports]) for b, reports in people]
    bitmaps = np.array([bitmap for bitmap, _ in fitting], np.uint64)
    daily = np.stack([words_of([reports[day] for _, reports in fitting], k) for day in range(DAYS)], axis=1)
    counts, n_reports = (np.full_like(tally, 7) for tally in slow([], k))
    tally_words(bitmaps, daily, counts, n_reports, sign=sign)
    expected = slow(fitting, k)
    assert np.array_equal(counts - 7, sign * expected[0])
    assert np.array_equal(n_reports - 7, sign * expected[1])
    constant = [(bitmap, [reports[0]] * DAYS) for bitmap, reports in fitting]
    counts, n_reports = (np.zeros_like(tally) for tally in expected)
    tally_words(bitmaps, daily[:, 0], counts, n_reports, sign=sign)
    expected = slow(constant, k)
    assert np.array_equal(counts, sign * expected[0])
    assert np.array_equal(n_reports, sign * expected[1])


def test_what_does_not_fit_is_refused_and_nothing_counted() -> None:
    for changes, message in (
        ({"words": np.zeros((2, 1), np.uint16)}, r"words must be uint16 of shape \(2, 1, 2\), got uint16"),
        ({"words": np.zeros((2, 2), np.int32)}, "words must be uint16 .* got int32"),
        ({"words": np.array([[0, 2], [0, 1]], np.uint16)}, "bits of 16 values, or none, got 1 that do not"),
        ({"words": np.array([[2**15, 0], [0, 2]], np.uint16)}, "got 2 that do not"),
        ({"words": np.array([[0, NO_ANSWER], [NO_ANSWER, 0]], np.uint16)}, "got 2 that do not"),
        ({"bitmaps": np.array([1, 2**DAYS], np.uint64)}, "bitmap must have days 1..5 only"),
        ({"n_reports": np.zeros((4, 4), np.int64)}, r"n_reports must have shape \(6, 6\), got \(4, 4\)"),
        ({"sign": 2}, "sign must be 1 or -1, got 2"),
    ):
        counts, n_reports = slow([], 16)
        given_values = {"counts": counts, "n_reports": n_reports, "bitmaps": np.array([1, 2], np.uint64)}
        given_values |= {"words": np.zeros((2, 2), np.uint16), "sign": 1}
        arguments = given_values | changes
        refuses(message, tally_words, **arguments)
        assert not counts.any()
        assert not arguments["n_reports"].any()


def test_reports_of_another_channel_are_refused() -> None:
    values = np.zeros(2, np.int32)
    grr, oue = (make(epsilon=Fraction(1), domain_size=65) for make in (grr_channel, oue_channel))
    narrow, wide = np.zeros((2, 1), np.uint64), np.zeros((2, 2), np.uint64)
    message = r"must be uint64 of \(2, 2\), got "
    refuses(message + r"uint16 of \(2,\)", to_words, np.zeros(2, np.uint16), values=values, channel=oue)
    refuses(message + r"uint64 of \(2, 1\)", to_words, narrow, values=values, channel=oue)
    refuses(r"uint16 of \(2,\), got uint64 of \(2, 2\)", to_words, wide, values=values, channel=grr)


PRF = ldp.KeyedPrf(bytes(range(16)))
PEOPLE = np.arange(2000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
PLAN_SIZES = (3, 70, 12)
MECHANISMS = get_args(Mechanism)


def values_of(plan: ldp.PlanSpec) -> list[np.ndarray]:
    columns = [(PEOPLE % np.uint64(spec.domain_size)).astype(np.int32) for spec in plan.indicators]
    columns[1][::3] = -1
    return columns


def plan_of(mechanism: str, *, version: int = 4) -> ldp.PlanSpec:
    return make_plan(*[("static", k) for k in PLAN_SIZES], mechanism=mechanism, version=version)


def answer_words(plan: ldp.PlanSpec, index: int, values: np.ndarray) -> np.ndarray:
    channel = plan.answer_channel(index)
    fields = {"indicator": index, "plan_version": plan.version}
    if plan.is_renewed(index):
        kept = {"pseudonyms": PEOPLE, "prf": PRF, "channel": channel, **fields}
        return renewed.day_reports(renewed.kept_answers(values, **kept), day=0, **kept)
    answers = ldp.oracle_answers(values, pseudonyms=PEOPLE, prf=PRF, channel=channel, **fields)
    return to_words(answers, values=values, channel=channel)


@pytest.mark.parametrize("mechanism", [m for m in MECHANISMS if not m.startswith("rsfd")])
def test_reports_are_the_oracles_answers_of_those_asked(mechanism: str) -> None:
    plan = plan_of(mechanism)
    asked = ldp.choose_indicator(PEOPLE, prf=PRF, d=3)
    values = values_of(plan)
    reports = ldp.Sanitiser(plan, PRF).reports(PEOPLE, values)
    for index, (words, column) in enumerate(zip(reports, values, strict=True)):
        expected = answer_words(plan, index, column)
        if plan.is_sampled:
            expected[asked != index] = ldp.NO_ANSWER
        assert np.array_equal(words, expected)
        assert np.array_equal(words[:, 0] == ldp.NO_ANSWER, expected[:, 0] == ldp.NO_ANSWER)


@pytest.mark.parametrize("mechanism", [m for m in MECHANISMS if m.startswith("rsfd")])
def test_reports_with_fakes_are_those_of_fake_data(mechanism: str) -> None:
    plan = plan_of(mechanism)
    values = values_of(plan)
    version = {"channel": plan.fake_data, "plan_version": plan.version}
    sent = ldp.fake_data_answers(values, pseudonyms=PEOPLE, prf=PRF, **version)
    reports = ldp.Sanitiser(plan, PRF).reports(PEOPLE, values)
    asked = ldp.choose_indicator(PEOPLE, prf=PRF, d=3)
    for index, (words, report, column) in enumerate(zip(reports, sent, values, strict=True)):
        expected = to_words(report, values=column, channel=plan.answer_channel(index))
        assert np.array_equal(words, expected)
        mine = asked == index
        assert np.array_equal(words[mine], answer_words(plan, index, column)[mine])
        # Everyone with a value reports on it, and no one else.
        assert np.array_equal(words[:, 0] == ldp.NO_ANSWER, column < 0)


def test_one_report_at_a_time_is_the_same() -> None:
    plan = plan_of("spl-grr")
    values = values_of(plan)
    sanitiser = ldp.Sanitiser(plan, PRF)
    for index, words in enumerate(sanitiser.reports(PEOPLE, values)):
        assert np.array_equal(sanitiser.report(index, PEOPLE, values[index]), words)
        assert np.array_equal(sanitiser.answer(index, PEOPLE, values[index]), words[:, 0])


def test_what_makes_no_sense_is_refused() -> None:
    values = np.zeros(2000, np.int32)
    oue, codes, bits = (ldp.Sanitiser(plan_of(name), PRF) for name in ("smp-oue", "rsfd-grr", "rsfd-ouez"))
    for mechanism, sanitiser in (("smp-oue", oue), ("rsfd-grr", codes)):
        message = f"answer needs a mechanism whose reports are codes, got {mechanism}"
        refuses(message, sanitiser.answer, 0, PEOPLE, values)
        refuses("values must be of 3 indicators, got 2", sanitiser.reports, PEOPLE, [values, values])
    refuses("report needs a mechanism without fake data, got rsfd-ouez", bits.report, 0, PEOPLE, values)
    refuses("asked needs a mechanism that samples, got rsfd-ouez", bits.asked, PEOPLE)
