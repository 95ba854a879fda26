"""The grid of a study: what it covers, its zones and its land, by brute force."""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import shapely
from shapely import Point, box

from ldp.geo.grid import Grid
from reports.geography.areas import bounds_in_metres, cells_in_metres, projection_of, shapes_of
from reports.geography.grid import (
    GridError,
    grid_codes_of_cells,
    land_mask,
    make_grid,
    zone_of_grid_cells,
)
from reports.geography.shapes import in_metres, of_geometry
from reports.geography.stored import NO_ZONE, GridMap
from reports.studyfile import AreaDefinition
from tests.reports.geography.places import EAST, WEST, frame, parse

CELLS = "cell_id,lon,lat\nwest,6.85,47.65\neast,6.95,47.65\n"
OVAL = shapely.Point(6.9, 47.65).buffer(0.03)


def area_of(written: Callable[..., bytes], extra: str = "", **files: bytes) -> AreaDefinition:
    zones = written(frame([WEST, EAST], zone=["West", "East"]), "zones.gpkg")
    given = {"zones.gpkg": zones, **{name.replace("_", "."): data for name, data in files.items()}}
    return parse('zones = "zones.gpkg"\n' + extra, given, cells=CELLS).area


@pytest.mark.parametrize(("step_m", "margin_m"), [(250, 0), (333, 1000), (1000, 4999)])
def test_a_grid_covers_cells_and_zones_with_the_margin_and_no_more(
    written: Callable[..., bytes], step_m: int, margin_m: int
) -> None:
    area = area_of(written)
    grid = make_grid(area, step_m=step_m, margin_m=margin_m)
    assert (grid.x0_m % step_m, grid.y0_m % step_m) == (0, 0)
    west, south, east, north = bounds_in_metres(area)
    for low, high, start, n in ((west, east, grid.x0_m, grid.n_x), (south, north, grid.y0_m, grid.n_y)):
        assert start <= low - margin_m < start + step_m
        assert start + (n - 1) * step_m <= high + margin_m < start + n * step_m
    x_m, y_m = cells_in_metres(area)
    assert grid.is_inside(x_m, y_m).all()
    assert grid_codes_of_cells(area, grid).tolist() == grid.codes(x_m, y_m).tolist()
    assert len(set(grid_codes_of_cells(area, grid).tolist())) == 2


def test_the_last_digits_of_positions_do_not_move_the_grid(written: Callable[..., bytes]) -> None:
    area = area_of(written)
    moved = replace(area, cells=tuple(replace(cell, lon=cell.lon + 1e-6) for cell in area.cells))
    assert make_grid(moved, step_m=250, margin_m=0) == make_grid(area, step_m=250, margin_m=0)


@pytest.mark.parametrize(
    ("step_m", "margin_m", "max_cells"), [(10, 0, 65_534), (100, 20_000, 4_000), (7, 3, 99)]
)
def test_too_many_squares_are_refused_with_the_smallest_step_that_works(
    written: Callable[..., bytes], step_m: int, margin_m: int, max_cells: int
) -> None:
    area = area_of(written)
    with pytest.raises(GridError, match="the smallest step that works is") as caught:
        make_grid(area, step_m=step_m, margin_m=margin_m, max_cells=max_cells)
    least = int(str(caught.value).split()[-2])
    assert make_grid(area, step_m=least, margin_m=margin_m, max_cells=max_cells).n_cells <= max_cells
    for smaller in range(max(step_m, least - 20), least):
        with pytest.raises(GridError):
            make_grid(area, step_m=smaller, margin_m=margin_m, max_cells=max_cells)


def test_an_area_that_is_too_wide_for_metres_has_no_grid() -> None:
    def grid(lon: float) -> Grid:
        area = parse("", {}, cells=f"cell_id,lon,lat\na,6.8,47.6\nb,{lon},47.6\n").area
        return make_grid(area, step_m=5000, margin_m=0)

    assert grid(20.0).n_x * 5000 == pytest.approx(990_000, abs=10_000)
    with pytest.raises(
        GridError, match=r"must lie within 500 km of its centre, got 50\d km: is a cell misplaced"
    ):
        grid(20.3)


@pytest.mark.parametrize(("step_m", "margin_m"), [(0, 0), (100_001, 0), (250, -1), (250, 100_001)])
def test_steps_and_margins_have_bounds(written: Callable[..., bytes], step_m: int, margin_m: int) -> None:
    with pytest.raises(GridError, match="must be from"):
        make_grid(area_of(written), step_m=step_m, margin_m=margin_m)


