"""From counts of answers to frequencies with their errors."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.errors import LdpError
from ldp.protocols.channels import GrrChannel, PureChannel, SupportProbabilities, noise_at_zero
from ldp.protocols.faked_reports import PriorFakedChannel
from ldp.protocols.histogram import HistogramChannel
from ldp.protocols.numbers.threshold import ThresholdChannel
from ldp.protocols.numbers.wave import WaveChannel
from ldp.protocols.partial.regions import RegionChannel
from ldp.protocols.partial.sensitive import SensitiveChannel

ENDLESS: Final = 2**60  # visitors, if those of a window are taken as a sample of people like them

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimates:
    """Frequencies of the values of one indicator in one window.

    Parameters
    ----------
    frequency : ndarray of float64, shape (domain_size,); unbiased, may leave [0, 1]
    std_error : same shape; standard deviation of `frequency`
    ci_low, ci_high : same shape; confidence interval, holds `frequency`, may leave [0, 1]
    consistent : same shape; nearest distribution: no negative value, sum 1; biased. Of a number the nearest
        survival function: it falls from cut to cut
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
    """Frequencies from GRR answers: `pure_frequencies`, and LdpError if counts do not add up to n_reports."""
    estimates = pure_frequencies(
        counts, n_reports=n_reports, n_population=n_population, channel=channel, level=level
    )
    if int(counts.sum()) != n_reports:
        raise LdpError(f"counts must add up to n_reports = {n_reports}, got {counts.sum()}")
    return estimates


def pure_frequencies(
    support_counts: NDArray[np.int64],
    *,
    n_reports: int | NDArray[np.int64],
    n_population: int,
    channel: PureChannel | PriorFakedChannel,
    level: float = 0.95,
) -> Estimates:
    """Frequency of each value among the visitors of a window, from reports of a sample of them.

    Parameters
    ----------
    support_counts : ndarray of int64, shape (domain_size,); reports that support each value, in
        [0, n_reports]; not modified
    n_reports : int, or ndarray of int64 of the same shape; reports in all, or about each value; at least 1
    n_population : int; visitors of the window, at least n_reports
    channel : PureChannel or PriorFakedChannel; as used for the reports
    level : float; of the interval, in (0, 1)

    Notes
    -----
    (support / n - q) / (p - q), with p and q of the value if fakes favour some values, or
    some are sensitive. Source: Wang et al.,
    USENIX Security 2017 (inversion). The interval is the score interval: every f whose distance from the
    estimate is within z standard deviations *at f*, so it also holds for rare values. Cost
    O(domain_size log domain_size).
    """
    _check_sizes(
        support_counts, n_reports=n_reports, n_population=n_population, domain_size=channel.domain_size
    )
    if support_counts.min() < 0:
        raise LdpError(f"counts must be >= 0, got {support_counts.min()}")
    if np.any(support_counts > n_reports):
        raise LdpError(f"counts must be <= n_reports = {n_reports}, got {support_counts.max()}")
    terms = _pure_terms(channel)
    found = _estimates(
        support_counts, terms=terms, n_reports=n_reports, n_population=n_population, level=level
    )
    if isinstance(channel, ThresholdChannel):
        return replace(found, consistent=project_survival(found.frequency, weights=n_reports))
    return replace(found, consistent=project_simplex(found.frequency))


def pure_variance(
    f: ArrayLike, *, n_reports: ArrayLike, n_population: ArrayLike, channel: PureChannel | PriorFakedChannel
) -> Floats:
    """Exact variance of the unbiased estimate of true frequencies f; arguments broadcast.

    Parameters
    ----------
    f : array_like of float; true frequencies among the visitors, in [0, 1]
    n_reports : array_like of int; reports, at least 1
    n_population : array_like of int; visitors; those who report are a simple random sample of them
    channel : PureChannel or PriorFakedChannel; of the latter, the last axis is that of the values

    Returns
    -------
    ndarray of float64

    Notes
    -----
    [q(1-q) + f(p-q)(1-p-q)] / (n(p-q)^2) of the noise, plus the variance of the sample with the correction
    for a finite population.
    """
    return _variance(f, terms=_pure_terms(channel), n_reports=n_reports, n_population=n_population)


