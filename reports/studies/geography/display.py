"""Zones as a map shows them: fewer vertices, and neighbours still share their borders."""

from typing import Any, Final

import numpy as np
import shapely

from reports.studies.geography.areas import bounds_in_metres, projection_of, shapes_of
from reports.studies.geography.shapes import Shapes, in_degrees, in_metres, to_features
from reports.studies.studyfile.definition import AreaDefinition

MAX_VERTICES: Final = 50_000  # under a megabyte in a page
SCREEN: Final = 2_000  # pixels across a map: details of less than one of them are not drawn
COARSER: Final = 1.5
_DECIMALS, _DECIMALS_M = 6, 1

Outlines = list[list[list[list[float]]]]


def pixel_m(area: AreaDefinition) -> float:
    """Metres that a pixel of a map of the area stands for."""
    return pixel_of(bounds_in_metres(area))


def pixel_of(bounds_m: tuple[float, float, float, float]) -> float:
    """Metres that a pixel of a map stands for, which shows west, south, east and north."""
    west, south, east, north = bounds_m
    return max(east - west, north - south, 100.0) / SCREEN


def shown_zones(area: AreaDefinition) -> tuple[dict[str, Any] | None, Outlines]:
    """Zones simplified for display: GeoJSON (WGS 84), and per zone its rings of positions [x, y] in metres.

    A map is drawn from the second, which needs no projection. (None, []) when zones have no shapes.
    """
    if area.geojson is None:
        return None, []
    projection = projection_of(area)
    flat = in_metres(shapes_of(area), projection)
    tolerance_m = pixel_m(area)
    shown = _simplified(flat, tolerance_m)
    while int(shapely.get_num_coordinates(shown).sum()) > MAX_VERTICES:
        tolerance_m *= COARSER
        shown = _simplified(flat, tolerance_m)
        if tolerance_m > SCREEN * pixel_m(area):  # triangles by now, and still too many
            break
    degrees = shapely.transform(in_degrees(shown, projection), lambda at: np.round(at, _DECIMALS))
    # Outer rings counter-clockwise, as RFC 7946 wants.
    return to_features(area.zones, shapely.orient_polygons(degrees)), [_rings(shape) for shape in shown]


def _simplified(shapes: Shapes, tolerance_m: float) -> Shapes:
    """Shared borders are simplified once; zones that overlap have none: each is simplified for itself."""
    if shapely.coverage_is_valid(shapes):
        simple: Shapes = np.asarray(shapely.coverage_simplify(shapes, tolerance_m))
    else:
        simple = np.asarray(shapely.simplify(shapes, tolerance_m))
    return simple


def _rings(shape: Any) -> list[list[list[float]]]:
    rings = shapely.get_rings(shapely.get_parts(shape))
    return [np.round(shapely.get_coordinates(ring), _DECIMALS_M).tolist() for ring in rings]
