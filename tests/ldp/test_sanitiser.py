"""Reports of a plan: those of its mechanism, as words."""

from typing import get_args

import numpy as np
import pytest

from ldp import (
    NO_ANSWER,
    GrrChannel,
    KeyedPrf,
    LdpError,
    PlanSpec,
    Sanitiser,
    choose_indicator,
    fake_data_answers,
    oracle_answers,
)
from ldp.mechanisms.words import to_words
from ldp.params import Mechanism
from tests.ldp.exact import make_plan

PRF = KeyedPrf(bytes(range(16)))
PEOPLE = np.arange(2000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
SIZES = (3, 70, 12)
MECHANISMS = get_args(Mechanism)


def values_of(plan: PlanSpec) -> list[np.ndarray]:
    """Every third subscriber has no value of the second indicator."""
    columns = [(PEOPLE % np.uint64(spec.domain_size)).astype(np.int32) for spec in plan.indicators]
    columns[1][::3] = -1
    return columns


def plan_of(mechanism: str, *, version: int = 4) -> PlanSpec:
    return make_plan(*[("static", k) for k in SIZES], mechanism=mechanism, version=version)


def answer_words(plan: PlanSpec, index: int, values: np.ndarray) -> np.ndarray:
    channel = plan.answer_channel(index)
    answers = oracle_answers(
        values, pseudonyms=PEOPLE, prf=PRF, channel=channel, indicator=index, plan_version=plan.version
    )
    return to_words(answers, values=values, channel=channel)


@pytest.mark.parametrize("mechanism", [m for m in MECHANISMS if not m.startswith("rsfd")])
def test_reports_are_the_oracles_answers_of_those_asked(mechanism: str) -> None:
    plan = plan_of(mechanism)
    asked = choose_indicator(PEOPLE, prf=PRF, d=3)
    values = values_of(plan)
    reports = Sanitiser(plan, PRF).reports(PEOPLE, values)
    for index, (words, column) in enumerate(zip(reports, values, strict=True)):
        expected = answer_words(plan, index, column)
        if plan.is_sampled:
            expected[asked != index] = NO_ANSWER
        assert np.array_equal(words, expected)
        assert np.array_equal(words[:, 0] == NO_ANSWER, expected[:, 0] == NO_ANSWER)


@pytest.mark.parametrize("mechanism", [m for m in MECHANISMS if m.startswith("rsfd")])
def test_reports_with_fakes_are_those_of_fake_data(mechanism: str) -> None:
    plan = plan_of(mechanism)
    values = values_of(plan)
    sent = fake_data_answers(
        values, pseudonyms=PEOPLE, prf=PRF, channel=plan.fake_data, plan_version=plan.version
    )
    reports = Sanitiser(plan, PRF).reports(PEOPLE, values)
    asked = choose_indicator(PEOPLE, prf=PRF, d=3)
    for index, (words, report, column) in enumerate(zip(reports, sent, values, strict=True)):
        expected = to_words(report, values=column, channel=plan.answer_channel(index))
        assert np.array_equal(words, expected)
        mine = asked == index
        assert np.array_equal(words[mine], answer_words(plan, index, column)[mine])
        # Everybody with a value reports on it, and nobody else.
        assert np.array_equal(words[:, 0] == NO_ANSWER, column < 0)


@pytest.mark.parametrize("mechanism", [m for m in MECHANISMS if m.startswith("rsfd")])
def test_fakes_do_not_depend_on_any_value(mechanism: str) -> None:
    plan = plan_of(mechanism)
    values = values_of(plan)
    others = [np.where(c < 0, -1, (c + 1) % k).astype(np.int32) for c, k in zip(values, SIZES, strict=True)]
    sanitiser = Sanitiser(plan, PRF)
    asked = choose_indicator(PEOPLE, prf=PRF, d=3)
    for index, (one, other) in enumerate(
        zip(sanitiser.reports(PEOPLE, values), sanitiser.reports(PEOPLE, others), strict=True)
    ):
        fakes = asked != index
        assert np.array_equal(one[fakes], other[fakes])
        assert not np.array_equal(one[~fakes], other[~fakes])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_reports_do_not_depend_on_who_else_is_there_and_change_with_the_version(mechanism: str) -> None:
    plan = plan_of(mechanism)
    values = values_of(plan)
    whole = Sanitiser(plan, PRF).reports(PEOPLE, values)
    some = np.array([1999, 3, 0, 777])
    part = Sanitiser(plan, PRF).reports(PEOPLE[some], [column[some] for column in values])
    later = Sanitiser(plan_of(mechanism, version=5), PRF).reports(PEOPLE, values)
    for before, chosen, after in zip(whole, part, later, strict=True):
        assert np.array_equal(before[some], chosen)
        assert not np.array_equal(before, after)


def test_one_report_at_a_time_is_the_same() -> None:
    plan = plan_of("spl-grr")
    values = values_of(plan)
    sanitiser = Sanitiser(plan, PRF)
    for index, words in enumerate(sanitiser.reports(PEOPLE, values)):
        assert np.array_equal(sanitiser.report(index, PEOPLE, values[index]), words)
        assert np.array_equal(sanitiser.answer(index, PEOPLE, values[index]), words[:, 0])


def test_adaptive_plans_report_codes_and_bits() -> None:
    plan = plan_of("smp-adp")
    assert [type(plan.answer_channel(i)) is GrrChannel for i in range(3)] == [True, False, False]
    widths = [words.shape[1] for words in Sanitiser(plan, PRF).reports(PEOPLE, values_of(plan))]
    assert widths == [1, 5, 1]


@pytest.mark.parametrize("mechanism", ["smp-oue", "rsfd-grr"])
def test_answers_that_are_not_codes_or_not_only_answers_are_refused(mechanism: str) -> None:
    sanitiser, values = Sanitiser(plan_of(mechanism), PRF), np.zeros(2000, np.int32)
    with pytest.raises(LdpError, match=f"answer needs a mechanism whose reports are codes, got {mechanism}"):
        sanitiser.answer(0, PEOPLE, values)


def test_what_makes_no_sense_is_refused() -> None:
    faked, values = Sanitiser(plan_of("rsfd-ouez"), PRF), np.zeros(2000, np.int32)
    with pytest.raises(LdpError, match="report needs a mechanism without fake data, got rsfd-ouez"):
        faked.report(0, PEOPLE, values)
    with pytest.raises(LdpError, match="asked needs a mechanism that samples, got rsfd-ouez"):
        faked.asked(PEOPLE)
    for mechanism in ("smp-grr", "rsfd-grr"):
        with pytest.raises(LdpError, match="values must be of 3 indicators, got 2"):
            Sanitiser(plan_of(mechanism), PRF).reports(PEOPLE, [values, values])
