"""Promise of a plan about presence: noise on every count, and a cap of days per subscriber.

Answers are protected by their mechanism; that someone was there is not: anyone who is absent sends nothing.
With presence noise each gap cell (`ldp.estimation.tallies`) gets two-sided geometric noise once. A
subscriber's first `max_days` present days count, each in one cell, so adding or removing her changes
`max_days` cells of the visitors by one, and, with c codes a day, c x `max_days` cells of the answers.
Visitors and answers each spend `epsilon`, so her presence loses twice that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from ldp.errors import InvalidBudgetError, PlanError
from ldp.protocols.channels import exact_text
from ldp.protocols.geometric import GeometricChannel, geometric_channel

MIN_PRESENCE_EPSILON: Final = Fraction(1, 1000)
MAX_PRESENCE_EPSILON: Final = Fraction(20)

_UP: Final = Context(prec=30, rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True, kw_only=True)
class PresenceSpec:
    """Noise that hides whether a subscriber was there.

    Parameters
    ----------
    epsilon : Fraction; in [0.001, 20]; of the visitors, and again of all answers together
    max_days : int; first days of a subscriber that count, at least 1

    Raises
    ------
    InvalidBudgetError : epsilon is out of range
    PlanError : max_days < 1
    """

    epsilon: Fraction
    max_days: int

    def __post_init__(self) -> None:
        if not MIN_PRESENCE_EPSILON <= self.epsilon <= MAX_PRESENCE_EPSILON:
            raise InvalidBudgetError(
                f"presence_epsilon must be in [{float(MIN_PRESENCE_EPSILON)}, {MAX_PRESENCE_EPSILON}], "
                f"got {float(self.epsilon):.6g}"
            )
        if type(self.max_days) is not int or self.max_days < 1:
            raise PlanError(f"presence_days must be an int >= 1, got {self.max_days!r}")

    def noise(self, *, codes_a_day: int) -> "CountNoise":
        """Noise of counts to which a subscriber adds a number of codes on each of her days.

        The number is 1 for the visitors; for all answers together 1 if each person answers one indicator,
        else the number of indicators.
        """
        sensitivity = codes_a_day * self.max_days
        channel = geometric_channel(step=self.epsilon / sensitivity)
        return CountNoise(channel=channel, sensitivity=sensitivity)

    def to_json(self) -> dict[str, Any]:
        """Plain values; epsilon as the exact string "a/b"."""
        return {"epsilon": exact_text(self.epsilon), "max_days": self.max_days}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build what `to_json` wrote; KeyError, TypeError or ValueError for anything else."""
        return cls(epsilon=Fraction(data["epsilon"]), max_days=data["max_days"])


@dataclass(frozen=True, slots=True, kw_only=True)
class CountNoise:
    """Noise of one family of counts: that of each cell.

    Adding or removing a subscriber changes at most `sensitivity` cells by one.
    """

    channel: GeometricChannel
    sensitivity: int

    @property
    def epsilon(self) -> Decimal:
        """Certified loss when one subscriber is added or removed, rounded up to 30 digits."""
        return _UP.multiply(self.channel.epsilon, Decimal(self.sensitivity))


def first_days(bitmaps: NDArray[np.uint64], *, most: int) -> NDArray[np.uint64]:
    """Bitmaps with the lowest `most` bits of each, which are the first present days; not modified."""
    rest = bitmaps.copy()
    for _ in range(most):
        rest &= rest - np.uint64(1)  # takes the lowest bit away; 0 stays 0, since 0 - 1 has all bits
    return bitmaps & ~rest


def replaced_cells(*, max_days: int, days: int) -> int:
    """Cells, with their changes added up, that differ at most when a subscriber's present days are replaced.

    Exact, for the number of her days that count, of the days of a study: the largest such sum
    (privacy_math.md G; the tests enumerate it).
    """
    most = min(max_days, days)
    return min(2 * most, 3 * days // 2)
