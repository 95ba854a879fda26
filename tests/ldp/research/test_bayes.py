"""Most likely frequencies: against a numeric optimiser and the conditions of a maximum; error as stated."""

from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ldp
from ldp.codes import NO_COUNT
from ldp.research.bayes import (
    bayes_frequencies,
    bayes_reports,
    grr_matrix,
    histogram_likelihoods,
    support_likelihoods,
)
from tests.ldp.exact import refuses
from tests.ldp.fakes import chances

CHANNEL = ldp.grr_channel(epsilon=Fraction(1), domain_size=4)
# Three values, five answers, nothing symmetric; the last answer is impossible for the first value.
CROOKED = np.array([[0.5, 0.1, 0.2], [0.2, 0.3, 0.1], [0.2, 0.2, 0.1], [0.1, 0.2, 0.2], [0.0, 0.2, 0.4]])


@given(
    shape=st.tuples(st.integers(2, 6), st.integers(0, 4)),
    seed=st.integers(0, 2**32 - 1),
    n=st.sampled_from([1, 7, 400, 10**6]),
)
@settings(deadline=None)
def test_result_is_a_distribution_that_no_value_could_improve(shape, seed, n) -> None:
    rng = np.random.default_rng(seed)
    k, more = shape
    matrix = rng.dirichlet(np.ones(k + more), k).T
    counts = rng.multinomial(n, matrix @ rng.dirichlet(np.full(k, 0.3)))
    estimates = bayes_frequencies(counts, matrix=matrix, n_population=n)
    f = estimates.frequency
    assert f.min() >= 0
    assert f.sum() == pytest.approx(1, abs=1e-12)
    given = counts > 0
    gradient = (counts[given] / n / (matrix @ f)[given]) @ matrix[given]
    assert gradient.max() - 1 <= 1.1e-6 / n + 1e-12
    assert np.abs(gradient - 1) @ f <= 3e-6 / n + 1e-12
    assert 0 <= estimates.gap <= 1e-6 + 1e-13 * n


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1, 2), Fraction(4)])
def test_inside_the_simplex_it_is_the_inversion_with_the_same_error(epsilon: Fraction) -> None:
    channel = ldp.grr_channel(epsilon=epsilon, domain_size=3)
    f = np.array([0.2, 0.5, 0.3])
    n = 10**6
    counts = np.round(n * (float(channel.q) + float(channel.p - channel.q) * f)).astype(np.int64)
    counts[0] += n - counts.sum()
    inverted = ldp.grr_frequencies(counts, n_reports=n, n_population=3 * n, channel=channel)
    estimates = bayes_frequencies(counts, matrix=grr_matrix(channel), n_population=3 * n, tolerance=1e-7)
    assert estimates.frequency == pytest.approx(inverted.frequency, abs=1e-4)
    exact = ldp.pure_variance(inverted.frequency, n_reports=n, n_population=3 * n, channel=channel)
    assert estimates.std_error**2 == pytest.approx(exact, rel=1e-3)
    assert estimates.covariance.sum(axis=0) == pytest.approx(0, abs=1e-9)


def test_stated_error_is_the_one_that_runs_show() -> None:
    f, n, times, rng = np.array([0.3, 0.4, 0.3]), 20_000, 1000, np.random.default_rng(5)
    people = np.round(n * f).astype(np.int64)
    squares, stated = np.empty((2, times, 3))
    for i in range(times):
        counts = sum(rng.multinomial(people[x], CROOKED[:, x]) for x in range(3))
        estimates = bayes_frequencies(np.asarray(counts), matrix=CROOKED, n_population=n)
        squares[i] = (estimates.frequency - f) ** 2
        stated[i] = np.diag(estimates.covariance)
    excess = squares.mean(axis=0) - stated.mean(axis=0)
    assert np.all(np.abs(excess) < 4 * squares.std(axis=0) / np.sqrt(times))
    assert np.all(squares.std(axis=0) / np.sqrt(times) < 0.1 * stated.mean(axis=0))


