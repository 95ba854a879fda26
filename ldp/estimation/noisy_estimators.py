"""Estimates from counts that have presence noise: totals with an interval, frequencies of answers.

Each gap cell has independent noise of variance s2, so a union of C cells has C s2. Of k categories, with n
the sum of their noisy counts N_x, g(f) = q + (p - q) f and f the true frequency,

    N_x - g(f) n

has mean 0 exactly, with any noise, and in addition to the variance of the answers, n^2 (p - q)^2 Var(f) of
`pure_variance`, that of the noise: C s2 ((1 - g)^2 + (k - 1) g^2). So the interval of all f at which it
is within z standard deviations of 0 (Fieller; Wilson without the noise) needs no unbiased ratio. The estimate
itself, (N_x / n - q) / (p - q), is a ratio of noisy numbers: its bias is of the order of k C s2 / n^2 of the
estimate, far below its standard error for each estimate.

The noise has heavier tails than a normal variable; of few cells that moves the 97.5th percentile from 1.96 to
2.12 standard deviations. z is corrected for it to the first order (Cornish and Fisher).
"""

from dataclasses import dataclass
from math import ceil
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.errors import LdpError, NoReportsError
from ldp.estimation.estimators import Estimates, project_simplex, pure_variance
from ldp.protocols.channels import GrrChannel
from ldp.protocols.geometric import GeometricChannel

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionNoise:
    """Noise of one count of a window: that of `n_cells` cells, at least 1, each with noise of `channel`."""

    channel: GeometricChannel
    n_cells: int

    def __post_init__(self) -> None:
        if self.n_cells < 1:
            raise LdpError(f"n_cells must be >= 1, got {self.n_cells}")

    @property
    def variance(self) -> float:
        """Return the variance in persons squared."""
        return self.n_cells * self.channel.variance

    @property
    def excess(self) -> float:
        """Excess kurtosis."""
        return self.channel.moments[1] / self.n_cells


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTotal:
    """A number of persons from a noisy count; unbiased, may be negative, as may be its interval.

    Parameters
    ----------
    value : int
    std_error : float
    ci_low, ci_high : int; both included, and rounded outwards: no one is there in part
    """

    value: int
    std_error: float
    ci_low: int
    ci_high: int


def noisy_total(count: int, *, noise: UnionNoise, level: float = 0.95) -> NoisyTotal:
    """Persons in a window: the count itself, with the error of its noise.

    Parameters
    ----------
    count : int; noisy
    noise : UnionNoise; of the count
    level : float; of the interval, in (0, 1)
    """
    std_error = noise.variance**0.5
    half = ceil(float(_quantile(level, excess=noise.excess)) * std_error)
    return NoisyTotal(value=count, std_error=std_error, ci_low=count - half, ci_high=count + half)


def noisy_frequencies(
    counts: NDArray[np.int64],
    *,
    n_visitors: int,
    noise: UnionNoise,
    channel: GrrChannel,
    level: float = 0.95,
) -> Estimates:
    """Frequency of each value among the visitors of a window, from noisy counts of answers.

    Parameters
    ----------
    counts : ndarray of int64, shape (domain_size,); noisy, may be negative; not modified
    n_visitors : int; noisy number of visitors; fewer than answers count as as many
    noise : UnionNoise; of each count
    channel : GrrChannel; as used for the answers
    level : float; of the interval, in (0, 1)

    Raises
    ------
    NoReportsError : the answers cannot be distinguished from noise: no interval would have an end
    """
    if counts.shape != (channel.domain_size,):
        raise LdpError(f"counts must have shape ({channel.domain_size},), got {counts.shape}")
    n, k = int(counts.sum()), channel.domain_size
    least = _quantile(level, excess=noise.excess / k) * (k * noise.variance) ** 0.5
    if n <= max(least, 1):
        raise NoReportsError(f"answers must be more than {least:.0f} to be distinguished from noise, got {n}")
    p, q = float(channel.p), float(channel.q)
    frequency = (counts / n - q) / (p - q)
    population = max(n_visitors, n)

    def of_noise(f: Floats) -> Floats:
        return noise_variance(f, n_reports=n, noise=noise, channel=channel)

    def variance(f: Floats) -> Floats:
        return pure_variance(f, n_reports=n, n_population=population, channel=channel) + of_noise(f)

    clipped = np.clip(frequency, 0, 1)
    std_error = np.sqrt(variance(clipped))
    share = of_noise(clipped) / std_error**2
    z = _quantile(level, excess=noise.excess * share**2)
    low, high = _interval(frequency, variance(np.array([0.0, 0.5, 1.0])), z=z)
    return Estimates(
        frequency=frequency,
        std_error=std_error,
        ci_low=low,
        ci_high=high,
        consistent=project_simplex(frequency),
    )


