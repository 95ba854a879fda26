"""The section [area] and the files that it names: cells.csv and zones.geojson."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

from reports.studyfile.definition import AreaDefinition, Cell
from reports.studyfile.problems import Problem, Problems, unknown
from reports.studyfile.table import Table, degrees_problem, text_problem

REQUIRED_COLUMNS = ("cell_id", "lon", "lat")
COLUMNS = (*REQUIRED_COLUMNS, "zone", "valid_from", "valid_to")
MAX_LON, MAX_LAT = 180, 90


def read_area(table: Table, *, read: Callable[[str], bytes]) -> tuple[AreaDefinition | None, list[Problem]]:
    """Return the area, and the problems of the files (those of the table are noted in the table)."""
    cells_file, cells_data = _content(table, "cells", read=read)
    zones_file, zones_data = _content(table, "zones", read=read) if table.has("zones") else ("", None)
    table.finish()
    zone_problems, cell_problems = Problems(zones_file), Problems(cells_file)
    geojson, zones = None, None
    if zones_data is not None:
        geojson, zones = _read_zones(zones_data, zone_problems)
    cells: list[Cell] = []
    if cells_data is not None:
        cells = _read_cells(cells_data, cell_problems, zones=None if zone_problems.found else zones)
    if zones is None:
        zones = list(dict.fromkeys(cell.zone for cell in cells if cell.zone))
    area = AreaDefinition(cells=tuple(cells), zones=tuple(zones), geojson=geojson)
    return area, [*cell_problems.all(), *zone_problems.all()]


def _content(table: Table, key: str, *, read: Callable[[str], bytes]) -> tuple[str, bytes | None]:
    name = table.text(key)
    if not name:
        return name, None
    try:
        return name, read(name)
    except FileNotFoundError:
        table.add(key, "must name a file that is given together with the study file", name)
        return name, None


def _decode(data: bytes, problems: Problems) -> str | None:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problems.add(f"line {line}", "must be UTF-8 text", f"byte 0x{data[error.start]:02x}")
        return None


def _read_cells(data: bytes, problems: Problems, *, zones: list[str] | None) -> list[Cell]:
    text = _decode(data, problems)
    if text is None:
        return []
    cells: list[Cell] = []
    lines: dict[str, int] = {}
    for line, row in _rows(text, problems):
        cell = _read_cell(row, line, problems, zones=zones)
        if cell is None:
            continue
        if cell.cell_id in lines:
            problems.add(f"line {line}, cell_id", f"must be unique, but line {lines[cell.cell_id]} has it",
                         cell.cell_id)  # fmt: skip
        lines.setdefault(cell.cell_id, line)
        cells.append(cell)
    if not cells and not problems.found:
        problems.add("line 2", "must list at least one cell")
    return cells


def _rows(text: str, problems: Problems) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and row of a CSV text; note lines that are not rows."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        if not _is_header(header, problems):
            return
        for values in reader:
            if not values:
                continue
            if len(values) == len(header):
                yield reader.line_num, dict(zip(header, values, strict=True))
            else:
                problems.add(f"line {reader.line_num}", f"must have {len(header)} values", len(values))
    except csv.Error as error:
        problems.add(f"line {reader.line_num}", f"must be valid CSV: {error}")


def _is_header(header: list[str], problems: Problems) -> bool:
    before = len(problems.found)
    for column in REQUIRED_COLUMNS:
        if column not in header:
            problems.add("line 1", f"must name the column {column} (comma separated)", ",".join(header))
    if len(problems.found) == before:
        for column in header:
            if column not in COLUMNS:
                problems.add("line 1", unknown(column, known=COLUMNS, noun="column"), column)
            elif header.count(column) > 1:
                problems.add("line 1", "must name each column once", column)
    return len(problems.found) == before


def _read_cell(row: dict[str, str], line: int, problems: Problems, *, zones: list[str] | None) -> Cell | None:
    before = len(problems.found) + problems.left_out
    cell_id, zone = row["cell_id"], row.get("zone", "")
    for column, value in (("cell_id", cell_id), *([("zone", zone)] if zone else [])):
        problem = text_problem(value)
        if problem:
            problems.add(f"line {line}, {column}", problem, value)
    if zone and zones is not None and zone not in zones:
        problems.add(f"line {line}, zone", "must be a zone of the zones file", zone)
    lon = _degrees(row["lon"], f"line {line}, lon", problems, limit=MAX_LON)
    lat = _degrees(row["lat"], f"line {line}, lat", problems, limit=MAX_LAT)
    first = _date(row.get("valid_from", ""), f"line {line}, valid_from", problems)
    last = _date(row.get("valid_to", ""), f"line {line}, valid_to", problems)
    if first and last and last < first:
        problems.add(f"line {line}, valid_to", "must not be before valid_from", last)
    if len(problems.found) + problems.left_out > before:
        return None
    return Cell(cell_id=cell_id, lon=lon, lat=lat, zone=zone or None, valid_from=first, valid_to=last)


def _degrees(text: str, key: str, problems: Problems, *, limit: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    problem = degrees_problem(value, limit=limit)
    if problem:
        problems.add(key, problem, text)
    return value


def _date(text: str, key: str, problems: Problems) -> date | None:
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        problems.add(key, "must be a date as 2017-05-31, or empty", text)
        return None


def _read_zones(data: bytes, problems: Problems) -> tuple[dict[str, Any] | None, list[str]]:
    text = _decode(data, problems)
    if text is None:
        return None, []
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        problems.add(f"line {error.lineno}, column {error.colno}", f"must be valid JSON: {error.msg}")
        return None, []
    except (ValueError, RecursionError) as error:
        problems.add("text", f"must be valid JSON: {error}")
        return None, []
    if not isinstance(document, dict) or document.get("type") != "FeatureCollection":
        problems.add("type", 'must be "FeatureCollection"')
        return None, []
    features = document.get("features")
    if not isinstance(features, list) or not features:
        problems.add("features", "must be a list of at least one zone")
        return None, []
    zones: list[str] = []
    for position, feature in enumerate(features, start=1):
        _read_zone(feature, f"features[{position}]", problems, zones=zones)
    if problems.found:
        return None, zones
    return {"type": "FeatureCollection", "features": [_only_zone(feature) for feature in features]}, zones


def _only_zone(feature: dict[str, Any]) -> dict[str, Any]:
    """Keep what was checked; other members may hold anything, even what no database takes."""
    geometry = feature["geometry"]
    return {
        "type": "Feature",
        "properties": {"zone": feature["properties"]["zone"]},
        "geometry": {"type": geometry["type"], "coordinates": geometry["coordinates"]},
    }


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _read_zone(feature: object, key: str, problems: Problems, *, zones: list[str]) -> None:
    if not isinstance(feature, dict) or feature.get("type") != "Feature":
        problems.add(key, 'must be of type "Feature"')
        return
    properties = feature.get("properties")
    zone = properties.get("zone") if isinstance(properties, dict) else None
    problem = "is missing, or empty: give each zone a name" if zone is None else text_problem(zone)
    if problem is None and zone in zones:
        problem = "must be unique"
    if problem:
        problems.add(f"{key}.properties.zone", problem, zone)
    else:
        zones.append(str(zone))
    geometry = feature.get("geometry")
    shape = geometry.get("type") if isinstance(geometry, dict) else None
    if shape not in ("Polygon", "MultiPolygon") or not isinstance(geometry, dict):
        problems.add(f"{key}.geometry.type", "must be Polygon or MultiPolygon", shape)
        return
    coordinates = geometry.get("coordinates")
    polygons = [coordinates] if shape == "Polygon" else coordinates
    problem = _polygons_problem(polygons)
    if problem:
        problems.add(f"{key}.geometry.coordinates", problem)


def _polygons_problem(polygons: object) -> str | None:
    """Return the first rule that nested lists of rings break, or None."""
    if not isinstance(polygons, list) or not polygons:
        return "must be a list"
    for rings in polygons:
        if not isinstance(rings, list) or not rings:
            return "must hold rings"
        for ring in rings:
            if not isinstance(ring, list) or len(ring) < 4 or ring[0] != ring[-1]:
                return "must hold rings of at least 4 positions that end where they start"
            for position in ring:
                if not isinstance(position, list) or len(position) < 2:
                    return "must hold positions [lon, lat]"
                problem = degrees_problem(position[0], limit=MAX_LON) or degrees_problem(
                    position[1], limit=MAX_LAT
                )
                if problem:
                    return f"{problem}, in [lon, lat]"
    return None
