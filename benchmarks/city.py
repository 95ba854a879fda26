"""Places that were made up, the same every time: a city with a river, and the demo's masts and zones."""

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry import shape

import ldp
from ldp.geo.grid import Grid

N_SUBSCRIBERS: Final = 25_000
SIDE_M: Final = 20_000
N_SUBURBS: Final = 30
N_ZONES: Final = 24
# Share of the subscribers, middle and standard deviation in metres.
CENTRES: Final = ((0.35, (7_000.0, 8_000.0), 1_200.0), (0.20, (13_500.0, 13_000.0), 800.0))
SUBURBS_SHARE, SUBURB_M = 0.25, 300.0
M_PER_DEGREE: Final = 111_320.0
DEMO: Final = Path(__file__).parent.parent / "mobility" / "demo"
RIVER_M: Final = 400.0  # wide

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """True counts on a grid, where people can be, and zones.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_y, n_x)
    land : ndarray of bool, same shape
    zones : ndarray of int16, same shape; -1 for none
    names : of the zones, by index
    at_antennas : whether `land` are the cells with an antenna; else people are anywhere on it
    """

    name: str
    grid: Grid
    counts: NDArray[np.int64]
    land: NDArray[np.bool_]
    zones: NDArray[np.int16]
    names: tuple[str, ...]
    at_antennas: bool = False


