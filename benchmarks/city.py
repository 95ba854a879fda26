"""A city that was made up: where 25,000 subscribers are, a river without people, and zones. The same every time."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

import ldp
from ldp.geo.grid import Grid

N_SUBSCRIBERS: Final = 25_000
SIDE_M: Final = 20_000
N_SUBURBS: Final = 30
N_ZONES: Final = 24
# Share of the subscribers, middle and standard deviation in metres.
CENTRES: Final = ((0.35, (7_000.0, 8_000.0), 1_200.0), (0.20, (13_500.0, 13_000.0), 800.0))
SUBURBS_SHARE, SUBURB_M = 0.25, 300.0
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
    """

    name: str
    grid: Grid
    counts: NDArray[np.int64]
    land: NDArray[np.bool_]
    zones: NDArray[np.int16]
    names: tuple[str, ...]


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
        # A square is water only if all of it is: then nobody was moved by snapping into a place without land.
        land=(counts > 0) | ~_is_wet(grid),
        zones=nearest.astype(np.int16).reshape(grid.shape),
        names=tuple(f"zone {number + 1}" for number in range(N_ZONES)),
    )


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
    """How far north the middle of the river is."""
    return np.asarray(10_500 + 2_000 * np.sin(x / 3_000))


def _is_wet(grid: Grid) -> NDArray[np.bool_]:
    """Whether all of a square is in the river, by 5 x 5 points of it."""
    east, north = (each.reshape(grid.shape) for each in grid.centres())
    wet = np.ones(grid.shape, np.bool_)
    for shift_x in np.linspace(-0.5, 0.5, 5) * grid.step_m:
        for shift_y in np.linspace(-0.5, 0.5, 5) * grid.step_m:
            wet &= np.abs(north + shift_y - river_m(east + shift_x)) < RIVER_M / 2
    return wet
