"""Slots for a small study with places."""

from dataclasses import replace
from decimal import Decimal

from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.slots_definition import SlotsDefinition, ZoneLevel

# Zones of each cell of `night_study`, by the code of the cell: South, North, then the larger ones.
ZONES_OF = ((0, 2), (1,), (0, 2), ())
LARGER = ZoneLevel(name="larger", zones=("Below", "Empty"), within=(0, None), geojson={})


def with_slots(definition: StudyDefinition, **changes: object) -> StudyDefinition:
    """Return the study with slots: half hours of two zones, and a larger one around the first."""
    slots = SlotsDefinition(
        minutes=30, hold_minutes=60, slots_per_day=48, epsilon_day=Decimal(1), delta=Decimal("0.000001"),
        levels=(LARGER,),
    )  # fmt: skip
    return replace(definition, slots=replace(slots, **changes))
