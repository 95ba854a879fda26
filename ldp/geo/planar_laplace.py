"""Planar Laplace noise: its exact law, and what finite precision costs.

Source: M. Andrés, N. Bordenabe, K. Chatzikokolakis, C. Palamidessi, "Geo-indistinguishability", CCS 2013.
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import exp, inf, isfinite, log1p, nextafter, pi, sqrt
from typing import Final

from ldp.errors import InvalidBudgetError
from ldp.geo.precision import ANGLE_ERROR, PLACE_ERROR, RADIUS_ERROR

MAX_PRECISION_LOSS: Final = Fraction(1, 100)  # of epsilon: more would make maps noisier for nothing

_TAIL: Final = 40  # epsilon times the distance beyond the range from which noise counts as lost
_TAIL_SHARE: Final = 4.25e-18  # above e^-40; not math.exp, whose last digit is the platform's
_CERTIFIED_DIGITS: Final = 30
_UP: Final = Context(prec=60, rounding=ROUND_CEILING)
_DOWN: Final = Context(prec=60, rounding=ROUND_FLOOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanarLaplace:
    """Noise with density epsilon^2 / (2 pi) e^(-epsilon r) at distance r, epsilon per metre.

    The angle is uniform and independent of the radius, which has the law Gamma(2, 1 / epsilon).
    InvalidBudgetError if epsilon is not finite and above 0.
    """

    epsilon_per_m: float

    def __post_init__(self) -> None:
        if not (isfinite(self.epsilon_per_m) and self.epsilon_per_m > 0):
            raise InvalidBudgetError(f"epsilon_per_m must be finite and > 0, got {self.epsilon_per_m}")

    def density(self, radius_m: float) -> float:
        """Density per square metre of the points at this distance, >= 0."""
        return self.epsilon_per_m**2 / (2 * pi) * exp(-self.epsilon_per_m * radius_m)

    def quantile(self, probability: float) -> float:
        """Length in metres that the noise has at most, with this probability in [0, 1).

        Solves x - ln(1 + x) = t = -ln(1 - probability) by Newton's method. The left side is convex and t +
        sqrt(2 t) lies above the root, so the steps only go down. InvalidBudgetError if probability is out of
        range.
        """
        if not 0 <= probability < 1:
            raise InvalidBudgetError(f"probability must be in [0, 1), got {probability}")
        t = -log1p(-probability)
        x, previous = t + sqrt(2 * t), inf
        while 0 < x < previous:
            previous = x
            x -= (x - log1p(x) - t) * (1 + x) / x
        return min(previous, x) / self.epsilon_per_m if t else 0.0

    @property
    def mean_m(self) -> float:
        """Mean length of the noise, in metres: 2 / epsilon."""
        return 2 / self.epsilon_per_m


def certified_epsilon(sampled: Decimal, *, step_m: int, range_m: int, angle_step: Decimal) -> Decimal:
    """Epsilon per metre that noise of finite precision keeps on a grid, rounded up to 60 digits.

    Parameters
    ----------
    sampled : Decimal; epsilon per metre of the ideal noise that is drawn, >= 0
    step_m : int; side u of a square, in metres
    range_m : int; no two points of the grid are further apart, in metres
    angle_step : Decimal; in radians, times range_m: twice what a point is displaced at most in a direction

    Raises
    ------
    InvalidBudgetError : the precision is too low for any promise

    Notes
    -----
    sampled + (1/u) ln((q + 2 e^(sampled u)) / (q - 2 e^(sampled u))), q = u / (range_m angle_step).
    Source: Andrés et al. 2013, theorem 4.1; `ldp.geo.precision` proves it for this sampler.
    """
    q = _DOWN.divide(Decimal(step_m), _UP.multiply(Decimal(range_m), angle_step))
    growth = _UP.multiply(Decimal(2), _exp_up(_UP.multiply(sampled, Decimal(step_m))))
    least = _DOWN.subtract(q, growth)
    if least <= 0:
        raise InvalidBudgetError(
            f"precision must allow a promise: u / (range_m angle_step) must be > {growth:.6g}, got {q:.6g}"
        )
    ratio = _UP.divide(_UP.add(q, growth), least)
    # Decimal.ln always rounds to nearest, hence the step up.
    loss = _UP.divide(_UP.ln(ratio).next_plus(context=_UP), Decimal(step_m))
    return _UP.add(sampled, loss)


def sampled_epsilon(epsilon: Fraction, *, step_m: int, range_m: int, angle_step: Decimal) -> Decimal:
    """Largest epsilon per metre to draw such that `certified_epsilon` is at most `epsilon`; to 30 digits.

    InvalidBudgetError if there is none.
    """
    high = _DOWN.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    low, most = Decimal(0), high
    if not _keeps(low, most, step_m=step_m, range_m=range_m, angle_step=angle_step):
        raise InvalidBudgetError(
            f"precision must allow epsilon_per_m {float(epsilon):.6g} on squares of {step_m} m over "
            f"{range_m} m, got angle_step {angle_step:.6g}"
        )
    for _ in range(110):  # halvings: 33 digits
        middle = _DOWN.divide(_DOWN.add(low, high), Decimal(2))
        if _keeps(middle, most, step_m=step_m, range_m=range_m, angle_step=angle_step):
            low = middle
        else:
            high = middle
    return low


def _keeps(sampled: Decimal, most: Decimal, *, step_m: int, range_m: int, angle_step: Decimal) -> bool:
    try:
        return certified_epsilon(sampled, step_m=step_m, range_m=range_m, angle_step=angle_step) <= most
    except InvalidBudgetError:
        return False


def angle_step(
    epsilon: Fraction,
    *,
    step_m: int,
    range_m: int,
    radius_error: float = RADIUS_ERROR,
    angle_error: float = ANGLE_ERROR,
    place_error: float = PLACE_ERROR,
) -> Decimal:
    """Angle step of `certified_epsilon` that covers everything inexact about the sampler, in radians.

    Parameters
    ----------
    epsilon : Fraction; per metre; the sampled epsilon must be at least 99% of it
    step_m, range_m : int; in metres
    radius_error, angle_error, place_error : float; in 1 / epsilon, radians, squares

    Raises
    ------
    InvalidBudgetError : points are displaced by more than a square

    Notes
    -----
    Noise up to 40 / epsilon beyond the range is displaced by `offset_m`; longer noise, at most `lost` times
    as probable as any square, by anything. Only +, -, *, /: the same result on every machine.
    """
    scale_m = 1 / float(epsilon * (1 - MAX_PRECISION_LOSS))
    reach_m = range_m + _TAIL * scale_m
    offset_m = radius_error * scale_m + angle_error * reach_m + place_error * step_m
    if offset_m >= step_m:
        raise InvalidBudgetError(f"step_m must be > {offset_m:.6g} m, the error of the noise, got {step_m}")
    lost = 2 * pi * (1 + float(epsilon) * reach_m) * _TAIL_SHARE * (scale_m / step_m) ** 2
    # The last factor is far more than what the roundings here may take away.
    return Decimal((2 * offset_m / (1 - offset_m / step_m) + lost * step_m) / range_m * (1 + 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """The drawn noise and the promise that it keeps.

    Parameters
    ----------
    scale : float; 1 / epsilon of the noise that is drawn, in squares
    sampled : Fraction; that epsilon per metre, exact
    certified : Decimal; epsilon per metre that reports keep, rounded up to 30 digits
    """

    scale: float
    sampled: Fraction
    certified: Decimal


def precision_of(epsilon: Fraction, *, step_m: int, range_m: int) -> Precision:
    """How to draw noise on a grid with at most this epsilon per metre.

    InvalidBudgetError if that would cost more than 1% of epsilon: it says whether squares must be larger.
    """
    try:
        step = angle_step(epsilon, step_m=step_m, range_m=range_m)
        wanted = sampled_epsilon(epsilon, step_m=step_m, range_m=range_m, angle_step=step)
    except InvalidBudgetError as error:
        raise _imprecise(epsilon, step_m=step_m) from error
    # The smallest double at or above 1 / (wanted u), so that what is drawn is at most what is wanted.
    exact = 1 / (Fraction(wanted) * step_m)
    scale = float(exact)
    scale = scale if Fraction(scale) >= exact else nextafter(scale, inf)
    sampled = 1 / (Fraction(scale) * step_m)
    if sampled < epsilon * (1 - MAX_PRECISION_LOSS):
        raise _imprecise(epsilon, step_m=step_m)
    drawn = _UP.divide(Decimal(sampled.numerator), Decimal(sampled.denominator))
    certified = certified_epsilon(drawn, step_m=step_m, range_m=range_m, angle_step=step)
    return Precision(
        scale=scale,
        sampled=sampled,
        certified=Context(prec=_CERTIFIED_DIGITS, rounding=ROUND_CEILING).plus(certified),
    )


def _imprecise(epsilon: Fraction, *, step_m: int) -> InvalidBudgetError:
    advice = "smaller" if epsilon * step_m > 1 else "larger"
    return InvalidBudgetError(
        f"step_m must be {advice} for noise with epsilon_per_m {float(epsilon):.6g} (1 / epsilon = "
        f"{float(1 / epsilon):.6g} m), got {step_m}: finite precision would cost more than 1% of epsilon"
    )


def _exp_up(x: Decimal) -> Decimal:
    # Decimal.exp always rounds to nearest, hence the step up.
    return _UP.exp(x).next_plus(context=_UP)
