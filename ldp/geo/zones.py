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
from ldp.geo.deconvolution import Density, em_step
from ldp.geo.transition import Transition

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_ZONES: Final = 400
_MAX_PIECES: Final = 250  # of all zones together (or their number): more gain little and take long
_SIDE: Final = 8.0  # of a piece of a zone, in mean lengths 1 / epsilon of the noise
_SPREAD: Final = 2.0  # standard deviation of a piece's true over its deconvolved number, less 1
_LEAST_SHARE: Final = 1e-3  # of the mean over cells: fewer expected reports in a cell count as so many
_TOGETHER: Final = 8  # maps that are transformed at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ZoneWeights:
    """What a report adds to the count of each zone. May serve all windows of a study with the same noise.

    Parameters
    ----------
    zones : ndarray of int16, shape (n_y, n_x); index of the zone, -1 for none
    weights : ndarray of float64, shape (n_zones, n_y, n_x); of a report in each cell
    own : ndarray of float64, shape (n_zones, n_y, n_x); variance of the weight of a subscriber's report, and
        the square of what its mean lacks of 1 in the zone and of 0 outside; per cell of the subscriber
    """

    zones: NDArray[np.int16]
    weights: Floats
    own: Floats


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
    fitted: Density, *, transition: Transition, zones: NDArray[np.int16], n_zones: int
) -> ZoneWeights:
    """Weights of reports by which the deconvolved density is put right in each zone.

    Parameters
    ----------
    fitted : Density; deconvolved from reports of these or like subscribers
    transition : Transition; as the reports were made
    zones : ndarray of int16, shape (n_y, n_x); index of the zone in [0, n_zones), -1 for none
    n_zones : int; in [1, 400]

    Raises
    ------
    LdpError : a rule above is broken

    Notes
    -----
    Zones are cut into pieces of side 8 / epsilon. In each, the density is right up to a factor
    1 + N(0, 4); the factors are estimated by weighted least squares. Larger pieces or smaller factors give
    narrower intervals that miss what the deconvolution smoothed away: docs/maps_accuracy.md. Cost: one
    transform per piece, and a product of (n_pieces, n_cells) matrices.
    """
    _check_zones(zones, shape=transition.grid.shape, n_zones=n_zones)
    pieces, zone_of_piece = _pieces(zones, transition=transition, n_zones=n_zones)
    density, expected = fitted.density, fitted.expected
    least = max(_LEAST_SHARE * float(expected.mean()), 1e-9)
    weights = _weights(
        pieces,
        zone_of_piece,
        transition,
        density=density,
        expected=np.maximum(expected, least),
        n_zones=n_zones,
    )
    own = np.empty_like(weights)
    for zone, of_reports in enumerate(weights):
        mean, squares = transition.adjoint(np.stack([of_reports, of_reports**2]))
        own[zone] = np.maximum(squares - mean**2, 0) + (mean - (zones == zone)) ** 2
    return ZoneWeights(zones=zones, weights=weights, own=own)


def zone_counts(
    counts: Ints, *, transition: Transition, fitted: Density, weights: ZoneWeights, level: float = 0.95
) -> ZoneCounts:
    """Estimate the subscribers in each zone, corrected for the noise.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_y, n_x); reports per cell; not modified
    transition : Transition; as the reports were made
    fitted : Density; deconvolved from the same counts
    weights : ZoneWeights; for the same transition
    level : float; of the intervals, in (0, 1)

    Raises
    ------
    LdpError : shapes differ, or level is out of range

    Notes
    -----
    EM goes on for as many steps again, since what smooths a map well biases sums. Then count = density in the
    zone + sum of weights x (counts - expected). Variance, with the density for the subscribers: of the noise,
    E[w^2 | place] - E[w | place]^2 each (places are fixed, so it is less than that of a sample), and of who
    stands where: the density says how many are likely in a cell, not how many are, and where the mean weight
    is not exactly 1 inside and 0 outside, the difference is not put right (a Poisson number of people each).
    """
    if not counts.shape == fitted.density.shape == weights.zones.shape:
        shapes = f"{counts.shape}, {fitted.density.shape} and {weights.zones.shape}"
        raise LdpError(f"counts, density and zones must have one shape, got {shapes}")
    if not 0 < level < 1:
        raise LdpError(f"level must be in (0, 1), got {level}")
    density = fitted.density
    for _ in range(fitted.steps):
        density = em_step(density, counts, transition=transition)
    total, n_zones = float(counts.sum()), weights.weights.shape[0]
    places = weights.zones.ravel() + 1  # the first sum is of cells without a zone
    inside, noisy, n_cells = (
        np.bincount(places, weights=each, minlength=n_zones + 1)[1:]
        for each in (density.ravel(), counts.ravel(), np.ones(counts.size))
    )
    raw = inside + np.tensordot(weights.weights, counts - transition.forward(density), axes=2)
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


def _pieces(zones: NDArray[np.int16], *, transition: Transition, n_zones: int) -> tuple[Ints, Ints]:
    """Index of the piece of each cell, and the zone of each piece."""
    rows, columns = np.indices(zones.shape)
    side = max(1, round(_SIDE / (transition.epsilon_per_m * transition.grid.step_m)))
    while True:
        labels = ((zones.astype(np.int64) + 1) * zones.shape[0] + rows // side) * zones.shape[
            1
        ] + columns // side
        found, pieces = np.unique(labels, return_inverse=True)
        if found.size <= max(_MAX_PIECES, n_zones + 1) or side > max(zones.shape):
            return pieces.reshape(zones.shape), found // zones.size - 1
        side += max(1, side // 8)


def _weights(
    pieces: Ints,
    zone_of_piece: Ints,
    transition: Transition,
    *,
    density: Floats,
    expected: Floats,
    n_zones: int,
) -> Floats:
    """What a report in each cell adds to each zone; shape (n_zones, n_y, n_x)."""
    n = zone_of_piece.size
    root = np.sqrt(expected)
    # Reports that each piece is expected to send to each cell, in standard deviations of a Poisson count.
    scaled = np.empty((n, pieces.size), np.float32)
    for start in range(0, n, _TOGETHER):
        some = np.arange(start, min(start + _TOGETHER, n))
        maps = np.where(pieces == some[:, np.newaxis, np.newaxis], density, 0)
        scaled[some] = (transition.forward(maps) / root).reshape(some.size, -1)
    people = np.bincount(pieces.ravel(), weights=density.ravel(), minlength=n)
    information = (scaled @ scaled.T).astype(np.float64)
    # A piece of few has a Poisson number of them, on top of the factor.
    prior = _SPREAD**2 + 1 / np.maximum(people, 1e-9)
    information[np.diag_indices(n)] += 1 / prior
    wanted = np.where(zone_of_piece[:, np.newaxis] == np.arange(n_zones), people[:, np.newaxis], 0)
    factors = np.linalg.solve(information, wanted).astype(np.float32)
    return (factors.T @ scaled).astype(np.float64).reshape(n_zones, *pieces.shape) / root


def _check_zones(zones: NDArray[np.int16], *, shape: tuple[int, int], n_zones: int) -> None:
    if zones.shape != shape:
        raise LdpError(f"zones must have shape {shape}, got {zones.shape}")
    if not 1 <= n_zones <= MAX_ZONES:
        raise LdpError(f"n_zones must be in [1, {MAX_ZONES}], got {n_zones}; merge zones for the map")
    if zones.min() < -1 or zones.max() >= n_zones:
        raise LdpError(f"zones must be in [-1, {n_zones}), got {zones.min()}..{zones.max()}")
