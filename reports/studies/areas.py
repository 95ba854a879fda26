"""Parts of an area for the analyst zone: zones and layers as maps show them, never the cells."""

from reports.base.later import later
from reports.studies.models import Area, Study
from reports.studies.studyfile import AreaDefinition
from reports.studies.studyfile.definition import LocationDefinition

area_fields = later("reports.studies.geography.crossing.fields_of")


def create_area(study: Study, area: AreaDefinition, *, location: LocationDefinition | None = None) -> Area:
    """Write the area of a study, with the grid of its locations, if it has any."""
    return Area.objects.create(study=study, **area_fields(area, location=location))
