"""The grid of a study: squares over its cells and zones, and what each of them is."""

import math
from collections import Counter
from typing import Final

import numpy as np
import shapely
from numpy.typing import NDArray

from ldp.geo.grid import MAX_CELLS, MAX_STEP_M, Grid
from reports.studies.geography.areas import (
    SURROUNDINGS_M,
    bounds_in_metres,
    cells_in_metres,
    projection_of,
    shapes_of,
)
from reports.studies.geography.shapes import first_containing, in_metres, of_geometry
from reports.studies.studyfile.definition import AreaDefinition

MAX_RADIUS_M: Final = 500_000  # of the area: within it distances are right to 0.1%


class GridError(ValueError):
    """No grid of that step covers the area."""


def make_grid(area: AreaDefinition, *, step_m: int, margin_m: int, max_cells: int = MAX_CELLS) -> Grid:
    """Return the grid that covers cells and zones with a margin around them.

    Its corner is a multiple of the step, so that the same area has the same grid for any last digits.

    Parameters
    ----------
    step_m : int; side of a square, in [1, 100_000]
    margin_m : int; in [0, 100_000]: beyond, base layers and masks are not known
    max_cells : int; most squares, at most 65_534

    Raises
    ------
    GridError : the area is too wide for metres to be metres, or has more squares than there are codes
    """
    bounds = _checked_bounds(area, step_m=step_m, margin_m=margin_m)
    wanted = (bounds[0] - margin_m, bounds[1] - margin_m, bounds[2] + margin_m, bounds[3] + margin_m)
    columns, rows = _squares(wanted, step_m)
    if len(columns) * len(rows) > max_cells:
        least = _smallest_step(wanted, step_m, max_cells=max_cells)
        raise GridError(
            f"a step of {step_m} m with a margin of {margin_m} m makes {len(columns) * len(rows)} squares, "
            f"more than {max_cells}: the smallest step that works is {least} m"
        )
    return Grid(
        x0_m=columns[0] * step_m, y0_m=rows[0] * step_m, step_m=step_m, n_x=len(columns), n_y=len(rows)
    )


def finest_grid(area: AreaDefinition, *, steps: range, margin_m: int) -> Grid:
    """Return the grid of the first of some rising steps that makes few enough squares.

    GridError of the last step if none does.
    """
    bounds = _checked_bounds(area, step_m=steps[0], margin_m=margin_m)
    wanted = (bounds[0] - margin_m, bounds[1] - margin_m, bounds[2] + margin_m, bounds[3] + margin_m)
    fitting = (step_m for step_m in steps if math.prod(map(len, _squares(wanted, step_m))) <= MAX_CELLS)
    return make_grid(area, step_m=next(fitting, steps[-1]), margin_m=margin_m)


def _checked_bounds(area: AreaDefinition, *, step_m: int, margin_m: int) -> tuple[float, float, float, float]:
    """Bounds of the area in metres; GridError if a number is out of range, or the area too wide."""
    if not 1 <= step_m <= MAX_STEP_M:
        raise GridError(f"step_m must be from 1 to {MAX_STEP_M}, got {step_m}")
    if not 0 <= margin_m <= SURROUNDINGS_M:
        raise GridError(f"margin_m must be from 0 to {SURROUNDINGS_M}, got {margin_m}")
    bounds = bounds_in_metres(area)
    radius_m = max(math.hypot(x, y) for x in bounds[::2] for y in bounds[1::2])
    if not radius_m <= MAX_RADIUS_M:
        raise GridError(
            f"the area must lie within {MAX_RADIUS_M // 1000} km of its centre, got {radius_m / 1000:.0f} "
            "km: is a cell misplaced? Larger areas need several studies"
        )
    return bounds


def _squares(bounds: tuple[float, float, float, float], step_m: int) -> tuple[range, range]:
    """Numbers of the columns and of the rows that hold everything within bounds, borders included."""
    west, south, east, north = (math.floor(bound / step_m) for bound in bounds)
    return range(west, east + 1), range(south, north + 1)


def _smallest_step(bounds: tuple[float, float, float, float], step_m: int, *, max_cells: int) -> int:
    """The smallest step above `step_m` with few enough squares."""
    size = (bounds[2] - bounds[0]) * (bounds[3] - bounds[1])
    step_m = max(step_m + 1, math.floor(math.sqrt(size / max_cells)))
    while math.prod(map(len, _squares(bounds, step_m))) > max_cells:
        step_m += 1
    return step_m


def grid_codes_of_cells(area: AreaDefinition, grid: Grid) -> NDArray[np.uint16]:
    """Code of the square of each cell, in the order of the registry; shape (len(area.cells),)."""
    return grid.codes(*cells_in_metres(area))


def zone_of_grid_cells(area: AreaDefinition, grid: Grid) -> NDArray[np.int16]:
    """Place in `area.zones` of the zone of each square, or NO_ZONE; shape (n_y, n_x).

    A square with cells is in the zone of most of them, since reports come from there: the middle of
    a coarse square may lie elsewhere. Any other square is in the zone that holds its middle. Of zones that
    overlap, or have as many cells, it is the first.
    """
    lon, lat = projection_of(area).to_degrees(*grid.centres())
    zones = first_containing(lon, lat, shapes_of(area)).astype(np.int16)
    place_of = {zone: place for place, zone in enumerate(area.zones)}
    votes = Counter(
        (code, place_of[cell.zone])
        for code, cell in zip(grid_codes_of_cells(area, grid).tolist(), area.cells, strict=True)
        if cell.zone is not None
    )
    for (code, place), _ in sorted(votes.items(), key=lambda vote: (vote[1], -vote[0][1])):
        zones[code] = place  # the last one to write has most votes
    return zones.reshape(grid.shape)


def antenna_mask(area: AreaDefinition, grid: Grid) -> NDArray[np.bool_]:
    """Return whether each square ever has a cell; shape (n_y, n_x). All true places are in such squares."""
    mask = np.zeros(grid.n_cells, np.bool_)
    mask[grid_codes_of_cells(area, grid)] = True
    return mask.reshape(grid.shape)


def land_mask(area: AreaDefinition, grid: Grid) -> NDArray[np.bool_]:
    """Return whether people may be in each square; shape (n_y, n_x).

    A square is masked only if it lies wholly in water, or wholly outside of land where that is given; and
    never in a square with a cell: reports come from there.
    """
    x_m, y_m = grid.centres()
    half = grid.step_m / 2
    squares = shapely.box(x_m - half, y_m - half, x_m + half, y_m + half)
    mask = np.ones(grid.n_cells, np.bool_)
    for geometry, is_land in ((area.water, False), (area.land, True)):
        if geometry is None:
            continue
        shape = in_metres(np.array([of_geometry(geometry)], np.object_), projection_of(area))[0]
        shapely.prepare(shape)
        mask &= shapely.intersects(shape, squares) if is_land else ~shapely.covers(shape, squares)
    mask[grid_codes_of_cells(area, grid)] = True
    return mask.reshape(grid.shape)
