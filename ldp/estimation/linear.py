"""Linear questions about one indicator: any weights over its values, with the exact variance.

"Share of some values", "mean of a score", "share above a limit" are sums of w_v f_v. With one code a report
(GRR, projective response) each code y stands for g(y), whose mean given the true value x is w_x; the mean of
g over the reports is the estimate. Its variance given x is E[g**2 | x] - w_x**2. With a bit per value the
same follows from how often two values are supported together.

Reports of a plan with fake data are left out: what another indicator was answered decides which of them are
fakes, so their sums have no such variance.
"""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.estimators import pure_frequencies, score_interval
from ldp.protocols.channels import GrrChannel
from ldp.protocols.projective import ProjectiveChannel
from ldp.protocols.projective_space import sums_over_orthogonal, value_counts
from ldp.protocols.unary import UnaryChannel

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
LinearChannel = GrrChannel | ProjectiveChannel | UnaryChannel


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearEstimate:
    """Answer to one question.

    value : unbiased; may leave the range of the weights
    std_error : standard deviation of `value`, at the estimated frequencies
    ci_low, ci_high : confidence interval, which holds `value`
    """

    value: float
    std_error: float
    ci_low: float
    ci_high: float


def linear_query(
    counts: Counts,
    *,
    weights: Floats,
    channel: LinearChannel,
    n_reports: int,
    n_population: int,
    level: float = 0.95,
) -> LinearEstimate:
    """Sum of weights times frequencies among the visitors of a window.

    Parameters
    ----------
    counts : ndarray of int64; reports by code, shape (n_codes,), of projective response; for the other
        channels reports that support each value, shape (domain_size,). Not modified
    weights : ndarray of float64, shape (domain_size,), finite
    channel : GrrChannel, ProjectiveChannel or UnaryChannel; as used for the reports
    n_reports, n_population : int; reports, at least 1, and visitors, at least as many
    level : float; of the interval, in (0, 1)

    Raises
    ------
    LdpError : a rule is broken, or the channel is another one

    Notes
    -----
    With weights 0 and 1 and reports by GRR or unary encoding the variance is a function of the answer alone,
    and the interval is the score interval; else it is normal, with the variance at the estimated frequencies
    made consistent.
    """
    sums = _support(counts, channel=channel)
    weights = _checked(weights, channel=channel)
    estimates = pure_frequencies(
        sums, n_reports=n_reports, n_population=n_population, channel=channel, level=level
    )
    value = float(weights @ estimates.frequency)
    sizes = {"n_reports": n_reports, "n_population": n_population}
    variance = linear_variance(estimates.consistent, weights=weights, channel=channel, **sizes)
    if not isinstance(channel, ProjectiveChannel) and set(np.unique(weights)) == {0.0, 1.0}:
        noise = linear_noise(weights, channel=channel)
        absent, present = noise[weights == 0][0], noise[weights == 1][0]
        found = score_interval(value, constant=absent, linear=present - absent, level=level, **sizes)
        low, high = map(float, found)
    else:
        half = NormalDist().inv_cdf((1 + level) / 2) * sqrt(variance)
        low, high = value - half, value + half
    return LinearEstimate(value=value, std_error=sqrt(variance), ci_low=low, ci_high=high)


def linear_variance(
    f: Floats, *, weights: Floats, channel: LinearChannel, n_reports: int, n_population: int
) -> float:
    """Exact variance of the estimate of `linear_query` at true frequencies f, shape (domain_size,).

    It has the noise, and the sampling of those who report from the visitors, without replacement.
    """
    noise = float(f @ linear_noise(weights, channel=channel)) / n_reports
    spread = float(f @ weights**2 - (f @ weights) ** 2)
    return noise + spread * (n_population - n_reports) / max(n_population - 1, 1) / n_reports


def linear_noise(weights: Floats, *, channel: LinearChannel) -> Floats:
    """Variance of what one report of each true value estimates, exact up to floats; shape (domain_size,)."""
    p, q = float(channel.p), float(channel.q)
    total, squares = float(weights.sum()), float((weights**2).sum())
    if isinstance(channel, UnaryChannel):  # bits are independent
        return np.asarray((weights**2 * p * (1 - p) + (squares - weights**2) * q * (1 - q)) / (p - q) ** 2)
    if isinstance(channel, GrrChannel):
        of_code = (weights - q * total) / (p - q)
        mean_square = (p - q) * of_code**2 + q * (of_code**2).sum()
    else:
        of_point = np.zeros(channel.n_codes)
        of_point[: weights.size] = weights
        of_code = (sums_over_orthogonal(of_point, channel=channel) - q * total) / (p - q)
        size = channel.support_size
        inside, outside = p / size, (1 - p) / (channel.n_codes - size)
        supported = sums_over_orthogonal(of_code**2, channel=channel)[: weights.size]
        mean_square = (inside - outside) * supported
        mean_square += outside * (of_code**2).sum()
    return np.asarray(mean_square - weights**2, np.float64)


def _support(counts: Counts, *, channel: LinearChannel) -> Counts:
    if not isinstance(channel, LinearChannel):
        raise LdpError(f"channel must be GRR, projective or unary for a linear question, got {channel}")
    return value_counts(counts, channel=channel)


def _checked(weights: Floats, *, channel: LinearChannel) -> Floats:
    if weights.shape != (channel.domain_size,) or not np.isfinite(weights).all():
        raise LdpError(f"weights must be finite with shape ({channel.domain_size},), got {weights}")
    return weights
