"""The section [location]: how far reported places lie from true ones, and on which grid they are counted."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_DOWN, Decimal
from typing import get_args

from django.utils.translation import gettext_noop as _

from ldp import LdpError
from ldp.geo.grid import MAX_CELLS
from ldp.privacy.plans import MAX_TALLY_CELLS
from reports.base.reasons import Reason
from reports.studies.geography.areas import projection_of
from reports.studies.geography.grid import GridError, grid_codes_of_cells, make_grid
from reports.studies.geography.hexagons import finest_resolution
from reports.studies.studyfile.definition import AreaDefinition, LocationDefinition, People
from reports.studies.studyfile.problems import Problems
from reports.studies.studyfile.table import NumberRule, Table

MAX_ODDS = 1000
LEVEL = NumberRule(_('must be a number > 0 and <= 7, or a text such as "ln 4"'), lambda x: 0 < x <= 7)
RADIUS_M = (10, 50_000)
GRID_M = (10, 50_000)
MAX_MARGIN_M = 100_000
MAX_H3_RESOLUTION = 15
LEVEL_DECIMALS = Decimal("1e-8")  # limit of the database column
RADIUS_95 = Decimal("4.743864518391")  # quantile of epsilon times radius
_LN = "ln "


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationRequest:
    """Contents of [location], before the grid is laid over the area."""

    level: Decimal
    radius_m: int
    grid_m: int
    margin_m: int | None
    max_values: int | None
    h3_resolution: int | None
    people: People


def read_location(table: Table, area: AreaDefinition | None, *, days: int) -> LocationDefinition | None:
    """Return what everyone reports of places, with the grid over the area; None after a problem."""
    before = len(table.problems.found) + table.problems.left_out
    request = LocationRequest(
        level=_read_level(table),
        radius_m=table.integer("radius_m", low=RADIUS_M[0], high=RADIUS_M[1]),
        grid_m=table.integer("grid_m", low=GRID_M[0], high=GRID_M[1]),
        margin_m=table.integer("margin_m", low=0, high=MAX_MARGIN_M) if table.has("margin_m") else None,
        max_values=table.integer("max_values", low=1, high=days) if table.has("max_values") else None,
        h3_resolution=(
            table.integer("h3_resolution", low=0, high=MAX_H3_RESOLUTION)
            if table.has("h3_resolution")
            else None
        ),
        people=_read_people(table, area),
    )
    table.finish()
    if area is None or len(table.problems.found) + table.problems.left_out > before:
        return None
    return _on_grid(request, area, days=days, table=table)


def _on_grid(
    request: LocationRequest, area: AreaDefinition, *, days: int, table: Table
) -> LocationDefinition | None:
    """Lay the grid; its margin, if none is asked for, is what 95 of 100 reports stay within."""
    margin_m = request.margin_m
    if margin_m is None:
        wanted_m = (RADIUS_95 * request.radius_m / request.level).to_integral_value(ROUND_CEILING)
        margin_m = min(int(wanted_m), MAX_MARGIN_M)
    try:
        grid = make_grid(
            area,
            step_m=request.grid_m,
            margin_m=margin_m,
            max_cells=min(MAX_CELLS, MAX_TALLY_CELLS // (days + 1) ** 2),
        )
    except GridError as error:
        table.add("grid_m", str(error), request.grid_m)
        return None
    if not _hexagons_hold_squares(request, area, table=table):
        return None
    location = LocationDefinition(
        level=request.level,
        radius_m=request.radius_m,
        max_values=request.max_values,
        grid=grid,
        places=tuple(grid_codes_of_cells(area, grid).tolist()),
        h3_resolution=request.h3_resolution,
        people=request.people,
    )
    try:
        _ = location.spec
    except LdpError as error:
        table.add("radius_m", str(error), request.radius_m)
        return None
    return location


def _hexagons_hold_squares(request: LocationRequest, area: AreaDefinition, *, table: Table) -> bool:
    """Return whether hexagons, if any, are at least as large as squares; else most would be empty."""
    if request.h3_resolution is None:
        return True
    finest = finest_resolution(*projection_of(area).to_degrees(0.0, 0.0), step_m=request.grid_m)
    if request.h3_resolution > finest:
        table.add(
            "h3_resolution",
            Reason(
                _("must be at most %(most)s: finer hexagons are smaller than the squares of %(metres)s m"),
                most=finest,
                metres=str(request.grid_m),
            ),
            request.h3_resolution,
        )
    return request.h3_resolution <= finest


def _read_people(table: Table, area: AreaDefinition | None) -> People:
    """Places of people: antennas, unless the area says what is water or land."""
    has_land = area is not None and (area.water is not None or area.land is not None)
    default: People = "land" if has_land else "antennas"
    if not table.has("people"):
        return default
    return "land" if table.choice("people", get_args(People)) == "land" else "antennas"


def level_of(value: Decimal | str, problems: Problems) -> Decimal:
    """Return a level that is written outside of a study file, such as 1.5 or "ln 4"; notes what is wrong."""
    return _read_level(Table({"level": value}, "", problems))


def _read_level(table: Table) -> Decimal:
    """Return a level, from a number or from odds as in "ln 4"; rounded down, never above what is asked."""
    value = table.raw("level")
    if not isinstance(value, str):
        return table.decimal("level", LEVEL) or Decimal(1)
    odds = value.removeprefix(_LN).strip()
    if value.startswith(_LN) and odds.isdecimal() and 2 <= int(odds) <= MAX_ODDS:
        return Decimal(int(odds)).ln().quantize(LEVEL_DECIMALS, ROUND_DOWN)
    table.add(
        "level", Reason(_("%(rule)s (odds from 2 to %(most)s)"), rule=LEVEL.text, most=str(MAX_ODDS)), value
    )
    return Decimal(1)
