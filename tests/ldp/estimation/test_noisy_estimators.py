"""Estimates from noisy counts: against exact ones, against the exact law, and where nothing can be said."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from ldp import NoReportsError, grr_channel, pure_frequencies, pure_variance
from ldp.estimation.noisy_estimators import (
    NoisyTotal,
    UnionNoise,
    noisy_frequencies,
    noisy_total,
    noisy_visitors,
)
from ldp.protocols.geometric import geometric_channel
from tests.ldp.exact import refuses

CHANNEL = grr_channel(epsilon=Fraction(1), domain_size=3)
COUNTS = np.array([900, 700, 400], np.int64)
WEEK = geometric_channel(step=Fraction(1, 7))
NOISE = UnionNoise(channel=WEEK, n_cells=16)
FOUND = noisy_frequencies(COUNTS, n_visitors=9000, noise=NOISE, channel=CHANNEL)


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
    usual = pure_frequencies(COUNTS, n_reports=2000, n_population=9000, channel=CHANNEL)
    noise = UnionNoise(channel=geometric_channel(step=Fraction(30)), n_cells=1)
    found = noisy_frequencies(COUNTS, n_visitors=9000, noise=noise, channel=CHANNEL)
    for name in ("frequency", "std_error", "ci_low", "ci_high", "consistent"):
        assert getattr(found, name) == pytest.approx(getattr(usual, name), rel=1e-6), name


def test_variance_is_that_of_the_answers_and_that_of_the_noise() -> None:
    f = np.clip(FOUND.frequency, 0, 1)
    answers = pure_variance(f, n_reports=2000, n_population=9000, channel=CHANNEL)
    slope = float(CHANNEL.p - CHANNEL.q)
    g = float(CHANNEL.q) + slope * f
    in_persons = NOISE.variance * ((1 - g) ** 2 + 2 * g**2)
    assert FOUND.std_error**2 == pytest.approx(answers + in_persons / (2000 * slope) ** 2, rel=1e-9)
    assert (FOUND.std_error**2 > 1.5 * answers).all()


def test_ends_of_the_interval_are_where_the_distance_is_z_standard_deviations() -> None:
    p, q = float(CHANNEL.p), float(CHANNEL.q)
    for end in (FOUND.ci_low, FOUND.ci_high):
        g = q + (p - q) * end
        answers = pure_variance(end, n_reports=2000, n_population=9000, channel=CHANNEL)
        variance = answers * (2000 * (p - q)) ** 2 + NOISE.variance * ((1 - g) ** 2 + 2 * g**2)
        z = np.abs(COUNTS - g * 2000) / np.sqrt(variance)
        assert ((z > 1.959) & (z < 2.0)).all()


def test_more_answers_than_visitors_are_a_matter_of_noise() -> None:
    noise = UnionNoise(channel=WEEK, n_cells=1)
    few = noisy_frequencies(COUNTS, n_visitors=1990, noise=noise, channel=CHANNEL)
    same = noisy_frequencies(COUNTS, n_visitors=2000, noise=noise, channel=CHANNEL)
    assert np.array_equal(few.std_error, same.std_error)


@pytest.mark.parametrize("counts", [[10, -8, 30], [0, 0, 0], [-300, 20, 10]])
def test_answers_that_could_be_noise_give_no_estimate(counts: list[int]) -> None:
    with pytest.raises(NoReportsError, match="to be distinguished from noise"):
        noisy_frequencies(np.array(counts, np.int64), n_visitors=500, noise=NOISE, channel=CHANNEL)


@pytest.mark.parametrize("n", [80, 140, 145, 150, 160, 200])
def test_few_answers_give_an_interval_with_ends_or_none(n: int) -> None:
    """Around the least number: never a root of less than 0, nor an interval without its estimate."""
    counts = np.array([n, n // 2, -n // 2], np.int64)
    try:
        found = noisy_frequencies(counts, n_visitors=500, noise=NOISE, channel=CHANNEL)
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
    settings = {"n_visitors": 10, "noise": noise, "channel": CHANNEL}
    refuses(r"counts must have shape \(3,\)", noisy_frequencies, COUNTS[:2], **settings)
    refuses(r"level must be in \(0, 1\), got 1", noisy_total, 5, noise=noise, level=1)
    refuses("n_cells must be >= 1, got 0", UnionNoise, channel=WEEK, n_cells=0)
