"""Linear questions about one indicator: any weights over its values, with the exact variance.

"Share of some values", "mean of a score", "share above a limit" are sums of w_v f_v. With one code a report
(GRR, projective response, permanent questions) each code y stands for g(y), whose mean given the true value x
is w_x; the mean of g over the reports is the estimate. Its variance given x is E[g**2 | x] - w_x**2. With a
bit per value the same follows from how often two values are supported together.

Reports of a plan with fake data are left out: what another indicator was answered decides which of them are
fakes, so their sums have no such variance.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from operator import attrgetter
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.estimators import Estimates, pure_frequencies, score_interval
from ldp.protocols.channels import GrrChannel
from ldp.protocols.projective_space import (
    DesignChannel,
    common_sums,
    sums_of_codes,
    sums_of_values,
    value_counts,
)
from ldp.protocols.unary import UnaryChannel

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
CodeChannel = GrrChannel | DesignChannel
LinearChannel = CodeChannel | UnaryChannel


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


NUMBERS: Final = attrgetter(*LinearEstimate.__slots__)  # all of an answer, as a tuple


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
    counts : ndarray of int64; reports by code, shape (n_codes,), of projective response and questions; for
        the other channels reports that support each value, shape (domain_size,). Not modified
    weights : ndarray of float64, shape (domain_size,), finite
    channel : LinearChannel; as used for the reports
    n_reports, n_population : int; reports, at least 1, and visitors, at least as many
    level : float; of the interval, in (0, 1)

    Raises
    ------
    LdpError : a rule is broken, or the channel is another one

    Notes
    -----
    Where the variance is a function of the answer alone (one value; with GRR or unary encoding also any set
    of values), the interval is the score interval; else it is normal, with the variance at the estimated
    frequencies made consistent. Frequencies have the sum 1, so the answer to equal weights is known.
    """
    sizes = {"n_reports": n_reports, "n_population": n_population}
    estimates = pure_frequencies(_support(counts, channel=channel), channel=channel, level=level, **sizes)
    return linear_answer(estimates, weights=weights, channel=channel, level=level, **sizes)


def linear_answer(
    estimates: Estimates,
    *,
    weights: Floats,
    channel: LinearChannel,
    n_reports: int,
    n_population: int,
    level: float = 0.95,
) -> LinearEstimate:
    """Answer a further question from the same reports; parameters and errors as of `linear_query`.

    `estimates` are those of `pure_frequencies`.
    """
    weights = _checked(weights, channel=channel)
    if np.all(weights == weights[0]):
        known = float(weights[0])
        return LinearEstimate(value=known, std_error=0.0, ci_low=known, ci_high=known)
    value = float(weights @ estimates.frequency)
    sizes = {"n_reports": n_reports, "n_population": n_population}
    event = _event_noise(weights, channel=channel)
    if event is not None:
        found = score_interval(value, constant=event[0], linear=event[1] - event[0], level=level, **sizes)
        low, high = map(float, found)
        share = min(max(value, 0.0), 1.0)
        variance = (event[0] + (event[1] - event[0]) * share) / n_reports
        variance += share * (1 - share) * _sampling(**sizes)
    else:
        variance = linear_variance(estimates.consistent, weights=weights, channel=channel, **sizes)
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
    return noise + spread * _sampling(n_reports=n_reports, n_population=n_population)


