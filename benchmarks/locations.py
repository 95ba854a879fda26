"""Planar Laplace noise: speed compared with other ways to draw it, and people moved to other zones.

    python -m benchmarks.locations

Speed: one thread, processor time, medians of rounds in which all take turns. Ours is the whole job: keyed
bits, noise, clamping, code of the square. The others only turn uniform numbers, which they get for nothing,
into shifts in metres. Zones: the places and zones of the demo, which are invented, with the real number of
people per sleeping area. docs/locations.md sums it up below "Measured".

Distances: table 10.2 of the thesis, through keyed noise and squares as `manage.py sanitise_table` draws them
(docs/sanitised_tables.md).
"""

import argparse
import csv
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import cos, exp, log, log1p, pi, radians, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import lambertw
from shapely import STRtree, points
from shapely.geometry import shape

import ldp
from benchmarks.reproduce.published import MEAN_KM, PLACE_LEVELS, STD_KM, PlaceLevel
from benchmarks.sanitise import aes_speed, processor_name
from ldp.geo.grid import Grid
from ldp.geo.location import LocationSpec
from ldp.keyed.noise.locations import LocationSanitiser

ROOT: Final = Path(__file__).parents[1]
DEMO: Final = ROOT / "mobility" / "demo"
KEY: Final = b"benchmark places"
EARTH_M: Final = 6_371_008.8  # mean radius
STEP_M: Final = 400  # the demo's area is 80 km wide: squares of 300 m would not fit
NOWHERE: Final = -1
# Level as the odds that it allows (e^level), and radius in metres: the five of table 10.1, and others.
THESIS_LEVELS: Final = tuple((level.odds, level.radius_m) for level in PLACE_LEVELS)
LEVELS: Final = (*THESIS_LEVELS, (4, 200), (4, 1000))
# All places lie east of the centre at (0, 0): the noise has no direction, and 127 km fit on squares of 300 m.
DISTANCES: Final = Grid(x0_m=-20_000, y0_m=-20_000, step_m=300, n_x=490, n_y=133)

