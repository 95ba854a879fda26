"""Files of geometries, by any of their formats, as a table in WGS 84."""

from typing import Any, Final

import geopandas as gpd
import numpy as np
import shapely
from pyproj.exceptions import ProjError

from reports.studies.geography.files.containers import read_container
from reports.studies.geography.files.geojson import read_geojson
from reports.studies.geography.files.rules import Rules, Source
from reports.studies.geography.files.tiles import ENDING, read_tiles
from reports.studies.studyfile.problems import Problems

GEOJSON: Final = (".geojson", ".json")
FORMATS: Final = (*GEOJSON, ".gpkg", ".zip", ".shp")
WGS84: Final = "EPSG:4326"
MAX_FILE_BYTES: Final = 200_000_000
DECIMALS: Final = 7  # of degrees: a centimetre
POLYGONS: Final = ("Polygon", "MultiPolygon")
LINES: Final = ("LineString", "MultiLineString")


def read_source(source: Source, problems: Problems, *, rules: Rules) -> gpd.GeoDataFrame | None:
    """Return attributes and flat geometries in WGS 84, in file order; None after a problem.

    A GeoJSON file whose geometries break rules has a problem and None in their places, so that its
    attributes can be checked together with them.
    """
    formats = FORMATS if rules.view is None else (*FORMATS, ENDING)
    if source.suffix not in formats:
        problems.add("name", f"must end in one of {', '.join(formats)}", source.name)
        return None
    if len(source.data) > MAX_FILE_BYTES:
        rule = f"must be at most {MAX_FILE_BYTES // 1_000_000} MB: cut it to the area of the study"
        problems.add("size", rule, len(source.data))
        return None
    if source.suffix == ENDING:
        frame = read_tiles(source, problems, rules=rules)
    elif source.suffix in GEOJSON:
        frame = read_geojson(source.data, problems, kinds=rules.kinds, noun=rules.noun)
    else:
        frame = read_container(source, problems, rules=rules)
    if frame is None:
        return None
    if len(frame) > rules.max_features:
        problems.add("features", f"must be at most {rules.max_features} {rules.noun}s", len(frame))
        return None
    return frame if problems.found else _in_wgs84(frame, problems)


def kind_problem(geometry: Any, *, kinds: tuple[str, ...]) -> tuple[str, str | None] | None:
    """Return the rule that the type of a geometry breaks and what was found, or None."""
    if geometry is None:
        return f"must be {' or '.join(kinds)}, but there is none", None
    if geometry.geom_type not in kinds:
        return f"must be {' or '.join(kinds)}", geometry.geom_type
    return ("must not be empty", None) if geometry.is_empty else None


def _in_wgs84(frame: gpd.GeoDataFrame, problems: Problems) -> gpd.GeoDataFrame | None:
    if frame.crs is None:
        problems.add(
            "crs",
            "is missing: give the coordinate system of the file (a shapefile needs its .prj file, a "
            "GeoPackage a layer with a known system), or save the file as GeoJSON",
        )
        return None
    try:
        is_moved = not frame.crs.equals(WGS84, ignore_axis_order=True)
        frame = frame.to_crs(WGS84) if is_moved else frame
    except ProjError as error:
        problems.add("crs", f"must be convertible to WGS 84: {error}", frame.crs.name)
        return None
    shapes = shapely.force_2d(frame.geometry.to_numpy())
    positions = shapely.get_coordinates(shapes)
    if not (np.isfinite(positions).all() and (np.abs(positions) <= (180, 90)).all()):
        problems.add("crs", "must match the positions: some are not on Earth", frame.crs.name)
        return None
    if is_moved:  # digits beyond are not measured, and would fill the database
        shapes = shapely.transform(shapes, lambda each: np.round(each, DECIMALS))
    return frame.set_geometry(gpd.GeoSeries(shapes, crs=WGS84, index=frame.index))
