"""Parts of an area that cross to the analyst zone, as fields of its model."""

from dataclasses import asdict
from typing import Any

from reports.studies.geography.areas import projection_of
from reports.studies.geography.display import shown_zones
from reports.studies.geography.grid import antenna_mask, land_mask, zone_of_grid_cells
from reports.studies.geography.stored import GridMap
from reports.studies.studyfile.definition import AreaDefinition, LocationDefinition


def fields_of(area: AreaDefinition, *, location: LocationDefinition | None = None) -> dict[str, Any]:
    """Values of the fields of `Area`: all that crosses of an area."""
    geojson, outlines = shown_zones(area)
    return {
        "n_cells": area.n_cells,
        "zones": list(area.zones),
        **({} if area.zones_fr is None else {"zones_fr": list(area.zones_fr)}),
        "geojson": geojson,
        "projection": projection_of(area).text,
        "outlines": outlines,
        "layers": [asdict(layer) for layer in area.layers],
        **({} if location is None else _grid_fields(area, location)),
    }


def _grid_fields(area: AreaDefinition, location: LocationDefinition) -> dict[str, Any]:
    grid, at_antennas = location.grid, location.people == "antennas"
    grid_map = GridMap(
        grid=grid,
        zones=zone_of_grid_cells(area, grid),
        land=antenna_mask(area, grid) if at_antennas else land_mask(area, grid),
        at_antennas=at_antennas,
    )
    return grid_map.to_fields() | {"h3_resolution": location.h3_resolution}