Doubles = NDArray[np.float64]
Draw = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """The demo's area on a grid: cells of the network, people by sleeping area, zone of each square."""

    grid: Grid
    x_m: Doubles  # of each cell
    y_m: Doubles
    zones: NDArray[np.int64]  # of each cell
    people: NDArray[np.int64]  # by zone
    zone_of_square: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Shares of people after noise of some level."""

    mean_m: float
    other_zone: float
    outside: float
    other_cell: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyDistances:
    """Distances of noisy places from the centre, in km."""

    mean_km: float
    std_km: float


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    lines = [*speed_table(options.points, rounds=options.rounds), "", *zone_table(read_area())]
    lines += ["", *distance_table()]
    sys.stdout.write("\n".join(lines) + "\n")


def speed_table(n: int, *, rounds: int) -> Iterator[str]:
    """Million points per second of each way to draw them."""
    ways = make_ways(n)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, draw in ways.items():
            started = time.process_time()
            draw()
            seconds[name].append(time.process_time() - started)
    speeds = {name: n / statistics.median(times) / 1e6 for name, times in seconds.items()}
    ours = speeds[next(iter(ways))]
    yield "| one thread | million points/s | ours is so many times as fast |"
    yield "|---|---|---|"
    for name, speed in speeds.items():
        yield f"| {name} | {speed:.1f} | {ours / speed:.1f} |"
    yield ""
    yield (
        f"{processor_name()}, {os.cpu_count()} cores of a virtual machine, other work on it (load "
        f"{os.getloadavg()[0]:.1f}); {n:,} points, medians of {rounds} rounds. One AES block per point: AES "
        f"alone does {aes_speed(runs=3):.0f} million blocks/s."
    )


def make_ways(n: int) -> dict[str, Draw]:
    """Ours first; every way has run once."""
    grid = Grid(x0_m=0, y0_m=0, step_m=100, n_x=250, n_y=250)
    spec = LocationSpec(level=level(4), radius_m=Fraction(200), grid=grid)
    sanitiser, stream = LocationSanitiser(spec, ldp.KeyedPrf(KEY), 1), ldp.KeyedStream(KEY)
    pseudonyms = stream.words(n)
    places = stream.uniform_int(n, 0, grid.n_cells).astype(np.uint16)
    # In (0, 1]: half a step up, so that no logarithm is infinite.
    u1, u2, u3 = ((stream.words(n) >> np.uint64(11)) * 2.0**-53 + 2.0**-54 for _ in range(3))
    epsilon = float(spec.epsilon_per_m)
    ways = {
        "keyed, snapped and clamped (`LocationSanitiser.reports`)": lambda: sanitiser.reports(
            pseudonyms, places
        ),
        f"NumPy {np.__version__}, `-log(u1 * u2)`, points only": lambda: numpy_shifts(epsilon, u1, u2, u3),
        "SciPy, Lambert W, points only": lambda: lambert_shifts(epsilon, u1, u3),
    }
    for draw in ways.values():
        draw()
    return ways


def numpy_shifts(epsilon: float, u1: Doubles, u2: Doubles, u3: Doubles) -> tuple[Doubles, Doubles]:
    """Sum of two exponential variables as the radius."""
    radius, theta = -np.log(u1 * u2) / epsilon, 2 * pi * u3
    return radius * np.cos(theta), radius * np.sin(theta)


def lambert_shifts(epsilon: float, u1: Doubles, u3: Doubles) -> tuple[Doubles, Doubles]:
    """The inverse of the distribution function, as the paper has it."""
    radius = -(lambertw((u1 - 1) / np.e, k=-1).real + 1) / epsilon
    theta = 2 * pi * u3
    return radius * np.cos(theta), radius * np.sin(theta)


def zone_table(area: Area) -> Iterator[str]:
    """Whom the noise moves."""
    people = int(area.people.sum())
    yield "| level | radius | shift | another zone | no zone | another nearest cell |"
    yield "|---|---|---|---|---|---|"
    for odds, radius_m in LEVELS:
        moved = move(area, odds=odds, radius_m=radius_m)
        shares = f"{moved.other_zone:.1%} | {moved.outside:.1%} | {moved.other_cell:.1%}"
        yield f"| ln {odds} | {radius_m:,} m | {moved.mean_m:,.0f} m | {shares} |"
    yield ""
    yield (
        f"{people:,} people at {area.zones.size} cells in {area.people.size} zones, on squares of {STEP_M} m "
        f"({area.grid.n_x} by {area.grid.n_y}). The squares alone, without noise, move "
        f"{share_moved_by_squares(area):.1%} to another zone."
    )


def move(area: Area, *, odds: int, radius_m: int) -> Moved:
    """One report of everyone under a fixed key."""
    spec = LocationSpec(level=level(odds), radius_m=Fraction(radius_m), grid=area.grid)
    stream = ldp.KeyedStream(KEY)
    cells = deal_out(area, stream)
    places = area.grid.codes(area.x_m, area.y_m)[cells]
    noisy = LocationSanitiser(spec, ldp.KeyedPrf(KEY), 1).reports(stream.words(cells.size), places)
    zones = area.zone_of_square[noisy]
    x_m, y_m = area.grid.centres()
    distances = np.hypot(x_m[:, None] - area.x_m, y_m[:, None] - area.y_m)
    nearest = distances.argmin(axis=1)
    return Moved(
        mean_m=spec.law.mean_m,
        other_zone=float(((zones != area.zones[cells]) & (zones != NOWHERE)).mean()),
        outside=float((zones == NOWHERE).mean()),
        other_cell=float((nearest[noisy] != nearest[places]).mean()),
    )


def distance_table() -> Iterator[str]:
    """Distances after noise, and what the thesis prints of them."""
    yield "| level | radius | mean | thesis | deviation | thesis |"
    yield "|---|---|---|---|---|---|"
    for each in PLACE_LEVELS:
        found = noisy_distances(each)
        means, stds = ((found.mean_km, each.mean_km), (found.std_km, each.std_km))
        shown = " | ".join(f"{km:.2f} km" for km in (*means, *stds))
        yield f"| ln {each.odds} | {each.radius_m:,} m | {shown} |"


def noisy_distances(each: PlaceLevel, *, n: int = 200_000) -> NoisyDistances:
    """One report of each of `n` places, under a fixed key.

    True distances are the middles of `n` equally likely parts of the lognormal law with the printed mean and
    standard deviation: drawn ones would miss its deviation by more than the table's digits.
    """
    variance = log1p((STD_KM / MEAN_KM) ** 2)
    normal = NormalDist(log(MEAN_KM) - variance / 2, sqrt(variance))
    true_m = np.array([1000 * exp(normal.inv_cdf((i + 0.5) / n)) for i in range(n)])
    spec = LocationSpec(level=level(each.odds), radius_m=Fraction(each.radius_m), grid=DISTANCES)
    places = DISTANCES.codes(true_m, np.zeros(n))
    reports = LocationSanitiser(spec, ldp.KeyedPrf(KEY), 1).reports(ldp.KeyedStream(KEY).words(n), places)
    x_m, y_m = DISTANCES.centres()
    noisy_km = np.hypot(x_m[reports], y_m[reports]) / 1000
    return NoisyDistances(mean_km=float(noisy_km.mean()), std_km=float(noisy_km.std()))


def deal_out(area: Area, stream: ldp.KeyedStream) -> NDArray[np.intp]:
    """Cell of each person: one of the zone's, each equally likely."""
    per_zone = [np.flatnonzero(area.zones == zone) for zone in range(area.people.size)]
    people = zip(per_zone, area.people.tolist(), strict=True)
    return np.concatenate([cells[stream.uniform_int(n, 0, cells.size)] for cells, n in people])


