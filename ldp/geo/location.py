"""Promise of reported places: a level within a radius, on a grid. See docs/locations.md."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Self

from ldp.errors import LdpError, PlanError
from ldp.geo.grid import Grid
from ldp.geo.planar_laplace import PlanarLaplace, Precision, angle_step, precision_of
from ldp.protocols.channels import check_epsilon, exact_text

MIN_RADIUS_M: Final = 1
MAX_RADIUS_M: Final = 100_000

_UP: Final = Context(prec=30, rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationSpec:
    """Promise of a study's reports of locations: `level` within `radius_m`, on a grid.

    Two places at distance d have reports whose probabilities differ by a factor of at most e^(epsilon d),
    epsilon = level / radius_m per metre (geo-indistinguishability).

    Parameters
    ----------
    level : Fraction; in [0.000001, 64]
    radius_m : Fraction; in metres, in [1, 100_000]
    grid : Grid
    max_values : int or None; most days on which one subscriber reports, at least 1; None = all

    Raises
    ------
    InvalidBudgetError : level is out of range, or noise of finite precision cannot keep it on this grid
    PlanError : any other rule
    """

    level: Fraction
    radius_m: Fraction
    grid: Grid
    max_values: int | None = None

    def __post_init__(self) -> None:
        check_epsilon(self.level)
        if not MIN_RADIUS_M <= self.radius_m <= MAX_RADIUS_M:
            raise PlanError(
                f"radius_m must be in [{MIN_RADIUS_M}, {MAX_RADIUS_M}], got {float(self.radius_m):.6g}"
            )
        most = self.max_values
        if most is not None and not (type(most) is int and most >= 1):
            raise PlanError(f"max_values of locations must be an int >= 1, got {most!r}")
        _precision(self)

    @property
    def epsilon_per_m(self) -> Fraction:
        """Return the requested epsilon, level / radius_m, exact."""
        return self.level / self.radius_m

    @property
    def precision(self) -> Precision:
        """Return how the noise is drawn."""
        return _precision(self)

    @property
    def certified(self) -> Decimal:
        """Epsilon per metre that one report keeps, rounded up to 30 digits; at most `epsilon_per_m`."""
        return self.precision.certified

    @property
    def angle_step(self) -> Decimal:
        """Return the cost of finite precision, as `certified_epsilon` uses it, for the whole sampler."""
        return angle_step(self.epsilon_per_m, step_m=self.grid.step_m, range_m=self.grid.diameter_m)

    @property
    def law(self) -> PlanarLaplace:
        """Law of the noise before clamping to the grid: its mean and quantiles in metres."""
        return PlanarLaplace(epsilon_per_m=float(self.precision.sampled))

    def values_per_person(self, days: int) -> int:
        """Return the maximum number of reports of one subscriber in a study of `days`."""
        return days if self.max_values is None else min(self.max_values, days)

    def loss_at(self, distance_m: Fraction, *, n_places: int = 1) -> Decimal:
        """Epsilon between two lives whose places differ by at most this distance; rounded up.

        Of lives that repeat and change places on the same days: whether a place changed is not protected.

        Parameters
        ----------
        distance_m : Fraction; in metres, >= 0
        n_places : int; how many different places of a life are reported at most (one reported again costs
            nothing more), >= 1

        Raises
        ------
        LdpError : an argument is out of range
        """
        if distance_m < 0 or n_places < 1:
            raise LdpError(f"distance_m >= 0 and n_places >= 1 must hold, got {distance_m} and {n_places}")
        distance = _UP.divide(Decimal(distance_m.numerator), Decimal(distance_m.denominator))
        return _UP.multiply(_UP.multiply(self.certified, distance), Decimal(n_places))

    def to_json(self) -> dict[str, Any]:
        """Plain values; level and radius as the exact strings "a/b"."""
        return {
            "level": exact_text(self.level),
            "radius_m": exact_text(self.radius_m),
            "grid": self.grid.to_json(),
            "max_values": self.max_values,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build the spec that `to_json` wrote.

        LdpError if a key is missing, of the wrong type, or breaks a rule.
        """
        try:
            return cls(
                level=Fraction(data["level"]),
                radius_m=Fraction(data["radius_m"]),
                grid=Grid.from_json(data["grid"]),
                max_values=data["max_values"],
            )
        except LdpError:
            raise
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise PlanError(f"locations must be an object as to_json writes it, got {error!r}") from error


@lru_cache(maxsize=64)
def _precision(spec: LocationSpec) -> Precision:
    """Kept, since it takes milliseconds and pages ask again and again."""
    grid = spec.grid
    return precision_of(spec.epsilon_per_m, step_m=grid.step_m, range_m=grid.diameter_m)
