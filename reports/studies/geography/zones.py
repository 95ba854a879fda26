"""Zones: their codes, the days on which they are valid, and their shapes, repaired."""

import math
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Final

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely

from reports.studies.geography.files.rules import Rules, Source
from reports.studies.geography.files.sources import GEOJSON, POLYGONS, kind_problem, read_source
from reports.studies.geography.projection import LocalProjection, projection_around
from reports.studies.geography.shapes import Shapes, in_metres, repaired
from reports.studies.studyfile.problems import Problems, unknown
from reports.studies.studyfile.table import date_of, text_problem, with_plain_spaces

MAX_ZONES: Final = 5_000
MAX_VERTICES: Final = 200_000  # some MB of JSON, read with every batch
LEAST_OVERLAP_KM2: Final = 0.01  # less is what rounding does along a border
VALIDITY: Final = ("valid_from", "valid_to")
FRENCH: Final = "name_fr"


@dataclass(frozen=True, slots=True, kw_only=True)
class Zones:
    """Codes in file order, and a polygon each (WGS 84).

    names_fr : French names, or the code where a zone has none; None = no zone has one
    """

    codes: tuple[str, ...]
    shapes: Shapes
    names_fr: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """A feature of the file: a zone while it has this shape; `key` is its place."""

    key: str
    code: str
    first: date
    last: date
    shape: Any
    name_fr: str | None = None

    def overlaps(self, first: date, last: date) -> bool:
        return self.first <= last and first <= self.last


def read_zones(
    source: Source,
    problems: Problems,
    notes: Problems,
    *,
    column: str,
    layer: str,
    study_days: tuple[date, date] | None,
) -> Zones | None:
    """Return the zones of a study; None after a problem.

    Parameters
    ----------
    column : attribute with the code of the zone
    layer : of a GeoPackage with several; "" otherwise
    study_days : first and last day; None where the study file does not say
    """
    rules = Rules(kinds=POLYGONS, noun="zone", max_features=MAX_ZONES, layer=layer)
    frame = read_source(source, problems, rules=rules)
    if frame is None or (source.suffix not in GEOJSON and not _has_column(frame, column, problems)):
        return None
    versions = _versions(frame, problems, column=column, is_typed=source.suffix not in GEOJSON)
    _check_codes(versions, problems, column=column)
    if problems.found:
        return None
    of_study = _of_study(versions, problems, notes, study_days)
    versions = [_with_shape(each, problems, notes) for each in of_study]
    shapes = _shapes(versions, problems)
    names_fr = _french(versions, problems)
    if problems.found:
        return None
    _note_overlaps(versions, shapes, notes)
    return Zones(codes=tuple(each.code for each in versions), shapes=shapes, names_fr=names_fr)


def _has_column(frame: gpd.GeoDataFrame, column: str, problems: Problems) -> bool:
    known = [str(name) for name in frame.columns if name != frame.geometry.name]
    if column not in known:
        rule = unknown(column, known=known, noun="column") if known else "has no columns"
        problems.add(
            "attributes", f"{rule}; area.zone_column names the one with the code of the zone", column
        )
    return column in known


def _versions(frame: gpd.GeoDataFrame, problems: Problems, *, column: str, is_typed: bool) -> list[_Version]:
    names = [name if name in frame.columns else None for name in (column, *VALIDITY, FRENCH)]
    columns = [frame[name].tolist() if name else [None] * len(frame) for name in names]
    versions = []
    for place, (code, first, last, french, shape) in enumerate(
        zip(*columns, frame.geometry, strict=True), start=1
    ):
        key = f"features[{place}]"
        text = _code(code, f"{key}.properties.{column}", problems, is_typed=is_typed)
        days = [
            _day(value, f"{key}.properties.{name}", problems)
            for name, value in zip(VALIDITY, (first, last), strict=True)
        ]
        begin, end = days[0] or date.min, days[1] or date.max
        if end < begin:
            problems.add(f"{key}.properties.valid_to", "must not be before valid_from", end)
        is_named = not _is_missing(french) and french != ""  # as programs write an attribute without a value
        name_fr = _text(french, f"{key}.properties.{FRENCH}", problems) if is_named else None
        if text is not None:
            versions.append(_Version(key=key, code=text, first=begin, last=end, shape=shape, name_fr=name_fr))
    return versions


def _code(value: Any, key: str, problems: Problems, *, is_typed: bool) -> str | None:
    if _is_missing(value):
        problems.add(key, "is missing, or empty: give each zone a name")
        return None
    # Columns of codes are often whole numbers in typed files; in JSON a number is a choice of the writer.
    if is_typed and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return _text(value, key, problems)


def _text(value: Any, key: str, problems: Problems) -> str | None:
    problem = text_problem(value)
    if problem:
        problems.add(key, problem, value)
        return None
    return str(value)