def test_what_cannot_be_is_refused() -> None:
    for changes, message in (
        ({"counts": np.array([1, 2])}, r"counts must have one entry per row of matrix .*, got \(2,\)"),
        ({"matrix": np.ones((5, 1)) / 5}, r"domain_size >= 2\), got \(5,\) and \(5, 1\)"),
        ({"matrix": np.ones((5, 3)) / 4}, "columns of matrix must be >= 0 and sum to 1, got 0.25 and 1.25"),
        ({"matrix": CROOKED * [1, 1, np.nan]}, "columns of matrix must be >= 0 and sum to 1"),
        ({"matrix": CROOKED + np.array([[-0.2], [0.2], [0], [0], [0]])}, "columns of matrix must be >= 0"),
        ({"matrix": np.ones((5, 3)) / 5}, "matrix must have rank 3, got 1"),
        ({"counts": np.array([1, -1, 1, 1, 1])}, "counts must be >= 0 with a report at least, got -1 to 3"),
        ({"counts": np.zeros(5, np.int64)}, "counts must be >= 0 with a report at least, got 0 to 0"),
        ({"n_population": 4}, "n_population must be >= n_reports = 5, got 4"),
        ({"tolerance": 0.0}, "tolerance must be > 0, got 0.0"),
        ({"tolerance": float("nan")}, "tolerance must be > 0, got nan"),
        ({"max_iterations": 0}, "max_iterations must be >= 1, got 0"),
        ({"counts": np.array([9, 1, 1, 1, 1]), "max_iterations": 1}, "after max_iterations = 1, got"),
        ({"counts": np.array([1, 1, 0, 2]), "matrix": np.eye(4, 3)}, "possible for a value, got 2 of 3"),
    ):
        arguments = {"counts": np.ones(5, np.int64), "matrix": CROOKED, "n_population": 20} | changes
        refuses(message, bayes_frequencies, arguments.pop("counts"), **arguments)


BITS = np.array(list(product((False, True), repeat=3)))
SETS = np.array([[value in chosen for value in range(5)] for chosen in combinations(range(5), 2)])
OUE = ldp.oue_channel(epsilon=Fraction(1), domain_size=3)


def matrix_of(channel) -> np.ndarray:
    return np.array([[float(chance) for chance in row] for row in chances(channel).values()])


FAKED = ldp.FakedChannel(answer=OUE, fake="no value", share=Fraction(1, 3))
THE = ldp.the_channel(epsilon=Fraction(2), domain_size=3)
TWO_ROUNDS = ldp.lue_channel("l-soue", epsilon_inf=Fraction(2), epsilon_1=Fraction(1), domain_size=3)
ALL_BITS = ldp.bit_flip_channel(epsilon=Fraction(2), domain_size=3, sampled=3)
SUBSET = ldp.subset_channel(epsilon=Fraction(1, 2), domain_size=5)
# Of each row of SETS: 4 of the 10 sets of two hold a given value.
OF_SETS = np.where(SETS, float(SUBSET.p) / 4, float(1 - SUBSET.p) / 6)
SUPPORTS = {
    "grr": (CHANNEL, np.eye(4, dtype=np.bool_), matrix_of(CHANNEL)),
    "oue": (OUE, BITS, matrix_of(OUE)),
    "the": (THE, BITS, matrix_of(THE)),
    "l-soue": (TWO_ROUNDS, BITS, matrix_of(TWO_ROUNDS)),
    "dbitflippm": (ALL_BITS, BITS, matrix_of(ALL_BITS)),
    "rsfd-ouez": (FAKED, BITS, matrix_of(FAKED)),
    "subset": (SUBSET, SETS, OF_SETS),
}


def fixed_counts(matrix: np.ndarray, *, n: int) -> np.ndarray:
    rng = np.random.default_rng(8)
    k = matrix.shape[1]
    return rng.multinomial(n, matrix @ (np.arange(1, k + 1) / np.arange(1, k + 1).sum()))


