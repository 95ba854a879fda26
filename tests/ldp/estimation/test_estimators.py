"""Estimates, exact and noisy: formulas against enumeration, solvers and the law of the noise."""

from collections.abc import Callable
from fractions import Fraction
from math import comb, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom

from ldp import (
    GrrChannel,
    NoReportsError,
    grr_channel,
    grr_frequencies,
    project_simplex,
    pure_frequencies,
    pure_variance,
)
from ldp.estimation.noisy_estimators import (
    NoisyTotal,
    UnionNoise,
    noisy_frequencies,
    noisy_total,
    noisy_visitors,
)
from ldp.protocols.channels import WORD
from ldp.protocols.geometric import geometric_channel
from tests.ldp.exact import VECTORS, refuses

CHANNEL = grr_channel(epsilon=Fraction(1), domain_size=8)


def counts_with(first: int, *, n: int, k: int) -> np.ndarray:
    counts = np.zeros(k, np.int64)
    counts[0] = first
    counts[-1] += n - first
    return counts


@pytest.mark.parametrize("vector", [v for v in VECTORS["estimators"] if v["kind"] == "GRR"])
def test_frequency_is_that_of_the_vectors(vector: dict[str, Any]) -> None:
    k, n = int(vector["c"]), int(vector["n"])
    channel = grr_channel(epsilon=Fraction(vector["eps"]), domain_size=k)
    counts = counts_with(int(vector["N"]), n=n, k=k)
    estimates = grr_frequencies(counts, n_reports=n, n_population=n, channel=channel)
    assert estimates.frequency[0] == pytest.approx(float(vector["fhat"]), rel=5e-15)
    assert estimates.frequency.sum() == pytest.approx(1, abs=1e-12)


def exact_moments(*, truth: int, population: int, n: int, channel: GrrChannel) -> tuple[Fraction, Fraction]:
    p, q = channel.p, channel.q
    mean = square = Fraction(0)
    for hits in range(max(0, n - (population - truth)), min(truth, n) + 1):
        chosen = Fraction(comb(truth, hits) * comb(population - truth, n - hits), comb(population, n))
        for kept in range(hits + 1):
            for flipped in range(n - hits + 1):
                weight = chosen * comb(hits, kept) * p**kept * (1 - p) ** (hits - kept)
                weight *= comb(n - hits, flipped) * q**flipped * (1 - q) ** (n - hits - flipped)
                estimate = (Fraction(kept + flipped, n) - q) / (p - q)
                mean += weight * estimate
                square += weight * estimate**2
    return mean, square - mean**2