def _day(value: Any, key: str, problems: Problems) -> date | None:
    if _is_missing(value):
        return None
    if isinstance(value, datetime):  # GeoPandas's type for a column of dates
        return value.date()
    return value if isinstance(value, date) else date_of(str(value), key, problems)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value)) or value is pd.NaT


def _check_codes(versions: list[_Version], problems: Problems, *, column: str) -> None:
    """A code may come again for other days only."""
    seen: dict[str, list[_Version]] = {}
    for each in versions:
        key = f"{each.key}.properties.{column}"
        for other in seen.setdefault(each.code, []):
            if (other.first, other.last) == (each.first, each.last) == (date.min, date.max):
                problems.add(key, "must be unique", each.code)
            elif other.overlaps(each.first, each.last):
                rule = f"must be valid on other days than {other.key} of the same code"
                problems.add(key, rule, each.code)
            else:
                continue
            break
        seen[each.code].append(each)


def _of_study(
    versions: list[_Version], problems: Problems, notes: Problems, study_days: tuple[date, date] | None
) -> list[_Version]:
    """Return the zones that are valid on a day of the study, one of each code."""
    first, last = study_days or (date.min, date.max)
    kept: dict[str, _Version] = {}
    for each in versions:
        if not each.overlaps(first, last):
            notes.add(each.key, "was left out: it is not valid on any day of the study", each.code)
            continue
        if each.code in kept:
            rule = f"must have one shape during the study, and {kept[each.code].key} is another: give the two"
            problems.add(each.key, f"{rule} different codes, or make two studies", each.code)
            continue
        if each.first > first or each.last < last:
            notes.add(
                each.key, "is valid on only some days of the study, but is used for all of them", each.code
            )
        kept[each.code] = each
    if not kept and not problems.found:
        problems.add("features", "must be valid on at least one day of the study")
    return list(kept.values())


def _with_shape(each: _Version, problems: Problems, notes: Problems) -> _Version:
    """Return the same with a valid polygon."""
    found = kind_problem(each.shape, kinds=POLYGONS)
    if found:
        problems.add(f"{each.key}.geometry.type", *found)
        return each
    shape, reason = repaired(each.shape)
    if reason is None:
        return each
    if shape.is_empty:
        problems.add(
            f"{each.key}.geometry", f"must hold an area, but nothing is left of it ({reason})", each.code
        )
        return each
    notes.add(f"{each.key}.geometry", f"was repaired ({reason})", each.code)
    return replace(each, shape=shape)


def _french(versions: list[_Version], problems: Problems) -> tuple[str, ...] | None:
    """Return the French name of each zone, which must differ from those of the others."""
    if all(each.name_fr is None for each in versions):
        return None
    names = [each.name_fr or each.code for each in versions]
    seen: dict[str, _Version] = {}  # by how a name looks
    for name, each in zip(names, versions, strict=True):
        other = seen.setdefault(with_plain_spaces(name), each)
        if other is not each:
            rule = f"must differ from the French name of {other.key}"
            problems.add(f"{each.key}.properties.{FRENCH}", rule, name)
    return tuple(names)


def _shapes(versions: list[_Version], problems: Problems) -> Shapes:
    shapes = np.empty(len(versions), np.object_)
    shapes[:] = [each.shape for each in versions]
    n_vertices = int(shapely.get_num_coordinates(shapes).sum())
    if n_vertices > MAX_VERTICES:
        rule = f"must have at most {MAX_VERTICES} vertices together: simplify the zones first"
        problems.add("features", rule, n_vertices)
    return shapes


def _note_overlaps(versions: list[_Version], shapes: Shapes, notes: Problems) -> None:
    """Note pairs of zones that share more than their border; a point of both counts for the first."""
    pairs = shapely.STRtree(shapes).query(shapes, predicate="intersects")
    pairs = pairs[:, pairs[0] < pairs[1]]
    pairs = pairs[:, ~shapely.touches(shapes[pairs[0]], shapes[pairs[1]])]
    pairs = pairs[:, np.lexsort(pairs[::-1])]
    if not pairs.size:
        return
    lon, lat = shapely.get_coordinates(shapes).T
    flat = in_metres(shapes, LocalProjection(projection_around(lon, lat)))
    areas_km2 = shapely.area(shapely.intersection(flat[pairs[0]], flat[pairs[1]])) / 1e6
    for one, other, area_km2 in zip(*pairs.tolist(), areas_km2.tolist(), strict=True):
        if area_km2 >= LEAST_OVERLAP_KM2:
            rule = f'overlaps zone "{versions[one].code}" on {area_km2:.2f} km2, which count for that zone'
            notes.add(versions[other].key, rule, versions[other].code)
