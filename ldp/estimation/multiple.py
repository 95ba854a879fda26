"""Many comparisons at once: which differences still hold when one false one among all is too many."""

from collections.abc import Callable, Sequence
from math import lgamma, log, sqrt
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ldp.estimation.error_curves import POWER
from ldp.protocols.channels import SupportProbabilities

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Interval(Protocol):
    """Lower and upper bounds of several differences."""

    @property
    def ci_low(self) -> Floats:
        """Shape (n,)."""

    @property
    def ci_high(self) -> Floats:
        """Shape (n,)."""


def excludes_zero(interval: Interval) -> Mask:
    """Return whether each interval lies on one side of 0; bool, shape (n,)."""
    return np.asarray((interval.ci_low > 0) | (interval.ci_high < 0), np.bool_)


def above_zero(
    counts: Counts, *, n_reports: int | Sequence[int], channel: SupportProbabilities, error: float = 0.05
) -> Mask:
    """Find values that someone has, so that all of these are right at once with probability `1 - error`.

    Parameters
    ----------
    counts : ndarray of int64, shape (domain_size,) or (days, domain_size); reports that support each value
    n_reports : int, or of each day
    channel : as used for the reports; it supports each value alike
    error : float; in (0, 1)

    Returns
    -------
    ndarray of bool, shape (domain_size,)

    Notes
    -----
    A report supports a value that no one has with probability q, for any values of the others: its count is
    binomial, and its p-value exact. Of several days the smallest p-value times their number is one, also if
    people repeat their answers. Holm's steps; they hold however the counts depend on each other.
    """
    from scipy.special import bdtrc  # noqa: PLC0415 - 0.1 s for every use of ldp

    counts, n = np.atleast_2d(counts), np.reshape(n_reports, (-1, 1))
    of_days = np.where(counts > 0, bdtrc(counts - 1, n, float(channel.q)), 1.0)
    p_values = np.minimum(of_days.min(axis=0) * len(of_days), 1.0)
    order = np.argsort(p_values, kind="stable")
    k = len(p_values)
    is_found = np.logical_and.accumulate(p_values[order] <= error / np.arange(k, 0, -1))
    found = np.zeros(k, np.bool_)
    found[order] = is_found
    return found


def chosen_reach(n_chosen: int, n_values: int, *, level: float = 0.95) -> float:
    """Standard errors within which the sum of any chosen values lies, though the same reports chose them.

    Notes
    -----
    All sets of every size at once (Bonferroni), by the bound exp(-z**2 / 2) of a normal tail.
    """
    n_sets = lgamma(n_values + 1) - lgamma(n_chosen + 1) - lgamma(n_values - n_chosen + 1)
    return sqrt(2 * (log(2 * n_values / (1 - level)) + n_sets))


def smallest_found(std_error: Floats, *, n_tests: int, level: float = 0.95, power: float = POWER) -> Floats:
    """Return the differences that the first step of `holm` finds with a power; same shape as the errors.

    Parameters
    ----------
    std_error : ndarray of float64; of the differences
    n_tests : int; differences that are looked at together, at least 1
    level, power : float; in (0, 1)
    """
    z = NormalDist().inv_cdf
    return (z(1 - (1 - level) / (2 * n_tests)) + z(power)) * std_error


def holm(interval_at: Callable[[float], Interval], *, rows: Mask, level: float = 0.95) -> Mask:
    """Find differences that are not 0, so that all of these are right at once with probability `level`.

    Parameters
    ----------
    interval_at : the intervals at a level in (0, 1); a higher level gives wider ones
    rows : ndarray of bool, shape (n,); the differences that are looked at
    level : float; in (0, 1)

    Returns
    -------
    ndarray of bool, shape (n,)

    Notes
    -----
    Holm, Scandinavian Journal of Statistics 1979, with intervals for tests: an interval at 1 - a excludes 0
    where the p-value is below a. Holds however the differences depend on each other, and finds at least what
    Bonferroni finds. Asks for intervals at most once per row.
    """
    found = np.zeros_like(rows)
    while left := int((rows & ~found).sum()):
        more = rows & excludes_zero(interval_at(1 - (1 - level) / left)) & ~found
        if not more.any():
            break
        found |= more
    return found
