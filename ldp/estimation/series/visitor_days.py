"""Visitors of a stream added over days: who comes on two days counts twice.

On each day a category has n f visitors, of n visitors in all; n f is added over days. Its noise is
independent from day to day. Its sampling error is not: the same people answer on two days of one slot, and
none on two days of different slots. For the linearised estimate with x_i = 1 if person i has the category,

    Cov(f_t, f_u) = Cov(I_t, I_u) / (pi^2 n_t n_u) sum over people of both days (x_it - f_t)(x_iu - f_u),

where pi is the probability to answer. By Cauchy and Schwarz it is at most the product of the standard errors
for one slot, where Cov(I_t, I_u) = pi (1 - pi), and at most sigma_t sigma_u / sqrt(n_t n_u) for two slots,
where it is -pi^2. So the error is an upper bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.estimators import pure_variance
from ldp.estimation.windows import WindowEstimate
from ldp.protocols.channels import PureChannel

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DayShares:
    """Estimates of one day: unbiased shares, shape (domain_size,), with its reports and visitors.

    day : number in the study, from 1
    """

    day: int
    shares: Floats
    n_reports: int
    n_visitors: int


def visitor_days(
    days: Sequence[DayShares], *, channel: PureChannel, window_days: int, level: float = 0.95
) -> WindowEstimate:
    """Visitors of each category, added over days; unbiased, with an upper bound of the standard error.

    Parameters
    ----------
    days : of one stream, each at most once, with at least one report
    channel : as used for the reports
    window_days : of the stream; days that differ by a multiple of it are answered by the same people
    level : float; of the interval, in (0, 1)

    Raises
    ------
    LdpError : there is no day, one is there twice, or one has no reports

    Notes
    -----
    Cost O(days ** 2 * domain_size).
    """
    numbers = [each.day for each in days]
    if not days or len(set(numbers)) < len(numbers):
        raise LdpError(f"days must be at least one, and each once, got {numbers}")
    total = np.sum([each.n_visitors * each.shares for each in days], axis=0)
    variance = np.zeros_like(total)
    samplings, spreads = [], []
    for each in days:
        f = np.clip(each.shares, 0, 1)
        noise, both = (
            pure_variance(f, n_reports=each.n_reports, n_population=n, channel=channel)
            for n in (each.n_reports, each.n_visitors)
        )
        variance += each.n_visitors**2 * both
        samplings.append(each.n_visitors * np.sqrt(np.maximum(both - noise, 0)))
        spreads.append(np.sqrt(each.n_visitors * f * (1 - f)))
    for place, number in enumerate(numbers):
        for before in range(place):
            is_one_slot = (number - numbers[before]) % window_days == 0
            of_days = samplings if is_one_slot else spreads
            variance += 2 * of_days[place] * of_days[before]
    error = np.sqrt(variance)
    reach = NormalDist().inv_cdf((1 + level) / 2) * error
    return WindowEstimate(
        value=total, std_error=error, ci_low=total - reach, ci_high=total + reach, is_exact=False
    )