def histogram_frequencies(
    sums: NDArray[np.int64],
    *,
    n_reports: int,
    n_population: int,
    channel: HistogramChannel,
    level: float = 0.95,
) -> Estimates:
    """Frequency of each value among the visitors of a window, from sums of noisy counts (SHE).

    Parameters
    ----------
    sums : ndarray of int64, shape (domain_size,); noisy counts of each value, added up; not modified
    n_reports, n_population, level : as of `pure_frequencies`
    channel : HistogramChannel; as used for the reports

    Raises
    ------
    LdpError : a rule is broken, or a sum is out of reach of this number of reports

    Notes
    -----
    (sum / n - offset) / slope: unbiased in spite of the clamp. The noise is the same for all
    frequencies; the sample adds its own error.
    """
    _check_sizes(sums, n_reports=n_reports, n_population=n_population, domain_size=channel.domain_size)
    low, high = channel.lowest * n_reports, (1 - channel.lowest) * n_reports
    if not low <= sums.min() <= sums.max() <= high:
        raise LdpError(f"sums must be in [{low}, {high}], got {sums.min()} to {sums.max()}")
    terms = _histogram_terms(channel)
    found = _estimates(sums, terms=terms, n_reports=n_reports, n_population=n_population, level=level)
    return replace(found, consistent=project_simplex(found.frequency))


def histogram_variance(
    f: ArrayLike, *, n_reports: ArrayLike, n_population: ArrayLike, channel: HistogramChannel
) -> Floats:
    """Exact variance of the estimate of `histogram_frequencies`; arguments as of `pure_variance`."""
    return _variance(f, terms=_histogram_terms(channel), n_reports=n_reports, n_population=n_population)


