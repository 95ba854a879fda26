"""Larger zones over those of an area: levels that nest, so that a person is in at most one zone of each."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import shapely

from reports.studies.geography.areas import projection_of, shapes_of
from reports.studies.geography.projection import LocalProjection
from reports.studies.geography.shapes import Shapes, in_metres, to_features
from reports.studies.geography.zones import Zones
from reports.studies.studyfile.definition import AreaDefinition
from reports.studies.studyfile.problems import Problems
from reports.studies.studyfile.slots_definition import ZoneLevel
from reports.studies.studyfile.table import with_plain_spaces

LEAST_SHARE: Final = 0.01  # of the smaller zone; less is what rounding does along a border


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelFile:
    """The zones of one file of [slots].levels, and where its problems go; `level` is its name as a level."""

    name: str
    level: str
    zones: Zones
    problems: Problems
    notes: Problems


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """Zones of one level, flat in metres; `of` says whose they are."""

    of: str
    codes: tuple[str, ...]
    shapes: Shapes


def check_overlaps(area: AreaDefinition, problem: Callable[[str], None]) -> None:
    """Say which zones of an area overlap: who is in both would count in both, or in the wrong one."""
    _check_overlaps(_flat_zones(area), problem)


def read_levels(files: Sequence[LevelFile], area: AreaDefinition) -> tuple[ZoneLevel, ...]:
    """Return the levels, from smaller to larger, without zones in which no zone of the area lies.

    Problems of a file go to its own list; after one the levels are of no use.
    """
    projection = projection_of(area)
    layers = [_flat_zones(area), *(_layer(each, projection) for each in files)]
    _check_names(layers, files)
    levels = []
    for place, file in enumerate(files, start=1):
        _check_overlaps(layers[place], partial(file.problems.add, "features"))
        within = _within(layers[0], layers[place], file)
        if place > 1:
            _within(layers[place - 1], layers[place], file)
        levels.append(_level(file, within))
    return tuple(levels)


def _flat_zones(area: AreaDefinition) -> _Layer:
    return _Layer(of="the area", codes=area.zones, shapes=in_metres(shapes_of(area), projection_of(area)))


def _layer(file: LevelFile, projection: LocalProjection) -> _Layer:
    return _Layer(of=file.name, codes=file.zones.codes, shapes=in_metres(file.zones.shapes, projection))


def _check_names(layers: Sequence[_Layer], files: Sequence[LevelFile]) -> None:
    """A zone is found by its name, at any level."""
    seen: dict[str, str] = {}
    for place, layer in enumerate(layers):
        for code in layer.codes:
            other = seen.setdefault(with_plain_spaces(code), layer.of)
            if other != layer.of:
                rule = f"must be unique over all levels, but a zone of {other} has this name"
                files[place - 1].problems.add("features", rule, code)


def _check_overlaps(layer: _Layer, problem: Callable[[str], None]) -> None:
    areas_m2 = shapely.area(layer.shapes)
    for one, other, shared_m2 in _shared(layer.shapes, layer.shapes):
        if one < other:
            problem(
                f'zones "{layer.codes[one]}" and "{layer.codes[other]}" of {layer.of} overlap on '
                f"{_percent(shared_m2, min(areas_m2[one], areas_m2[other]))} of the smaller one: draw them "
                "apart, or, if one holds the other, move it to a file of slots.levels"
            )


def _within(inner: _Layer, outer: _Layer, file: LevelFile) -> list[int | None]:
    """Return the place of the larger zone that holds each smaller one; note those that lie across."""
    found: list[int | None] = [None] * len(inner.codes)
    areas_m2 = shapely.area(inner.shapes)
    for small, large, shared_m2 in _shared(inner.shapes, outer.shapes):
        if shared_m2 >= (1 - LEAST_SHARE) * areas_m2[small]:
            found[small] = large
            continue
        rule = (
            f'zone "{outer.codes[large]}" must hold all or nothing of zone "{inner.codes[small]}" of '
            f"{inner.of}, but holds {_percent(shared_m2, areas_m2[small])} of it: redraw one of them, or "
            "leave this file out of slots.levels"
        )
        file.problems.add("features", rule)
    return found


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f}%"


def _shared(ones: Shapes, others: Shapes) -> Iterator[tuple[int, int, float]]:
    """Yield pairs that share more than their borders, by place, and the square metres of what they share."""
    one, other = shapely.STRtree(others).query(ones, predicate="intersects")
    shared_m2 = shapely.area(shapely.intersection(ones[one], others[other]))
    least_m2 = LEAST_SHARE * np.minimum(shapely.area(ones[one]), shapely.area(others[other]))
    kept = np.flatnonzero(shared_m2 > least_m2)
    kept = kept[np.lexsort((other[kept], one[kept]))]
    yield from zip(one[kept].tolist(), other[kept].tolist(), shared_m2[kept].tolist(), strict=True)


def _level(file: LevelFile, within: Sequence[int | None]) -> ZoneLevel:
    """Return the level of the larger zones that hold one of the area."""
    zones = file.zones
    kept = sorted({place for place in within if place is not None})
    if not kept:
        file.problems.add("features", "must hold at least one zone of the area")
    left_out = len(zones.codes) - len(kept)
    if kept and left_out:
        it = "it" if left_out == 1 else "them"
        file.notes.add("features", f"{left_out} left out, as no zone of the area lies in {it}")
    place = {old: new for new, old in enumerate(kept)}
    codes = tuple(zones.codes[each] for each in kept)
    return ZoneLevel(
        name=file.level,
        zones=codes,
        within=tuple(None if each is None else place[each] for each in within),
        geojson=to_features(codes, zones.shapes[kept]),
        zones_fr=None if zones.names_fr is None else tuple(zones.names_fr[each] for each in kept),
    )
