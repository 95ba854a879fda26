"""Success of the best guess: against exact enumeration of all reports."""

from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp import LdpError, fake_data_channel, grr_channel, oue_channel, projective_channel
from ldp.privacy import attacker
from tests.ldp.exact import make_plan, refuses
from tests.ldp.fakes import answer_probability, as_report, chances, fake_probability, outputs

EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(3)]
weights = st.lists(st.integers(0, 20), min_size=2, max_size=5).filter(any)


def four_channels(k: int, epsilon: Fraction) -> list[Any]:
    fakes = {"epsilon": epsilon, "unit": "profile", "domain_sizes": [k, 3]}
    faked = [fake_data_channel(protocol, **fakes).reports[0] for protocol in ("grr", "ouez")]
    return [make(epsilon=epsilon, domain_size=k) for make in (grr_channel, oue_channel)] + faked


@given(counts=weights, epsilon=st.sampled_from(EPSILONS))
@settings(max_examples=20)
def test_best_guess_is_right_as_often_as_by_enumeration(counts: list[int], epsilon: Fraction) -> None:
    prior = [Fraction(count, sum(counts)) for count in counts]
    k = len(counts)
    for channel in (*four_channels(k, epsilon), projective_channel(epsilon=epsilon, domain_size=k)):
        found = attacker.guess_success(channel, prior=[float(each) for each in prior])
        rows = chances(channel).values()
        exact = sum(max(b * chance for b, chance in zip(prior, row, strict=True)) for row in rows)
        assert found == pytest.approx(float(exact), rel=1e-12)


def of_two_days(channel, *, known: int, true: int) -> dict[tuple, Fraction]:
    """Exact law of the reports of two days: an answer stays with its value, a fake stays anyhow."""
    report, law = as_report(channel), {}
    of_known, of_true = (
        {y: answer_probability(report, y, x) for y in outputs(report)} for x in (known, true)
    )
    for first, second in product(of_known, repeat=2):
        again = first == second if known == true else of_true[second]
        law[first, second] = report.share * of_known[first] * again
        if first == second:
            law[first, second] += (1 - report.share) * fake_probability(report, first)
    assert sum(law.values()) == 1
    return law


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_one_known_day_and_a_visible_change_tell_as_much_as_by_enumeration(epsilon, k) -> None:
    for channel in four_channels(k, epsilon):
        laws = [of_two_days(channel, known=0, true=value) for value in range(k)]
        exact = sum(max(law[pair] for law in laws) for pair in laws[0]) / k
        assert attacker.known_day_success(channel) == pytest.approx(float(exact), rel=1e-12)


def test_two_categories_and_one_known_day_give_the_other_away_whatever_epsilon_is() -> None:
    """The example of the pages: 52.5 of 100 by one report, 75 with a known day, all where reports differ."""
    channel = grr_channel(epsilon=Fraction(1, 10), domain_size=2)
    assert round(attacker.largest_success(float(channel.ratio), prior=0.5), 3) == 0.525
    assert round(attacker.known_day_success(channel), 2) == 0.75
    same, other = (of_two_days(channel, known=0, true=value) for value in (0, 1))
    assert all(same[pair] == 0 < other[pair] for pair in ((0, 1), (1, 0)))
    for page in ("lawyers", "engineers"):
        text = Path(f"docs/explanation/privacy-for-{page}.md").read_text("utf-8")
        assert "52.5%" in text
        assert "75%" in text
    for k in (2, 7):
        nothing = grr_channel(epsilon=Fraction(1, 10**6), domain_size=k)
        assert attacker.known_day_success(nothing) == pytest.approx((2 - 1 / k) / k, rel=1e-5)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("shares", ["equal", "balanced"])
@pytest.mark.parametrize("protocol", ["grr", "ouez", "adp"])
def test_answer_is_recognised_as_often_as_by_enumeration(protocol, shares, epsilon) -> None:
    priors = [[Fraction(1, 2)] * 2, [Fraction(each, 10) for each in (6, 3, 1)], [Fraction(1, 4)] * 4]
    common = {"unit": "attribute", "domain_sizes": [2, 3, 4], "shares": shares}
    channel = fake_data_channel(protocol, epsilon=epsilon, **common)
    answered = with_value = Fraction(0)
    for tuple_ in product(*map(outputs, channel.reports)):
        fakes = [fake_probability(r, y) for r, y in zip(channel.reports, tuple_, strict=True)]
        joint = []
        for report, y, prior, fake in zip(channel.reports, tuple_, priors, fakes, strict=True):
            others = prod(fakes) / fake * report.share
            joint.append([others * f * answer_probability(report, y, x) for x, f in enumerate(prior)])
        answered += max(map(sum, joint))
        with_value += max(map(max, joint))
    known = [[float(f) for f in prior] for prior in priors]
    assert attacker.answered_success(channel, priors=known) == pytest.approx(float(answered), abs=2e-6)
    assert attacker.answer_success(channel, priors=known) == pytest.approx(float(with_value), rel=1e-12)


def test_attack_on_fakes_needs_a_prior_of_each_indicator_and_fakes_whose_law_is_known() -> None:
    fakes = {"epsilon": Fraction(1), "unit": "profile", "domain_sizes": [2, 2000]}
    even = [[0.5] * 2, [1 / 2000] * 2000]
    assert 0.5 < attacker.answered_success(fake_data_channel("ouez", **fakes), priors=even) < 1
    with pytest.raises(LdpError, match="priors must be of 2 indicators, got 1"):
        attacker.answered_success(fake_data_channel("grr", **fakes), priors=even[:1])
    with pytest.raises(LdpError, match="fakes must be codes or of no value"):
        attacker.answer_success(fake_data_channel("ouer", **fakes), priors=even)


@pytest.mark.parametrize("epsilon", [Decimal("0.5"), Decimal(2)])
@pytest.mark.parametrize("mechanism", ["smp-grr", "smp-oue", "rsfd-grr", "rsfd-ouez"])
def test_no_guess_is_better_than_the_promise_allows(mechanism: str, epsilon: Decimal) -> None:
    plan = make_plan(("static", 5), ("static", 12), mechanism=mechanism, epsilon=epsilon)
    for index, spec in enumerate(plan.indicators):
        even = 1 / spec.domain_size
        most = attacker.largest_success(float(epsilon.exp()), prior=even)
        found = attacker.guess_success(plan.channel(index), prior=[even] * spec.domain_size)
        assert even < found <= most * (1 + 1e-12)


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.5, 0.5, 0.5], [1.5, -0.5, 0.0], [0.5, 0.5, float("nan")]])
def test_a_prior_is_a_distribution_of_the_values_of_a_code_or_of_bits(prior: list[float]) -> None:
    three = grr_channel(epsilon=Fraction(1), domain_size=3)
    refuses("prior must", attacker.guess_success, three, prior=prior)
    for ratio, chance in ((0.9, 0.5), (2.0, 1.5), (float("nan"), 0.5)):
        refuses("ratio must", attacker.largest_success, ratio, prior=chance)
    channel = fake_data_channel("ouer", epsilon=Fraction(1), unit="profile", domain_sizes=[4, 4]).reports[0]
    refuses("fakes must be codes or of no value", attacker.guess_success, channel, prior=[0.25] * 4)