def city(step_m: int = 100) -> Place:
    """Two centres, suburbs, and the rest anywhere; on a grid of 20 x 20 km."""
    stream = ldp.KeyedStream(b"a made-up  city.")
    grid = Grid(x0_m=0, y0_m=0, step_m=step_m, n_x=SIDE_M // step_m, n_y=SIDE_M // step_m)
    x, y = _people(stream)
    counts = np.bincount(grid.codes(x, y), minlength=grid.n_cells).reshape(grid.shape)
    seeds = uniform(stream, 2, N_ZONES) * SIDE_M
    seeds[:, :8] = 5_000 + (seeds[:, :8] / SIDE_M) * 10_000  # smaller zones in the middle
    east, north = grid.centres()
    nearest = np.hypot(east[:, np.newaxis] - seeds[0], north[:, np.newaxis] - seeds[1]).argmin(axis=1)
    return Place(
        name="city",
        grid=grid,
        counts=counts,
        # A square is water only if all of it is: then no one was moved by snapping into a place without land.
        land=(counts > 0) | ~_is_wet(grid),
        zones=nearest.astype(np.int16).reshape(grid.shape),
        names=tuple(f"zone {number + 1}" for number in range(N_ZONES)),
    )


def demo(step_m: int = 500) -> Place:
    """The demo's masts, each with about as many of 25,000 subscribers, and its zones (the first that fits).

    Metres by an equirectangular projection: the demo is some 100 km wide, and this is about noise, not maps.
    """
    with (DEMO / "cells.csv").open(newline="") as file:
        masts = [(float(row["lon"]), float(row["lat"])) for row in csv.DictReader(file)]
    features = json.loads((DEMO / "zones.geojson").read_text())["features"]
    shapes = [shape(feature["geometry"]) for feature in features]
    west, south, east, north = shapely.total_bounds(shapes)
    scale = M_PER_DEGREE * np.array([np.cos(np.radians((south + north) / 2)), 1.0])
    x0_m, y0_m = (int(each // step_m - 5) * step_m for each in np.array([west, south]) * scale)
    n_x, n_y = (np.array([east, north]) * scale - [x0_m, y0_m]) // step_m + 6
    grid = Grid(x0_m=x0_m, y0_m=y0_m, step_m=step_m, n_x=int(n_x), n_y=int(n_y))
    x, y = grid.centres()
    zones = np.full(grid.n_cells, -1, np.int16)
    for index in reversed(range(len(shapes))):
        zones[shapely.contains_xy(shapes[index], x / scale[0], y / scale[1])] = index
    codes = grid.codes(*(np.array(masts) * scale).T)
    of_mast = ldp.KeyedStream(b"masts of a demo.").uniform_int(N_SUBSCRIBERS, 0, len(masts))
    return Place(
        name="demo",
        grid=grid,
        counts=np.bincount(codes[of_mast], minlength=grid.n_cells).reshape(grid.shape),
        land=_with_antenna(codes, grid),
        at_antennas=True,
        zones=zones.reshape(grid.shape),
        names=tuple(feature["properties"]["zone"] for feature in features),
    )


def coast(step_m: int = 200) -> Place:
    """Seven towns along a shore, each densest in its middle, and strips of land as zones; 24 x 16 km.

    Nothing was chosen by it: it tells whether what was set on the other places holds elsewhere.
    """
    stream = ldp.KeyedStream(b"a made-up coast.")
    grid = Grid(x0_m=0, y0_m=0, step_m=step_m, n_x=24_000 // step_m, n_y=16_000 // step_m)
    n, n_towns = 4 * N_SUBSCRIBERS, 7
    middles = np.stack([(np.arange(n_towns) + uniform(stream, n_towns)) / n_towns, np.full(n_towns, 0.4)])
    middles[1] += 0.25 * uniform(stream, n_towns)
    town = np.searchsorted(np.cumsum(np.arange(n_towns, 0, -1) / 28), uniform(stream, n))
    distance = -500 * (1 + 0.3 * town) * (np.log(uniform(stream, n)) + np.log(uniform(stream, n)))
    angle = 2 * np.pi * uniform(stream, n)
    x = middles[0][town] * 24_000 + distance * np.cos(angle)
    y = middles[1][town] * 16_000 + distance * np.sin(angle)
    on_land = (x >= 0) & (x < 24_000) & (y < 16_000) & (y > _shore_m(x))
    kept = np.flatnonzero(on_land)[:N_SUBSCRIBERS]
    counts = np.bincount(grid.codes(x[kept], y[kept]), minlength=grid.n_cells).reshape(grid.shape)
    east, north = (each.reshape(grid.shape) for each in grid.centres())
    zones = (east // 3_000).astype(np.int16) * 2 + (north > 8_500)
    return Place(
        name="coast",
        grid=grid,
        counts=counts,
        land=(counts > 0) | (north > _shore_m(east) - step_m),
        zones=zones,
        names=tuple(f"strip {number + 1}" for number in range(16)),
    )


def valley(step_m: int = 200) -> Place:
    """150 masts along two roads, a few with most of the people, and places between them nowhere; 16 x 12 km.

    Nothing was chosen by it, as by `coast`.
    """
    stream = ldp.KeyedStream(b"a made-up valley")
    grid = Grid(x0_m=0, y0_m=0, step_m=step_m, n_x=16_000 // step_m, n_y=12_000 // step_m)
    along, beside = uniform(stream, 150) * 15_000 + 500, (uniform(stream, 150) - 0.5) * 3_000
    is_first = np.arange(150) < 100
    x = np.where(is_first, along, 8_000 + beside)
    y = np.where(is_first, 5_000 + 0.1 * along + beside, along * 0.75)
    codes = grid.codes(x, y)
    load = np.exp(np.sqrt(-2 * np.log(uniform(stream, 150))) * np.cos(2 * np.pi * uniform(stream, 150)))
    of_mast = np.searchsorted(load.cumsum() / load.sum(), uniform(stream, N_SUBSCRIBERS))
    east, north = (each.reshape(grid.shape) for each in grid.centres())
    return Place(
        name="valley",
        grid=grid,
        counts=np.bincount(codes[of_mast], minlength=grid.n_cells).reshape(grid.shape),
        land=_with_antenna(codes, grid),
        at_antennas=True,
        zones=(east // 4_000).astype(np.int16) + 4 * (north // 4_000).astype(np.int16),
        names=tuple(f"part {number + 1}" for number in range(12)),
    )


def _with_antenna(codes: NDArray[np.uint16], grid: Grid) -> NDArray[np.bool_]:
    return np.bincount(codes, minlength=grid.n_cells).reshape(grid.shape) > 0


def _shore_m(x: Floats) -> Floats:
    """Return the northern edge of the sea at x."""
    return np.asarray(5_500 + 800 * np.sin(x / 2_500))


def uniform(stream: ldp.KeyedStream, *shape: int) -> Floats:
    """Numbers in (0, 1)."""
    return (stream.words(int(np.prod(shape))).reshape(shape) + 0.5) / 2.0**64


def _people(stream: ldp.KeyedStream) -> tuple[Floats, Floats]:
    """Draw points until enough of them are in the rectangle and not in the river."""
    n = 2 * N_SUBSCRIBERS
    pick = uniform(stream, n)
    angle = 2 * np.pi * uniform(stream, n)
    radius = np.sqrt(-2 * np.log(uniform(stream, n)))
    x, y = uniform(stream, 2, n) * SIDE_M
    suburbs = (0.05 + 0.9 * uniform(stream, 2, N_SUBURBS)) * SIDE_M
    spots = [*CENTRES]
    spots += [(SUBURBS_SHARE / N_SUBURBS, (east, north), SUBURB_M) for east, north in suburbs.T]
    start = 0.0
    for share, (east, north), sd_m in spots:
        here = (pick >= start) & (pick < start + share)
        x[here] = (east + sd_m * radius * np.cos(angle))[here]
        y[here] = (north + sd_m * radius * np.sin(angle))[here]
        start += share
    inside = (x >= 0) & (x < SIDE_M) & (y >= 0) & (y < SIDE_M) & (np.abs(y - river_m(x)) > RIVER_M / 2)
    kept = np.flatnonzero(inside)[:N_SUBSCRIBERS]
    return x[kept], y[kept]


def river_m(x: Floats) -> Floats:
    """Return the y coordinate of the river's middle at x."""
    return np.asarray(10_500 + 2_000 * np.sin(x / 3_000))


def _is_wet(grid: Grid) -> NDArray[np.bool_]:
    """Return whether all of a square is in the river, by 5 x 5 points of it."""
    east, north = (each.reshape(grid.shape) for each in grid.centres())
    wet = np.ones(grid.shape, np.bool_)
    for shift_x in np.linspace(-0.5, 0.5, 5) * grid.step_m:
        for shift_y in np.linspace(-0.5, 0.5, 5) * grid.step_m:
            wet &= np.abs(north + shift_y - river_m(east + shift_x)) < RIVER_M / 2
    return wet
