"""Epsilons that others have published, each with its unit and its source, for comparison with a plan."""

from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

APPLE: Final = "Apple, Differential Privacy Overview, 2017"
CENSUS: Final = "U.S. Census Bureau, 9 June 2021"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """`unit`: the data that epsilon is about; `epsilon`: as published."""

    name: Promise
    epsilon: str
    unit: Promise
    source: str


DEPLOYMENTS: Final = (
    Deployment(
        name=_("Apple (types of health data)"),
        epsilon="2",
        unit=_("one report from one device; each device sends one report per day"),
        source=APPLE,
    ),
    Deployment(
        name=_("Apple (emoji)"),
        epsilon="4",
        unit=_("one report from one device; each device sends one report per day"),
        source=APPLE,
    ),
    Deployment(
        name=_("Apple (new words, QuickType)"),
        epsilon="8",
        unit=_("one report from one device; each device sends up to two reports per day"),
        source=APPLE,
    ),
    Deployment(
        name=_("United States Census 2020 (redistricting data)"),
        epsilon="19.61",
        unit=_(
            "one person or housing unit, across all published tables; noise is added to the counts "
            "(delta 1e-10)"
        ),
        source=CENSUS,
    ),
)
