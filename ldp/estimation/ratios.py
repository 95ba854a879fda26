"""Intervals of ratios of estimates, per category.

A share is that of a part among the visitors of a category, a ratio of two estimates. Its interval has all
ratios r for which the interval of `part - r * whole` holds 0 (Fieller; the limits by MOVER, as of every
sum: Donner and Zou, Statistical Methods in Medical Research 2012). Both limits are then in [0, 1].
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Interval:
    """Knowledge of a ratio or of a bounded number, per category.

    Parameters
    ----------
    value : ndarray of float64, shape (domain_size,); the estimate, nan where there is none: where only
        bounds are known, or a category has no visitors
    ci_low, ci_high : same shape
    is_exact : bool; False: the interval is conservative, it holds the truth at least as often as stated
    """

    value: Floats
    ci_low: Floats
    ci_high: Floats
    is_exact: bool


class Limits(NamedTuple):
    """A number of visitors and the interval that it has alone; without an estimate, all that is possible."""

    value: Floats
    low: Floats
    high: Floats
    is_known: bool = True


def difference_low(whole: Limits, part: Limits) -> Floats:
    """Lower limit of `whole - part`; errors that go together only make it more certain."""
    reach = np.hypot(whole.value - whole.low, part.high - part.value)
    return np.asarray(whole.value - part.value - reach, np.float64)


def share_of(part: Limits, rest: Limits) -> Interval:
    """part / (part + rest), of two disjoint parts whose errors are independent."""
    low, high = _quotient_range(part, rest)
    with np.errstate(invalid="ignore"):
        low, high = (np.where(np.isinf(t), 1.0, t / (1 + t)) for t in (low, high))
    is_known = part.is_known and rest.is_known
    return _interval(quotient(part.value, part.value + rest.value), low, high, is_known=is_known)


def ratio_of(part: Limits, whole: Limits) -> Interval:
    """part / whole, at most 1, of numbers whose errors may go together."""
    low, high = _quotient_range(part, whole)
    low, high, is_known = np.minimum(low, 1), np.minimum(high, 1), part.is_known and whole.is_known
    return _interval(quotient(part.value, whole.value), low, high, is_known=is_known)


def _interval(value: Floats, low: Floats, high: Floats, *, is_known: bool) -> Interval:
    high = np.maximum(low, high)
    value = np.clip(value, low, high) if is_known else np.full_like(low, np.nan)
    return Interval(value=value, ci_low=low, ci_high=high, is_exact=is_known)


def _quotient_range(one: Limits, two: Limits) -> tuple[Floats, Floats]:
    """All t in [0, inf] for which the interval of one - t two may hold 0.

    Its lower limit, one - t two - hypot(down of one, t up of two), is concave in t, so where it is above 0
    at first it falls below it once or never: at the smallest root of a t^2 - 2 b t + c. The upper limit is
    convex, and is below 0 from the largest root on, if two is surely above 0.
    """
    b = one.value * two.value
    down, up = one.value - one.low, two.high - two.value
    c = one.value**2 - down**2
    low = _over(c, b + _root(b, two.value**2 - up**2, c))
    low = np.where(one.low <= 0, 0.0, low)
    up, down = one.high - one.value, two.value - two.low
    a = two.value**2 - down**2
    high = _over(b + _root(b, a, one.value**2 - up**2), a)
    high = np.where(one.high < 0, 0.0, np.where(two.low <= 0, np.inf, np.maximum(high, 0)))
    return low, high


def _root(b: Floats, a: Floats, c: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(b**2 - a * c, 0)), np.float64)


def _over(part: Floats, whole: Floats) -> Floats:
    """Quotient; inf unless the divisor is above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(whole > 0, part / whole, np.inf), np.float64)


def quotient(part: Floats, whole: Floats) -> Floats:
    """part / whole; nan unless the whole is above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(whole > 0, part / whole, np.nan), np.float64)


def quadratic_range(a: Floats, b: Floats, c: Floats, *, low: float, high: float) -> tuple[Floats, Floats]:
    """Where a m^2 + b m + c <= 0 within [low, high], per category.

    All of [low, high] where nothing is known: where a <= 0 or there is no root, or no root inside.
    """
    square = b**2 - 4 * a * c
    known = (a > 0) & (square >= 0)
    half = np.sqrt(np.maximum(square, 0))
    twice = np.where(known, 2 * a, 1.0)
    least = np.where(known, (-b - half) / twice, low)
    most = np.where(known, (-b + half) / twice, high)
    outside = (most < low) | (least > high)
    least, most = np.where(outside, low, least), np.where(outside, high, most)
    return np.clip(least, low, high), np.clip(most, low, high)
