"""The area of a table: its squares, its zones, and the noise that is drawn there."""

import hashlib
import json
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp import LdpError
from ldp.geo.grid import Grid
from ldp.geo.location import LocationSpec
from mobility.tables.options import TableError
from reports.studies.geography.areas import place, projection_of, shapes_of
from reports.studies.geography.files.rules import Source
from reports.studies.geography.grid import GridError, finest_grid, make_grid
from reports.studies.geography.projection import LocalProjection
from reports.studies.geography.shapes import first_containing
from reports.studies.geography.zones import read_zones
from reports.studies.studyfile.definition import AreaDefinition
from reports.studies.studyfile.location import GRID_M, MAX_MARGIN_M, RADIUS_95
from reports.studies.studyfile.problems import Problems

OUTSIDE: Final = -1  # of every zone

Degrees = NDArray[np.float64]
Metres = NDArray[np.float64]


@dataclass(frozen=True)
class TableArea:
    """Public area of the rows of a table: that of a study, or the zones of a file."""

    area: AreaDefinition

    @cached_property
    def projection(self) -> LocalProjection:
        """The projection in whose metres noise is drawn."""
        return projection_of(self.area)

    def zones_of(self, lon: Degrees, lat: Degrees) -> NDArray[np.int64]:
        """Place in `area.zones` of the first zone that holds each point, or OUTSIDE; shape (n,)."""
        return first_containing(lon, lat, shapes_of(self.area))

    @property
    def has_zones(self) -> bool:
        """Return whether a point can be assigned a zone."""
        return self.area.geojson is not None


def area_of_file(name: str, data: bytes, *, zone_property: str) -> TableArea:
    """Read the zones of a GeoJSON file, GeoPackage or shapefile (.zip).

    TableError with every problem of the file.
    """
    problems, notes = Problems(name), Problems(name)
    source = Source(name=name, data=data)
    zones = read_zones(source, problems, notes, column=zone_property, layer="", study_days=None)
    if zones is None:
        told = "; ".join(f"{each.key} {each.rule}" for each in problems.all())
        raise TableError(f"the file with the zones cannot be used: {told}")
    return TableArea(place([], zones))


def spec_of(area: TableArea, *, level: Decimal, radius_m: int, grid_m: int | None) -> LocationSpec:
    """Return how places are reported: on squares over the area and what 95 of 100 reports stay within.

    Parameters
    ----------
    grid_m : side of the squares; None = the smallest that the area allows, in steps of 10 m from a tenth of
        the radius on

    Raises
    ------
    TableError : there are more squares than codes, or noise of finite precision cannot keep the promise
    """
    margin_m = min(int((RADIUS_95 * radius_m / level).to_integral_value(ROUND_CEILING)), MAX_MARGIN_M)
    try:
        grid = _grid(area.area, radius_m=radius_m, grid_m=grid_m, margin_m=margin_m)
        return LocationSpec(level=Fraction(level), radius_m=Fraction(radius_m), grid=grid)
    except (GridError, LdpError) as error:
        raise TableError(f"{error} (option --grid, in metres)") from None


def noise_purpose(area: TableArea, spec: LocationSpec) -> str:
    """Return the purpose of the subkey: other noise for every other promise and area.

    With the same bits, two reports of one place at two levels would lie on one line through the place.
    """
    told = json.dumps([spec.to_json(), area.projection.text], sort_keys=True)
    return f"table/{hashlib.sha256(told.encode()).hexdigest()}"


def _grid(area: AreaDefinition, *, radius_m: int, grid_m: int | None, margin_m: int) -> Grid:
    if grid_m is not None:
        return make_grid(area, step_m=grid_m, margin_m=margin_m)
    least_m = max(GRID_M[0], radius_m // 100 * 10)
    return finest_grid(area, steps=range(least_m, GRID_M[1] + 1, 10), margin_m=margin_m)
