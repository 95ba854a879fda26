"""Short form of the benchmark of numbers: variances of both kinds of reports, known in other ways too."""

from math import exp

import numpy as np
import pytest

from benchmarks.numbers import (
    Wave,
    distribution_errors,
    threshold_variances,
    used_variances,
    wave_variances,
)


def test_a_wave_without_width_is_randomised_response() -> None:
    """The variance of a share is that of matrix inversion, with the sampling of the people."""
    wave = Wave(levels=6, half_width=0, epsilon=1.0)
    e, share = exp(1), 1 / 6
    p, q = e / (e + 5), 1 / (e + 5)
    noise = (q * (1 - q) + share * (p - q) * (1 - p - q)) / (p - q) ** 2
    found = wave.variances(np.eye(6))
    assert found == pytest.approx(noise + share * (1 - share))


def test_the_wave_gains_from_epsilon_two_on_and_not_at_one() -> None:
    for levels in (9, 17, 64):
        means = {
            e: (threshold_variances(levels, e)[0], wave_variances(levels, e)[0]) for e in (1.0, 2.0, 3.0)
        }
        assert means[1.0][1] == pytest.approx(means[1.0][0], rel=0.01)
        assert means[2.0][1] < 0.87 * means[2.0][0]
        assert means[3.0][1] < 0.73 * means[3.0][0]


def test_errors_of_the_distribution_are_near_those_of_earlier_runs() -> None:
    """With 64 levels and epsilon 1 these were .0175 and .0127 on other smooth data."""
    thresholds, wave = distribution_errors(1.0, runs=4)
    assert 0.012 < thresholds < 0.023
    assert 0.008 < wave < 0.017


def test_the_wave_in_use_is_one_of_those_compared_and_gains_in_both_figures_at_two() -> None:
    mean, share, width = used_variances(17, 2.0)
    wave = Wave(levels=17, half_width=width, epsilon=2.0)
    assert mean == pytest.approx(float(wave.variances(np.linspace(-1, 1, 17)[np.newaxis])[0]), rel=1e-6)
    assert share == pytest.approx(float(wave.variances(np.tri(17, 16, -1).T).mean()), rel=1e-6)
    of_mean, of_share = threshold_variances(17, 2.0)
    assert (mean < of_mean, share < of_share) == (True, True)
