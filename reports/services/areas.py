"""What the analyst zone gets to know of an area: zones and layers as maps show them, never the cells."""

from dataclasses import asdict
from typing import Any

from ldp.geo.grid import Grid
from reports.models import Area, Study
from reports.studyfile import AreaDefinition


def create_area(
    study: Study, area: AreaDefinition, *, grid: Grid | None = None, h3_resolution: int | None = None
) -> Area:
    """Write the area of a study; `grid` is that of its locations, if it has any, as are hexagons."""
    return Area.objects.create(study=study, **area_fields(area, grid=grid, h3_resolution=h3_resolution))


def area_fields(
    area: AreaDefinition, *, grid: Grid | None = None, h3_resolution: int | None = None
) -> dict[str, Any]:
    """Values of the fields of `Area`: all that crosses of an area."""
    from reports.geography.areas import projection_of
    from reports.geography.display import shown_zones
    from reports.geography.grid import land_mask, zone_of_grid_cells
    from reports.geography.stored import GridMap

    geojson, outlines = shown_zones(area)
    of_grid = (
        {}
        if grid is None
        else GridMap(grid=grid, zones=zone_of_grid_cells(area, grid), land=land_mask(area, grid)).to_fields()
    )
    return {
        "n_cells": area.n_cells,
        "zones": list(area.zones),
        "geojson": geojson,
        "projection": projection_of(area).text,
        "outlines": outlines,
        "layers": [asdict(layer) for layer in area.layers],
        "h3_resolution": h3_resolution,
        **of_grid,
    }
