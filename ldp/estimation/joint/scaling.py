"""Visitors scaled to a population: those of each category, divided by the share of its people who are seen.

The total is a linear question with the weights 1 / share, so its variance has the covariances of the
categories. Where a share is an estimate itself, its error is added to first order (delta method); errors of
shares are taken as independent of each other and of the reports.
"""

from math import hypot
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.estimators import Estimates
from ldp.estimation.joint.linear import LinearChannel, LinearEstimate, linear_answer

Floats = NDArray[np.float64]


def scaled_total(
    estimates: Estimates,
    *,
    shares: Floats,
    share_errors: Floats,
    channel: LinearChannel,
    n_reports: int,
    n_population: int,
    level: float = 0.95,
) -> LinearEstimate:
    """People that the visitors of a window stand for.

    Parameters
    ----------
    estimates : Estimates; of `pure_frequencies`, with the same reports and visitors
    shares : ndarray of float64, shape (domain_size,); of the people of each category, in (0, 1]
    share_errors : ndarray of float64, same shape; standard errors, 0 = known exactly
    n_reports, n_population : int; reports, and visitors, which are counted exactly
    level : float; of the interval, in (0, 1)

    Raises
    ------
    LdpError : a share is outside (0, 1], an error is negative, or a rule of `linear_query` is broken
    """
    _check(shares, share_errors)
    seen = linear_answer(
        estimates,
        weights=1 / shares,
        channel=channel,
        n_reports=n_reports,
        n_population=n_population,
        level=level,
    )
    error = float(np.linalg.norm(_errors(estimates, shares, share_errors))) * n_population
    value, low, high = (n_population * each for each in (seen.value, seen.ci_low, seen.ci_high))
    half = NormalDist().inv_cdf((1 + level) / 2) * error
    return LinearEstimate(
        value=value,
        std_error=hypot(n_population * seen.std_error, error),
        ci_low=value - hypot(value - low, half),
        ci_high=value + hypot(high - value, half),
    )


def scaled_categories(
    estimates: Estimates, *, shares: Floats, share_errors: Floats, n_population: int, level: float = 0.95
) -> list[LinearEstimate]:
    """People that the visitors of each category stand for; parameters and errors as of `scaled_total`."""
    _check(shares, share_errors)
    scale = n_population / shares
    errors = n_population * _errors(estimates, shares, share_errors)
    half = NormalDist().inv_cdf((1 + level) / 2) * errors
    value = scale * estimates.frequency
    columns = (
        value,
        np.hypot(scale * estimates.std_error, errors),
        value - np.hypot(scale * (estimates.frequency - estimates.ci_low), half),
        value + np.hypot(scale * (estimates.ci_high - estimates.frequency), half),
    )
    rows = zip(*(each.tolist() for each in columns), strict=True)
    return [LinearEstimate(value=a, std_error=b, ci_low=c, ci_high=d) for a, b, c, d in rows]


def _errors(estimates: Estimates, shares: Floats, share_errors: Floats) -> Floats:
    """Standard error, of a visitor's part, that comes from the share of each category."""
    return estimates.frequency / shares**2 * share_errors


def _check(shares: Floats, share_errors: Floats) -> None:
    if not np.all((shares > 0) & (shares <= 1)):
        raise LdpError(f"shares must be > 0 and <= 1, got {shares}")
    if shares.shape != share_errors.shape or not np.all(np.isfinite(share_errors) & (share_errors >= 0)):
        raise LdpError(f"share_errors must be >= 0, one for each share, got {share_errors}")
