"""Maps of noisy places against the truth: as reported, deconvolved, and by zone. Both places were made up.

Prints tables, which docs/maps.md sums up below "Measured"; exits with 1 if a goal named there is missed.

    python -m benchmarks.maps --draws 200
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

import ldp
from benchmarks.city import Place, city, coast, demo, valley
from ldp.geo.deconvolution import bootstrap, deconvolve, held_out_steps
from ldp.geo.goodness import goodness
from ldp.geo.made_up import made_up_reports
from ldp.geo.transition import Transition
from ldp.geo.zones import ZoneWeights, zone_counts, zone_weights

LEVEL: Final = math.log(4)
RADII_M: Final = (200, 400, 1000)
EMD_STEP_M: Final = 500
MAX_EMD_CELLS: Final = 2_500  # a larger programme takes minutes
N_DIRECTIONS: Final = 90
# With this few people crossing a border, an interval cannot fail one time in twenty.
WITHIN_A_PERSON: Final = 2.0
CHECKED: Final = ("city", "demo")  # the others tell whether it holds elsewhere
N_MAPS: Final = 3  # draws of which maps are compared
Z: Final = 1.959964

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRow:
    """Mean errors over draws; pairs are (noisy, deconvolved)."""

    place: str
    step_m: int
    radius_m: int
    variation: tuple[float, float]
    moved_m: tuple[float, float]
    sliced_m: tuple[float, float]

    @property
    def distance_m(self) -> tuple[float, float]:
        """Earth mover's distance, sliced where the grid is too large for the exact one."""
        return self.sliced_m if math.isnan(self.moved_m[0]) else self.moved_m

    @property
    def gain(self) -> float:
        """Return the ratio of errors of the noisy and the deconvolved map."""
        noisy, found = self.distance_m
        return noisy / found


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRow:
    """Coverage of 95% intervals over draws, and errors of noisy counts and estimates."""

    place: str
    radius_m: int
    coverage: float
    doubt: float
    worst: float
    half_width: float
    error: float
    noisy_error: float

    @property
    def mark(self) -> str:
        """Return whether it is within two points of 95%, on average over zones, or cannot be."""
        if abs(self.coverage - 0.95) <= 0.02:
            return ""
        if self.coverage > 0.95 and self.half_width < WITHIN_A_PERSON:
            return " (within two people)"
        return " (goal missed)"


