"""Cells and zones to an area: which cell is in which zone, and the projection around both."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import shapely
from numpy.typing import NDArray

from reports.studies.geography.projection import LocalProjection, projection_around
from reports.studies.geography.shapes import Shapes, first_containing, of_features, to_features
from reports.studies.geography.zones import Zones
from reports.studies.studyfile.definition import AreaDefinition, Cell

SURROUNDINGS_M: Final = 100_000  # around cells and zones: what base layers and masks are kept of
_METRES_PER_DEGREE: Final = 111_000.0

Floats = NDArray[np.float64]


def place(cells: Sequence[Cell], zones: Zones | None) -> AreaDefinition:
    """Return the area of cells and zones; a cell that names no zone is in the first one that holds it."""
    if zones is None:
        codes = tuple(dict.fromkeys(cell.zone for cell in cells if cell.zone))
        area = AreaDefinition(cells=tuple(cells), zones=codes, geojson=None)
    else:
        found = first_containing(*_degrees(cells), zones.shapes).tolist()
        cells = [
            replace(cell, zone=zones.codes[zone]) if cell.zone is None and zone >= 0 else cell
            for cell, zone in zip(cells, found, strict=True)
        ]
        geojson = to_features(zones.codes, zones.shapes)
        area = AreaDefinition(cells=tuple(cells), zones=zones.codes, zones_fr=zones.names_fr, geojson=geojson)
    return replace(area, projection=projection_around(*positions_of(area)))


def projection_of(area: AreaDefinition) -> LocalProjection:
    """The local projection of an area; of one that was made before there was any, as it would be made now."""
    return LocalProjection(area.projection or projection_around(*positions_of(area)))


def shapes_of(area: AreaDefinition) -> Shapes:
    """Shapes of the zones in file order (WGS 84); empty when the zones have no shapes."""
    return np.empty(0, np.object_) if area.geojson is None else of_features(area.geojson)


def positions_of(area: AreaDefinition) -> tuple[Floats, Floats]:
    """Longitudes and latitudes of all cells and of all vertices of zones, float64 (n,) each."""
    lon, lat = _degrees(area.cells)
    at = shapely.get_coordinates(shapes_of(area))
    return np.concatenate([lon, at[:, 0]]), np.concatenate([lat, at[:, 1]])


def cells_in_metres(area: AreaDefinition) -> tuple[Floats, Floats]:
    """x and y of each cell of the registry in metres of the area's projection, float64 (n_cells,) each."""
    return projection_of(area).to_metres(*_degrees(area.cells))


def bounds_in_metres(area: AreaDefinition) -> tuple[float, float, float, float]:
    """Smallest x and y, largest x and y of cells and zones, in metres of the area's projection."""
    x_m, y_m = projection_of(area).to_metres(*positions_of(area))
    return float(x_m.min()), float(y_m.min()), float(x_m.max()), float(y_m.max())


def surroundings(area: AreaDefinition) -> tuple[float, float, float, float]:
    """West, south, east and north, in degrees, of what holds everything within SURROUNDINGS_M of the area."""
    lon, lat = positions_of(area)
    rise = SURROUNDINGS_M / _METRES_PER_DEGREE
    south, north = max(float(lat.min()) - rise, -90.0), min(float(lat.max()) + rise, 90.0)
    shrinking = max(np.cos(np.radians(max(abs(south), abs(north)))), 0.01)
    west, east = float(lon.min()) - rise / shrinking, float(lon.max()) + rise / shrinking
    return max(west, -180.0), south, min(east, 180.0), north


def _degrees(cells: Sequence[Cell]) -> tuple[Floats, Floats]:
    return np.array([cell.lon for cell in cells]), np.array([cell.lat for cell in cells])
