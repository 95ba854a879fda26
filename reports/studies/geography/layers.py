"""Water, land and base layers: those near the area, the latter as fine as a map can show them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import shapely

from reports.studies.geography.areas import (
    SURROUNDINGS_M,
    bounds_in_metres,
    projection_of,
    surroundings,
)
from reports.studies.geography.display import COARSER, pixel_of
from reports.studies.geography.files.rules import MAX_FEATURES, Rules, Source, View
from reports.studies.geography.files.sources import LINES, POLYGONS, kind_problem, read_source
from reports.studies.geography.projection import LocalProjection
from reports.studies.geography.shapes import Shapes, in_metres, repaired, to_geometry
from reports.studies.studyfile.definition import AreaDefinition, MapLayer
from reports.studies.studyfile.problems import Problems

MAX_MASK_VERTICES: Final = 200_000
MAX_LAYER_VERTICES: Final = 30_000  # of all layers together: half a megabyte in a page
MAX_PIXELS: Final = (
    30  # of the 2,000 across a map: lines that are moved further are none to find one's way by
)
_LEAST_MARGIN_M: Final = 2_000
_ALONG: Final = 9  # points along a side, since straight sides in metres are bent in degrees
_DECIMALS_M: Final = 1


def read_mask(
    source: Source, problems: Problems, notes: Problems, *, area: AreaDefinition
) -> dict[str, Any] | None:
    """Return the union of a file's polygons near the area, as a GeoJSON geometry (WGS 84)."""
    rules = Rules(kinds=POLYGONS, noun="polygon", all_layers=True)
    shapes = _shapes(source, problems, rules=rules)
    for place, shape in enumerate(shapes):
        shapes[place], reason = repaired(shape)
        if reason is not None:
            notes.add(f"features[{place + 1}].geometry", f"was repaired ({reason})")
    if problems.found:
        return None
    union = shapely.intersection(shapely.union_all(shapes), shapely.box(*surroundings(area)))
    parts = [part for part in shapely.get_parts(union) if part.geom_type in POLYGONS and not part.is_empty]
    n_vertices = int(shapely.get_num_coordinates(parts).sum())
    if n_vertices > MAX_MASK_VERTICES:
        rule = f"must have at most {MAX_MASK_VERTICES} vertices around the area: simplify it first"
        problems.add("features", rule, n_vertices)
        return None
    if not parts:
        notes.add("features", "hold nothing near the area")
    return to_geometry(shapely.MultiPolygon(parts))


