"""Estimates from reports that tell the region of a value for certain (`ldp.protocols.partial.regions`).

Of n reports C_R come from region R; this is known, since a report tells its region. A value v of R is
supported by S_v of them, and by no other, so

    f_v = (S_v - q C_R) / (n (p - q)),

with p and q of the region's channel, is unbiased. A report of another region adds no noise, so

    Var(f_v) = [F_R q (1 - q) / (p - q)^2 + f_v (1 - p - q) / (p - q)] / n + sampling f_v (1 - f_v),

with the share F_R of the region. Estimates take C_R / n for it: the noise of the reports that there are. The
share of a region is C_R / n, with the error of the sample only.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.errors import LdpError
from ldp.estimation.estimators import Estimates, project_simplex, score_interval
from ldp.protocols.channels import noise_at_zero
from ldp.protocols.partial.regions import RegionChannel, regions_of
from ldp.protocols.projective_space import value_counts

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def region_frequencies(
    counts: Counts, *, n_population: int, channel: RegionChannel, level: float = 0.95
) -> Estimates:
    """Frequency of each value among the visitors of a window.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_codes,); reports by code, at least one; not modified
    n_population : int; visitors of the window, at least as many as reports
    channel : RegionChannel; as used for the reports
    level : float; of the interval, in (0, 1)

    Raises
    ------
    LdpError : a rule is broken

    Notes
    -----
    The interval is the score interval of `pure_frequencies`. Consistent are the values of each region, with
    the share of its reports as their sum.
    """
    if not 0 < level < 1:
        raise LdpError(f"level must be in (0, 1), got {level}")
    n = _checked(counts, channel=channel, n_population=n_population)
    support, of_reports = value_counts(counts, channel=channel), reports_of_regions(counts, channel=channel)
    frequency, consistent = np.zeros(channel.domain_size), np.zeros(channel.domain_size)
    for region, own in zip(regions_of(channel), of_reports.tolist(), strict=True):
        p, q = float(region.channel.p), float(region.channel.q)
        frequency[region.values] = found = (support[region.values] - q * own) / (n * (p - q))
        if own:
            consistent[region.values] = project_simplex(found, own / n)
    shares = of_reports[np.array(channel.region_of)] / n
    constant, linear = _noise(channel)
    sizes = {"n_reports": n, "n_population": n_population}
    low, high = score_interval(frequency, constant=constant * shares, linear=linear, level=level, **sizes)
    variance = _variance(np.clip(frequency, 0, 1), shares, channel=channel, **sizes)
    return Estimates(
        frequency=frequency, std_error=np.sqrt(variance), ci_low=low, ci_high=high, consistent=consistent
    )


def region_variance(
    f: ArrayLike, *, n_reports: ArrayLike, n_population: ArrayLike, channel: RegionChannel
) -> Floats:
    """Exact variance of the estimates of `region_frequencies` at true frequencies f.

    Parameters
    ----------
    f : array_like of float; true frequencies; the last axis is that of all values
    n_reports, n_population : array_like of int; as of `pure_variance`, with an axis of one for the values
    """
    f = np.asarray(f, np.float64)
    of_region = np.stack([f[..., each.values].sum(axis=-1) for each in regions_of(channel)], axis=-1)
    shares = of_region[..., np.array(channel.region_of)]
    return _variance(f, shares, channel=channel, n_reports=n_reports, n_population=n_population)


def mean_noise(channel: RegionChannel) -> tuple[float, float]:
    """Noise of one report at frequency 0, and what is added for each true one; means over values.

    Each region has the share that it has of the values.
    """
    constant, linear = _noise(channel)
    shares = np.array(channel.sizes)[np.array(channel.region_of)] / channel.domain_size
    return float((constant * shares).mean()), float(linear.mean())


class RegionShare(NamedTuple):
    """Share of a region among the visitors of a window; without noise, as a sample of them has it."""

    n_reports: int
    share: float
    std_error: float
    ci_low: float
    ci_high: float


def region_shares(
    counts: Counts, *, n_population: int, channel: RegionChannel, level: float = 0.95
) -> list[RegionShare]:
    """Share of each region; parameters and errors as of `region_frequencies`."""
    n = _checked(counts, channel=channel, n_population=n_population)
    return [
        share_of_sample(reports, n_reports=n, n_population=n_population, level=level)
        for reports in reports_of_regions(counts, channel=channel).tolist()
    ]


def share_of_sample(reports: int, *, n_reports: int, n_population: int, level: float = 0.95) -> RegionShare:
    """Share among the visitors of a window, of whom those who report are a sample.

    Parameters
    ----------
    reports : int; of those who report, in [0, n_reports]
    n_reports, n_population, level : as of `pure_frequencies`
    """
    sizes = {"n_reports": n_reports, "n_population": n_population}
    share = reports / n_reports
    low, high = score_interval(share, constant=0, linear=0, level=level, **sizes)
    error = sqrt(share * (1 - share) * float(_sampling(**sizes)))
    return RegionShare(reports, share, error, float(low), float(high))


def reports_of_regions(counts: Counts, *, channel: RegionChannel) -> Counts:
    """Reports of each region, from those by code, shape (n_codes, ...); shape (n_regions, ...)."""
    return np.stack([counts[each.codes].sum(axis=0) for each in regions_of(channel)])


def _noise(channel: RegionChannel) -> tuple[Floats, Floats]:
    """Noise of a report of the region of each value, and what is added where the value is true."""
    constant, linear = np.empty(channel.domain_size), np.empty(channel.domain_size)
    for region in regions_of(channel):
        p, q = region.channel.p, region.channel.q
        constant[region.values] = float(noise_at_zero(region.channel))
        linear[region.values] = float((1 - p - q) / (p - q))
    return constant, linear


def _variance(
    f: Floats, shares: Floats, *, channel: RegionChannel, n_reports: ArrayLike, n_population: ArrayLike
) -> Floats:
    constant, linear = _noise(channel)
    noise = (constant * shares + linear * f) / np.asarray(n_reports, np.float64)
    sampling = _sampling(n_reports=n_reports, n_population=n_population)
    return np.asarray(noise + sampling * f * (1 - f), np.float64)


def _sampling(*, n_reports: ArrayLike, n_population: ArrayLike) -> Floats:
    """Factor of f (1 - f) in the variance of a sample."""
    n, population = np.asarray(n_reports, np.float64), np.asarray(n_population, np.float64)
    return np.asarray((population - n) / np.maximum(population - 1, 1) / n)


def _checked(counts: Counts, *, channel: RegionChannel, n_population: int) -> int:
    """Return the number of reports."""
    if counts.shape != (channel.n_codes,) or counts.min() < 0 or counts.sum() < 1:
        raise LdpError(
            f"counts must be >= 0 with shape ({channel.n_codes},) and a report, got {counts.sum()} reports "
            f"of shape {counts.shape}"
        )
    n = int(counts.sum())
    if n_population < n:
        raise LdpError(f"n_population must be >= {n}, the reports, got {n_population}")
    return n