@pytest.mark.parametrize(
    ("truth", "population", "n"), [(0, 6, 4), (2, 6, 4), (5, 7, 7), (3, 5, 1), (1, 1, 1), (9, 10, 3)]
)
def test_estimate_is_unbiased_and_its_variance_exact(truth: int, population: int, n: int) -> None:
    channel = GrrChannel(domain_size=4, threshold=5 * WORD // 8)
    mean, variance = exact_moments(truth=truth, population=population, n=n, channel=channel)
    assert mean == Fraction(truth, population)
    formula = pure_variance(truth / population, n_reports=n, n_population=population, channel=channel)
    assert float(formula) == pytest.approx(float(variance), rel=1e-12)


windows = st.tuples(
    st.sampled_from([2, 3, 8, 37]),
    st.fractions(Fraction(1, 10), 4, max_denominator=50),
    st.integers(1, 20_000),
    st.integers(0, 200_000),
    st.floats(0, 1),
)


@given(window=windows, level=st.sampled_from([0.5, 0.9, 0.95, 0.999]))
@settings(max_examples=40)
def test_interval_holds_all_frequencies_that_the_estimate_does_not_contradict(window, level) -> None:
    k, epsilon, n, others, share = window
    channel = grr_channel(epsilon=epsilon, domain_size=k)
    counts = counts_with(round(share * n), n=n, k=k)
    sizes = {"n_reports": n, "n_population": n + others, "channel": channel}
    estimates = grr_frequencies(counts, level=level, **sizes)
    estimate, low, high = estimates.frequency[0], estimates.ci_low[0], estimates.ci_high[0]
    assert low <= estimate <= high
    assert estimates.std_error[0] == pytest.approx(sqrt(pure_variance(min(max(estimate, 0), 1), **sizes)))

    z = NormalDist().inv_cdf((1 + level) / 2)

    def excess(f: float) -> float:
        return (estimate - f) ** 2 - z * z * float(pure_variance(f, **sizes))

    assume(excess(estimate) < -1e-9)
    assert low == pytest.approx(_root(excess, start=estimate, direction=-1), rel=1e-6, abs=1e-6)
    assert high == pytest.approx(_root(excess, start=estimate, direction=1), rel=1e-6, abs=1e-6)


def _root(excess: Callable[[float], float], *, start: float, direction: int) -> float:
    step = 0.01
    while excess(start + direction * step) < 0:
        step *= 2
    return brentq(excess, start, start + direction * step, xtol=1e-12)


@pytest.mark.parametrize("k", [2, 37, 65534])
@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1), Fraction(40)])
@pytest.mark.parametrize(("n", "population"), [(1, 1), (1, 10**8), (10**6, 10**6), (10**6, 10**6 + 1)])
def test_interval_holds_the_most_extreme_estimates(k, epsilon, n, population) -> None:
    """All reports say the same: one estimate is far above 1, the others as low as can be."""
    channel = grr_channel(epsilon=epsilon, domain_size=k)
    counts = counts_with(n, n=n, k=k)
    estimates = grr_frequencies(counts, n_reports=n, n_population=population, channel=channel)
    assert np.all(np.isfinite([estimates.ci_low, estimates.ci_high, estimates.std_error]))
    assert np.all(estimates.ci_low <= estimates.frequency)
    assert np.all(estimates.frequency <= estimates.ci_high)
    assert np.array_equal(estimates.consistent, project_simplex(estimates.frequency))


@pytest.mark.parametrize("n", [150, 600, 3000])
@pytest.mark.parametrize("epsilon", [1, 3])
def test_interval_covers_a_value_that_nobody_has(n: int, epsilon: int) -> None:
    """Exactly: the count of a value that no one has is binomial with probability q."""
    channel = grr_channel(epsilon=Fraction(epsilon), domain_size=37)
    covered = 0.0
    for count in range(n + 1):
        probability = binom.pmf(count, n, float(channel.q))
        if probability < 1e-12:
            continue
        counts = counts_with(count, n=n, k=37)
        estimates = grr_frequencies(counts, n_reports=n, n_population=n, channel=channel)
        covered += probability * (estimates.ci_low[0] <= 0 <= estimates.ci_high[0])
    assert 0.93 < covered < 0.98


def test_counts_that_cannot_be_are_refused() -> None:
    for changes, message in (
        ({"counts": np.array([1, 2])}, r"counts must have shape \(8,\), got \(2,\)"),
        ({"n_reports": 0}, "n_reports must be >= 1, got 0"),
        ({"n_population": 9}, "n_population must be >= n_reports = 10, got 9"),
        ({"counts": np.array([11, -1, 0, 0, 0, 0, 0, 0])}, "counts must be >= 0, got -1"),
        ({"counts": np.array([9, 0, 0, 0, 0, 0, 0, 0])}, "counts must add up to n_reports = 10, got 9"),
        ({"level": 0.0}, r"level must be in \(0, 1\), got 0.0"),
        ({"level": 1.0}, r"level must be in \(0, 1\), got 1.0"),
        ({"level": float("nan")}, r"level must be in \(0, 1\), got nan"),
    ):
        arguments = {"counts": counts_with(4, n=10, k=8), "n_reports": 10, "n_population": 10} | changes
        refuses(message, grr_frequencies, arguments.pop("counts"), channel=CHANNEL, **arguments)


