"""Reported places for programs that draw maps: squares and zones as GeoJSON and GeoParquet, WGS 84."""

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry import shape

from reports.exports.formats.geographic import geoparquet
from reports.exports.places.selection import (
    SQUARE_NAMES,
    ZONE_NAMES,
    Places,
    collection,
    provenance,
    square_columns,
    zone_records,
)
from reports.studies.geography.projection import LocalProjection

_DEGREE_DECIMALS = 7  # a centimetre
_TEXTS = ("zone", "status", "density_status")
_COUNTS = ("square", "n_squares", "reports")


def square_rings(places: Places) -> NDArray[np.float64]:
    """Corners of each square in degrees, anticlockwise, the first again as last; shape (n_cells, 5, 2).

    Neighbours share their corners to the last digit. Across the date line longitudes continue beyond 180.
    """
    grid = places.found.spec.grid
    x_m = grid.x0_m + grid.step_m * np.arange(grid.n_x + 1.0)
    y_m = grid.y0_m + grid.step_m * np.arange(grid.n_y + 1.0)
    lon, lat = LocalProjection(places.area.projection).to_degrees(*np.meshgrid(x_m, y_m))
    degrees = np.stack([np.unwrap(lon, period=360.0), lat], axis=-1)
    corners: NDArray[np.float64] = np.round(degrees, _DEGREE_DECIMALS).astype(np.float64)
    ring = (corners[:-1, :-1], corners[:-1, 1:], corners[1:, 1:], corners[1:, :-1], corners[:-1, :-1])
    return np.stack(ring, axis=2).reshape(grid.n_cells, 5, 2)


def squares_to_geojson(places: Places) -> bytes:
    """A feature for each square of the grid."""
    columns = square_columns(places)
    rows = zip(*(columns[name] for name in SQUARE_NAMES), strict=True)
    shapes = ({"type": "Polygon", "coordinates": [ring]} for ring in square_rings(places).tolist())
    return collection(places, [dict(zip(SQUARE_NAMES, row, strict=True)) for row in rows], list(shapes))


def zones_to_geojson(places: Places) -> bytes:
    """A feature for each zone; shapes are simplified for display."""
    records, shapes = zone_records(places), places.area.zone_shapes
    return collection(places, records, [shapes.get(record["zone"]) for record in records])


def squares_to_geoparquet(places: Places) -> bytes:
    """The squares as typed columns and a geometry; `provenance` is metadata of the schema."""
    columns = {name: (_kind(name), values) for name, values in square_columns(places).items()}
    return geoparquet(columns, shapely.polygons(square_rings(places)), about=provenance(places))


def zones_to_geoparquet(places: Places) -> bytes:
    """The zones as typed columns and a geometry."""
    records, shapes = zone_records(places), places.area.zone_shapes
    columns = {name: (_kind(name), [record[name] for record in records]) for name in ZONE_NAMES}
    geometry = [shape(shapes[name]) if name in shapes else None for name in columns["zone"][1]]
    return geoparquet(columns, geometry, about=provenance(places))


def _kind(name: str) -> str:
    """Type of a column as pandas calls it: each can be missing."""
    if name in _TEXTS:
        return "string"
    if name == "land":
        return "boolean"
    return "Int64" if name in _COUNTS else "Float64"
