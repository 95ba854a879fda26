"""What the analyst zone gets to know of an area: zones and layers as maps show them, never the cells."""

from dataclasses import asdict
from typing import Any

from reports.studies.models import Area, Study
from reports.studies.studyfile import AreaDefinition
from reports.studies.studyfile.definition import LocationDefinition


def create_area(study: Study, area: AreaDefinition, *, location: LocationDefinition | None = None) -> Area:
    """Write the area of a study, with the grid of its locations, if it has any."""
    return Area.objects.create(study=study, **area_fields(area, location=location))


def area_fields(area: AreaDefinition, *, location: LocationDefinition | None = None) -> dict[str, Any]:
    """Values of the fields of `Area`: all that crosses of an area."""
    from reports.studies.geography.areas import projection_of
    from reports.studies.geography.display import shown_zones

    geojson, outlines = shown_zones(area)
    return {
        "n_cells": area.n_cells,
        "zones": list(area.zones),
        "geojson": geojson,
        "projection": projection_of(area).text,
        "outlines": outlines,
        "layers": [asdict(layer) for layer in area.layers],
        **({} if location is None else _grid_fields(area, location)),
    }


def _grid_fields(area: AreaDefinition, location: LocationDefinition) -> dict[str, Any]:
    from reports.studies.geography.grid import antenna_mask, land_mask, zone_of_grid_cells
    from reports.studies.geography.stored import GridMap

    grid, at_antennas = location.grid, location.people == "antennas"
    grid_map = GridMap(
        grid=grid,
        zones=zone_of_grid_cells(area, grid),
        land=antenna_mask(area, grid) if at_antennas else land_mask(area, grid),
        at_antennas=at_antennas,
    )
    return grid_map.to_fields() | {"h3_resolution": location.h3_resolution}
