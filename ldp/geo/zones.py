"""Number of present subscribers in each zone, with intervals, from noisy places.

The deconvolved density is smoothed, so its sums by zone are biased. Weights of the reports put them right as
far as the reports tell, and tell how large the error is. Each zone is computed in its own window of the grid:
noise hardly ever comes from farther away.
"""

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.geo.deconvolution import MAX_STEPS, PLAIN_STEPS, Density, Land, deconvolve
from ldp.geo.grid import Grid
from ldp.geo.made_up import made_up_people
from ldp.geo.transition import Transition
from ldp.kernels.streams import KeyedStream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_ZONES: Final = 2_000
_REACH: Final = (
    8.0  # of a window around its zone, in mean lengths 1 / epsilon; 0.3% of the noise goes farther
)
_SIDE: Final = 6.0  # of a piece of a zone, in the same
_FEW_STEPS: Final = 10
_LEAST_SHARE: Final = 1e-3  # of the mean over cells: fewer expected reports in a cell count as this share
_MAX_ROUNDS: Final = 100
_PRECISION: Final = 1e-3  # of weights, relative
_REPLICATES: Final = 40
_SHARPER: Final = 3  # times the steps of the map: so sharp are the people of replicates
_REPLICATES_KEY: Final = b"people of a test"  # public: they are no one


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Variances of the true number in a cell around the density f there: linear x f + square x f^2.

    `piece` is that of the factor that all cells of a piece of a zone have in common.
    """

    linear: float
    square: float
    piece: float


_SMOOTH: Final = Prior(linear=1, square=0, piece=9)
_ROUGH: Final = Prior(linear=600, square=0, piece=0)
_AT_SITES: Final = Prior(linear=1, square=1, piece=0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ZoneWindow:
    """Contribution of a report to the count of one zone, in the part of the grid where it is not zero.

    Parameters
    ----------
    rows, columns : slice; of the grid
    weights : ndarray of float64, shape of the window; of a report in each cell
    noise : ndarray, same shape; variance that the noise of a subscriber in each cell adds
    missing : ndarray, same shape; square of what the mean weight there lacks of 1 in the zone, 0 outside
    factor : float; of the standard error that follows from these
    """

    rows: slice
    columns: slice
    weights: Floats
    noise: Floats
    missing: Floats
    factor: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ZoneWeights:
    """Weights of the reports for each zone. May serve all windows of a study with the same noise.

    Parameters
    ----------
    zones : ndarray of int16, shape (n_y, n_x); index of the zone, -1 for none
    windows : per zone ZoneWindow; None for a zone that holds the centre of no cell where people can be
    steps : int; of EM, for the density that the weights put right
    land : ndarray of bool, shape (n_y, n_x), or None; as in `deconvolve`
    prior : Prior; of the true numbers
    """

    zones: NDArray[np.int16]
    windows: tuple[ZoneWindow | None, ...]
    steps: int
    land: Land | None
    prior: Prior


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ZoneCounts:
    """Subscribers by zone; NaN for a zone that holds the centre of no cell, 0 where no one can be in any.

    Parameters
    ----------
    noisy : ndarray of int64, shape (n_zones,); reports in the zone. Exact as a count of reports; as one of
        subscribers it is biased: noise takes more out of a crowded zone than into it
    count : ndarray of float64, same shape; subscribers, in [0, n_reports]; they need not add up to n_reports
    std_error : same shape
    ci_low, ci_high : same shape; in [0, n_reports]
    """

    noisy: Ints
    count: Floats
    std_error: Floats
    ci_low: Floats
    ci_high: Floats


def zone_weights(
    counts: Ints,
    *,
    transition: Transition,
    steps: int,
    zones: NDArray[np.int16],
    n_zones: int,
    land: Land | None = None,
    at_sites: bool = False,
) -> ZoneWeights:
    """Weights of reports by which a deconvolved density is put right in each zone.

    Parameters
    ----------
    counts, transition, land : as in `deconvolve`; reports of these or like subscribers
    steps : int; of EM that predict held-out reports best
    zones : ndarray of int16, shape (n_y, n_x); index of the zone in [0, n_zones), -1 for none
    n_zones : int; in [1, 2000]
    at_sites : bool; whether `land` are the few places where people can be (antennas), each with a number that
        tells nothing of its neighbours. False: people are anywhere on land, and neighbours are alike

    Notes
    -----
    Weights w are those with the least expected square error, noise and bias together, if the true number in
    a cell is the density f, give or take what `Prior` says. At sites: variance f + f^2, so that w is all but
    unbiased where there are reports enough. Anywhere on land: variance f, and each piece of a zone (side
    6 / epsilon) off by a common factor of variance 9; f is taken with twice the steps, since what smooths a
    map well biases sums. Where EM wants more than its plain steps on land, people are at few places that
    no one has named: then variance 600 f. docs/maps.md has how well they do.
    With S the covariance of the numbers: (diag(A f) + A (S - diag f) A^T) w = A S 1_zone, by conjugate
    gradients; some 10 to 25 rounds of two transforms per zone.
    On land the error is not only noise: the density follows the people as far as it can, but not where they
    are denser than noise lets see. So the standard error is put right by 40 replicates: people drawn from a
    density of three times the steps, sharper than the map, and reports of them, all computed as here.
    """
    _check_zones(zones, shape=transition.grid.shape, n_zones=n_zones)
    is_smooth = not at_sites and steps <= PLAIN_STEPS
    prior = _AT_SITES if at_sites else _SMOOTH if is_smooth else _ROUGH
    taken = min(2 * steps, PLAIN_STEPS) if is_smooth else _FEW_STEPS
    fitted = deconvolve(counts, transition=transition, land=land, steps=taken)
    local = _LocalTransitions(transition)
    windows = tuple(
        _window(zone, fitted, local=local, zones=zones, land=land, prior=prior) for zone in range(n_zones)
    )
    found = ZoneWeights(zones=zones, windows=windows, steps=taken, land=land, prior=prior)
    if not is_smooth:
        return found
    pilot = deconvolve(counts, transition=transition, land=land, steps=min(_SHARPER * steps, MAX_STEPS))
    return _put_right(found, pilot, transition=transition)


def zone_counts(
    counts: Ints, *, transition: Transition, weights: ZoneWeights, level: float = 0.95
) -> ZoneCounts:
    """Estimate the subscribers in each zone, corrected for the noise.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_y, n_x); reports per cell; not modified
    transition : Transition; as the reports were made
    weights : ZoneWeights; for the same transition
    level : float; of the intervals, in (0, 1)

    Raises
    ------
    LdpError : shapes differ, or level is out of range

    Notes
    -----
    count = deconvolved density in the zone + sum of weights x (counts - expected). Variance, with the density
    for the subscribers: of the noise, E[w^2 | place] - E[w | place]^2 each (places are fixed, so it is less
    than that of a sample), and of where people are: in a cell f, at sites f + f^2, times the square of
    what the mean weight lacks there of 1 in the zone and of 0 outside. All times the zone's factor.
    """
    if counts.shape != weights.zones.shape:
        raise LdpError(f"counts must have the shape of zones, {weights.zones.shape}, got {counts.shape}")
    if not 0 < level < 1:
        raise LdpError(f"level must be in (0, 1), got {level}")
    raw, variance = _estimates(counts, transition=transition, weights=weights)
    total, n_zones = float(counts.sum()), len(weights.windows)
    noisy = np.bincount(weights.zones.ravel() + 1, weights=counts.ravel(), minlength=n_zones + 1)[1:]
    factors = np.array([1.0 if each is None else each.factor for each in weights.windows])
    std_error = np.sqrt(variance) * factors
    half = NormalDist().inv_cdf((1 + level) / 2) * std_error
    return ZoneCounts(
        noisy=noisy.astype(np.int64),
        count=np.clip(raw, 0, total),
        std_error=std_error,
        ci_low=np.clip(raw - half, 0, total),
        ci_high=np.clip(raw + half, 0, total),
    )


class _LocalTransitions:
    """Draw the same noise on windows of the grid, one for each size."""

    def __init__(self, transition: Transition) -> None:
        self.whole = transition
        self._made: dict[tuple[int, int], Transition] = {}
        self.reach = math.ceil(_REACH / (transition.epsilon_per_m * transition.grid.step_m))

    def of(self, shape: tuple[int, int]) -> Transition:
        if shape == self.whole.grid.shape:
            return self.whole
        if shape not in self._made:
            n_y, n_x = shape
            grid = Grid(x0_m=0, y0_m=0, step_m=self.whole.grid.step_m, n_x=n_x, n_y=n_y)
            self._made[shape] = Transition(grid, epsilon_per_m=self.whole.epsilon_per_m)
        return self._made[shape]

    def slices(self, cells: NDArray[np.bool_]) -> tuple[slice, slice]:
        """Rows and columns of these cells and of their surroundings."""
        return (
            self._slice(np.flatnonzero(cells.any(axis=1)), cells.shape[0]),
            self._slice(np.flatnonzero(cells.any(axis=0)), cells.shape[1]),
        )

    def _slice(self, places: Ints, n: int) -> slice:
        # Sizes in steps of 8, so that zones share transitions.
        size = min(n, max(2, -(-(int(places[-1] - places[0]) + 1 + 2 * self.reach) // 8) * 8))
        start = min(max(0, int(places[0] + places[-1] + 1 - size) // 2), n - size)
        return slice(start, start + size)


def _window(
    zone: int,
    fitted: Density,
    *,
    local: _LocalTransitions,
    zones: NDArray[np.int16],
    land: Land | None,
    prior: Prior,
) -> ZoneWindow | None:
    """Weights of one zone, and what follows from them; None where no one can be in it."""
    inside = zones == zone if land is None else (zones == zone) & land
    if not inside.any():
        return None
    rows, columns = local.slices(inside)
    here = zones[rows, columns] == zone
    transition = local.of(here.shape)
    weights = _solve(
        here.astype(np.float64),
        fitted.density[rows, columns],
        fitted.expected[rows, columns],
        transition=transition,
        pieces=_pieces(zones, transition=transition)[rows, columns],
        prior=prior,
    )
    mean, squares = transition.adjoint(np.stack([weights, weights**2]))
    return ZoneWindow(
        rows=rows,
        columns=columns,
        weights=weights,
        noise=np.maximum(squares - mean**2, 0),
        missing=(mean - here) ** 2,
    )


def _estimates(counts: Ints, *, transition: Transition, weights: ZoneWeights) -> tuple[Floats, Floats]:
    """Count and its variance, by zone."""
    fitted = deconvolve(counts, transition=transition, land=weights.land, steps=weights.steps)
    differences = counts - fitted.expected
    n_cells = np.bincount(weights.zones.ravel() + 1, minlength=len(weights.windows) + 1)[1:]
    found = np.stack([np.where(n_cells == 0, math.nan, 0.0)] * 2)
    for zone, window in enumerate(weights.windows):
        if window is None:
            continue
        at = window.rows, window.columns
        density = fitted.density[at]
        who = density + weights.prior.square * density**2
        found[:, zone] = (
            density[weights.zones[at] == zone].sum() + np.sum(window.weights * differences[at]),
            np.sum(window.noise * density + window.missing * who),
        )
    return found[0], found[1]


def _put_right(weights: ZoneWeights, pilot: Density, *, transition: Transition) -> ZoneWeights:
    """Return the same weights, with the factor of the standard error of each zone."""
    stream = KeyedStream(_REPLICATES_KEY)
    n_zones = len(weights.windows)
    errors, variances = np.empty((2, _REPLICATES, n_zones))
    for place in range(_REPLICATES):
        people, reports = made_up_people(pilot.density, transition=transition, stream=stream)
        truth = np.bincount(weights.zones.ravel() + 1, weights=people.ravel(), minlength=n_zones + 1)[1:]
        raw, variances[place] = _estimates(reports, transition=transition, weights=weights)
        errors[place] = raw - truth
    ratios = np.mean(errors**2, axis=0) / variances.mean(axis=0)
    # Of 40 squares the mean is itself off by a fifth: quantiles of Student's law, not of the normal one.
    z = NormalDist().inv_cdf(0.975)
    factors = np.sqrt(ratios) * (1 + (z**2 + 1) / (4 * _REPLICATES))
    windows = (
        None if window is None else replace(window, factor=float(factor))
        for window, factor in zip(weights.windows, factors, strict=True)
    )
    return replace(weights, windows=tuple(windows))


def _solve(
    inside: Floats,
    density: Floats,
    expected: Floats,
    *,
    transition: Transition,
    pieces: Ints,
    prior: Prior,
) -> Floats:
    """Weights of reports for a zone, given as a map of 0 and 1; conjugate gradients, same shape."""
    root = np.sqrt(np.maximum(expected, max(_LEAST_SHARE * expected.mean(), 1e-9)))
    of_piece = np.unique(pieces, return_inverse=True)[1].ravel()
    alone = prior.linear * density + prior.square * density**2

    def spread(of: Floats, variances: Floats) -> Floats:
        """Covariance of the true numbers with their sum with these weights."""
        sums = np.bincount(of_piece, weights=(density * of).ravel())[of_piece].reshape(of.shape)
        return np.asarray(variances * of + prior.piece * density * sums, np.float64)

    def system(scaled: Floats) -> Floats:
        biased = spread(transition.adjoint(scaled / root), alone - density)
        return np.asarray(scaled + transition.forward(biased) / root, np.float64)

    residual = transition.forward(spread(inside, alone)) / root
    solution, direction = np.zeros_like(residual), residual
    left = start = float(np.sum(residual**2))
    for _ in range(_MAX_ROUNDS):
        if left <= _PRECISION**2 * start:
            break
        ahead = system(direction)
        far = left / max(float(np.sum(direction * ahead)), 1e-300)
        solution, residual = solution + far * direction, residual - far * ahead
        before, left = left, float(np.sum(residual**2))
        direction = residual + left / max(before, 1e-300) * direction
    return np.asarray(solution / root, np.float64)


def _pieces(zones: NDArray[np.int16], *, transition: Transition) -> Ints:
    """Label of the piece of each cell: squares of the grid, cut by the zones."""
    rows, columns = np.indices(zones.shape)
    side = max(1, round(_SIDE / (transition.epsilon_per_m * transition.grid.step_m)))
    labels = ((zones.astype(np.int64) + 1) * zones.shape[0] + rows // side) * zones.shape[1] + columns // side
    return np.asarray(labels, np.int64)


def _check_zones(zones: NDArray[np.int16], *, shape: tuple[int, int], n_zones: int) -> None:
    if zones.shape != shape:
        raise LdpError(f"zones must have shape {shape}, got {zones.shape}")
    if not 1 <= n_zones <= MAX_ZONES:
        raise LdpError(f"n_zones must be in [1, {MAX_ZONES}], got {n_zones}; merge zones for the map")
    if zones.min() < -1 or zones.max() >= n_zones:
        raise LdpError(f"zones must be in [-1, {n_zones}), got {zones.min()}..{zones.max()}")