def main() -> int:
    """Run everything and print it; 0 if the goals are reached."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200, help="of the noise, for the intervals of zones")
    parser.add_argument("--radii", type=int, nargs="+", default=RADII_M)
    options = parser.parse_args()
    maps, zones = [], []
    for place in (city(100), demo(500)):
        for radius_m in options.radii:
            maps.append(map_row(place, radius_m))
            sys.stderr.write(f"{maps[-1]}\n")
    for place in (city(100), demo(500), coast(), valley()):
        for radius_m in options.radii:
            zones.append(zone_row(place, radius_m, n_draws=options.draws))
            sys.stderr.write(f"{zones[-1]}\n")
    sys.stdout.write(f"{map_table(maps)}\n{zone_table(zones, n_draws=options.draws)}\n{speed(city(100))}")
    gains = [row.gain for row in maps if (row.place, row.radius_m) == ("city", 400)]
    missed = [row for row in zones if row.place in CHECKED and "missed" in row.mark]
    return 0 if all(gain >= 2 for gain in gains) and not missed else 1


# --- maps ---------------------------------------------------------------------------------------


def draws(place: Place, transition: Transition, n: int, *, key: bytes) -> Iterator[Ints]:
    """Yield reports of the true places, each time with new noise."""
    stream = ldp.KeyedStream(key)
    for _ in range(n):
        yield made_up_reports(place.counts.astype(np.float64), transition=transition, stream=stream)


def map_row(place: Place, radius_m: int) -> MapRow:
    """Errors of the noisy and of the deconvolved map."""
    transition = Transition(place.grid, epsilon_per_m=LEVEL / radius_m)
    found = []
    for counts in draws(place, transition, N_MAPS, key=b"noise of maps..."):
        fitted = deconvolve(counts, transition=transition, land=place.land)
        found.append([errors(each - place.counts, place) for each in (counts, fitted.density)])
    variation, moved, sliced = np.mean(found, axis=0).T
    return MapRow(
        place=place.name,
        step_m=place.grid.step_m,
        radius_m=radius_m,
        variation=tuple(variation),
        moved_m=tuple(moved),
        sliced_m=tuple(sliced),
    )


def errors(difference: Floats, place: Place) -> tuple[float, float, float]:
    """Total variation and earth mover's distance on 500 m, and the sliced distance on the grid."""
    shares = difference / place.counts.sum()
    joined = join(shares, EMD_STEP_M // place.grid.step_m)
    return (
        float(np.abs(joined).sum() / 2),
        earth_movers_m(joined, step_m=EMD_STEP_M) if joined.size <= MAX_EMD_CELLS else math.nan,
        sliced_m(shares, step_m=place.grid.step_m),
    )


def join(values: Floats, n: int) -> Floats:
    """Sums of blocks of n x n cells."""
    n_y, n_x = values.shape
    padded = np.pad(values, ((0, -n_y % n), (0, -n_x % n)))
    return np.asarray(padded.reshape(padded.shape[0] // n, n, padded.shape[1] // n, n).sum(axis=(1, 3)))


def earth_movers_m(difference: Floats, *, step_m: int) -> float:
    """Earth mover's distance in metres of a difference of shares, along ways between cells.

    Mass goes from cell to cell in 16 directions (as king and knight of chess), so a way is at most 2.8%
    longer than the straight line. Linear programming, exact for such ways.
    """
    n_y, n_x = difference.shape
    index = np.arange(difference.size).reshape(n_y, n_x)
    sources, targets, lengths = [], [], []
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1), (1, 2), (2, 1), (1, -2), (2, -1)):
        start = index[: n_y - down, max(0, -right) : n_x - max(0, right)].ravel()
        end = index[down:, max(0, right) : n_x + min(0, right)].ravel()
        sources += [start, end]
        targets += [end, start]
        lengths += [np.full(2 * start.size, step_m * math.hypot(down, right))]
    out, into = np.concatenate(sources), np.concatenate(targets)
    ways = np.arange(out.size)
    signs = np.repeat([1.0, -1.0], out.size)
    balance = csr_array(
        (signs, (np.concatenate([out, into]), np.concatenate([ways, ways]))), shape=(index.size, out.size)
    )
    # The shares of both maps sum to 1 but for rounding, which no flow could mend.
    even = difference.ravel() - difference.mean()
    solved = linprog(np.concatenate(lengths), A_eq=balance, b_eq=even, method="highs-ds")
    if solved.status != 0:
        raise RuntimeError(solved.message)
    return float(solved.fun)


def sliced_m(difference: Floats, *, step_m: int) -> float:
    """Mean earth mover's distance of projections on 90 directions, times pi / 2: exact if all moves alike."""
    y, x = (each.ravel() for each in np.indices(difference.shape))
    found = []
    for angle in (np.arange(N_DIRECTIONS) + 0.5) * np.pi / N_DIRECTIONS:
        along = x * np.cos(angle) + y * np.sin(angle)
        order = np.argsort(along)
        found.append(np.sum(np.abs(np.cumsum(difference.ravel()[order])[:-1]) * np.diff(along[order])))
    return float(np.mean(found) * step_m * np.pi / 2)


# --- zones --------------------------------------------------------------------------------------


def zone_row(place: Place, radius_m: int, *, n_draws: int) -> ZoneRow:
    """Coverage of the intervals of all zones. Positions are fixed, the noise is new in every draw.

    Number of steps and weights are those of the first draw, as for windows of one study: the intervals know
    what weights they use.
    """
    transition = Transition(place.grid, epsilon_per_m=LEVEL / radius_m)
    n_zones = len(place.names)
    truth = np.array([place.counts[place.zones == zone].sum() for zone in range(n_zones)])
    # Where no one can be there is nothing to estimate.
    asked = [zone for zone in range(n_zones) if place.land[place.zones == zone].any()]
    weights, found = None, []
    for counts in draws(place, transition, n_draws, key=b"noise of zones.."):
        if weights is None:
            weights = weights_of(place, counts, transition)
        zones = zone_counts(counts, transition=transition, weights=weights)
        held = (zones.ci_low <= truth) & (truth <= zones.ci_high)
        each = np.array([held, zones.std_error, zones.count - truth, zones.noisy - truth], np.float64)
        found.append(each[:, asked])
    held, std_error, error, noisy = np.array(found).transpose(1, 0, 2)
    return ZoneRow(
        place=place.name,
        radius_m=radius_m,
        coverage=float(held.mean()),
        doubt=float(held.mean(axis=1).std(ddof=1) / math.sqrt(n_draws)),
        worst=float(held.mean(axis=0).min()),
        half_width=float(Z * std_error.mean()),
        error=float(np.sqrt(np.mean(error**2))),
        noisy_error=float(np.sqrt(np.mean(noisy**2))),
    )


def weights_of(place: Place, counts: Ints, transition: Transition) -> ZoneWeights:
    """Weights for the zones of a place."""
    return zone_weights(
        counts,
        transition=transition,
        steps=held_out_steps(counts, transition=transition, land=place.land),
        zones=place.zones,
        n_zones=len(place.names),
        land=place.land,
        at_sites=place.at_antennas,
    )


# --- the document -------------------------------------------------------------------------------


def map_table(rows: Sequence[MapRow]) -> str:
    """Markdown; each pair is noisy -> deconvolved."""
    lines = [
        "Errors of maps, noisy -> deconvolved; distances in metres per subscriber.\n",
        "| place, grid | radius | total variation | distance | gain |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        (tv, best_tv), (far, best_far) = row.variation, row.distance_m
        lines.append(
            f"| {row.place}, {row.step_m} m | {row.radius_m} m | {tv:.3f} -> {best_tv:.3f} | "
            f"{far:.0f} -> {best_far:.0f} | x {row.gain:.2f} |"
        )
    return "\n".join(lines) + "\n"


def zone_table(rows: Sequence[ZoneRow], *, n_draws: int) -> str:
    """Markdown."""
    lines = [
        f"Counts by zone over {n_draws} draws of the noise. Errors are root mean squares, in subscribers.\n",
        "| place | radius | 95 % intervals hold the truth | worst zone | half width | error | error, noisy |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        held = f"{100 * row.coverage:.1f} % ± {100 * row.doubt:.1f}{row.mark}"
        lines.append(
            f"| {row.place} | {row.radius_m} m | {held} | "
            f"{100 * row.worst:.0f} % | {row.half_width:.0f} | {row.error:.0f} | "
            f"{row.noisy_error:.0f} |"
        )
    return "\n".join(lines) + "\n"


def speed(place: Place) -> str:
    """One line: seconds on one thread, radius 400 m."""
    transition = Transition(place.grid, epsilon_per_m=LEVEL / 400)
    counts = next(draws(place, transition, 1, key=b"noise of maps..."))
    times = [time.perf_counter()]
    fitted = deconvolve(counts, transition=transition, land=place.land)
    times.append(time.perf_counter())
    bootstrap(counts, transition=transition, steps=fitted.steps, land=place.land)
    times.append(time.perf_counter())
    fit = goodness(counts, transition=transition, fitted=fitted, land=place.land)
    times.append(time.perf_counter())
    zone_counts(counts, transition=transition, weights=weights_of(place, counts, transition))
    times.append(time.perf_counter())
    density, spread, fitting, zones = np.diff(times)
    return (
        f"Seconds, 200 x 200 cells, {counts.sum():,} reports, radius 400 m: deconvolution {density:.1f}, "
        f"50 replicates {spread:.1f}, goodness {fitting:.1f}, zones {zones:.1f}. Chi-square per block "
        f"{fit.chi_square:.2f}, expected {fit.low:.2f} to {fit.high:.2f} ({fit.n_blocks} blocks).\n"
    )


if __name__ == "__main__":
    sys.exit(main())
