"""Streams: days of answers, losses of days in a row by enumeration, and estimates of a day."""

from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import ldp
from ldp.codes import NO_ANSWER
from ldp.errors import PlanError
from ldp.kernels.entropy import ANSWER, CHOOSE_SLOT
from ldp.keyed.choices import slot_days
from ldp.privacy.accounting import window_epsilon
from ldp.privacy.moves import MoveSpec
from ldp.privacy.plans import PlanSpec
from ldp.protocols.channels import GrrChannel, epsilon_of, noise_at_zero
from ldp.protocols.numbers.threshold import Scale
from ldp.protocols.projective import ProjectiveChannel
from tests.ldp.exact import digest, reference_below, reference_grr, refuses
from tests.ldp.privacy.test_joint import law_of
from tests.ldp.privacy.test_plans import built

KEY = bytes(range(16))
GOLDEN = "ad88e3b0db351ed2"
NOISE = {"presence_epsilon": Decimal(1), "presence_days": 7}
PEOPLE = np.arange(1, 41, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def stream(k: int = 3, **settings: Any) -> PlanSpec:
    return built({"kind": "daily", "domain_size": k}, **{"mechanism": "smp-stream"} | settings)


def answered_days(plan: PlanSpec) -> np.ndarray:
    """Answers of each of the people on each day: True where there is one."""
    bitmaps = ldp.Sanitiser(plan, ldp.KeyedPrf(KEY)).answer_days(0, PEOPLE)
    return (bitmaps[:, None] >> np.arange(plan.days, dtype=np.uint64) & np.uint64(1)).astype(bool)


# --- days and answers -----------------------------------------------------------------------


@pytest.mark.parametrize(("days", "window"), [(7, 7), (7, 3), (62, 20), (5, 1), (62, 62)])
def test_everyone_answers_once_in_any_window(days: int, window: int) -> None:
    is_answered = answered_days(stream(days=days, window_days=window))
    for first in range(days - window + 1):
        assert (is_answered[:, first : first + window].sum(axis=1) == 1).all()
    assert is_answered.sum(axis=1).max() == -(-days // window)


def test_slots_are_those_of_the_block() -> None:
    fields = {"purpose": CHOOSE_SLOT, "indicator": 0, "plan_version": 0, "value": 0}
    expected = [reference_below(KEY, 7, pseudonym=int(person), **fields) for person in PEOPLE]
    assert (answered_days(stream(version=4)).argmax(axis=1) + 1) % 7 == pytest.approx(expected)
    prf = ldp.KeyedPrf(KEY)
    for days, window in ((7, 8), (7, 0), (63, 7)):
        wrong = {"days": days, "window_days": window, "indicator": 0}
        refuses("window_days <= days <= 62 must hold", slot_days, PEOPLE, prf=prf, **wrong)


def test_answers_are_those_of_the_block_and_new_every_day() -> None:
    plan = stream(k=5, version=2)
    channel, sanitiser = plan.answer_channel(0), ldp.Sanitiser(plan, ldp.KeyedPrf(KEY))
    assert isinstance(channel, GrrChannel)
    values = (np.arange(len(PEOPLE)) % 5).astype(np.int32)
    of_day = {day: sanitiser.report(0, PEOPLE, values, day=day)[:, 0] for day in (1, 2, 7)}
    for day, found in of_day.items():
        fields = {"purpose": ANSWER, "indicator": 0, "plan_version": 2, "counter": 256 * day}
        expected = [
            reference_grr(KEY, truth, channel=channel, pseudonym=int(person), value=truth, **fields)
            for person, truth in zip(PEOPLE, values.tolist(), strict=True)
        ]
        assert found.tolist() == expected
    assert (of_day[1] != of_day[2]).mean() > 0.2
    assert set(sanitiser.report(0, PEOPLE, values * 0 - 1, day=1)[:, 0].tolist()) == {NO_ANSWER}
    refuses("reports are codes", sanitiser.answer, 0, PEOPLE, values)
    refuses("day must be in", sanitiser.report, 0, PEOPLE, values)


def test_projective_answers_are_the_frozen_ones() -> None:
    plan = stream(k=40, days=30)
    assert isinstance(plan.answer_channel(0), ProjectiveChannel)
    sanitiser = ldp.Sanitiser(plan, ldp.KeyedPrf(KEY))
    values = (np.arange(len(PEOPLE)) % 40).astype(np.int32)
    sent = [sanitiser.report(0, PEOPLE, values, day=day) for day in (1, 30)]
    assert digest(*sent) == GOLDEN


# --- losses ---------------------------------------------------------------------------------


def ratio_of(plan: PlanSpec, first: tuple[int, ...], second: tuple[int, ...], *, slot: int) -> Fraction:
    """Largest ratio of the probabilities of a person's reports, over all reports; slots are public."""
    channel = plan.answer_channel(0)
    window = plan.window_days or plan.days
    days = [day for day in range(plan.days) if (day + 1) % window == slot]
    laws = [[law_of(channel, values[day]) for day in days] for values in (first, second)]
    worst = Fraction(0)
    for reports in product(range(channel.domain_size), repeat=len(days)):
        a, b = (np.prod([law[y] for law, y in zip(of, reports, strict=True)] or [Fraction(1)]) for of in laws)
        worst = max(worst, a / b)
    return worst


@pytest.mark.parametrize(
    ("k", "days", "window"),
    [(2, 2, 2), (2, 2, 1), (2, 3, 2), (2, 4, 2), (2, 4, 3), (3, 2, 2), (3, 2, 1), (3, 3, 2)],
)
def test_days_in_a_row_lose_what_is_certified(k: int, days: int, window: int) -> None:
    """All pairs of series of values, of all slots; changes are protected, too."""
    plan = stream(k=k, days=days, window_days=window, epsilon=Decimal("0.7"))
    worst = dict.fromkeys(range(1, days + 1), Fraction(0))
    for first, second in product(product(range(k), repeat=days), repeat=2):
        differing = [day for day in range(days) if first[day] != second[day]]
        if not differing:
            continue
        length = differing[-1] - differing[0] + 1
        found = max(ratio_of(plan, first, second, slot=slot) for slot in range(window))
        for longer in range(length, days + 1):
            worst[longer] = max(worst[longer], found)
    certificate = ldp.certify(plan)
    for length, ratio in worst.items():
        assert epsilon_of(ratio) == window_epsilon(plan, days=length)
    assert epsilon_of(worst[window]) == certificate.epsilon_window <= certificate.nominal_window
    assert certificate.nominal_window == Fraction(7, 10)
    assert epsilon_of(worst[days]) == certificate.epsilon_profile
    assert certificate.nominal_profile == Fraction(7, 10) * -(-days // window)


def test_a_day_that_is_given_again_adds_an_answer() -> None:
    certificate = ldp.certify(stream(days=14), extra_daily_values=1)
    assert (certificate.nominal_window, certificate.nominal_profile) == (2, 3)


@pytest.mark.parametrize("k", [2, 3])
def test_a_change_between_two_versions_of_a_day_has_no_bound(k: int) -> None:
    """The exception to the promise: bits belong to a value and a day, so an equal value repeats its answer.

    Values of both versions are enumerated. A certificate with the extra answer holds where the versions are
    equal for both people, or differ for both; else some reports are impossible for one of them.
    """
    plan = stream(k=k, days=1, epsilon=Decimal("0.7"))
    laws = [law_of(plan.answer_channel(0), value) for value in range(k)]

    def versions(first: int, second: int) -> dict[tuple[int, int], Fraction]:
        if first == second:
            return {(a, b): laws[first][a] if a == b else Fraction(0) for a, b in product(range(k), repeat=2)}
        return {(a, b): laws[first][a] * laws[second][b] for a, b in product(range(k), repeat=2)}

    worst = Fraction(0)
    for one, other in product(product(range(k), repeat=2), repeat=2):
        a, b = versions(*one), versions(*other)
        if (one[0] == one[1]) == (other[0] == other[1]):
            worst = max(worst, *(a[pair] / b[pair] for pair in a if b[pair]))
            assert all((a[pair] == 0) == (b[pair] == 0) for pair in a)
        else:
            assert any((a[pair] == 0) != (b[pair] == 0) for pair in a)
    assert epsilon_of(worst) == ldp.certify(plan, extra_daily_values=1).epsilon_window


def test_a_window_counts_static_answers_once() -> None:
    plan = built({"epsilon": Decimal(2)}, {"kind": "daily"}, mechanism="smp-stream", days=14, window_days=7)
    certificate = ldp.certify(plan)
    assert (certificate.nominal_window, certificate.nominal_profile) == (2, 2)
    assert [entry.n_values for entry in certificate.indicators] == [1, 2]
    static = built({}, mechanism="smp-stream")
    assert ldp.certify(static).epsilon_window is None
    refuses("must have streams", window_epsilon, built({"kind": "daily"}), days=2)
    refuses("days must be in", window_epsilon, plan, days=15)


# --- plans ----------------------------------------------------------------------------------


def test_plans_have_a_window_of_seven_days_by_default() -> None:
    assert [stream(days=days).window_days for days in (1, 3, 7, 62)] == [1, 3, 7, 7]
    plan = stream(days=62, window_days=20)
    assert PlanSpec.from_json(plan.to_json()) == plan
    assert plan.to_json()["window_days"] == 20
    assert plan.indicators[0].max_values == 4
    assert "window_days" not in built({}).to_json()


def test_what_keeps_answers_is_refused() -> None:
    scale = Scale(cuts=(1, 2), minimum=0, unit="h")
    moves = MoveSpec(places=2, per_day=2)
    for message, indicator, settings in (
        ("window_days must be absent under smp-grr", {}, {"mechanism": "smp-grr", "window_days": 7}),
        ("window_days must be in", {"kind": "daily"}, {"window_days": 8}),
        ("window_days must be in", {"kind": "daily"}, {"window_days": 0}),
        ("no indicator of daily numbers", {"kind": "daily", "domain_size": 2, "scale": scale}, {}),
        ("no indicator of moves", {"kind": "daily", "domain_size": moves.size, "moves": moves}, {}),
        ("max_values of i0 must be 1", {"kind": "daily", "max_values": 3}, {}),
        ("presence_epsilon must be absent", {"kind": "daily"}, NOISE),
    ):
        refuses(message, built, indicator, error=PlanError, **{"mechanism": "smp-stream"} | settings)
    data = stream().to_json() | {"window_days": None}
    refuses("window_days of a smp-stream plan must be present", PlanSpec.from_json, data, error=PlanError)


# --- errors ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "budget", "people", "ratio"),
    [(7, 195.7, 25.8, 7.6), (20, 1599.7, 73.7, 21.7), (62, 15376, 228.3, 67.3)],
)
def test_dividing_people_is_better_than_dividing_epsilon(
    window: int, budget: float, people: float, ratio: float
) -> None:
    """n times the variance of a day at epsilon 1 in any window, unary encoding (OUE); everyone, or a part."""
    by_budget = float(noise_at_zero(ldp.oue_channel(epsilon=Fraction(1, window), domain_size=12)))
    by_people = window * float(noise_at_zero(ldp.oue_channel(epsilon=Fraction(1), domain_size=12)))
    assert (round(by_budget, 1), round(by_people, 1)) == pytest.approx(
        (budget, people), abs=0.5 * (window > 60)
    )
    assert round(by_budget / by_people, 1) == ratio