def share_moved_by_squares(area: Area) -> float:
    """Share of people whose square has its middle in another zone than their cell."""
    wrong = area.zone_of_square[area.grid.codes(area.x_m, area.y_m)] != area.zones
    per_zone = [wrong[area.zones == zone].mean() for zone in range(area.people.size)]
    return float(np.average(per_zone, weights=area.people))


def level(odds: int) -> Fraction:
    """The logarithm of these odds, cut to six digits: not above it."""
    return Fraction(int(log(odds) * 10**6), 10**6)


def read_area() -> Area:
    """Cells and zones of the demo in metres (equirectangular), and people by sleeping area."""
    with (DEMO / "cells.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    features = json.loads((DEMO / "zones.geojson").read_text(encoding="utf-8"))["features"]
    facts = json.loads((DEMO / "fimu_facts.json").read_text(encoding="utf-8"))
    names = [feature["properties"]["zone"] for feature in features]
    shapes = [shape(feature["geometry"]) for feature in features]
    lon, lat = (np.array([float(row[name]) for row in rows]) for name in ("lon", "lat"))
    west, south, east, north = np.array([polygon.bounds for polygon in shapes]).T
    middle = radians((south.min() + north.max()) / 2)
    per_lon, per_lat = radians(EARTH_M) * cos(middle), radians(EARTH_M)
    n_x = int(per_lon * (east.max() - west.min()) // STEP_M) + 1
    n_y = int(per_lat * (north.max() - south.min()) // STEP_M) + 1
    grid = Grid(x0_m=0, y0_m=0, step_m=STEP_M, n_x=n_x, n_y=n_y)
    x_m, y_m = grid.centres()
    inside = STRtree(shapes).query(points(x_m / per_lon + west.min(), y_m / per_lat + south.min()), "within")
    zone_of_square = np.full(grid.n_cells, NOWHERE)
    zone_of_square[inside[0]] = inside[1]
    return Area(
        grid=grid,
        x_m=(lon - west.min()) * per_lon,
        y_m=(lat - south.min()) * per_lat,
        zones=np.array([names.index(row["zone"]) for row in rows]),
        people=np.array([facts["marginals"]["sleeping_area"][name] for name in names]),
        zone_of_square=zone_of_square,
    )


if __name__ == "__main__":
    main()