@given(f=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), total=st.sampled_from([1.0, 0.25, 1e4]))
@example(f=[1e20, 0.0, -1e20], total=1.0)
def test_projection_is_the_nearest_distribution(f: list[float], total: float) -> None:
    out = project_simplex(f, total=total)
    assert np.all(out >= 0)
    assert out.sum() == pytest.approx(total, rel=1e-9)
    shift = np.array(f) - out
    common = shift[out > 0]
    tolerance = 1e-9 * max(1, np.abs(f).max())
    assert np.ptp(common) <= tolerance
    assert np.all(shift[out == 0] <= common[0] + tolerance)


@pytest.mark.parametrize("f", [[], [[1.0]], [float("nan"), 1.0], [float("inf")]])
def test_projection_of_no_vector_or_to_no_total_is_refused(f) -> None:
    refuses("f must be finite with shape", project_simplex, f)
    for total in (0.0, -1.0, float("inf"), float("nan")):
        refuses("total must be > 0, got", project_simplex, [0.5], total=total)


THREE = grr_channel(epsilon=Fraction(1), domain_size=3)
COUNTS = np.array([900, 700, 400], np.int64)
WEEK = geometric_channel(step=Fraction(1, 7))
NOISE = UnionNoise(channel=WEEK, n_cells=16)
FOUND = noisy_frequencies(COUNTS, n_visitors=9000, noise=NOISE, channel=THREE)


def union_law(*, step: float, n_cells: int, size: int = 2**14) -> np.ndarray:
    """Return the law of the sum of n two-sided geometric variables, by its characteristic function."""
    a, angle = np.exp(-step), 2 * np.pi * np.arange(size) / size
    return np.real(np.fft.fft(((1 - a) ** 2 / (1 - 2 * a * np.cos(angle) + a * a)) ** n_cells)) / size


@pytest.mark.parametrize("step", [Fraction(1, 31), Fraction(1, 7), Fraction(1)])
@pytest.mark.parametrize("n_cells", [1, 2, 4, 16])
def test_interval_of_a_total_holds_it_as_often_as_it_says(step: Fraction, n_cells: int) -> None:
    total = noisy_total(1000, noise=UnionNoise(channel=geometric_channel(step=step), n_cells=n_cells))
    law = union_law(step=float(step), n_cells=n_cells)
    reach = 1000 - total.ci_low
    assert reach == total.ci_high - 1000
    held = law[0] + 2 * law[1 : reach + 1].sum()
    assert 0.9485 < held < 0.985
    if n_cells == 1:  # a normal quantile would be too short, and by more than rounding mends
        assert law[0] + 2 * law[1 : int(1.96 * total.std_error) + 1].sum() < 0.945


def test_without_noise_the_estimates_are_the_usual_ones() -> None:
    usual = pure_frequencies(COUNTS, n_reports=2000, n_population=9000, channel=THREE)
    noise = UnionNoise(channel=geometric_channel(step=Fraction(30)), n_cells=1)
    found = noisy_frequencies(COUNTS, n_visitors=9000, noise=noise, channel=THREE)
    for name in ("frequency", "std_error", "ci_low", "ci_high", "consistent"):
        assert getattr(found, name) == pytest.approx(getattr(usual, name), rel=1e-6), name


def test_variance_is_that_of_the_answers_and_that_of_the_noise() -> None:
    f = np.clip(FOUND.frequency, 0, 1)
    answers = pure_variance(f, n_reports=2000, n_population=9000, channel=THREE)
    slope = float(THREE.p - THREE.q)
    g = float(THREE.q) + slope * f
    in_persons = NOISE.variance * ((1 - g) ** 2 + 2 * g**2)
    assert FOUND.std_error**2 == pytest.approx(answers + in_persons / (2000 * slope) ** 2, rel=1e-9)
    assert (FOUND.std_error**2 > 1.5 * answers).all()


