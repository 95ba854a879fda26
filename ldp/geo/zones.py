"""How many of the present subscribers are in each zone, with intervals, from noisy places.

The deconvolved density is smoothed, so its sums by zone are biased. Weights of the reports put them right as
far as the reports tell, and tell how large the error is.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.geo.deconvolution import PLAIN_STEPS, Density, Land, deconvolve
from ldp.geo.transition import Transition

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_ZONES: Final = 200  # of 65,534 cells they take 200 MB
_SIDE: Final = 6.0  # of a piece of a zone, in mean lengths 1 / epsilon of the noise
_SMOOTH: Final = (1.0, 9.0)  # variance of a cell's number over its expectation; of a piece's factor
_ROUGH: Final = (600.0, 0.0)
_ROUGH_STEPS: Final = 10
_LEAST_SHARE: Final = 1e-3  # of the mean over cells: fewer expected reports in a cell count as so many
_TOGETHER: Final = 8  # zones that are solved at once
_MAX_ROUNDS: Final = 100
_PRECISION: Final = 1e-3  # of weights, relative


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ZoneWeights:
    """What a report adds to the count of each zone. May serve all windows of a study with the same noise.

    Parameters
    ----------
    zones : ndarray of int16, shape (n_y, n_x); index of the zone, -1 for none
    weights : ndarray of float64, shape (n_zones, n_y, n_x); of a report in each cell
    own : ndarray of float64, shape (n_zones, n_y, n_x); what a subscriber in each cell adds to the variance
    steps : int; of EM, for the density that the weights put right
    land : ndarray of bool, shape (n_y, n_x), or None; as in `deconvolve`
    """

    zones: NDArray[np.int16]
    weights: Floats
    own: Floats
    steps: int
    land: Land | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ZoneCounts:
    """Subscribers by zone; NaN for a zone that holds the centre of no cell.

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
) -> ZoneWeights:
    """Weights of reports by which a deconvolved density is put right in each zone.

    Parameters
    ----------
    counts, transition, land : as in `deconvolve`; reports of these or like subscribers
    steps : int; of EM that predict held-out reports best
    zones : ndarray of int16, shape (n_y, n_x); index of the zone in [0, n_zones), -1 for none
    n_zones : int; in [1, 200]

    Raises
    ------
    LdpError : a rule above is broken

    Notes
    -----
    Weights w are those with the least expected square error, noise and bias together, if the true number in
    a cell is the density f times a factor of its piece of the zone (side 6 / epsilon, mean 1, variance 9),
    with a variance f of its own; f is taken with twice the steps, since what smooths a map well biases sums.
    Where EM wants more than its plain steps, people stand at few places (masts) or are very many. A density
    with few steps is no guide then, and one with many puts people beside the places, but never fewer than
    none, which biases sums, too. So f is smooth (10 steps) and the variance in a cell is 600 f, without
    common factors, which makes w all but unbiased. docs/maps_accuracy.md has the figures of both.
    With S the covariance of the numbers: (diag(A f) + A (S - diag f) A^T) w = A S 1_zone, by conjugate
    gradients; some 10 to 25 rounds of two transforms per zone.
    """
    _check_zones(zones, shape=transition.grid.shape, n_zones=n_zones)
    rough = steps > PLAIN_STEPS
    steps = _ROUGH_STEPS if rough else min(2 * steps, PLAIN_STEPS)
    fitted = deconvolve(counts, transition=transition, land=land, steps=steps)
    weights = np.empty((n_zones, *zones.shape))
    own = np.empty_like(weights)
    for start in range(0, n_zones, _TOGETHER):
        some = np.arange(start, min(start + _TOGETHER, n_zones))
        inside = (zones == some[:, np.newaxis, np.newaxis]).astype(np.float64)
        weights[some] = _solve(inside, fitted, transition=transition, zones=zones, rough=rough)
        mean, squares = transition.adjoint(np.stack([weights[some], weights[some] ** 2]))
        own[some] = np.maximum(squares - mean**2, 0) + (mean - inside) ** 2
    return ZoneWeights(zones=zones, weights=weights, own=own, steps=steps, land=land)


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
    than that of a sample), and of who stands where: a Poisson number in each cell, times the square of what
    the mean weight lacks there of 1 in the zone and of 0 outside.
    """
    if counts.shape != weights.zones.shape:
        raise LdpError(f"counts must have the shape of zones, {weights.zones.shape}, got {counts.shape}")
    if not 0 < level < 1:
        raise LdpError(f"level must be in (0, 1), got {level}")
    fitted = deconvolve(counts, transition=transition, land=weights.land, steps=weights.steps)
    density = fitted.density
    total, n_zones = float(counts.sum()), weights.weights.shape[0]
    places = weights.zones.ravel() + 1  # the first sum is of cells without a zone
    inside, noisy, n_cells = (
        np.bincount(places, weights=each, minlength=n_zones + 1)[1:]
        for each in (density.ravel(), counts.ravel(), np.ones(counts.size))
    )
    raw = inside + np.tensordot(weights.weights, counts - fitted.expected, axes=2)
    std_error = np.sqrt(np.tensordot(weights.own, density, axes=2))
    half = NormalDist().inv_cdf((1 + level) / 2) * std_error
    count, error, low, high = (
        np.where(n_cells == 0, math.nan, each)
        for each in (
            np.clip(raw, 0, total),
            std_error,
            np.clip(raw - half, 0, total),
            np.clip(raw + half, 0, total),
        )
    )
    return ZoneCounts(noisy=noisy.astype(np.int64), count=count, std_error=error, ci_low=low, ci_high=high)


def _solve(
    inside: Floats, fitted: Density, *, transition: Transition, zones: NDArray[np.int16], rough: bool
) -> Floats:
    """Weights of reports for some zones, given as maps of 0 and 1; conjugate gradients, same shape."""
    of_cell, of_piece = _ROUGH if rough else _SMOOTH
    density = fitted.density
    pieces = _pieces(zones, transition=transition)
    root = np.sqrt(np.maximum(fitted.expected, max(_LEAST_SHARE * fitted.expected.mean(), 1e-9)))

    def spread(maps: Floats, variance: float) -> Floats:
        """Covariance of the true numbers with sums of them that have these weights."""
        sums = [np.bincount(pieces.ravel(), weights=(density * each).ravel())[pieces] for each in maps]
        return np.asarray(density * (variance * maps + of_piece * np.array(sums)), np.float64)

    def system(scaled: Floats) -> Floats:
        biased = spread(transition.adjoint(scaled / root), of_cell - 1)
        return np.asarray(scaled + transition.forward(biased) / root, np.float64)

    residual = transition.forward(spread(inside, of_cell)) / root
    solution, direction = np.zeros_like(residual), residual
    left = start = np.sum(residual**2, axis=(1, 2), keepdims=True)
    for _ in range(_MAX_ROUNDS):
        if np.all(left <= _PRECISION**2 * start):
            break
        ahead = system(direction)
        far = left / np.maximum(np.sum(direction * ahead, axis=(1, 2), keepdims=True), 1e-300)
        solution, residual = solution + far * direction, residual - far * ahead
        before, left = left, np.sum(residual**2, axis=(1, 2), keepdims=True)
        direction = residual + left / np.maximum(before, 1e-300) * direction
    return np.asarray(solution / root, np.float64)


def _pieces(zones: NDArray[np.int16], *, transition: Transition) -> Ints:
    """Index of the piece of each cell: squares of the grid, cut by the zones."""
    rows, columns = np.indices(zones.shape)
    side = max(1, round(_SIDE / (transition.epsilon_per_m * transition.grid.step_m)))
    labels = ((zones.astype(np.int64) + 1) * zones.shape[0] + rows // side) * zones.shape[1] + columns // side
    return np.unique(labels, return_inverse=True)[1].reshape(zones.shape)


def _check_zones(zones: NDArray[np.int16], *, shape: tuple[int, int], n_zones: int) -> None:
    if zones.shape != shape:
        raise LdpError(f"zones must have shape {shape}, got {zones.shape}")
    if not 1 <= n_zones <= MAX_ZONES:
        raise LdpError(f"n_zones must be in [1, {MAX_ZONES}], got {n_zones}; merge zones for the map")
    if zones.min() < -1 or zones.max() >= n_zones:
        raise LdpError(f"zones must be in [-1, {n_zones}), got {zones.min()}..{zones.max()}")
