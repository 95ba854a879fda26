"""Linear questions about one indicator: any weights over its values, with the exact variance.

"Share of some values", "mean of a score", "share above a limit" are sums of w_v f_v. Their variance follows
from how often a report supports two values.

With GRR, unary encoding, subset selection, local hashing and RS+FD this depends only on whether one of the
two is true (probability j1) or neither (j0). The noise of one report at true frequencies f then has, for two
values u and v, the covariance [(f_u + f_v) (j1 - p q) + (1 - f_u - f_v) (j0 - q^2)] / (p - q)^2. Fakes of
RS+FD are drawn without regard to the values, so they only mix their own j1 and j0 in.

With projective response and permanent questions it depends on which third value is true. There each code y
stands for g(y), whose mean given the true value x is w_x; its variance given x is E[g**2 | x] - w_x**2.

Other channels are refused: with Hadamard response it depends on the third value too, and projective response
has that case. With RS+RFD fakes favour some values, so the probabilities differ from pair to pair.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from operator import attrgetter
from statistics import NormalDist
from typing import Final, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.estimators import Estimates, pure_frequencies, score_interval
from ldp.protocols.channels import GrrChannel
from ldp.protocols.faked_reports import FakedChannel, PriorFakedChannel
from ldp.protocols.hadamard import HadamardChannel
from ldp.protocols.hashing import HashChannel
from ldp.protocols.projective_space import (
    DesignChannel,
    common_sums,
    sums_of_codes,
    sums_of_values,
    value_counts,
)
from ldp.protocols.subset import SubsetChannel
from ldp.protocols.two_round import TwoRoundGrr
from ldp.protocols.two_round_unary import TwoRoundUnary
from ldp.protocols.unary import UnaryChannel

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
CodeChannel = GrrChannel | DesignChannel
PairChannel = (
    GrrChannel | TwoRoundGrr | UnaryChannel | TwoRoundUnary | SubsetChannel | HashChannel | FakedChannel
)
LinearChannel = DesignChannel | PairChannel
_REFUSED: Final = {
    HadamardChannel: "two values of a Hadamard report go together depending on the true one: use projective",
    PriorFakedChannel: "fakes of RS+RFD favour some values, so no two values go together alike",
}


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
    Where the variance is a function of the answer alone (one value; except for projective response and
    questions also any set of values), the interval is the score interval. Else it is normal, with the
    variance at the estimated frequencies made consistent. Frequencies have the sum 1, so the answer to equal
    weights is known.
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
    spread = f * (weights - f @ weights) * _sampling(n_reports=n_reports, n_population=n_population)
    if isinstance(channel, PairChannel):
        noise = _pair_covariances(f, weights, channel=channel)
    else:
        p, q = float(channel.p), float(channel.q)
        of_code = code_chances(f, channel=channel) * _stands_for(weights, channel=channel)
        noise = (sums_of_values(of_code, channel=channel) - q * of_code.sum()) / (p - q) - f * weights
    return np.asarray(noise / n_reports + spread, np.float64)


def linear_variances(
    f: Floats, *, weights: Floats, channel: LinearChannel, n_reports: int, n_population: int
) -> Floats:
    """Diagonal of `linear_covariance_matrix`, with the same parameters; shape (n_answers,)."""
    squares, means = weights**2 @ f, weights @ f
    if isinstance(channel, PairChannel):
        noise = (weights * _pair_covariances(f, weights, channel=channel)).sum(axis=1)
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
    squares, means = (weights * f) @ weights.T, weights @ f
    if isinstance(channel, PairChannel):
        noise = _pair_covariances(f, weights, channel=channel) @ weights.T
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
    if isinstance(channel, PairChannel):
        noise = _pair_covariances(f, np.eye(f.size), channel=channel)
    else:
        p, q = float(channel.p), float(channel.q)
        inside, outside = _code_chances(channel)
        both = common_sums((inside - outside) * f, each=outside, channel=channel)
        one = np.diag(both)
        noise = (both - q * np.add.outer(one, one) + q**2) / (p - q) ** 2 - np.diag(f)
    spread = (np.diag(f) - np.outer(f, f)) * _sampling(n_reports=n_reports, n_population=n_population)
    return np.asarray(noise / n_reports + spread, np.float64)


class _PairNoise(NamedTuple):
    """Covariance of the noise of two values in one report: `both`, and `true` more for each that is true.

    For a value and itself `alone` is added, and `alone_true` if it is true.
    """

    both: float
    true: float
    alone: float
    alone_true: float


@lru_cache
def _pair_noise(channel: PairChannel) -> _PairNoise:
    p, q = channel.p, channel.q
    one_of_them, neither = both_supported(channel)
    both = neither - q * q
    true = one_of_them - p * q - both
    terms = both, true, q * (1 - q) - both, p * (1 - p) - q * (1 - q) - 2 * true
    return _PairNoise(*(float(term / (p - q) ** 2) for term in terms))


def both_supported(channel: PairChannel) -> tuple[Fraction, Fraction]:
    """Probability that a report supports two given values: if one of them is true, and if neither is."""
    p, q = channel.p, channel.q
    if isinstance(channel, GrrChannel | TwoRoundGrr):
        return Fraction(0), Fraction(0)
    if isinstance(channel, SubsetChannel):
        w, k = channel.subset_size, channel.domain_size
        # Those that are not true fill the places that the true one leaves.
        pairs = p * (w - 1) * (w - 2) + (1 - p) * w * (w - 1)
        return p * Fraction(w - 1, k - 1), pairs / ((k - 1) * max(k - 2, 1))
    if isinstance(channel, FakedChannel):
        share, k = channel.share, channel.domain_size
        one_of_them, neither = both_supported(channel.answer)
        fake = (2 * one_of_them + (k - 2) * neither) / k if channel.fake == "any value" else neither
        return share * one_of_them + (1 - share) * fake, share * neither + (1 - share) * fake
    return p * q, q * q  # bits, and cells under a hash, are independent


def _pair_covariances(f: Floats, weights: Floats, *, channel: PairChannel) -> Floats:
    """Covariance of the noise of each value with that of answers, of one report; shape of the weights."""
    noise = _pair_noise(channel)
    total, mean = weights.sum(axis=-1, keepdims=True), (weights @ f)[..., np.newaxis]
    alone = (noise.alone + noise.alone_true * f) * weights
    return np.asarray(noise.both * total + noise.true * (total * f + mean) + alone, np.float64)


def linear_noise(weights: Floats, *, channel: LinearChannel) -> Floats:
    """Variance of what one report of each true value estimates, exact up to floats; shape (domain_size,).

    Kept, since the same questions are asked on every day.
    """
    return _noise(weights.tobytes(), channel).copy()


@lru_cache(maxsize=512)
def _noise(packed: bytes, channel: LinearChannel) -> Floats:
    weights = np.frombuffer(packed)
    if isinstance(channel, PairChannel):
        noise, total, squares = _pair_noise(channel), weights.sum(), (weights**2).sum()
        same = noise.both * total**2 + noise.alone * squares
        return np.asarray(same + 2 * noise.true * total * weights + noise.alone_true * weights**2)
    of_code = _stands_for(weights, channel=channel)
    inside, outside = _code_chances(channel)
    squares = of_code**2
    mean_square = (inside - outside) * sums_of_values(squares, channel=channel) + outside * squares.sum()
    return np.asarray(mean_square - weights**2, np.float64)


def _stands_for(weights: Floats, *, channel: DesignChannel) -> Floats:
    """g of each code: what a report of it adds to the answer; of several weights in the last axis."""
    p, q = float(channel.p), float(channel.q)
    total = weights.sum(axis=-1, keepdims=True)
    return np.asarray((sums_of_codes(weights, channel=channel) - q * total) / (p - q), np.float64)


def code_chances(f: Floats, *, channel: CodeChannel) -> Floats:
    """Return the chance of each code at true frequencies f; shape (n_codes,)."""
    if isinstance(channel, GrrChannel):
        return float(channel.q) + float(channel.p - channel.q) * f
    inside, outside = _code_chances(channel)
    return outside + (inside - outside) * sums_of_codes(f, channel=channel)


def _code_chances(channel: DesignChannel) -> tuple[float, float]:
    """Chance of a code that supports the true value, and of another one."""
    p, size = float(channel.p), channel.support_size
    return p / size, (1 - p) / (channel.n_codes - size)


def _event_noise(weights: Floats, *, channel: LinearChannel) -> tuple[float, float] | None:
    """Noise of a report of a value outside a set, and inside; None unless it is the same for all of each.

    With codes of several values it depends on how many of two values or more a report supports.
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
        names = ", ".join(each.__name__ for each in get_args(LinearChannel))
        reason = _REFUSED.get(type(channel), "two of its values have no known covariance")
        raise LdpError(f"channel must be one of {names}: {reason}, got {channel}")
    return value_counts(counts, channel=channel)


def _checked(weights: Floats, *, channel: LinearChannel) -> Floats:
    if weights.shape != (channel.domain_size,) or not np.isfinite(weights).all():
        raise LdpError(f"weights must be finite with shape ({channel.domain_size},), got {weights}")
    return weights
