"""From counts of answers to frequencies with their errors."""

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.channels import GrrChannel
from ldp.errors import LdpError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimates:
    """Frequencies of the values of one indicator in one window.

    Parameters
    ----------
    frequency : ndarray of float64, shape (domain_size,); unbiased, may leave [0, 1]
    std_error : same shape; standard deviation of `frequency`
    ci_low, ci_high : same shape; confidence interval, holds `frequency`, may leave [0, 1]
    consistent : same shape; nearest distribution: no negative value, sum 1; biased
    """

    frequency: Floats
    std_error: Floats
    ci_low: Floats
    ci_high: Floats
    consistent: Floats


def grr_frequencies(
    counts: NDArray[np.int64],
    *,
    n_reports: int,
    n_population: int,
    channel: GrrChannel,
    level: float = 0.95,
) -> Estimates:
    """Frequency of each value among the visitors of a window, from GRR answers of a sample of them.

    Parameters
    ----------
    counts : ndarray of int64, shape (domain_size,); answers per value; not modified
    n_reports : int; answers in all, at least 1
    n_population : int; visitors of the window, at least n_reports
    channel : GrrChannel; as used for the answers
    level : float; of the interval, in (0, 1)

    Raises
    ------
    LdpError : a rule above is broken, or counts do not add up to n_reports

    Notes
    -----
    Source: Wang et al., USENIX Security 2017 (inversion). The interval is the score interval: every f
    whose distance from the estimate is within z standard deviations *at f*, so it also holds for rare values.
    Cost O(domain_size log domain_size).
    """
    _check_counts(counts, n_reports=n_reports, n_population=n_population, channel=channel)
    if not 0 < level < 1:
        raise LdpError(f"level must be in (0, 1), got {level}")
    frequency = (counts / n_reports - float(channel.q)) / _noise_terms(channel).slope
    low, high = _score_interval(
        frequency, n_reports=n_reports, n_population=n_population, channel=channel, level=level
    )
    variance = grr_variance(
        np.clip(frequency, 0, 1), n_reports=n_reports, n_population=n_population, channel=channel
    )
    return Estimates(
        frequency=frequency,
        std_error=np.sqrt(variance),
        ci_low=low,
        ci_high=high,
        consistent=project_simplex(frequency),
    )


def grr_variance(
    f: ArrayLike, *, n_reports: ArrayLike, n_population: ArrayLike, channel: GrrChannel
) -> Floats:
    """Exact variance of the unbiased GRR estimate of true frequencies f; arguments broadcast.

    Parameters
    ----------
    f : array_like of float; true frequencies among the visitors, in [0, 1]
    n_reports : array_like of int; answers, at least 1
    n_population : array_like of int; visitors; those who answer are a simple random sample of them

    Returns
    -------
    ndarray of float64

    Notes
    -----
    Noise of the answers, plus that of the sample with the correction for a finite population.
    """
    constant, linear, sampling = _variance_terms(
        n_reports=n_reports, n_population=n_population, channel=channel
    )
    f = np.asarray(f, np.float64)
    return np.asarray(constant + linear * f + sampling * f * (1 - f), np.float64)


def project_simplex(f: ArrayLike, total: float = 1.0) -> Floats:
    """Nearest vector (Euclidean) without a negative entry and with the given sum ("norm-sub").

    Parameters
    ----------
    f : array_like of float, shape (k,); not modified
    total : float; above 0

    Raises
    ------
    LdpError : f is empty or not finite, or total is not above 0

    Notes
    -----
    Source: Wang et al., NDSS 2020 (norm-sub), in closed form by sorting. Cost O(k log k).
    """
    f = np.asarray(f, np.float64)
    if f.ndim != 1 or f.size == 0 or not np.isfinite(f).all():
        raise LdpError(f"f must be finite with shape (k,), k >= 1, got {f!r}")
    if not (math.isfinite(total) and total > 0):
        raise LdpError(f"total must be > 0, got {total}")
    shifted = f - f.max()  # changes no projection, and keeps `total` from drowning in large entries
    descending = np.sort(shifted)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, f.size + 1)
    last_positive = np.flatnonzero(descending > excess)[-1]
    return np.asarray(np.maximum(shifted - excess[last_positive], 0.0), np.float64)


class _NoiseTerms(NamedTuple):
    """Of one answer: p - q, and the variance `constant + linear f` of its unbiased inversion."""

    slope: float
    constant: float
    linear: float


@lru_cache
def _noise_terms(channel: GrrChannel) -> _NoiseTerms:
    """Exact up to the last step; cached, since pages ask for all windows of the same few channels."""
    p, q = channel.p, channel.q
    return _NoiseTerms(
        slope=float(p - q),
        constant=float(q * (1 - q) / (p - q) ** 2),
        linear=float((1 - p - q) / (p - q)),
    )


def _variance_terms(
    *, n_reports: ArrayLike, n_population: ArrayLike, channel: GrrChannel
) -> tuple[Floats, Floats, Floats]:
    """Terms (a, b, c) of the variance a + b f + c f (1 - f)."""
    noise = _noise_terms(channel)
    n = np.asarray(n_reports, np.float64)
    population = np.asarray(n_population, np.float64)
    # A population of one has no sampling error; the maximum only avoids 0 / 0 there.
    sampling = (population - n) / np.maximum(population - 1, 1) / n
    return noise.constant / n, noise.linear / n, sampling


def _score_interval(
    frequency: Floats, *, n_reports: int, n_population: int, channel: GrrChannel, level: float
) -> tuple[Floats, Floats]:
    """All f with (frequency - f)**2 <= z**2 variance(f): the roots of a quadratic in f."""
    constant, linear, sampling = _variance_terms(
        n_reports=n_reports, n_population=n_population, channel=channel
    )
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    scale = 1 + z2 * sampling
    centre = (frequency + z2 * (linear + sampling) / 2) / scale
    half = np.sqrt(centre**2 - (frequency**2 - z2 * constant) / scale)
    # The variance at any possible estimate is >= 0, so the interval holds it; these two only undo rounding.
    return np.minimum(centre - half, frequency), np.maximum(centre + half, frequency)


def _check_counts(
    counts: NDArray[np.int64], *, n_reports: int, n_population: int, channel: GrrChannel
) -> None:
    if counts.shape != (channel.domain_size,):
        raise LdpError(f"counts must have shape ({channel.domain_size},), got {counts.shape}")
    if n_reports < 1:
        raise LdpError(f"n_reports must be >= 1, got {n_reports}")
    if n_population < n_reports:
        raise LdpError(f"n_population must be >= n_reports = {n_reports}, got {n_population}")
    if counts.min() < 0:
        raise LdpError(f"counts must be >= 0, got {counts.min()}")
    if int(counts.sum()) != n_reports:
        raise LdpError(f"counts must add up to n_reports = {n_reports}, got {counts.sum()}")
