"""Promise of reported places in the statement: per metre, separate from that of the indicators."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isqrt
from typing import Any

from django.utils.translation import gettext

from ldp import PlanSpec
from ldp.geo.location import LocationSpec
from ldp.protocols.channels import exact_text
from reports.base import formats

MECHANISM = "planar-laplace"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationProtection:
    """Texts of pages about reported places.

    n_places : most different places that one person reports; a published day that was undone may add one
    """

    spec: LocationSpec
    n_places: int

    @property
    def radius_m(self) -> Decimal:
        return _decimal(self.spec.radius_m)

    @property
    def mean_shift_m(self) -> float:
        """Mean distance between the true and the reported place, before the edges of the grid stop it."""
        return self.spec.law.mean_m

    @property
    def radius_95_m(self) -> float:
        """Distance that 95 of 100 reports stay within."""
        return self.spec.law.quantile(0.95)

    @property
    def epsilon_at_radius(self) -> Decimal:
        """Return the loss of one report, between two places that are the radius apart; rounded up."""
        return self.spec.loss_at(self.spec.radius_m)

    @property
    def farthest_m(self) -> int:
        """Distance at most between the middles of the squares of two points that are the radius apart."""
        diagonal_m = isqrt(2 * self.spec.grid.step_m**2) + 1
        return int(self.spec.radius_m) + diagonal_m

    @property
    def epsilon_at_farthest(self) -> Decimal:
        """Return the loss of one report, between two points that are the radius apart; rounded up."""
        return self.spec.loss_at(Fraction(self.farthest_m))

    @property
    def epsilon_of_all(self) -> Decimal:
        """Return `epsilon_at_radius` of all places that a person reports, seen together."""
        return self.spec.loss_at(self.spec.radius_m, n_places=self.n_places)


def location_protection(spec: PlanSpec, *, extra_days: int = 0) -> LocationProtection | None:
    """Return the promise of a plan about places; None if it has none. Undone days are `extra_days`."""
    if spec.location is None:
        return None
    return LocationProtection(
        spec=spec.location, n_places=spec.location.values_per_person(spec.days) + extra_days
    )


def location_facts(protection: LocationProtection | None) -> dict[str, Any] | None:
    """Plain values of the statement; exact numbers are strings."""
    if protection is None:
        return None
    spec = protection.spec
    return {
        "mechanism": MECHANISM,
        "unit": gettext(
            "a person's place on one day, given as the centre of a grid square; the guarantee is per "
            "metre of distance between two places"
        ),
        "who_reports": gettext(
            "in addition to reporting on the indicators, every visitor reports places, up to the stated "
            "number per person; reported places have a separate epsilon, which adds to the epsilon of the "
            "indicators"
        ),
        "level": exact_text(spec.level),
        "radius_m": exact_text(spec.radius_m),
        "nominal_epsilon_per_m": exact_text(spec.epsilon_per_m),
        "sampled_epsilon_per_m": exact_text(spec.precision.sampled),
        "range_m": spec.grid.diameter_m,
        "angle_step": f"{spec.angle_step:f}",
        "epsilon_per_m": str(spec.certified),
        "epsilon_at_radius": str(protection.epsilon_at_radius),
        "mean_shift_m": round(protection.mean_shift_m, 1),
        "radius_95_m": round(protection.radius_95_m, 1),
        "places_per_person": protection.n_places,
        "epsilon_at_radius_all_places": str(protection.epsilon_of_all),
        "composition": gettext(
            "The privacy losses from a person's different places add up. Reporting the same place "
            "again adds nothing. The guarantee compares two possible histories of where a person was. "
            "Any two days with the same place in one history also have the same place in the other."
        ),
        "grid": spec.grid.to_json(),
    }


def squares_words(protection: LocationProtection) -> str:
    """Describe the effect of distances between middles of squares."""
    text = gettext(
        "A place is the centre of a square %(step)s m wide. Two points that are %(radius)s m apart can be in "
        "squares whose centres are up to %(farthest)s m apart. For two such points, a report changes the "
        "odds that the person was at one rather than at the other by a factor of at most %(odds)s."
    )
    return text % {
        "step": formats.number(protection.spec.grid.step_m),
        "radius": formats.number(float(protection.radius_m)),
        "farthest": formats.number(protection.farthest_m),
        "odds": formats.odds(protection.epsilon_at_farthest),
    }


def location_limits(protection: LocationProtection | None) -> dict[str, str]:
    """Return the limits of the promise of places, by name; nothing without places."""
    if protection is None:
        return {}
    return {
        "squares": squares_words(protection),
        "places_and_answers": gettext(
            "Places and answers: the epsilon for answers does not include reported places. An answer "
            "about a person's zone on a day or a night comes from the same stays as the reported "
            "place. The total privacy loss is therefore the loss from the answer plus the loss from "
            "the place. For two zones that are far apart, most of the total comes from the place."
        ),
        "far_places": gettext(
            "Distant places: the noise disguises a person's place only over distances of up to a few "
            "times the radius. For two places that are much further apart, the report reveals which "
            "place is more likely."
        ),
        "moves": gettext(
            "Moves: the same place always gives the same report. Anyone who sees a person's reports "
            "can therefore tell whether the person's main place repeats or changes between days. "
            "Anyone who also knows the place on one day learns whether the place on another day is "
            "the same. No epsilon limits this knowledge. Analysts get counts by grid square. "
            "However, subtracting the counts for different date ranges can isolate a person's noisy "
            "reports. This can happen if no one else was present on the same days as this person."
        ),
    }


def _decimal(value: Fraction) -> Decimal:
    return (Decimal(value.numerator) / Decimal(value.denominator)).normalize()
