"""Polygons: repairing them, which of them holds a point, and the way to GeoJSON and back."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from reports.studies.geography.projection import LocalProjection

Shapes = NDArray[np.object_]
Degrees = NDArray[np.float64]


def repaired(shape: Any) -> tuple[Any, str | None]:
    """Return a valid polygon of the same area, and what was wrong (None = nothing).

    Rings that cross themselves become several, parts that overlap one; lines and points that are left over
    go. A shape without area becomes empty.
    """
    if shape.is_valid:
        return shape, None
    return shapely.make_valid(shape, method="structure", keep_collapsed=False), shapely.is_valid_reason(shape)


def first_containing(lon: Degrees, lat: Degrees, shapes: Shapes) -> NDArray[np.int64]:
    """Place of the first polygon that holds each point, its border included; -1 = none. Shape (n,)."""
    found = np.full(len(lon), len(shapes), np.int64)
    points, places = shapely.STRtree(shapes).query(shapely.points(lon, lat), predicate="intersects")
    np.minimum.at(found, points, places)
    found[found == len(shapes)] = -1
    return found


def in_metres(shapes: Shapes, projection: LocalProjection) -> Shapes:
    """Return the same shapes in metres of a projection; straight edges stay straight."""
    return _moved(shapes, projection.to_metres)


def in_degrees(shapes: Shapes, projection: LocalProjection) -> Shapes:
    """The reverse of `in_metres`."""
    return _moved(shapes, projection.to_degrees)


def _moved(shapes: Shapes, to: Callable[[Degrees, Degrees], tuple[Degrees, Degrees]]) -> Shapes:
    return np.asarray(shapely.transform(shapes, lambda at: np.column_stack(to(at[:, 0], at[:, 1]))))


def to_geometry(shape: Any) -> dict[str, Any]:
    """GeoJSON geometry; rings as they are, so that the same file gives the same definition."""
    geometry: dict[str, Any] = json.loads(shapely.to_geojson(shape))
    return geometry


def of_geometry(geometry: dict[str, Any]) -> Any:
    """Shape of a GeoJSON geometry."""
    return shapely.geometry.shape(geometry)


def to_features(zones: Iterable[str], shapes: Shapes) -> dict[str, Any]:
    """GeoJSON of zones: a feature each, with the property `zone` and nothing else."""
    features = [
        {"type": "Feature", "properties": {"zone": zone}, "geometry": to_geometry(shape)}
        for zone, shape in zip(zones, shapes, strict=True)
    ]
    return {"type": "FeatureCollection", "features": features}


def of_features(geojson: dict[str, Any]) -> Shapes:
    """Shapes of the zones of an area, in file order."""
    shapes = np.empty(len(geojson["features"]), np.object_)
    shapes[:] = [of_geometry(feature["geometry"]) for feature in geojson["features"]]
    return shapes
