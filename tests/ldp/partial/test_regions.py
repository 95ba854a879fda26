"""Regions: keyed reports, certificate by enumeration, unbiased estimates with exact variances."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from math import inf, sqrt

import numpy as np
import pytest
from scipy import stats

import ldp
from ldp.codes import NO_ANSWER
from ldp.errors import InvalidDomainError, PlanError
from ldp.estimation.estimators import pure_variance
from ldp.estimation.partial.regions import (
    mean_noise,
    region_frequencies,
    region_shares,
    region_variance,
    reports_of_regions,
)
from ldp.estimation.simulation import Crowd, epsilon_for_plan, forecast
from ldp.kernels.entropy import ANSWER
from ldp.keyed.designs import projective, regions
from ldp.privacy.attacker import guess_success, known_day_success, largest_success, promised_ratio
from ldp.protocols.partial.regions import RegionChannel, region_channel, regions_of
from ldp.protocols.projective import ProjectiveChannel, code_channel
from ldp.protocols.projective_space import is_orthogonal, value_counts
from ldp.research.audit_plans import plan_target
from tests.ldp.exact import exp_bounds, reference_grr, refuses

SMALL = (0, 1, 0, 1, 1, 0)  # not one region after the other
LARGE = (*SMALL, *[2] * 14)  # the third has projective response
KEY = bytes(range(16))


def law_of(channel: RegionChannel) -> list[list[Fraction]]:
    """Chance of each code under each value, from the thresholds of the regions."""
    law = [[Fraction(0)] * channel.n_codes for _ in range(channel.domain_size)]
    for region in regions_of(channel):
        own, start = region.channel, region.codes.start
        for place, value in enumerate(region.values.tolist()):
            if isinstance(own, ldp.GrrChannel):
                chances = [own.p if code == place else own.q for code in range(own.domain_size)]
            else:
                inside = is_orthogonal(place, channel=own)
                miss = (1 - own.p) / (own.n_codes - own.support_size)
                chances = [own.p / own.support_size if hit else miss for hit in inside.tolist()]
            law[value][start : start + len(chances)] = chances
    return law


@pytest.mark.parametrize("epsilon", ["1/1000000", "1/2", "1", "3"])
@pytest.mark.parametrize("region_of", [SMALL, LARGE])
def test_the_certificate_is_the_largest_ratio_of_two_values_of_one_region(epsilon, region_of) -> None:
    channel = region_channel(epsilon=Fraction(epsilon), region_of=region_of)
    law = law_of(channel)
    assert {sum(each) for each in law} == {1}
    within, across = Fraction(1), set()
    for one, other in permutations(range(len(region_of)), 2):
        pairs = zip(law[one], law[other], strict=True)
        if region_of[one] == region_of[other]:
            within = max(within, *(a / b for a, b in pairs if b))
        else:
            across.add(any(a and not b for a, b in pairs))
    assert within == channel.ratio <= exp_bounds(Fraction(epsilon))[1]
    assert across == {True}  # a report that one gives and the other never does: no epsilon at all


def test_each_region_has_the_best_channel_of_its_size() -> None:
    channel = region_channel(epsilon=Fraction(1), region_of=LARGE)
    small, other, large = channel.of_regions
    assert small == other == code_channel(epsilon=Fraction(1), domain_size=3)
    assert isinstance(large, ProjectiveChannel)
    assert channel.sizes == (3, 3, 14)
    assert channel.n_codes == 6 + large.n_codes
    assert (channel.p, channel.q) == (large.p, large.q)
    tight = region_channel(epsilon=Fraction(1), region_of=LARGE, max_codes=20)
    assert tight.n_codes == 20


def test_noise_is_that_of_a_region_instead_of_all() -> None:
    """100 regions of 10,000 people, epsilon 1: 192 instead of 1,919 (specification, capability 6)."""
    n, k, per = 10**6, 64, 100
    region_of = tuple(np.repeat(np.arange(per), k).tolist())
    everyone = ldp.oue_channel(epsilon=Fraction(1), domain_size=per * k)
    channel = region_channel(epsilon=Fraction(1), region_of=region_of)
    f = np.zeros(per * k)
    f[1::k] = 1 / per  # all of a region in its second zone; the error is that of the others
    sizes = {"n_reports": n, "n_population": n}
    inside = n * sqrt(region_variance(f, channel=channel, **sizes)[0])
    assert inside == pytest.approx(192, rel=0.02)
    assert n * sqrt(pure_variance(0, channel=everyone, **sizes)) == pytest.approx(1919, abs=1)
    assert mean_noise(channel)[0] == pytest.approx(inside**2 / n)


@pytest.mark.parametrize("region_of", [SMALL, LARGE])
def test_keyed_runs_are_unbiased_with_the_exact_variance(region_of) -> None:
    """A sample of two thirds reports; a value that no one has, and a region in which few are."""
    channel, k, runs, n = region_channel(epsilon=Fraction(1), region_of=region_of), len(region_of), 200, 3000
    weights = np.arange(k) ** 1.5
    values = np.repeat(np.arange(k), np.random.default_rng(1).multinomial(n, weights / weights.sum()))
    values = values.astype(np.int32)
    f = np.bincount(values, minlength=k) / n
    exact = np.sqrt(region_variance(f, n_reports=2000, n_population=n, channel=channel))
    errors, of_regions = [], []
    for run in range(runs):
        sample = np.random.default_rng(100 + run).permutation(n)[:2000]
        people = np.arange(n, dtype=np.uint64)[sample]
        fields = {"prf": ldp.KeyedPrf(run.to_bytes(16, "big")), "indicator": 0, "plan_version": 1}
        codes = regions.answers(values[sample], pseudonyms=people, channel=channel, **fields)
        counts = np.bincount(codes, minlength=channel.n_codes)
        found = region_frequencies(counts, n_population=n, channel=channel)
        errors.append(found.frequency - f)
        assert (found.ci_low <= found.frequency).all()
        assert (found.frequency <= found.ci_high).all()
        assert found.consistent.min() >= 0
        true_regions = np.bincount(np.array(region_of)[values[sample]], minlength=max(region_of) + 1)
        assert reports_of_regions(counts, channel=channel).tolist() == true_regions.tolist()
        sums = np.bincount(region_of, weights=found.consistent)
        assert sums == pytest.approx(true_regions / 2000)
        of_regions.append([each.share for each in region_shares(counts, n_population=n, channel=channel)])
    scores = np.array(errors) / exact
    assert (np.abs(scores.mean(axis=0)) < 4 / sqrt(runs)).all()
    low, high = stats.chi2.ppf([0.0002, 0.9998], runs) / runs
    assert ((low < (scores**2).mean(axis=0)) & ((scores**2).mean(axis=0) < high)).all()
    share = np.bincount(region_of, weights=f)
    spread = np.sqrt(share * (1 - share) / 3 / (n - 1) * n / 2000)
    assert (np.abs(np.mean(of_regions, axis=0) - share) < 4 * spread / sqrt(runs)).all()


def test_estimated_errors_and_shares_of_regions() -> None:
    channel = region_channel(epsilon=Fraction(1), region_of=SMALL)
    counts = np.array([60, 20, 20, 0, 0, 0])
    all_asked = region_frequencies(counts, n_population=100, channel=channel)
    assert all_asked.frequency[[1, 3, 4]].tolist() == [0, 0, 0]  # the other region: no report, no noise
    assert all_asked.std_error[[1, 3, 4]].tolist() == [0, 0, 0]
    assert all_asked.frequency.sum() == pytest.approx(1)
    own = channel.of_regions[0]
    expected = ldp.pure_frequencies(counts[:3], n_reports=100, n_population=100, channel=own)
    assert all_asked.std_error[[0, 2, 5]] == pytest.approx(expected.std_error)
    assert all_asked.ci_high[[0, 2, 5]] == pytest.approx(expected.ci_high)
    shares = region_shares(counts, n_population=400, channel=channel)
    assert [each.n_reports for each in shares] == [100, 0]
    half = region_shares(np.array([50, 0, 0, 50, 0, 0]), n_population=400, channel=channel)[0]
    assert half.std_error == pytest.approx(sqrt(0.25 * 300 / 399 / 100))
    assert half.ci_low < 0.5 - 1.9 * half.std_error < 0.5 + 1.9 * half.std_error < half.ci_high


def test_reports_are_those_of_the_keyed_block_of_the_value() -> None:
    channel = region_channel(epsilon=Fraction(1), region_of=LARGE)
    values = np.array([-1, *range(20), *range(20)], np.int32)
    people = np.arange(41, dtype=np.uint64) + np.uint64(2**63)
    fields = {"prf": ldp.KeyedPrf(KEY), "indicator": 4, "plan_version": 2}
    found = regions.answers(values, pseudonyms=people, channel=channel, **fields)
    assert found[0] == NO_ANSWER
    again = regions.answers(values[5:6], pseudonyms=people[5:6], channel=channel, **fields)
    assert again[0] == found[5]
    block = {"purpose": ANSWER, "indicator": 4, "plan_version": 2}
    for code, value, person in zip(found.tolist(), values.tolist(), people.tolist(), strict=True):
        if 0 <= value < 6:
            number = SMALL[value]
            places = [each for each in range(6) if SMALL[each] == number]
            own, asked = channel.of_regions[number], {**block, "pseudonym": person, "value": value}
            truth = reference_grr(KEY, places.index(value), channel=own, **asked)
            assert code == truth + 3 * number
    third = np.flatnonzero(values >= 6)
    asked = {"pseudonyms": people[third], "purpose": ANSWER, "counter": 0, **fields}
    keyed = values[third].astype(np.uint32)
    expected = projective.draw(values[third] - 6, keyed=keyed, channel=channel.of_regions[2], **asked)
    assert found[third].tolist() == (expected + 6).tolist()
    support = value_counts(np.bincount(found[1:], minlength=channel.n_codes), channel=channel)
    assert support[:6].tolist() == [
        int((found[1:] == code).sum()) for code in (0, 3, 1, 4, 5, 2)
    ]  # by value, of codes in the order of regions


def test_guesses_by_enumeration() -> None:
    channel, prior = region_channel(epsilon=Fraction(1), region_of=SMALL), [0.3, 0.1, 0.2, 0.1, 0.0, 0.3]
    law = np.array(law_of(channel), np.float64)
    best = (law * np.array(prior)[:, np.newaxis]).max(axis=0).sum()
    assert guess_success(channel, prior=prior) == pytest.approx(best)
    # Of two days: reports of equal values are one report, others are independent.
    total = 0.0
    for known in range(6):
        joint = np.einsum("a,vb->vab", law[known], law)
        joint[known] = np.diag(law[known])
        total += joint.max(axis=0).sum() / 36
    assert known_day_success(channel) == pytest.approx(total)
    ratio = float(channel.ratio)
    assert promised_ratio(channel, ratio) == inf
    assert largest_success(promised_ratio(channel, ratio), prior=0.5) == 1  # a report tells the region
    assert promised_ratio(channel.of_regions[0], ratio) == ratio


ZONE = ldp.IndicatorRequest(slug="zone", kind="daily", domain_size=6, regions=SMALL)
AGE = ldp.IndicatorRequest(slug="age", kind="static", domain_size=3)


def plan_of(**changes) -> ldp.PlanSpec:
    settings = {"mechanism": "smp-grr", "unit": "profile", "version": 1, "days": 3, "epsilon": Decimal(1)}
    return ldp.build_plan(**settings | {"indicators": (ZONE, AGE)} | changes)


def one_indicator(**changes):
    return {"indicators": (replace(ZONE, kind="static", **changes),)}


def test_plans_keep_regions_and_refuse_what_has_no_estimates() -> None:
    plan = plan_of()
    assert ldp.PlanSpec.from_json(plan.to_json()) == plan
    assert plan.to_json()["indicators"][0]["regions"] == list(SMALL)
    assert "regions" not in plan.to_json()["indicators"][1]
    assert plan.tally_sizes == (6, 3)
    certificate = ldp.certify(plan)
    assert certificate.indicators[0].ratio == plan.answer_channel(0).ratio
    assert certificate.epsilon_profile == pytest.approx(Decimal(3), abs=Decimal("1e-9"))
    both = ldp.IndicatorRequest(slug="both", kind="daily", domain_size=28, parts=("zone", "age"))
    refused = {
        "mechanism of a plan that discloses": {"mechanism": "smp-question"},
        "presence_epsilon must be absent": {"presence_epsilon": Decimal(1), "presence_days": 1},
        "classes must be absent": {"classes": {"a": Decimal(1), "b": Decimal("0.5")}},
        "parts of both must disclose nothing": {"indicators": (ZONE, AGE, both)},
        "two values or more": one_indicator(domain_size=3, regions=(0, 0, 1)),
        "must be two or more": one_indicator(domain_size=2, regions=(0, 0)),
        "as they first occur": one_indicator(domain_size=4, regions=(1, 1, 0, 0)),
        "must be of 6 categories": one_indicator(regions=(0, 0, 1, 1)),
        "by_code of zone must be absent": one_indicator(by_code=True),
        "events must be absent": one_indicator() | {"events": True},
    }
    for message, changes in refused.items():
        refuses(message, plan_of, error=PlanError, **changes)
    channel = region_channel(epsilon=Fraction(1), region_of=SMALL)
    own = {"region_of": SMALL, "of_regions": channel.of_regions[:1]}
    refuses("of_regions must have a channel", RegionChannel, error=InvalidDomainError, **own)
    refuses("use region_frequencies", pure_variance, 0.5, n_reports=5, n_population=9, channel=channel)
    sizes = {"n_population": 100, "channel": channel}
    refuses("n_population must be", region_frequencies, np.full(6, 50), **sizes)
    refuses("counts must be", region_frequencies, np.zeros(6, np.int64), **sizes)
    refuses("counts must be", region_shares, np.ones(7, np.int64), **sizes)
    refuses("level must be", region_frequencies, np.ones(6, np.int64), level=1, **sizes)


def test_forecasts_are_those_of_even_shares() -> None:
    plan, crowd = plan_of(), Crowd(visitors=10_000)
    found = forecast(plan, crowd=crowd)[0].day
    even = np.full(6, 1 / 6)
    exact = region_variance(even, n_reports=5000, n_population=10_000, channel=plan.answer_channel(0))
    assert found.variance(1 / 6) == pytest.approx(exact[0])

    def plan_at(epsilon: Decimal) -> ldp.PlanSpec:
        return plan_of(epsilon=epsilon)

    wanted = found.half_width(1 / 6)
    assert epsilon_for_plan(plan_at, half_width=wanted * 1.0001, crowd=crowd, indexes=[0]) == 1


def test_the_audit_compares_values_of_one_region() -> None:
    plan = plan_of(indicators=(ZONE,), epsilon=Decimal(2))
    target, people = plan_target(plan), np.arange(20_000, dtype=np.uint64)
    sides = [target.summarise(target.observe(ldp.KeyedPrf(KEY), people, side)) for side in (0, 1)]
    first = plan.answer_channel(0).of_regions[0]
    for summary, columns in zip(sides, ((1, 2), (2, 1)), strict=True):
        hits, misses = (summary[:, column].mean() / 3 for column in columns)
        assert hits == pytest.approx(float(first.p), abs=0.01)
        assert misses == pytest.approx(float(first.q), abs=0.01)