def linear_covariances(
    f: Floats, *, weights: Floats, channel: LinearChannel, n_reports: int, n_population: int
) -> Floats:
    """Exact covariance of each value's frequency with the answer of `linear_query`; shape (domain_size,).

    So that of two answers with weights u and w is the sum of u times these: reports and sample are the same.

    Notes
    -----
    Given the true value x the mean of g_v g_w is taken over all reports, with their chances at frequencies f;
    the product of the two means, 1[v = x] w_x, is taken off. Cost: three transforms for projective response.
    """
    p, q = float(channel.p), float(channel.q)
    spread = f * (weights - f @ weights) * _sampling(n_reports=n_reports, n_population=n_population)
    if isinstance(channel, UnaryChannel):  # bits are independent
        noise = weights * (f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2
    else:
        of_code = code_chances(f, channel=channel) * _stands_for(weights, channel=channel)
        noise = (_supported(of_code, channel=channel) - q * of_code.sum()) / (p - q) - f * weights
    return np.asarray(noise / n_reports + spread, np.float64)


def linear_variances(
    f: Floats, *, weights: Floats, channel: LinearChannel, n_reports: int, n_population: int
) -> Floats:
    """Diagonal of `linear_covariance_matrix`, with the same parameters; shape (n_answers,)."""
    p, q = float(channel.p), float(channel.q)
    squares, means = weights**2 @ f, weights @ f
    if isinstance(channel, UnaryChannel):  # bits are independent
        noise = weights**2 @ (f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2
    else:
        of_code = _stands_for(weights, channel=channel)
        noise = of_code**2 @ code_chances(f, channel=channel) - squares
    sampling = _sampling(n_reports=n_reports, n_population=n_population)
    return np.asarray(noise / n_reports + (squares - means**2) * sampling, np.float64)


def linear_covariance_matrix(
    f: Floats, *, weights: Floats, channel: LinearChannel, n_reports: int, n_population: int
) -> Floats:
    """Exact covariances of several answers of `linear_query` from the same reports.

    Parameters
    ----------
    f : ndarray of float64, shape (domain_size,); true frequencies
    weights : ndarray of float64, shape (n_answers, domain_size); of each answer
    n_population : int; `ENDLESS` where the visitors are a sample themselves

    Returns
    -------
    ndarray of float64, shape (n_answers, n_answers)
    """
    p, q = float(channel.p), float(channel.q)
    squares, means = (weights * f) @ weights.T, weights @ f
    if isinstance(channel, UnaryChannel):  # bits are independent
        noise = (weights * (f * p * (1 - p) + (1 - f) * q * (1 - q))) @ weights.T / (p - q) ** 2
    else:
        of_code = _stands_for(weights, channel=channel)
        noise = (of_code * code_chances(f, channel=channel)) @ of_code.T - squares
    sampling = _sampling(n_reports=n_reports, n_population=n_population)
    return np.asarray(noise / n_reports + (squares - np.outer(means, means)) * sampling, np.float64)


def frequency_covariances(f: Floats, *, channel: LinearChannel, n_reports: int, n_population: int) -> Floats:
    """Exact covariances of the frequencies of all values: `linear_covariance_matrix` of one answer for each.

    For up to thousands of values: several times as fast, but its memory grows with their square.

    Parameters
    ----------
    f : ndarray of float64, shape (domain_size,); true frequencies
    n_population : int; `ENDLESS` where the visitors are a sample themselves

    Returns
    -------
    ndarray of float64, shape (domain_size, domain_size)
    """
    p, q = float(channel.p), float(channel.q)
    if isinstance(channel, UnaryChannel):  # bits are independent
        noise = np.diag((f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2)
    else:
        both = _chances_of_both(f, channel=channel)
        one = np.diag(both)
        noise = (both - q * np.add.outer(one, one) + q**2) / (p - q) ** 2 - np.diag(f)
    spread = (np.diag(f) - np.outer(f, f)) * _sampling(n_reports=n_reports, n_population=n_population)
    return np.asarray(noise / n_reports + spread, np.float64)


def _chances_of_both(f: Floats, *, channel: CodeChannel) -> Floats:
    """Chance that a report supports two values, for each two; shape (domain_size, domain_size)."""
    if isinstance(channel, GrrChannel):
        return np.diag(code_chances(f, channel=channel))
    inside, outside = _code_chances(channel)
    return common_sums((inside - outside) * f, each=outside, channel=channel)


def linear_noise(weights: Floats, *, channel: LinearChannel) -> Floats:
    """Variance of what one report of each true value estimates, exact up to floats; shape (domain_size,).

    Kept, since the same questions are asked on every day.
    """
    return _noise(weights.tobytes(), channel).copy()


@lru_cache(maxsize=512)
def _noise(packed: bytes, channel: LinearChannel) -> Floats:
    weights = np.frombuffer(packed)
    p, q = float(channel.p), float(channel.q)
    if isinstance(channel, UnaryChannel):  # bits are independent
        squares = float((weights**2).sum())
        return np.asarray((weights**2 * p * (1 - p) + (squares - weights**2) * q * (1 - q)) / (p - q) ** 2)
    of_code = _stands_for(weights, channel=channel)
    inside, outside = _code_chances(channel)
    mean_square = (inside - outside) * _supported(of_code**2, channel=channel) + outside * (of_code**2).sum()
    return np.asarray(mean_square - weights**2, np.float64)


def _stands_for(weights: Floats, *, channel: CodeChannel) -> Floats:
    """g of each code: what a report of it adds to the answer; of several weights in the last axis."""
    p, q = float(channel.p), float(channel.q)
    total = weights.sum(axis=-1, keepdims=True)
    return np.asarray((_supporting(weights, channel=channel) - q * total) / (p - q), np.float64)


def code_chances(f: Floats, *, channel: CodeChannel) -> Floats:
    """Return the chance of each code at true frequencies f; shape (n_codes,)."""
    inside, outside = _code_chances(channel)
    return outside + (inside - outside) * _supporting(f, channel=channel)


def _code_chances(channel: CodeChannel) -> tuple[float, float]:
    """Chance of a code that supports the true value, and of another one."""
    if isinstance(channel, GrrChannel):
        return float(channel.p), float(channel.q)
    p, size = float(channel.p), channel.support_size
    return p / size, (1 - p) / (channel.n_codes - size)


def _supporting(of_value: Floats, *, channel: CodeChannel) -> Floats:
    """For each code, the sum of what the values have that it supports."""
    return of_value if isinstance(channel, GrrChannel) else sums_of_codes(of_value, channel=channel)


def _supported(of_code: Floats, *, channel: CodeChannel) -> Floats:
    """For each value, the sum of what the codes have that support it."""
    return of_code if isinstance(channel, GrrChannel) else sums_of_values(of_code, channel=channel)


def _event_noise(weights: Floats, *, channel: LinearChannel) -> tuple[float, float] | None:
    """Noise of a report of a value outside a set, and inside; None unless it is the same for all of each.

    With other codes it depends on how many of two values or more a report supports.
    """
    inside, outside = weights == 1, weights == 0
    if not (inside | outside).all() or inside.all() or outside.all():
        return None
    if isinstance(channel, DesignChannel) and weights.sum() > 1:
        return None
    noise = linear_noise(weights, channel=channel)
    return float(noise[outside][0]), float(noise[inside][0])


def _sampling(*, n_reports: int, n_population: int) -> float:
    """Factor of the spread of the values in the variance of a sample."""
    return (n_population - n_reports) / max(n_population - 1, 1) / n_reports


def _support(counts: Counts, *, channel: LinearChannel) -> Counts:
    if not isinstance(channel, LinearChannel):
        raise LdpError(f"channel must be GRR, projective, unary or a question, got {channel}")
    return value_counts(counts, channel=channel)


def _checked(weights: Floats, *, channel: LinearChannel) -> Floats:
    if weights.shape != (channel.domain_size,) or not np.isfinite(weights).all():
        raise LdpError(f"weights must be finite with shape ({channel.domain_size},), got {weights}")
    return weights
