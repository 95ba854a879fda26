"""Sensitive values: keyed reports, certificate by enumeration, unbiased estimates with exact variances."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from math import exp, inf, sqrt

import numpy as np
import pytest
from scipy import stats

import ldp
from ldp.codes import NO_ANSWER
from ldp.errors import InvalidBudgetError, InvalidDomainError, PlanError
from ldp.estimation.partial.sensitive import mean_noise
from ldp.estimation.simulation import Crowd, epsilon_for_plan, forecast
from ldp.kernels.entropy import ANSWER
from ldp.keyed.designs import sensitive
from ldp.privacy.attacker import guess_success, known_day_success, largest_success, promised_ratio
from ldp.protocols.partial.sensitive import SensitiveChannel, sensitive_channel
from ldp.research.audit_plans import plan_target
from tests.ldp.exact import exp_bounds, reference_below, reference_words, refuses

HIDDEN = (1, 4, 5)
KEY = bytes(range(16))


def channel_of(epsilon="1", k=7, hidden=HIDDEN) -> SensitiveChannel:
    return sensitive_channel(epsilon=Fraction(epsilon), domain_size=k, sensitive=hidden)


def law_of(channel: SensitiveChannel) -> list[list[Fraction]]:
    """Chance of each report under each value, from the one integer."""
    k, s, other = channel.domain_size, channel.n_sensitive, Fraction(channel.other, 2**64)
    law = [[other if y in channel.sensitive else Fraction(0) for y in range(k)] for _ in range(k)]
    for value in range(k):
        law[value][value] = 1 - (s - (value in channel.sensitive)) * other
    return law


@pytest.mark.parametrize("epsilon", ["1/1000000", "1/2", "1", "3", "20"])
@pytest.mark.parametrize("hidden", [(2,), HIDDEN, (0, 1, 2, 3, 4, 5)])
def test_the_certificate_is_of_reports_of_sensitive_values_and_others_have_none(epsilon, hidden) -> None:
    channel = channel_of(epsilon, hidden=hidden)
    law = law_of(channel)
    assert {sum(each) for each in law} == {1}
    assert min(min(each) for each in law) >= 0
    found, disclosed = Fraction(1), set()
    for one, other in permutations(range(7), 2):
        for y, (a, b) in enumerate(zip(law[one], law[other], strict=True)):
            if y in hidden:
                found = max(found, a / b)
            elif a:
                disclosed.add((y, one == y, b == 0))
    assert found == channel.ratio <= exp_bounds(Fraction(epsilon))[1]
    # Any report of another value has no other cause than that value: infinite odds.
    assert disclosed == {(y, True, True) for y in range(7) if y not in hidden}
    e = float(exp_bounds(Fraction(epsilon))[0])
    s = len(hidden)
    nominal = e / (s + e - 1), 1 / (s + e - 1), (e - 1) / (s + e - 1)
    assert [float(each) for each in (channel.p, channel.q, channel.disclosed)] == pytest.approx(nominal)
    one_less = replace(channel, other=channel.other - 1)
    assert one_less.ratio > exp_bounds(Fraction(epsilon))[0]


def test_the_variance_is_that_of_the_specification() -> None:
    """Sensitive (E + s - 2) / (E - 1)^2 for each report, and next to nothing for rare others."""
    channel, e, n = channel_of("1"), exp(1), 1000
    sizes = {"n_reports": n, "n_population": n, "channel": channel}
    at_zero = ldp.pure_variance(np.zeros(7), **sizes)
    expected = (e + 3 - 2) / (e - 1) ** 2 / n
    assert at_zero == pytest.approx([0, expected, 0, 0, expected, expected, 0])
    assert mean_noise(channel)[0] == pytest.approx(3 / 7 * expected * n)


@pytest.mark.parametrize("hidden", [(2,), HIDDEN])
def test_keyed_runs_are_unbiased_with_the_exact_variance(hidden) -> None:
    channel, runs, n = channel_of(hidden=hidden), 200, 3000
    f = np.array([0.3, 0.1, 0.2, 0.05, 0.0, 0.3, 0.05])
    values = np.repeat(np.arange(7), np.round(f * n).astype(int)).astype(np.int32)
    sizes = {"n_reports": 2000, "n_population": n, "channel": channel}
    exact, errors = np.sqrt(ldp.pure_variance(f, **sizes)), []
    for run in range(runs):
        sample = np.random.default_rng(200 + run).permutation(n)[:2000]
        fields = {"prf": ldp.KeyedPrf(run.to_bytes(16, "big")), "indicator": 0, "plan_version": 1}
        people = np.arange(n, dtype=np.uint64)[sample]
        codes = sensitive.answers(values[sample], pseudonyms=people, channel=channel, **fields)
        told = ~np.isin(codes, hidden)
        assert (codes[told] == values[sample][told]).all()
        found = ldp.pure_frequencies(np.bincount(codes, minlength=7), **sizes)
        assert (found.ci_low <= found.frequency).all()
        assert (found.frequency <= found.ci_high).all()
        errors.append(found.frequency - f)
    is_known = exact < 1e-12  # no one has a value that would be disclosed
    assert (np.abs(np.array(errors)[:, is_known]) < 1e-12).all()
    scores = np.array(errors)[:, ~is_known] / exact[~is_known]
    assert (np.abs(scores.mean(axis=0)) < 4 / sqrt(runs)).all()
    low, high = stats.chi2.ppf([0.0002, 0.9998], runs) / runs
    assert ((low < (scores**2).mean(axis=0)) & ((scores**2).mean(axis=0) < high)).all()


@pytest.mark.parametrize("hidden", [(2,), HIDDEN])
def test_reports_are_those_of_the_keyed_block(hidden) -> None:
    channel, s = channel_of(hidden=hidden), len(hidden)
    values = np.array([-1, *range(7), *range(7), *range(7)], np.int32)
    people = np.arange(22, dtype=np.uint64) + np.uint64(2**63)
    fields = {"prf": ldp.KeyedPrf(KEY), "indicator": 4, "plan_version": 2}
    found = sensitive.answers(values, pseudonyms=people, channel=channel, **fields)
    assert found[0] == NO_ANSWER
    block = {"purpose": ANSWER, "indicator": 4, "plan_version": 2}
    for code, value, person in list(zip(found.tolist(), values.tolist(), people.tolist(), strict=True))[1:]:
        asked = {**block, "pseudonym": person, "value": value}
        others = [each for each in hidden if each != value]
        kept = 2**64 - len(others) * channel.other
        if reference_words(KEY, counter=0, **asked)[0] < kept:
            assert code == value
        else:
            assert code == others[reference_below(KEY, len(others), word=1, **asked)]
    assert s == channel.n_sensitive


def test_guesses_by_enumeration() -> None:
    for hidden in ((2,), HIDDEN):
        channel, prior = channel_of(hidden=hidden), [0.3, 0.1, 0.2, 0.05, 0.0, 0.3, 0.05]
        law = np.array(law_of(channel), np.float64)
        best = (law * np.array(prior)[:, np.newaxis]).max(axis=0).sum()
        assert guess_success(channel, prior=prior) == pytest.approx(best)
        total = 0.0
        for known in range(7):
            joint = np.einsum("a,vb->vab", law[known], law)
            joint[known] = np.diag(law[known])
            total += joint.max(axis=0).sum() / 49
        assert known_day_success(channel) == pytest.approx(total)
        assert promised_ratio(channel, float(channel.ratio)) == inf
        assert largest_success(inf, prior=0.5) == 1


PLACE = ldp.IndicatorRequest(slug="place", kind="daily", domain_size=7, sensitive=HIDDEN)
AGE = ldp.IndicatorRequest(slug="age", kind="static", domain_size=3)


def plan_of(**changes) -> ldp.PlanSpec:
    settings = {"mechanism": "smp-grr", "unit": "profile", "version": 1, "days": 3, "epsilon": Decimal(1)}
    return ldp.build_plan(**settings | {"indicators": (PLACE, AGE)} | changes)


def test_plans_keep_sensitive_values_and_refuse_what_has_no_estimates() -> None:
    plan = plan_of()
    assert ldp.PlanSpec.from_json(plan.to_json()) == plan
    assert plan.to_json()["indicators"][0]["sensitive"] == list(HIDDEN)
    assert not {"sensitive", "regions"} & plan.to_json()["indicators"][1].keys()
    assert plan.tally_sizes == (7, 3)
    assert ldp.certify(plan).indicators[0].ratio == plan.answer_channel(0).ratio
    both = ldp.IndicatorRequest(slug="both", kind="daily", domain_size=32, parts=("place", "age"))
    static = replace(PLACE, kind="static")
    refused = {
        "mechanism of a plan that discloses": {"mechanism": "smp-question"},
        "presence_epsilon must be absent": {"presence_epsilon": Decimal(1), "presence_days": 1},
        "classes must be absent": {"classes": {"a": Decimal(1), "b": Decimal("0.5")}},
        "parts of both must disclose nothing": {"indicators": (PLACE, AGE, both)},
        "events must be absent": {"indicators": (static,), "events": True},
        "regions of place must be absent": {"indicators": (replace(static, regions=(0, 0, 0, 1, 1, 1, 1)),)},
    }
    for message, changes in refused.items():
        refuses(message, plan_of, error=PlanError, **changes)
    for wrong in ((), (4, 1), (1, 1), tuple(range(7)), (7,)):
        refuses("sensitive values must", channel_of, error=InvalidDomainError, hidden=wrong)
    wrong = {"domain_size": 7, "sensitive": (1, 2), "other": 2**63}
    refuses("other must be in", SensitiveChannel, error=InvalidBudgetError, **wrong)


def test_forecasts_are_means_over_values() -> None:
    plan, crowd = plan_of(), Crowd(visitors=10_000)
    found = forecast(plan, crowd=crowd)[0].day
    sizes = {"n_reports": 5000, "n_population": 10_000, "channel": plan.answer_channel(0)}
    exact = ldp.pure_variance(np.full(7, 1 / 7), **sizes)
    assert found.variance(1 / 7) == pytest.approx(exact.mean())

    def plan_at(epsilon: Decimal) -> ldp.PlanSpec:
        return plan_of(epsilon=epsilon)

    wanted = found.half_width(1 / 7)
    assert epsilon_for_plan(plan_at, half_width=wanted * 1.0001, crowd=crowd, indexes=[0]) == 1


def test_the_audit_compares_sensitive_values() -> None:
    plan = plan_of(indicators=(PLACE,), epsilon=Decimal(2))
    target, people = plan_target(plan), np.arange(20_000, dtype=np.uint64)
    channel = plan.answer_channel(0)
    for side, columns in ((0, (1, 2)), (1, (2, 1))):
        summary = target.summarise(target.observe(ldp.KeyedPrf(KEY), people, side))
        hits, misses = (summary[:, column].mean() / 3 for column in columns)
        assert hits == pytest.approx(float(channel.p), abs=0.01)
        assert misses == pytest.approx(float(channel.q), abs=0.01)
