"""Promise of counts by slot and zone: discrete Gaussian noise, and what the slots of a person add up to.

A person is in one zone of each level in each slot, so a day of theirs changes `slots_per_day` x `levels`
counts by one: its L2 sensitivity is the root of that. Being elsewhere instead changes twice as many. Losses
are in zero-concentrated differential privacy (zCDP), in which days add up exactly.

Sources: Canonne, Kamath and Steinke, NeurIPS 2020 (discrete Gaussian; theorem 4 and proposition 12); Balle
and Wang, ICML 2018 (curve of the Gaussian mechanism).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Self

from ldp.errors import InvalidBudgetError, PlanError
from ldp.protocols.channels import exact_text

SLOT_MINUTES: Final = (15, 30, 60, 120)
DAY_MINUTES: Final = 1440
MAX_SLOTS_PER_DAY: Final = 96
MIN_EPSILON, MAX_EPSILON = Fraction(1, 1000), Fraction(20)
MIN_DELTA, MAX_DELTA = Fraction(1, 10**12), Fraction(1, 100)

_UP: Final = Context(prec=40, rounding=ROUND_CEILING)
_DOWN: Final = Context(prec=40, rounding=ROUND_FLOOR)
_BISECTIONS: Final = 80
_FAR: Final = 20.0  # standard deviations
_VARIANCE_STEP: Final = 1000  # of 1: variances have three decimals


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotNoise:
    """Discrete Gaussian noise of every count of a slot and zone.

    variance : parameter of the noise, at least 1/4; its variance is at most that
    slots_per_day : slots of a person that count on a local day, in [1, 96]
    levels : counts of a slot in which a person is: a zone and each zone that contains it
    delta : probability, in [10**-12, 0.01], that losses are stated for

    Raises
    ------
    InvalidBudgetError, PlanError : a value is out of range
    """

    variance: Fraction
    slots_per_day: int
    levels: int
    delta: Fraction

    def __post_init__(self) -> None:
        if self.variance < Fraction(1, 4):
            raise InvalidBudgetError(f"variance must be >= 1/4, got {float(self.variance):.6g}")
        if not 1 <= self.slots_per_day <= MAX_SLOTS_PER_DAY:
            raise PlanError(f"slots_per_day must be in [1, {MAX_SLOTS_PER_DAY}], got {self.slots_per_day}")
        if self.levels < 1:
            raise PlanError(f"levels must be >= 1, got {self.levels}")
        _check_delta(self.delta)

    def rho(self, *, slots: int, is_moved: bool = False) -> Fraction:
        """Return the zCDP of a number of a person's slots, exact; is_moved : elsewhere instead of absent."""
        return Fraction(slots * self.levels * (2 if is_moved else 1)) / (2 * self.variance)

    def rho_of_days(self, days: int, *, is_moved: bool = False) -> Fraction:
        """Return the zCDP of a number of a person's days."""
        return self.rho(slots=days * self.slots_per_day, is_moved=is_moved)

    def epsilon(self, *, days: int, is_moved: bool = False) -> Decimal:
        """Certified epsilon of a number of days at `delta`, rounded up to 30 digits."""
        return zcdp_epsilon(self.rho_of_days(days, is_moved=is_moved), delta=self.delta)

    def epsilon_of_slot(self, *, is_moved: bool = False) -> Decimal:
        """Certified epsilon of one slot at `delta`."""
        return zcdp_epsilon(self.rho(slots=1, is_moved=is_moved), delta=self.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSpec:
    """Counts by slot and zone that a plan publishes.

    minutes : length of a slot, one of SLOT_MINUTES
    slots_per_day : slots of a person that count on a local day, in [1, 1440 / minutes]
    levels : counts of a slot in which a person is, at least 1: of a zone and of each zone that contains it
    variance, delta : of the noise, as SlotNoise has them; None = the counts are exact

    Raises
    ------
    InvalidBudgetError, PlanError : a value is out of range
    """

    minutes: int
    slots_per_day: int
    levels: int
    variance: Fraction | None = None
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        if self.minutes not in SLOT_MINUTES:
            raise PlanError(f"minutes of a slot must be one of {SLOT_MINUTES}, got {self.minutes}")
        if not 1 <= self.slots_per_day <= DAY_MINUTES // self.minutes:
            raise PlanError(
                f"slots_per_day must be in [1, {DAY_MINUTES // self.minutes}], got {self.slots_per_day}"
            )
        if self.levels < 1:
            raise PlanError(f"levels must be >= 1, got {self.levels}")
        if (self.variance is None) != (self.delta is None):
            raise PlanError("variance and delta of slots must be both present or both absent")
        _ = self.noise

    @property
    def noise(self) -> SlotNoise | None:
        """Noise of each count; None = they are exact."""
        if self.variance is None or self.delta is None:
            return None
        return SlotNoise(
            variance=self.variance,
            slots_per_day=self.slots_per_day,
            levels=self.levels,
            delta=self.delta,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values; fractions as exact texts "a/b"; without noise, nothing of it."""
        plain: dict[str, Any] = {
            "minutes": self.minutes,
            "slots_per_day": self.slots_per_day,
            "levels": self.levels,
        }
        if self.variance is not None and self.delta is not None:
            plain |= {"variance": exact_text(self.variance), "delta": exact_text(self.delta)}
        return plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build what `to_json` wrote; KeyError, TypeError or ValueError for anything else."""
        noise = {name: Fraction(data[name]) for name in ("variance", "delta") if name in data}
        return cls(
            minutes=data["minutes"], slots_per_day=data["slots_per_day"], levels=data["levels"], **noise
        )


@lru_cache(maxsize=256)
def slot_noise(*, epsilon_day: Fraction, delta: Fraction, slots_per_day: int, levels: int) -> SlotNoise:
    """Return the least noise, in thousandths of variance, whose day is certified for `epsilon_day`.

    Raises
    ------
    InvalidBudgetError : epsilon_day is outside [0.001, 20], or delta outside [10**-12, 0.01]
    PlanError : slots_per_day or levels is out of range
    """
    if not MIN_EPSILON <= epsilon_day <= MAX_EPSILON:
        raise InvalidBudgetError(
            f"epsilon_day must be in [{float(MIN_EPSILON)}, {MAX_EPSILON}], got {float(epsilon_day):.6g}"
        )

    def noise(thousandths: int) -> SlotNoise:
        return SlotNoise(
            variance=Fraction(thousandths, _VARIANCE_STEP),
            slots_per_day=slots_per_day,
            levels=levels,
            delta=delta,
        )

    asked = _down(epsilon_day)
    low, high = _VARIANCE_STEP // 4 - 1, _VARIANCE_STEP
    while noise(high).epsilon(days=1) > asked:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if noise(middle).epsilon(days=1) <= asked else (middle, high)
    return noise(high)


def zcdp_epsilon(rho: Fraction, *, delta: Fraction) -> Decimal:
    """Epsilon at delta of anything that is rho-zCDP, rounded up: proposition 12 at `zcdp_order`.

    The bound holds at any order, and is evaluated with directed rounding.
    """
    _check_delta(delta)
    if rho < 0:
        raise InvalidBudgetError(f"rho must be >= 0, got {float(rho):.6g}")
    if rho == 0:
        return Decimal(0)
    order = zcdp_order(rho, delta=delta)
    less_one = order - 1
    first = _UP.multiply(_up(rho), _up(order))
    log_delta = _UP.next_plus(_UP.minus(_DOWN.next_minus(_DOWN.ln(_down(delta)))))
    # ln(1 - 1/order) - ln(order) / (order - 1): rounded up, then what is subtracted rounded down.
    shrink = _UP.next_plus(_UP.ln(_up(less_one / order)))
    log_order = _DOWN.next_minus(_DOWN.ln(_down(order)))
    rest = _UP.divide(_UP.subtract(log_delta, log_order), _down(less_one))
    total = _UP.add(_UP.add(first, rest), shrink)
    return max(Context(prec=30, rounding=ROUND_CEILING).plus(total), Decimal(0))


def gaussian_epsilon(rho: float, *, delta: float) -> float:
    """Epsilon at delta of continuous Gaussian noise with the same zCDP: what the certificate could reach.

    The curve of Balle and Wang; to be shown next to a certificate, not as one.
    """
    if rho == 0:
        return 0.0
    mu = math.sqrt(2 * rho)
    low, high = 0.0, 1.0
    while _gaussian_delta(high, mu) > delta:
        low, high = high, 2 * high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _gaussian_delta(middle, mu) > delta else (low, middle)
    return high


def _gaussian_delta(epsilon: float, mu: float) -> float:
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if far < _FAR:
        return _upper(near) - math.exp(epsilon) * _upper(far)
    # The tail by its series: its factor, exp(epsilon), has no float.
    tail = math.exp(-(near**2) / 2) * (1 - 1 / far**2 + 3 / far**4) / (far * math.sqrt(2 * math.pi))
    return _upper(near) - tail


def _upper(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def zcdp_order(rho: Fraction, *, delta: Fraction) -> Fraction:
    """The order that gives about the least bound, by golden section on the logarithm of order - 1."""
    loss, log_delta = float(rho), math.log(delta)

    def bound(log_less_one: float) -> float:
        less_one = math.exp(log_less_one)
        order = 1 + less_one
        return loss * order - (log_delta + math.log(order)) / less_one + math.log(less_one / order)

    golden = (math.sqrt(5) - 1) / 2
    low, high = -20.0, 40.0
    for _ in range(_BISECTIONS):
        first, second = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, second) if bound(first) < bound(second) else (first, high)
    return 1 + Fraction(math.exp((low + high) / 2)).limit_denominator(10**9) + Fraction(1, 10**9)


def _check_delta(delta: Fraction) -> None:
    if not MIN_DELTA <= delta <= MAX_DELTA:
        raise InvalidBudgetError(f"delta must be in [1e-12, 0.01], got {float(delta):.6g}")


def _up(value: Fraction) -> Decimal:
    return _UP.divide(Decimal(value.numerator), Decimal(value.denominator))


def _down(value: Fraction) -> Decimal:
    return _DOWN.divide(Decimal(value.numerator), Decimal(value.denominator))
