"""Estimates: formulas against exact enumeration and numeric solvers, intervals against their definition."""

from collections.abc import Callable
from fractions import Fraction
from math import comb, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom

from ldp import GrrChannel, grr_channel, grr_frequencies, project_simplex, pure_variance
from ldp.protocols.channels import WORD
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
def test_projection_is_the_nearest_distribution(f: list[float], total: float) -> None:
    out = project_simplex(f, total=total)
    assert np.all(out >= 0)
    assert out.sum() == pytest.approx(total, rel=1e-9)
    shift = np.array(f) - out
    common = shift[out > 0]
    tolerance = 1e-9 * max(1, np.abs(f).max())
    assert np.ptp(common) <= tolerance
    assert np.all(shift[out == 0] <= common[0] + tolerance)


def test_projection_survives_entries_that_dwarf_the_total() -> None:
    assert project_simplex([1e20, 0.0, -1e20]).tolist() == [1.0, 0.0, 0.0]


def test_consistent_frequencies_are_the_projected_ones() -> None:
    counts = np.array([300, 20, 120, 160, 100, 100, 100, 100])
    estimates = grr_frequencies(counts, n_reports=1000, n_population=2000, channel=CHANNEL)
    assert estimates.frequency.min() < 0
    assert np.array_equal(estimates.consistent, project_simplex(estimates.frequency))


@pytest.mark.parametrize("f", [[], [[1.0]], [float("nan"), 1.0], [float("inf")]])
def test_projection_of_no_vector_or_to_no_total_is_refused(f) -> None:
    refuses("f must be finite with shape", project_simplex, f)
    for total in (0.0, -1.0, float("inf"), float("nan")):
        refuses("total must be > 0, got", project_simplex, [0.5], total=total)
