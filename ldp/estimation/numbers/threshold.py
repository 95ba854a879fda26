"""Numbers from threshold reports: mean, survival function and quantiles, without a model of the numbers.

For each cut a_j the people asked about it say whether their number reaches it: their share S_j is
estimated as that of any category (`pure_frequencies`). With D_j = a_j - a_(j-1), a_0 the minimum,

    mean = a_0 + sum D_j S_j

is the mean of the numbers *rounded down to the nearest of a_0, a_1, ..., a_c*; those below a_0 count as a_0,
those above a_c as a_c. So the mean of numbers in the range is up to the largest spacing higher.

The people of different cuts are disjoint simple random samples of the visitors, n_j of N. Their noise is
independent; their sampling errors are not. With C the covariance of the indicators [number >= a_j] among the
visitors, C_jk = S_max(j,k) - S_j S_k, Cov(S_j, S_k) = -C_jk / (N - 1) for two cuts, hence

    Var(mean) = sum D_j^2 noise / n_j + N / (N - 1) sum D_j^2 C_jj / n_j - sum D_j D_k C_jk / (N - 1).

Source: Ding, Kulkarni, Yekhanin, NeurIPS 2017; Woodruff, JASA 1952 (quantiles).
"""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.errors import LdpError, NoReportsError
from ldp.estimation.estimators import Estimates, pure_frequencies
from ldp.estimation.joint.linear import LinearEstimate
from ldp.protocols.channels import noise_at_zero
from ldp.protocols.numbers.threshold import Scale, ThresholdChannel

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileEstimate:
    """Range of numbers in which a quantile lies.

    low, high : cuts, or the minimum; at least the share `level` of the visitors is below `high`, and at least
        1 - level is at or above `low`; None = beyond the last cut
    ci_low, ci_high : the same, with the confidence of the intervals of the shares, for any numbers
    """

    low: int
    high: int | None
    ci_low: int
    ci_high: int | None


def threshold_survival(
    counts: Counts, *, channel: ThresholdChannel, n_population: int, level: float = 0.95
) -> Estimates:
    """Share of the visitors whose number reaches each cut; `consistent` falls from cut to cut.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_codes,); reports by code, at least one on each cut
    channel : ThresholdChannel; as used for the reports
    n_population : int; visitors of the window, at least the reports
    level : float; of each interval, in (0, 1)

    Raises
    ------
    NoReportsError : there is a cut on which no one reported
    LdpError : counts do not fit
    """
    reports = _reports(counts, channel)
    if n_population < reports.sum():
        raise LdpError(f"n_population must be >= {reports.sum()}, the reports, got {n_population}")
    return pure_frequencies(
        counts[1::2], n_reports=reports, n_population=n_population, channel=channel, level=level
    )


def threshold_mean(
    counts: Counts, *, scale: Scale, channel: ThresholdChannel, n_population: int, level: float = 0.95
) -> LinearEstimate:
    """Mean of the numbers, rounded down to the minimum and the cuts; parameters as of `threshold_survival`.

    Notes
    -----
    Unbiased, with its exact variance taken at the nearest survival function. The interval is normal: the
    noise, which is most of the error, does not depend on the numbers.
    """
    found = threshold_survival(counts, channel=channel, n_population=n_population)
    reports = _reports(counts, channel)
    value = scale.minimum + float(np.dot(scale.spacings, found.frequency))
    variance = mean_variance(
        found.consistent, scale=scale, channel=channel, n_reports=reports, n_population=n_population
    )
    return normal_estimate(value, sqrt(variance), level=level)


def mean_variance(
    survival: ArrayLike, *, scale: Scale, channel: ThresholdChannel, n_reports: ArrayLike, n_population: float
) -> float:
    """Exact variance of `threshold_mean` at a true survival function.

    Parameters
    ----------
    survival : array_like of float, shape (n_cuts,); falling, in [0, 1]
    n_reports : array_like, shape (n_cuts,); on each cut, above 0
    n_population : visitors, at least 2; infinity = reports are drawn from a law
    """
    s, n = np.asarray(survival, np.float64), np.asarray(n_reports, np.float64)
    spacings = np.array(scale.spacings, np.float64)
    noise = float(noise_at_zero(channel)) * (spacings**2 / n).sum()
    inverse = 1 / max(n_population - 1, 1)
    own = (1 + inverse) * (spacings**2 * s * (1 - s) / n).sum()
    covariance = np.minimum.outer(s, s) - np.outer(s, s)
    return float(noise + max(own - inverse * spacings @ covariance @ spacings, 0.0))


def threshold_noise(counts: Counts, *, scale: Scale, channel: ThresholdChannel) -> float:
    """Variance of `threshold_mean` by the noise alone, which does not depend on the numbers."""
    spacings = np.array(scale.spacings, np.float64)
    return float(noise_at_zero(channel)) * float((spacings**2 / _reports(counts, channel)).sum())


def threshold_quantile(found: Estimates, *, scale: Scale, share: float) -> QuantileEstimate:
    """Where a quantile lies, from shares above the cuts, of any reports: no shape of the numbers is assumed.

    Parameters
    ----------
    share : float; of the visitors below it, in (0, 1); 0.5 = the median

    Notes
    -----
    The interval runs from the last cut up to which all intervals lie above 1 - share, to the first one from
    which on all lie below it (Woodruff). It misses on either side only if the interval of the one cut next to
    the quantile does: so it covers at least as surely as one of these, with any number of cuts.
    """
    if not 0 < share < 1:
        raise LdpError(f"share must be in (0, 1), got {share}")
    ends, above = scale.ends, 1 - share
    at = int((found.consistent >= above).sum())
    is_above, is_below = found.ci_low > above, found.ci_high < above
    low = int(np.argmin(np.append(is_above, False)))
    high = len(ends) - int(np.argmin(np.append(is_below[::-1], False)))
    # The likeliest shares of the square wave may leave the intervals, which are of each share alone.
    low, high = min(low, at), max(high, at + 1)
    following = (*ends, None)
    return QuantileEstimate(low=ends[at], high=following[at + 1], ci_low=ends[low], ci_high=following[high])


def _reports(counts: Counts, channel: ThresholdChannel) -> Counts:
    """Reports on each cut."""
    if counts.shape != (channel.n_codes,):
        raise LdpError(f"counts must have shape ({channel.n_codes},), got {counts.shape}")
    reports: Counts = counts[::2] + counts[1::2]
    if reports.min() < 1:
        raise NoReportsError(f"each of {channel.domain_size} cuts must have reports, got 0 on some")
    return reports


def normal_estimate(value: float, std_error: float, *, level: float) -> LinearEstimate:
    """Return an estimate with its normal interval."""
    reach = NormalDist().inv_cdf((1 + level) / 2) * std_error
    return LinearEstimate(
        value=float(value), std_error=float(std_error), ci_low=value - reach, ci_high=value + reach
    )
