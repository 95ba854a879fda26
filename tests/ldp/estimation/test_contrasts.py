"""Two values, days, two studies, and lists: exact by enumeration, or bounded in many runs."""

from bisect import bisect_left
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import comb
from statistics import NormalDist
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp import hadamard_channel, pure_frequencies, pure_variance
from ldp.estimation.contrasts import (
    Sample,
    baseline_mean,
    day_difference,
    independent_difference,
    sample_of,
    value_covariance,
    value_difference,
)
from ldp.estimation.joint.linear import linear_answer
from ldp.estimation.multiple import above_zero, chosen_reach, holm, smallest_found
from ldp.estimation.windows import Window, WindowEstimate, shared_reports
from ldp.protocols.channels import WORD, GrrChannel, PureChannel, grr_channel, noise_at_zero
from ldp.protocols.faked_reports import FakedChannel
from ldp.protocols.projective import code_channel
from ldp.protocols.unary import UnaryChannel
from tests.ldp.estimation.test_windows import CHANNEL as KEPT
from tests.ldp.estimation.test_windows import DAYS, check_runs, people, run, tallies_of, truth
from tests.ldp.exact import refuses
from tests.ldp.fakes import as_report, chances, supports

K = 3
CODE = GrrChannel(domain_size=K, threshold=WORD // 2)
BITS = UnaryChannel(domain_size=K, threshold_p=3 * WORD // 4, threshold_q=WORD // 4)
THIRD = Fraction(1, 3)
CHANNELS: dict[str, PureChannel] = {
    "grr": CODE,
    "unary": BITS,
    "fake codes": FakedChannel(answer=CODE, fake="code", share=THIRD),
    "fakes of no value": FakedChannel(answer=BITS, fake="no value", share=THIRD),
    "fakes of any value": FakedChannel(answer=BITS, fake="any value", share=THIRD),
}
Support = tuple[int, ...]


def reports_on(channel, value: int) -> dict[Support, Fraction]:
    report = as_report(channel)
    rows = chances(channel).items()
    return {tuple(int(supports(report, y, v)) for v in range(K)): row[value] for y, row in rows}


def moments(channel, values: Support, n: int) -> tuple[list[Fraction], list[list[Fraction]]]:
    """Mean and covariances of the estimates over every sample and every report, in fractions."""
    samples, k = list(combinations(values, n)), channel.domain_size
    mean = [Fraction(0)] * k
    square = [[Fraction(0)] * k for _ in range(k)]
    for sample in samples:
        for combination in product(*(reports_on(channel, value).items() for value in sample)):
            weight = Fraction(1, len(samples))
            for _, chance in combination:
                weight *= chance
            sums = [sum(support[v] for support, _ in combination) for v in range(k)]
            f = [(Fraction(total, n) - channel.q) / (channel.p - channel.q) for total in sums]
            for x in range(k):
                mean[x] += weight * f[x]
                for y in range(k):
                    square[x][y] += weight * f[x] * f[y]
    return mean, [[square[x][y] - mean[x] * mean[y] for y in range(k)] for x in range(k)]


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize(("values", "n"), [((0, 0, 1), 2), ((0, 1, 2), 2), ((0, 0, 1), 3)])
def test_covariance_of_two_values_is_exact(name: str, values: Support, n: int) -> None:
    channel = CHANNELS[name]
    mean, covariances = moments(channel, values, n)
    truth = [Fraction(values.count(v), len(values)) for v in range(K)]
    assert mean == truth
    sample = Sample(counts=np.zeros(K, np.int64), n_reports=n, n_population=len(values), channel=channel)
    for x, y in combinations(range(K), 2):
        found = value_covariance(float(truth[x]), float(truth[y]), sample=sample)
        assert found == pytest.approx(float(covariances[x][y]), abs=1e-12)
        assert sample.variance(float(truth[x])) == pytest.approx(float(covariances[x][x]), abs=1e-12)


def test_error_of_a_difference_of_two_values_is_the_root_of_its_variance() -> None:
    sample = Sample(counts=np.array([50, 30, 20]), n_reports=100, n_population=400, channel=CODE)
    f = np.array([1.0, 0.2, 0.0])
    assert sample.estimates().frequency == pytest.approx([1, 0.2, -0.2])
    found = value_difference(sample, reference=1, of="frequency").estimate()
    for x in (0, 2):
        variance = sample.variance(f[x]) + sample.variance(f[1])
        variance -= 2 * value_covariance(f[x], f[1], sample=sample)
        assert found.std_error[x] ** 2 == pytest.approx(float(variance))
    assert found.value == pytest.approx([0.8, 0, -0.4])
    assert found.std_error[1] == pytest.approx(0, abs=1e-9)
    assert found.is_exact
    visitors = value_difference(sample, reference=1, of="visitors").estimate()
    for name in ("value", "std_error", "ci_low", "ci_high"):
        assert getattr(visitors, name) == pytest.approx(400 * getattr(found, name), abs=1e-5)


RUNS = 150


@pytest.mark.parametrize(
    ("kind", "of", "day", "baseline"),
    [
        ("static", "frequency", 3, (2, 4)),
        ("daily", "frequency", 2, (1, 3, 4, 5)),
        ("static", "visitors", 1, (3, 5)),
    ],
)
def test_error_of_a_day_against_a_baseline_is_bounded(kind, of, day, baseline) -> None:
    rng = np.random.default_rng(29)
    presence, values = people(rng, kind=kind)
    truths = [truth(presence, values, Window(each, each), of=of) for each in (day, *baseline)]
    mean = np.mean(truths[1:], axis=0)
    targets = (truths[0] - mean, mean)
    found: list[list[WindowEstimate]] = [[], []]
    for _ in range(RUNS):
        difference = day_difference(run(rng, presence, values), day=day, baseline=baseline, of=of)
        for estimates, contrast in zip(found, (difference, baseline_mean(difference)), strict=True):
            estimates.append(contrast.estimate())
    for estimates, target in zip(found, targets, strict=True):
        assert not any(estimate.is_exact for estimate in estimates)
        check_runs(estimates, target)


def test_days_without_a_shared_visitor_are_independent_and_one_day_is_its_own_mean() -> None:
    presence = np.array([0b01] * 300 + [0b10] * 300)
    tallies = tallies_of(presence, np.arange(600) % 4, days=2, channel=KEPT)
    one, two = (sample_of(tallies, Window(day, day)).estimates(level=0.9) for day in (1, 2))
    difference = day_difference(tallies, day=1, baseline=[2], of="visitors")
    assert difference.estimate().std_error == pytest.approx(300 * np.hypot(one.std_error, two.std_error))
    contrast = baseline_mean(difference)
    found = contrast.estimate(level=0.9)
    assert contrast.is_exact
    assert found.value == pytest.approx(300 * two.frequency)
    ends = pytest.approx(300 * two.ci_low), pytest.approx(300 * two.ci_high)
    assert (found.ci_low, found.ci_high) == ends


def test_variances_of_two_studies_add_up() -> None:
    first = Sample(counts=np.array([50, 30, 20]), n_reports=100, n_population=400, channel=CODE)
    second = Sample(counts=np.array([80, 70, 40]), n_reports=150, n_population=150, channel=BITS)
    found = independent_difference(first, second, of="visitors", scales=(2.0, 4.0)).estimate(level=0.9)
    one, two = (each.estimates(level=0.9) for each in (first, second))
    assert found.value == pytest.approx(600 * two.frequency - 800 * one.frequency)
    assert found.std_error == pytest.approx(np.hypot(800 * one.std_error, 600 * two.std_error))
    down = np.hypot(800 * (one.ci_high - one.frequency), 600 * (two.frequency - two.ci_low))
    assert found.ci_low == pytest.approx(found.value - down)
    assert found.is_exact


def test_days_share_what_windows_of_one_day_share() -> None:
    rng = np.random.default_rng(8)
    presence, values = people(rng, kind="static")
    presence = np.where(rng.random(presence.size) < 0.7, 1 << presence % DAYS, presence)
    tallies = run(rng, presence, values)
    contrast = day_difference(tallies, day=1, baseline=[3, 5], of="frequency")
    samples = [term.sample for term in contrast.terms]
    f = [np.clip(sample.estimates().frequency, 0, 1) for sample in samples]
    noise = pure_variance([0, 1], n_reports=1, n_population=1, channel=KEPT)
    for i, j in combinations(range(3), 2):
        least, largest = shared_reports(tallies, *(Window(day, day) for day in np.array([1, 3, 5])[[i, j]]))
        reports = samples[i].n_reports * samples[j].n_reports
        covariance = (noise.min() * least if i == 0 else noise.max() * largest) / reports
        if i > 0:
            covariance += np.sqrt(samples[i].sampling_variance(f[i]) * samples[j].sampling_variance(f[j]))
        expected = covariance / np.sqrt(samples[i].variance(f[i]) * samples[j].variance(f[j]))
        assert contrast.correlation[i, j] == pytest.approx(np.minimum(expected, 1))
        assert contrast.correlation[j, i] == pytest.approx(np.minimum(expected, 1))
        assert expected.min() < 1


def test_what_cannot_be_is_refused() -> None:
    tallies = tallies_of(np.array([0b001] * 5 + [0b010] * 5), np.zeros(10), days=3, channel=KEPT)
    for day, baseline, message in (
        (1, [], r"day and baseline must be at least two different days, got \[1\]"),
        (1, [2, 1], r"must be at least two different days, got \[1, 2, 1\]"),
        (1, [3], r"window 3\.\.3 must have reports, got 0"),
        (4, [1], r"window must lie within days 1\.\.3, got 4\.\.4"),
    ):
        refuses(message, day_difference, tallies, day=day, baseline=baseline, of="frequency")
    fine = day_difference(tallies, day=1, baseline=[2], of="frequency")
    refuses(r"level must be in \(0, 1\), got 0.0", fine.estimate, level=0.0)
    three, four = (
        Sample(counts=np.ones(k, np.int64), n_reports=1, n_population=1, channel=channel)
        for k, channel in ((3, CODE), (4, KEPT))
    )
    refuses(r"reference must be in \[0, 3\), got 3", value_difference, three, reference=3, of="frequency")
    message = "second must have 4 values as the first, got 3"
    refuses(message, independent_difference, four, three, of="visitors")
    third = replace(three, channel=hadamard_channel(epsilon=Fraction(1), domain_size=3))
    refuses("must not depend on a third", value_covariance, 0.1, 0.2, sample=third)


# --- many rows: Holm by intervals ---------------------------------------------------------------------


def by_p_values(values: np.ndarray, *, alpha: float) -> list[bool]:
    p = [2 * NormalDist().cdf(-abs(value)) for value in values]
    order = sorted(range(len(p)), key=lambda place: p[place])
    found = [False] * len(p)
    for rank, place in enumerate(order):
        if p[place] >= alpha / (len(p) - rank):
            break
        found[place] = True
    return found


@given(values=st.lists(st.floats(-5, 5), min_size=1, max_size=12), alpha=st.sampled_from([0.01, 0.05, 0.3]))
def test_intervals_find_what_p_values_find(values: list[float], alpha: float) -> None:
    numbers = np.array(values)

    def around(level: float) -> SimpleNamespace:
        z = NormalDist().inv_cdf((1 + level) / 2)
        return SimpleNamespace(ci_low=numbers - z, ci_high=numbers + z)

    found = holm(around, rows=np.ones(len(values), bool), level=1 - alpha)
    assert found.tolist() == by_p_values(numbers, alpha=alpha)


FOUR = grr_channel(epsilon=Fraction(1), domain_size=4)


def tail(count: int, *, n: int, q: Fraction) -> Fraction:
    return sum((comb(n, c) * q**c * (1 - q) ** (n - c) for c in range(count, n + 1)), Fraction(0))


def least_count(*, n: int, error: Fraction) -> int:
    return next(count for count in range(n + 2) if tail(count, n=n, q=FOUR.q) <= error)


def test_a_value_is_listed_from_the_exact_binomial_count_on_and_each_leaves_more_error_to_the_others():
    n, error = 40, Fraction(1, 20)
    at_first, after_one = (least_count(n=n, error=error / left) for left in (4, 3))
    assert after_one < at_first
    for counts, expected in (
        ([at_first - 1, 5, 5, 0], [False] * 4),
        ([at_first, 5, 5, 0], [True, False, False, False]),
        ([after_one, 0, 0, 0], [False] * 4),
        ([after_one, 40, 0, 0], [True, True, False, False]),
    ):
        assert above_zero(np.array(counts), n_reports=n, channel=FOUR).tolist() == expected
    assert not above_zero(np.zeros(4, np.int64), n_reports=0, channel=FOUR).any()


@pytest.mark.parametrize(
    ("k", "n", "share"), [(62, 10**5, 0.0242), (3844, 10**5, 0.0306), (62, 10**6, 0.0077)]
)
def test_shares_that_are_found_four_times_of_five_are_those_of_the_formula(k, n, share):
    """The least share with power 0.8, of one group at epsilon 1 (the table has three digits)."""
    channel = code_channel(epsilon=Fraction(1), domain_size=k)
    spread = (n * float(channel.q) * (1 - float(channel.q))) ** 0.5
    counts = np.arange(int(n * channel.q), int(n * channel.q + 8 * spread))

    def is_listed(count):
        return above_zero(np.append(count, np.zeros(k - 1, np.int64)), n_reports=n, channel=channel)[0]

    first = counts[bisect_left(counts, True, key=is_listed)] / n
    least = (first - float(channel.q)) / float(channel.p - channel.q)
    sd = (float(noise_at_zero(channel)) / n) ** 0.5
    assert least + NormalDist().inv_cdf(0.8) * sd == pytest.approx(share, rel=0.02)


def test_sums_of_values_that_the_same_reports_chose_are_covered():
    """15 of 37 values lie where the list ends. An interval for a set chosen before covers 16%."""
    k, n, runs = 37, 20_000, 100
    channel, rng = grr_channel(epsilon=Fraction(1), domain_size=k), np.random.default_rng(1)
    error = (float(noise_at_zero(channel)) / n) ** 0.5
    share = np.array([3 * error] * 15 + [0.1] * 5 + [0.0] * 17)
    share /= share.sum()
    law = share * float(channel.p) + (1 - share) * float(channel.q)
    hits = naive = 0
    for _ in range(runs):
        counts = rng.multinomial(n, law)
        is_found = above_zero(counts, n_reports=n, channel=channel)
        sizes = {"channel": channel, "n_reports": n, "n_population": 10**9, "level": 0.95}
        weights = is_found.astype(float)
        answer = linear_answer(pure_frequencies(counts, **sizes), weights=weights, **sizes)
        missed = abs(answer.value - share[is_found].sum())
        hits += missed <= chosen_reach(int(is_found.sum()), k) * answer.std_error
        naive += answer.ci_low <= share[is_found].sum() <= answer.ci_high
    assert naive < 0.5 * runs
    assert hits >= 0.95 * runs


@pytest.mark.parametrize("n_tests", [1, 37])
def test_the_smallest_difference_is_found_with_its_power(n_tests) -> None:
    error = np.array([0.01, 0.2])
    smallest = smallest_found(error, n_tests=n_tests, level=0.9, power=0.7)
    bar = NormalDist().inv_cdf(1 - 0.1 / (2 * n_tests))
    power = [1 - NormalDist(d, s).cdf(bar * s) for d, s in zip(smallest, error, strict=True)]
    assert power == pytest.approx([0.7, 0.7])