def project_simplex(f: ArrayLike, total: float = 1.0) -> Floats:
    """Nearest vector (Euclidean) without a negative entry and with the given sum ("norm-sub").

    Source: Wang et al., NDSS 2020 (norm-sub), in closed form by sorting. Cost O(k log k).

    Parameters
    ----------
    f : array_like of float, shape (k,), not empty, finite (else LdpError); not modified
    total : float; above 0 (else LdpError)
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


def project_survival(shares: ArrayLike, *, weights: ArrayLike) -> Floats:
    """Nearest falling shares in [0, 1], in weighted squares, by pooling adjacent violators.

    Source: Barlow, Bartholomew, Bremner, Brunk 1972. Cost O(k).

    Parameters
    ----------
    shares : array_like of float, shape (k,), finite; not modified
    weights : array_like, shape (k,); above 0
    """
    blocks: list[tuple[float, float, int]] = []  # share, weight, size
    shares = np.asarray(shares, np.float64)
    for share, weight in zip(shares, np.broadcast_to(weights, shares.shape), strict=True):
        block = (float(share), float(weight), 1)
        while blocks and blocks[-1][0] < block[0]:
            (before, heavy, size), (after, light, more) = blocks.pop(), block
            block = ((before * heavy + after * light) / (heavy + light), heavy + light, size + more)
        blocks.append(block)
    values, _, sizes = zip(*blocks, strict=True)
    return np.asarray(np.clip(np.repeat(values, sizes), 0.0, 1.0), np.float64)


class _NoiseTerms(NamedTuple):
    """Moments of one report: mean `offset + slope f`, variance `constant + linear f` once inverted.

    Each the same for all values, or an array with an entry per value.
    """

    offset: float | Floats
    slope: float | Floats
    constant: float | Floats
    linear: float | Floats


@lru_cache
def _pure_terms(channel: PureChannel | PriorFakedChannel) -> _NoiseTerms:
    """Exact up to the last step; cached, since pages ask for all windows of the same few channels."""
    if isinstance(channel, WaveChannel):
        raise LdpError("channel must be that of a pure protocol, got the square wave: use wave_survival")
    if isinstance(channel, RegionChannel):
        raise LdpError("channel must be that of a pure protocol, got regions: use region_frequencies")
    if isinstance(channel, PriorFakedChannel | SensitiveChannel):
        return _NoiseTerms(*np.array([_support_terms(support) for support in channel.of_values]).T)
    return _support_terms(channel)


def _support_terms(support: SupportProbabilities) -> _NoiseTerms:
    p, q = support.p, support.q
    return _NoiseTerms(
        offset=float(q),
        slope=float(p - q),
        constant=float(noise_at_zero(support)),
        linear=float((1 - p - q) / (p - q)),
    )


@lru_cache
def _histogram_terms(channel: HistogramChannel) -> _NoiseTerms:
    return _NoiseTerms(
        offset=float(channel.offset),
        slope=float(channel.slope),
        constant=float(channel.noise / channel.slope**2),
        linear=0.0,
    )


def _estimates(
    sums: NDArray[np.int64], *, terms: _NoiseTerms, n_reports: ArrayLike, n_population: int, level: float
) -> Estimates:
    if not 0 < level < 1:
        raise LdpError(f"level must be in (0, 1), got {level}")
    frequency = (sums / np.asarray(n_reports) - terms.offset) / terms.slope
    low, high = score_interval(
        frequency,
        constant=terms.constant,
        linear=terms.linear,
        n_reports=n_reports,
        n_population=n_population,
        level=level,
    )
    variance = _variance(
        np.clip(frequency, 0, 1), terms=terms, n_reports=n_reports, n_population=n_population
    )
    return Estimates(
        frequency=frequency,
        std_error=np.sqrt(variance),
        ci_low=low,
        ci_high=high,
        consistent=frequency,
    )


def _variance(f: ArrayLike, *, terms: _NoiseTerms, n_reports: ArrayLike, n_population: ArrayLike) -> Floats:
    f, n = np.asarray(f, np.float64), np.asarray(n_reports, np.float64)
    sampling = _sampling(n, n_population=n_population)
    return np.asarray(terms.constant / n + terms.linear / n * f + sampling * f * (1 - f), np.float64)


def _sampling(n: Floats, *, n_population: ArrayLike) -> Floats:
    """Factor of f (1 - f) in the variance of a sample of n."""
    population = np.asarray(n_population, np.float64)
    # A population of one has no sampling error; the maximum only avoids 0 / 0 there.
    return np.asarray((population - n) / np.maximum(population - 1, 1) / n)


def score_interval(
    value: ArrayLike,
    *,
    constant: ArrayLike,
    linear: ArrayLike,
    n_reports: ArrayLike,
    n_population: ArrayLike,
    level: float,
) -> tuple[Floats, Floats]:
    """All f within z standard deviations *at f* of a value: the roots of a quadratic in f.

    Parameters
    ----------
    constant, linear : of the variance of one report's noise, `constant + linear f`; arguments broadcast
    """
    value, n = np.asarray(value, np.float64), np.asarray(n_reports, np.float64)
    sampling = _sampling(n, n_population=n_population)
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    scale = 1 + z2 * sampling
    centre = (value + z2 * (np.asarray(linear) / n + sampling) / 2) / scale
    # Far outside [0, 1] perhaps no f satisfies it: then the interval runs from its centre to the estimate.
    half = np.sqrt(np.maximum(centre**2 - (value**2 - z2 * (np.asarray(constant) / n)) / scale, 0.0))
    return np.minimum(centre - half, value), np.maximum(centre + half, value)


def _check_sizes(
    sums: NDArray[np.int64], *, n_reports: int | NDArray[np.int64], n_population: int, domain_size: int
) -> None:
    if sums.shape != (domain_size,):
        raise LdpError(f"counts must have shape ({domain_size},), got {sums.shape}")
    if np.min(n_reports) < 1:
        raise LdpError(f"n_reports must be >= 1, got {np.min(n_reports)}")
    if n_population < np.max(n_reports):
        raise LdpError(f"n_population must be >= n_reports = {n_reports}, got {n_population}")
