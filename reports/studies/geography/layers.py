"""Water, land and base layers: those near the area, the latter as fine as a map can show them."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import shapely

from reports.studies.geography.areas import projection_of, surroundings
from reports.studies.geography.display import COARSER, pixel_m
from reports.studies.geography.files.rules import Rules, Source
from reports.studies.geography.files.sources import LINES, POLYGONS, kind_problem, read_source
from reports.studies.geography.shapes import Shapes, in_metres, repaired, to_geometry
from reports.studies.studyfile.definition import AreaDefinition, MapLayer
from reports.studies.studyfile.problems import Problems

MAX_MASK_VERTICES: Final = 200_000
MAX_LAYER_VERTICES: Final = 30_000  # of all layers together: half a megabyte in a page
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


def read_layers(
    sources: Sequence[tuple[Source, tuple[Problems, Problems]]], *, area: AreaDefinition
) -> tuple[MapLayer, ...]:
    """Return the base layers of an area, as fine as MAX_LAYER_VERTICES allow for all together."""
    projection, box = projection_of(area), surroundings(area)
    found: list[tuple[str, bool, Shapes]] = []
    for source, (problems, notes) in sources:
        shapes = _shapes(
            source, problems, rules=Rules(kinds=(*LINES, *POLYGONS), noun="line", all_layers=True)
        )
        if problems.found:
            continue
        is_polygons = bool(np.isin(_kinds(shapes), POLYGONS).all())
        near = shapely.get_parts(shapely.clip_by_rect(shapes, *box))
        near = near[~shapely.is_empty(near) & np.isin(_kinds(near), (*LINES, *POLYGONS))]
        if not len(near):
            notes.add("features", "hold nothing near the area: the layer is left out")
            continue
        if not is_polygons:  # also the borders of polygons are lines
            near = shapely.get_parts(shapely.line_merge(shapely.MultiLineString(_paths(near))))
        found.append((source.stem, is_polygons, in_metres(near, projection)))
    tolerance_m, drawn = _simplified([shapes for _, _, shapes in found], area=area)
    for _, (_, notes) in sources:
        if tolerance_m > pixel_m(area):
            notes.add("features", f"were simplified to {tolerance_m:.0f} m, to be drawn on a page")
    return tuple(
        MapLayer(
            name=name,
            kind="polygons" if is_polygons else "lines",
            paths=[np.round(shapely.get_coordinates(path), _DECIMALS_M).tolist() for path in _paths(shapes)],
        )
        for (name, is_polygons, _), shapes in zip(found, drawn, strict=True)
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


def _paths(shapes: Shapes) -> list[Any]:
    """Lines, and rings of polygons, one by one."""
    is_polygon = np.isin(_kinds(shapes), POLYGONS)
    rings = shapely.get_rings(shapely.get_parts(shapes[is_polygon]))
    return [*shapely.get_parts(shapes[~is_polygon]), *rings]


def _simplified(layers: list[Shapes], *, area: AreaDefinition) -> tuple[float, list[Shapes]]:
    """The finest tolerance in metres whose result is small enough, and the result; dots are dropped."""
    tolerance_m = pixel_m(area)
    while True:
        drawn = []
        for shapes in layers:
            left, bottom, right, top = shapely.bounds(shapes).reshape(-1, 4).T
            seen = shapes[np.maximum(right - left, top - bottom) >= tolerance_m]
            drawn.append(shapely.simplify(seen, tolerance_m))
        if sum(int(shapely.get_num_coordinates(shapes).sum()) for shapes in drawn) <= MAX_LAYER_VERTICES:
            return tolerance_m, drawn
        tolerance_m *= COARSER
