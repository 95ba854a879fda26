"""What the statement says of reported places: their promise is per metre, beside that of the indicators."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from django.utils.translation import gettext, ngettext

from ldp import PlanSpec
from ldp.geo.location import LocationSpec

MECHANISM = "planar-laplace"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationProtection:
    """What pages say of reported places.

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
    def odds_at_radius(self) -> float:
        return self.spec.odds_at(self.spec.radius_m)

    @property
    def odds_of_all(self) -> float:
        """As `odds_at_radius`, all places that a person reports seen together."""
        return self.spec.odds_at(self.spec.radius_m, n_places=self.n_places)


def location_protection(spec: PlanSpec, *, extra_days: int = 0) -> LocationProtection | None:
    """What a plan promises of places; None if it asks for none.

    Parameters
    ----------
    extra_days : published days that were undone
    """
    if spec.location is None:
        return None
    return LocationProtection(
        spec=spec.location, n_places=spec.location.values_per_person(spec.days) + extra_days
    )


def noise_words(protection: LocationProtection) -> list[str]:
    """What the noise means, in sentences."""
    spec = protection.spec
    facts = {
        "mean": round(protection.mean_shift_m),
        "radius": f"{protection.radius_m:f}",
        "most": round(protection.radius_95_m),
        "odds": f"{protection.odds_at_radius:.3g}",
        "step": spec.grid.step_m,
        "epsilon": f"{float(spec.certified):.3g}",
        "all": f"{protection.odds_of_all:.3g}",
    }
    several = ngettext(
        "A person reports at most %(n)d place.", "A person reports at most %(n)d different places.",
        protection.n_places,
    ) % {"n": protection.n_places}  # fmt: skip
    return [
        gettext(
            "A reported place lies %(mean)d m from the true one on average, and 95 of 100 lie within "
            "%(most)d m."
        )
        % facts,
        gettext(
            "Whatever is reported changes the odds between two places that are %(radius)s m apart by at most "
            "%(odds)s times; of places twice as far apart, by the square of that."
        )
        % facts,
        several
        + " "
        + gettext(
            "All of them seen together change the odds between two lives whose places are %(radius)s m apart "
            "by at most %(all)s times."
        )
        % facts,
        gettext(
            "Places are counted on squares of %(step)d m. Epsilon is %(epsilon)s per metre; it is not part "
            "of the epsilon of answers."
        )
        % facts,
    ]


def location_facts(protection: LocationProtection | None) -> dict[str, Any] | None:
    """Plain values of the statement; exact numbers are strings."""
    if protection is None:
        return None
    spec = protection.spec
    return {
        "mechanism": MECHANISM,
        "unit": gettext("the place of one day of a person; the promise is per metre between two places"),
        "who_reports": gettext("every visitor, beside the indicators and their epsilon"),
        "level": _ratio(spec.level),
        "radius_m": _ratio(spec.radius_m),
        "nominal_epsilon_per_m": _ratio(spec.epsilon_per_m),
        "sampled_epsilon_per_m": _ratio(spec.precision.sampled),
        "epsilon_per_m": str(spec.certified),
        "epsilon_at_radius": str(spec.loss_at(spec.radius_m)),
        "mean_shift_m": round(protection.mean_shift_m, 1),
        "radius_95_m": round(protection.radius_95_m, 1),
        "places_per_person": protection.n_places,
        "epsilon_at_radius_all_places": str(spec.loss_at(spec.radius_m, n_places=protection.n_places)),
        "composition": gettext(
            "Losses of different places of one person add up; the same place reported again costs nothing."
        ),
        "grid": spec.grid.to_json(),
    }


def location_limits() -> dict[str, str]:
    """What the promise of places does not cover, by name."""
    return {
        "far_places": gettext(
            "Places far apart: the noise hides where a person is within some times the radius. Between two "
            "places much further apart the report tells which is the likelier one."
        ),
        "moves": gettext(
            "Moves: the same place keeps its report, so whether the main place of a person repeats or "
            "changes from one day to another is not hidden from whoever sees the reports. Analysts see "
            "counts only."
        ),
    }


def _ratio(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


def _decimal(value: Fraction) -> Decimal:
    return (Decimal(value.numerator) / Decimal(value.denominator)).normalize()
