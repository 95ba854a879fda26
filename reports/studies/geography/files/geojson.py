"""GeoJSON (RFC 7946) to a table, with the place of everything that is wrong."""

import json
from collections.abc import Sequence
from typing import Any, Final

import geopandas as gpd
import pandas as pd
import shapely
from pyproj import CRS
from pyproj.exceptions import CRSError

from reports.studies.studyfile.problems import Problems
from reports.studies.studyfile.table import degrees_problem, utf8_text

_DEGREES: Final = (180.0, 90.0)
_ANYTHING: Final = (1e9, 1e9)  # of another system than degrees: metres or feet
_LEAST = {"LineString": 2, "Polygon": 4}
_RULES = {
    "LineString": "must hold lines of at least 2 positions",
    "Polygon": "must hold rings of at least 4 positions that end where they start",
}


def read_geojson(
    data: bytes, problems: Problems, *, kinds: tuple[str, ...], noun: str
) -> gpd.GeoDataFrame | None:
    """Return the features of a collection in its own coordinate system; None if it is no collection."""
    document = _document(data, problems)
    if document is None:
        return None
    features = document.get("features")
    if not isinstance(features, list) or not features:
        problems.add("features", f"must be a list of at least one {noun}")
        return None
    crs = _crs(document, problems)
    limits = _DEGREES if crs.is_geographic else _ANYTHING
    rows: list[dict[str, Any]] = []
    shapes: list[Any] = []
    for place, feature in enumerate(features, start=1):
        key = f"features[{place}]"
        if not isinstance(feature, dict) or feature.get("type") != "Feature":
            problems.add(key, 'must be of type "Feature"')
            continue
        properties = feature.get("properties")
        rows.append(properties if isinstance(properties, dict) else {})
        shapes.append(_shape(feature.get("geometry"), key, problems, kinds=kinds, limits=limits))
    columns = {
        name: [row.get(name) for row in rows] for name in dict.fromkeys(n for row in rows for n in row)
    }
    columns.pop("geometry", None)
    return gpd.GeoDataFrame(
        {name: _objects(values) for name, values in columns.items()}, geometry=shapes, crs=crs
    )


def _objects(values: list[Any]) -> Any:
    """A column that keeps whole numbers whole and missing values None."""
    return pd.Series(values, dtype=object)


def _document(data: bytes, problems: Problems) -> dict[str, Any] | None:
    text = utf8_text(data, problems)
    if text is None:
        return None
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        problems.add(f"line {error.lineno}, column {error.colno}", f"must be valid JSON: {error.msg}")
        return None
    except (ValueError, RecursionError) as error:
        problems.add("text", f"must be valid JSON: {error}")
        return None
    if not isinstance(document, dict) or document.get("type") != "FeatureCollection":
        problems.add("type", 'must be "FeatureCollection"')
        return None
    return document


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _crs(document: dict[str, Any], problems: Problems) -> CRS:
    """The system that the file names, as GeoJSON did before 2016; else WGS 84, as the standard says."""
    member = document.get("crs")
    if member is None:
        return CRS("OGC:CRS84")
    name = member.get("properties", {}).get("name") if isinstance(member, dict) else None
    try:
        return CRS.from_user_input(name)
    except CRSError:
        problems.add("crs", "must name a known coordinate system, or be left out for WGS 84", name)
        return CRS("OGC:CRS84")


def _shape(
    geometry: object, key: str, problems: Problems, *, kinds: tuple[str, ...], limits: tuple[float, float]
) -> Any:
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if kind not in kinds or not isinstance(geometry, dict):
        problems.add(f"{key}.geometry.type", f"must be {' or '.join(kinds)}", kind)
        return None
    coordinates = geometry.get("coordinates")
    parts = coordinates if kind.startswith("Multi") else [coordinates]
    problem = _parts_problem(parts, kind=kind.removeprefix("Multi"), limits=limits)
    if problem:
        problems.add(f"{key}.geometry.coordinates", problem)
        return None
    return shapely.geometry.shape({"type": kind, "coordinates": coordinates})


def _parts_problem(parts: object, *, kind: str, limits: tuple[float, float]) -> str | None:
    """Return the first rule that lines, or polygons as lists of rings, break, or None."""
    if not isinstance(parts, list) or not parts:
        return "must be a list"
    for part in parts:
        paths = [part] if kind == "LineString" else part
        if not isinstance(paths, list) or not paths:
            return "must hold rings"
        for path in paths:
            problem = _path_problem(path, kind=kind, limits=limits)
            if problem:
                return problem
    return None


def _path_problem(path: object, *, kind: str, limits: tuple[float, float]) -> str | None:
    if not isinstance(path, list) or len(path) < _LEAST[kind] or (kind == "Polygon" and path[0] != path[-1]):
        return _RULES[kind]
    for position in path:
        if not isinstance(position, list) or len(position) < 2:
            return "must hold positions [lon, lat]"
        problem = _position_problem(position, limits=limits)
        if problem:
            return problem
    if len({len(position) for position in path}) > 1 or len(path[0]) > 3:
        return "must hold positions of one length, [lon, lat] or [lon, lat, height]"
    return None


def _position_problem(position: Sequence[object], *, limits: tuple[float, float]) -> str | None:
    if limits == _DEGREES:
        problem = degrees_problem(position[0], limit=180) or degrees_problem(position[1], limit=90)
        return problem and f"{problem}, in [lon, lat]"
    for value, limit in zip(position, limits, strict=False):
        if degrees_problem(value, limit=int(limit)):
            return f"must be numbers from -{limit:.0f} to {limit:.0f}, in [x, y]"
    return None