@pytest.mark.parametrize("name", SUPPORTS)
def test_likelihoods_are_the_probabilities_up_to_a_factor_and_find_what_the_matrix_finds(name: str) -> None:
    channel, supports, matrix = SUPPORTS[name]
    assert matrix.sum(axis=0) == pytest.approx(1)
    if name == "grr":
        assert matrix == pytest.approx(grr_matrix(channel))
    factors = matrix / support_likelihoods(supports, channel=channel)
    assert factors == pytest.approx(np.repeat(factors[:, :1], factors.shape[1], axis=1), rel=1e-12)
    counts = fixed_counts(matrix, n=20_000)
    expected = bayes_frequencies(counts, matrix=matrix, n_population=60_000)
    likelihoods = support_likelihoods(np.repeat(supports, counts, axis=0), channel=channel)
    found = bayes_reports(likelihoods, n_population=60_000)
    assert found.frequency == pytest.approx(expected.frequency, abs=1e-4)
    assert found.std_error == pytest.approx(expected.std_error, rel=0.05)
    assert found.covariance.sum(axis=0) == pytest.approx(0, abs=1e-9)
    assert found.gap <= 1e-6 + 1e-13 * 20_000


def test_noisy_counts_are_as_likely_as_the_table_says() -> None:
    channel = ldp.histogram_channel(epsilon=Fraction(2), domain_size=3)
    reports = np.array([[1, 0, channel.lowest], [1 - channel.lowest, 2, 0]], np.int16)
    likelihoods = histogram_likelihoods(reports, channel=channel)

    def exact(report: np.ndarray, present: int) -> Fraction:
        noise = [1 - count if x == present else count for x, count in enumerate(report.tolist())]
        return prod((Fraction(channel.weights[y - channel.lowest], 2**64) for y in noise), start=Fraction(1))

    for row, report in zip(likelihoods, reports, strict=True):
        expected = [float(exact(report, x) / exact(report, 0)) for x in range(3)]
        assert row / row[0] == pytest.approx(expected, rel=1e-9)


def test_reports_without_likelihoods_are_refused() -> None:
    for likelihoods, n_population, message in (
        (np.ones(3), 5, r"likelihoods must have shape \(n >= 1, domain_size >= 2\), got \(3,\)"),
        (np.ones((0, 3)), 5, r"got \(0, 3\)"),
        (np.ones((3, 1)), 5, r"got \(3, 1\)"),
        (np.array([[1.0, -1.0]]), 5, "likelihoods must be finite and >= 0, with one > 0 per report"),
        (np.array([[1.0, np.inf]]), 5, "likelihoods must be finite"),
        (np.array([[1.0, 2.0], [0.0, 0.0]]), 5, "with one > 0 per report"),
        (np.eye(3), 2, "n_population must be >= n_reports = 3, got 2"),
        (np.array([[1.0, 2.0, 2.0], [2.0, 1.0, 1.0]]), 5, "must tell 3 values apart, got 2 that do not"),
    ):
        refuses(message, bayes_reports, likelihoods, n_population=n_population)
    she = ldp.histogram_channel(epsilon=Fraction(1), domain_size=3)
    nothing = np.full((1, 3), NO_COUNT, np.int16)
    refuses("reports must have counts, got a row of NO_COUNT", histogram_likelihoods, nothing, channel=she)
    any_value = ldp.FakedChannel(answer=OUE, fake="any value", share=Fraction(1, 3))
    with_prior = ldp.PriorFakedChannel(answer=OUE, prior=(2**62, 2**62, 2**63), share=Fraction(1, 3))
    for channel in (any_value, with_prior):
        refuses("fakes must be even codes or of no value, got", support_likelihoods, BITS, channel=channel)
    some = ldp.bit_flip_channel(epsilon=Fraction(1), domain_size=3, sampled=2)
    refuses("sampled must be 3, got 2", support_likelihoods, BITS, channel=some)
