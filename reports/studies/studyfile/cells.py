"""The registry of cells: where each is, by day, and in which zone."""

import csv
import io
from collections.abc import Collection, Iterator
from datetime import date
from math import nan

from django.utils.translation import gettext_noop as _

from reports.base.reasons import Reason
from reports.studies.studyfile.definition import Cell
from reports.studies.studyfile.problems import Problems, unknown
from reports.studies.studyfile.table import date_of, degrees_problem, text_problem, utf8_text

REQUIRED_COLUMNS = ("cell_id", "lon", "lat")
COLUMNS = (*REQUIRED_COLUMNS, "azimuth", "zone", "valid_from", "valid_to")
NUMBERS = ("lon", "lat", "azimuth")
# Names that other programs give to these columns, in small letters.
SYNONYMS = {"cell": "cell_id", "cellule": "cell_id", "longitude": "lon", "latitude": "lat"}
DELIMITERS = ",;\t"  # the first where there are as many of others
MAX_LON, MAX_LAT, MAX_AZIMUTH = 180, 90, 360


def read_cells(data: bytes, problems: Problems, *, zones: Collection[str] | None) -> list[Cell]:
    """Return the cells of a CSV file in file order; after a problem not all of them.

    zones : those that a cell may be in; None = any
    """
    text = utf8_text(data, problems)
    if text is None:
        return []
    cells: list[Cell] = []
    places: dict[str, list[tuple[int, Cell]]] = {}
    for line, row in _rows(text, problems):
        cell = _read_cell(row, line, problems, zones=zones)
        if cell is None:
            continue
        for other_line, other in places.setdefault(cell.cell_id, []):
            if _is_shared_day(cell, other):
                problems.add(f"line {line}, cell_id", _unique_rule(other_line, other), cell.cell_id)
                break
        places[cell.cell_id].append((line, cell))
        cells.append(cell)
    if not cells and not problems.found:
        problems.add("line 2", _("must list at least one cell"))
    return cells


def _is_shared_day(one: Cell, other: Cell) -> bool:
    """Return whether two rows say where the cell is on the same day."""
    return (one.valid_from or date.min) <= (other.valid_to or date.max) and (
        other.valid_from or date.min
    ) <= (one.valid_to or date.max)


def _unique_rule(line: int, other: Cell) -> str:
    if other.valid_from is None and other.valid_to is None:
        return Reason(_("must be unique, but line %(line)s has it"), line=str(line))
    return Reason(
        _("must be unique on each day: valid_from to valid_to must not meet those of line %(line)s"),
        line=str(line),
    )


def _rows(text: str, problems: Problems) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and row of a CSV text; note lines that are not rows.

    Columns are separated as the header separates them. Where commas do not, they may be decimal ones.
    """
    first = text.split("\n", 1)[0]
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    try:
        header = [_known(column) for column in next(reader, [])]
        if not _is_header(header, problems):
            return
        for values in reader:
            if not values:
                continue
            if len(values) == len(header):
                row = dict(zip(header, values, strict=True))
                if delimiter != ",":
                    row |= {name: row[name].replace(",", ".") for name in NUMBERS if name in row}
                yield reader.line_num, row
            else:
                problems.add(
                    f"line {reader.line_num}",
                    Reason(_("must have %(n)s values"), n=str(len(header))),
                    len(values),
                )
    except csv.Error as error:
        problems.add(
            f"line {reader.line_num}", Reason(_("must be valid CSV: %(problem)s"), problem=str(error))
        )


def _known(column: str) -> str:
    """Return a column by its name here, also in capitals; an unknown one as it is."""
    name = SYNONYMS.get(column.lower(), column.lower())
    return name if name in COLUMNS else column


def _is_header(header: list[str], problems: Problems) -> bool:
    before = len(problems.found)
    missing = [column for column in REQUIRED_COLUMNS if column not in header]
    if missing:
        rule = _(
            "must name the columns cell_id, lon and lat, as in cell_id,lon,lat,zone; missing: %(columns)s"
        )
        problems.add("line 1", Reason(rule, columns=", ".join(missing)), ",".join(header))
    if len(problems.found) == before:
        for column in header:
            if column not in COLUMNS:
                problems.add("line 1", unknown(column, known=COLUMNS, noun="column"), column)
            elif header.count(column) > 1:
                problems.add("line 1", _("must name each column once"), column)
    return len(problems.found) == before


def _read_cell(
    row: dict[str, str], line: int, problems: Problems, *, zones: Collection[str] | None
) -> Cell | None:
    before = len(problems.found) + problems.left_out
    cell_id, zone = row["cell_id"], row.get("zone", "")
    for column, value in (("cell_id", cell_id), *([("zone", zone)] if zone else [])):
        problem = text_problem(value)
        if problem:
            problems.add(f"line {line}, {column}", problem, value)
    if zone and zones is not None and zone not in zones:
        problems.add(f"line {line}, zone", _("must be a zone of the zones file"), zone)
    lon = _degrees(row["lon"], f"line {line}, lon", problems, limit=MAX_LON)
    lat = _degrees(row["lat"], f"line {line}, lat", problems, limit=MAX_LAT)
    azimuth = _azimuth(row.get("azimuth", ""), f"line {line}, azimuth", problems)
    first = date_of(row.get("valid_from", ""), f"line {line}, valid_from", problems)
    last = date_of(row.get("valid_to", ""), f"line {line}, valid_to", problems)
    if first and last and last < first:
        problems.add(f"line {line}, valid_to", _("must not be before valid_from"), last)
    if len(problems.found) + problems.left_out > before:
        return None
    return Cell(
        cell_id=cell_id, lon=lon, lat=lat, azimuth=azimuth, zone=zone or None, valid_from=first,
        valid_to=last,
    )  # fmt: skip


def _azimuth(text: str, key: str, problems: Problems) -> float | None:
    value = _number(text) if text else None
    if value is not None and not 0 <= value <= MAX_AZIMUTH:
        problems.add(
            key, Reason(_("must be a number of degrees from 0 to %(most)s, or empty"), most=MAX_AZIMUTH), text
        )
    return value


def _degrees(text: str, key: str, problems: Problems, *, limit: int) -> float:
    value = _number(text)
    problem = degrees_problem(value, limit=limit)
    if problem:
        problems.add(key, problem, text)
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan
