"""Parts of an area for the analyst zone: zones and layers as maps show them, never the cells."""

from typing import Any

from reports.studies.models import Area, Study
from reports.studies.studyfile import AreaDefinition
from reports.studies.studyfile.definition import LocationDefinition


def create_area(study: Study, area: AreaDefinition, *, location: LocationDefinition | None = None) -> Area:
    """Write the area of a study, with the grid of its locations, if it has any."""
    return Area.objects.create(study=study, **area_fields(area, location=location))


def area_fields(area: AreaDefinition, *, location: LocationDefinition | None = None) -> dict[str, Any]:
    """Values of the fields of `Area`: all that crosses of an area."""
    from reports.studies.geography.crossing import fields_of  # noqa: PLC0415 - GeoPandas: 1 s

    return fields_of(area, location=location)