def test_squares_have_the_zone_of_their_centre(written: Callable[..., bytes]) -> None:
    area = area_of(written)
    grid = make_grid(area, step_m=700, margin_m=2000)
    zones = zone_of_grid_cells(area, grid)
    assert (zones.shape, zones.dtype) == (grid.shape, np.int16)
    lon, lat = projection_of(area).to_degrees(*grid.centres())
    with_cells = set(grid_codes_of_cells(area, grid).tolist())
    for code, (x, y) in enumerate(zip(lon, lat, strict=True)):
        if code in with_cells:
            continue
        holding = [place for place, shape in enumerate(shapes_of(area)) if shape.covers(shapely.Point(x, y))]
        assert zones.ravel()[code] == min(holding, default=NO_ZONE)
    assert {NO_ZONE, 0, 1} == set(zones.ravel().tolist())


def test_a_square_with_cells_has_the_zone_of_most_of_them(written: Callable[..., bytes]) -> None:
    zones = written(frame([WEST, EAST], zone=["West", "East"]), "zones.gpkg")
    cells = (
        "cell_id,lon,lat,zone\n"
        "a,6.8501,47.65,East\nb,6.8502,47.65,East\nc,6.8503,47.65,West\n"  # in West by their places
        "d,6.95,47.65,West\ne,6.9501,47.65,East\n"  # as many of each
        "f,6.99,47.9,\n"  # in no zone
    )
    area = parse('zones = "zones.gpkg"\n', {"zones.gpkg": zones}, cells=cells).area
    grid = make_grid(area, step_m=1000, margin_m=0)
    found = zone_of_grid_cells(area, grid).ravel()
    codes = grid_codes_of_cells(area, grid).tolist()
    assert len(set(codes)) == 3
    west, east = area.zones.index("West"), area.zones.index("East")
    assert [found[code] for code in codes] == [east, east, east, min(west, east), min(west, east), NO_ZONE]


def test_without_shapes_squares_with_cells_have_their_zone() -> None:
    area = parse("", {}, cells="cell_id,lon,lat,zone\na,6.8,47.6,North\nb,6.9,47.6,\n").area
    assert area.zones == ("North",)
    grid = make_grid(area, step_m=1000, margin_m=0)
    zones, (named, unnamed) = zone_of_grid_cells(area, grid).ravel(), grid_codes_of_cells(area, grid).tolist()
    assert (zones[named], zones[unnamed]) == (0, NO_ZONE)
    assert (zones != NO_ZONE).sum() == 1
    assert land_mask(area, grid).all()


@pytest.mark.parametrize("is_land", [False, True])
def test_squares_wholly_in_water_are_masked_but_never_those_with_cells(
    written: Callable[..., bytes], is_land: bool
) -> None:
    lake = written(frame([OVAL]), "lake.geojson")
    key = "land" if is_land else "water"
    # One cell in the middle of the lake, and one far from any shore.
    cells = CELLS + "island,6.9,47.65\nfar,6.81,47.61\n"
    zones = written(frame([WEST, EAST], zone=["West", "East"]), "zones.gpkg")
    extra = f'zones = "zones.gpkg"\n{key} = "lake.geojson"\n'
    area = parse(extra, {"zones.gpkg": zones, "lake.geojson": lake}, cells=cells).area
    grid = make_grid(area, step_m=500, margin_m=1000)
    shape = in_metres(np.array([of_geometry(getattr(area, key))], np.object_), projection_of(area))[0]
    held = set(grid_codes_of_cells(area, grid).tolist())
    n_masked, mask = 0, land_mask(area, grid).ravel()
    for code, (x, y) in enumerate(zip(*grid.centres(), strict=True)):
        square = box(x - 250, y - 250, x + 250, y + 250)
        is_open = square.intersects(shape) if is_land else not shape.covers(square)
        assert mask[code] == (is_open or code in held)
        n_masked += not mask[code]
    assert n_masked > 20
    on_held = np.array(sorted(held))
    covered = [
        not shape.covers(Point(x, y)) if is_land else shape.covers(Point(x, y))
        for x, y in zip(*cells_in_metres(area), strict=True)
    ]
    assert any(covered)
    assert mask[on_held].all()


def test_what_is_stored_of_a_grid_comes_back(written: Callable[..., bytes]) -> None:
    grid = Grid(x0_m=-300, y0_m=100, step_m=100, n_x=5, n_y=3)
    zones = np.arange(-1, 14, dtype=np.int16).reshape(3, 5)
    land = np.arange(15).reshape(3, 5) % 3 != 0
    fields = GridMap(grid=grid, zones=zones, land=land).to_fields()
    assert (len(fields["grid_zones"]), len(fields["grid_land"])) == (30, 2)
    again = GridMap.from_fields(
        grid=json.loads(json.dumps(fields["grid"])), zones=fields["grid_zones"], land=fields["grid_land"]
    )
    assert again.grid == grid
    assert (again.zones == zones).all()
    assert (again.land == land).all()
    assert again.land.dtype == np.bool_
