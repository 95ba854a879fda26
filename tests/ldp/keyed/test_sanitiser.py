"""Reports of a plan: those of its mechanism, as words."""

from typing import get_args

import numpy as np
import pytest

import ldp
from ldp.keyed.words import to_words
from ldp.privacy.plans import Mechanism
from tests.ldp.exact import make_plan, refuses

PRF = ldp.KeyedPrf(bytes(range(16)))
PEOPLE = np.arange(2000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
SIZES = (3, 70, 12)
MECHANISMS = get_args(Mechanism)


def values_of(plan: ldp.PlanSpec) -> list[np.ndarray]:
    columns = [(PEOPLE % np.uint64(spec.domain_size)).astype(np.int32) for spec in plan.indicators]
    columns[1][::3] = -1
    return columns


def plan_of(mechanism: str, *, version: int = 4) -> ldp.PlanSpec:
    return make_plan(*[("static", k) for k in SIZES], mechanism=mechanism, version=version)


def answer_words(plan: ldp.PlanSpec, index: int, values: np.ndarray) -> np.ndarray:
    channel = plan.answer_channel(index)
    fields = {"indicator": index, "plan_version": plan.version}
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