def test_ends_of_the_interval_are_where_the_distance_is_z_standard_deviations() -> None:
    p, q = float(THREE.p), float(THREE.q)
    for end in (FOUND.ci_low, FOUND.ci_high):
        g = q + (p - q) * end
        answers = pure_variance(end, n_reports=2000, n_population=9000, channel=THREE)
        variance = answers * (2000 * (p - q)) ** 2 + NOISE.variance * ((1 - g) ** 2 + 2 * g**2)
        z = np.abs(COUNTS - g * 2000) / np.sqrt(variance)
        assert ((z > 1.959) & (z < 2.0)).all()


def test_more_answers_than_visitors_are_a_matter_of_noise() -> None:
    noise = UnionNoise(channel=WEEK, n_cells=1)
    few = noisy_frequencies(COUNTS, n_visitors=1990, noise=noise, channel=THREE)
    same = noisy_frequencies(COUNTS, n_visitors=2000, noise=noise, channel=THREE)
    assert np.array_equal(few.std_error, same.std_error)


@pytest.mark.parametrize("counts", [[10, -8, 30], [0, 0, 0], [-300, 20, 10]])
def test_answers_that_could_be_noise_give_no_estimate(counts: list[int]) -> None:
    with pytest.raises(NoReportsError, match="to be distinguished from noise"):
        noisy_frequencies(np.array(counts, np.int64), n_visitors=500, noise=NOISE, channel=THREE)


@pytest.mark.parametrize("n", [80, 140, 145, 150, 160, 200])
def test_few_answers_give_an_interval_with_ends_or_none(n: int) -> None:
    """Around the least number: never a root of less than 0, nor an interval without its estimate."""
    counts = np.array([n, n // 2, -n // 2], np.int64)
    try:
        found = noisy_frequencies(counts, n_visitors=500, noise=NOISE, channel=THREE)
    except NoReportsError:
        assert n < 160
        return
    assert np.isfinite(found.ci_low).all()
    assert np.isfinite(found.ci_high).all()
    assert (found.ci_low <= found.frequency).all()
    assert (found.frequency <= found.ci_high).all()
    assert found.consistent.min() >= 0
    assert found.consistent.sum() == pytest.approx(1)


def test_visitors_of_a_value_have_the_errors_of_both() -> None:
    total = noisy_total(9000, noise=NOISE)
    value, low, high = noisy_visitors(FOUND, total=total)
    assert value == pytest.approx(FOUND.frequency * 9000)
    known = NoisyTotal(value=9000, std_error=0.0, ci_low=9000, ci_high=9000)
    _, at_least, at_most = noisy_visitors(FOUND, total=known)
    assert at_least == pytest.approx(FOUND.ci_low * 9000)
    assert at_most == pytest.approx(FOUND.ci_high * 9000)
    assert (low < at_least).all()
    assert (at_most < high).all()
    half = total.ci_high - 9000
    expected = sqrt((9000 * (FOUND.ci_high[0] - FOUND.frequency[0])) ** 2 + (FOUND.frequency[0] * half) ** 2)
    assert high[0] - value[0] == pytest.approx(expected, rel=1e-3)
    with pytest.raises(NoReportsError, match="visitors must be more than 0"):
        noisy_visitors(FOUND, total=noisy_total(-3, noise=NOISE))


def test_arguments_that_break_a_rule_are_refused() -> None:
    noise = UnionNoise(channel=WEEK, n_cells=1)
    settings = {"n_visitors": 10, "noise": noise, "channel": THREE}
    refuses(r"counts must have shape \(3,\)", noisy_frequencies, COUNTS[:2], **settings)
    refuses(r"level must be in \(0, 1\), got 1", noisy_total, 5, noise=noise, level=1)
    refuses("n_cells must be >= 1, got 0", UnionNoise, channel=WEEK, n_cells=0)