class _Read(NamedTuple):
    """A layer as it was read, its shapes in metres, and the lists of its file."""

    name: str
    is_polygons: bool
    shapes: Shapes
    problems: Problems
    notes: Problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The view of an area on maps, and their projection."""

    view: View
    projection: LocalProjection


def sheet_of(area: AreaDefinition) -> Sheet:
    """Return the sheet of an area: its cells and zones, and what is around them."""
    return sheet_around(bounds_in_metres(area), projection=projection_of(area))


def sheet_around(bounds_m: tuple[float, float, float, float], *, projection: LocalProjection) -> Sheet:
    """Return bounds (west, south, east, north) with as much around them as a map that is zoomed out shows."""
    west, south, east, north = bounds_m
    margin_m = min(max(east - west, north - south, _LEAST_MARGIN_M), SURROUNDINGS_M)
    x_m = np.linspace(west - margin_m, east + margin_m, _ALONG)
    y_m = np.linspace(south - margin_m, north + margin_m, _ALONG)
    lon, lat = projection.to_degrees(*(each.ravel() for each in np.meshgrid(x_m, y_m)))
    box = float(lon.min()), float(lat.min()), float(lon.max()), float(lat.max())
    return Sheet(view=View(box=box, detail_m=pixel_of(bounds_m)), projection=projection)


def read_layers(
    sources: Sequence[tuple[Source, tuple[Problems, Problems]]], *, sheet: Sheet
) -> tuple[MapLayer, ...]:
    """Return base layers of a sheet, as fine as MAX_LAYER_VERTICES allow for all together."""
    found: list[_Read] = []
    for source, (problems, notes) in sources:
        rules = Rules(
            kinds=(*LINES, *POLYGONS), noun="line", max_features=MAX_FEATURES, view=sheet.view,
            layer=source.layer, all_layers=not source.layer,
        )  # fmt: skip
        shapes = _shapes(source, problems, rules=rules)
        if problems.found:
            continue
        is_polygons, near = _in_view(shapes, box=sheet.view.box)
        if not len(near):
            notes.add("features", "hold nothing near the area: the layer is left out")
            continue
        read = _Read(source.shown_name, is_polygons, in_metres(near, sheet.projection), problems, notes)
        found.append(read)
    drawn = _simplified(found, finest_m=sheet.view.detail_m)
    return tuple(
        MapLayer(
            name=each.name,
            kind="polygons" if each.is_polygons else "lines",
            paths=[np.round(shapely.get_coordinates(path), _DECIMALS_M).tolist() for path in _paths(shapes)],
        )
        for each, shapes in zip(found, drawn, strict=True)
    )


def _shapes(source: Source, problems: Problems, *, rules: Rules) -> Shapes:
    frame = read_source(source, problems, rules=rules)
    if frame is None:
        return np.empty(0, np.object_)
    shapes: Shapes = np.asarray(frame.geometry.to_numpy(), np.object_).copy()
    for place, shape in enumerate(shapes, start=1):
        found = kind_problem(shape, kinds=rules.kinds)
        if found:
            problems.add(f"features[{place}].geometry.type", *found)
    return shapes


def _kinds(shapes: Shapes) -> list[str]:
    return [shape.geom_type for shape in shapes]


def _in_view(shapes: Shapes, *, box: tuple[float, float, float, float]) -> tuple[bool, Shapes]:
    """Return whether shapes are polygons only, and what of them is inside of a box in degrees.

    Polygons stay polygons. Of a layer that has lines, too, also the borders of polygons are lines, and those
    that meet are one line.
    """
    is_polygons = bool(np.isin(_kinds(shapes), POLYGONS).all())
    near: Shapes = shapely.get_parts(shapely.clip_by_rect(shapes, *box))
    near = near[~shapely.is_empty(near) & np.isin(_kinds(near), (*LINES, *POLYGONS))]
    if len(near) and not is_polygons:
        near = shapely.get_parts(shapely.line_merge(shapely.MultiLineString(_paths(near))))
    return is_polygons, near


def _paths(shapes: Shapes) -> list[Any]:
    """Lines, and rings of polygons, one by one."""
    is_polygon = np.isin(_kinds(shapes), POLYGONS)
    rings = shapely.get_rings(shapely.get_parts(shapes[is_polygon]))
    return [*shapely.get_parts(shapes[~is_polygon]), *rings]


def _simplified(layers: Sequence[_Read], *, finest_m: float) -> list[Shapes]:
    """Shapes of each layer, all with the finest tolerance whose result is small enough; dots are dropped.

    Notes are added where it is more than a pixel of a map, and a problem where lines would be no map.
    """
    tolerance_m = finest_m
    drawn = [_coarser(each.shapes, tolerance_m) for each in layers]
    while sum(_n_vertices(shapes) for shapes in drawn) > MAX_LAYER_VERTICES:
        tolerance_m *= COARSER
        drawn = [_coarser(each.shapes, tolerance_m) for each in layers]
    if tolerance_m > MAX_PIXELS * finest_m:
        largest = max(layers, key=lambda each: _n_vertices(each.shapes))
        rule = (
            f"must have fewer details, so that all layers together have at most {MAX_LAYER_VERTICES} "
            f"vertices without shifting lines by {tolerance_m:.0f} m: keep main features only, such as "
            "large rivers and motorways"
        )
        largest.problems.add("features", rule, _n_vertices(largest.shapes))
    elif tolerance_m > finest_m:
        for each in layers:
            each.notes.add("features", f"were simplified to {tolerance_m:.0f} m, to be drawn on a page")
    return drawn


def _coarser(shapes: Shapes, tolerance_m: float) -> Shapes:
    left, bottom, right, top = shapely.bounds(shapes).reshape(-1, 4).T
    seen: Shapes = shapely.simplify(
        shapes[np.maximum(right - left, top - bottom) >= tolerance_m], tolerance_m
    )
    return seen


def _n_vertices(shapes: Shapes) -> int:
    return int(shapely.get_num_coordinates(shapes).sum())