def noise_variance(f: ArrayLike, *, n_reports: float, noise: UnionNoise, channel: GrrChannel) -> Floats:
    """Contribution of the counts' noise to the variance of estimates of true frequencies f; see the module.

    Parameters
    ----------
    f : array_like of float; true frequencies, in [0, 1]
    n_reports : float; answers in the window, above 0
    noise : UnionNoise; of each count
    channel : GrrChannel; as used for the answers
    """
    p, q = float(channel.p), float(channel.q)
    g = q + (p - q) * np.asarray(f, np.float64)
    spread = (1 - g) ** 2 + (channel.domain_size - 1) * g**2
    return np.asarray(noise.variance * spread / (n_reports * (p - q)) ** 2, np.float64)


def noisy_visitors(estimates: Estimates, *, total: NoisyTotal) -> tuple[Floats, Floats, Floats]:
    """Visitors of each value: estimate and interval, in persons; NoReportsError if the total is not above 0.

    Parameters
    ----------
    estimates : of `noisy_frequencies`; independent of the noise of the total
    total : of the visitors of the same window

    Returns
    -------
    value, low, high : ndarray of float64, shape (domain_size,)

    Notes
    -----
    The value is unbiased if the frequency is. The interval puts both intervals together: MOVER of a product,
    Donner and Zou, Statistics in Medicine 2012.
    """
    f, n = estimates.frequency, float(total.value)
    if n < 1:
        raise NoReportsError(f"visitors must be more than 0 to differ from noise, got {total.value}")
    half = (total.ci_high - total.ci_low) / 2
    below, above = (
        np.sqrt((n * side) ** 2 + (f * half) ** 2 + (half * side) ** 2)
        for side in (f - estimates.ci_low, estimates.ci_high - f)
    )
    return f * n, f * n - below, f * n + above


def _interval(frequency: Floats, at: Floats, *, z: Floats) -> tuple[Floats, Floats]:
    """All f with (frequency - f)**2 <= z**2 variance(f), a quadratic; `at` has the variance at 0, 1/2, 1."""
    bend = 2 * (at[0] - 2 * at[1] + at[2])
    tilt = at[2] - at[0] - bend
    z2 = z**2
    scale = 1 - z2 * bend
    if (scale <= 0).any():
        raise NoReportsError("answers must be more to be distinguished from noise: no interval would end")
    centre = (frequency + z2 * tilt / 2) / scale
    half = np.sqrt(np.maximum(centre**2 - (frequency**2 - z2 * at[0]) / scale, 0.0))
    return np.minimum(centre - half, frequency), np.maximum(centre + half, frequency)


def _quantile(level: float, *, excess: float | Floats) -> Floats:
    """Standard deviations that hold a symmetric variable of that excess kurtosis with probability `level`.

    Never more than any variable needs (Chebyshev): noise of a few per mille of a person has a huge kurtosis.
    """
    if not 0 < level < 1:
        raise LdpError(f"level must be in (0, 1), got {level}")
    z = NormalDist().inv_cdf((1 + level) / 2)
    corrected = z + np.maximum(z**3 - 3 * z, 0) * excess / 24
    return np.asarray(np.minimum(corrected, (1 - level) ** -0.5), np.float64)
