"""How many of the present subscribers are in each zone, with intervals, from noisy places.

Subscribers stand where they stand; the only chance is that of the noise. So the variance of a sum of weights
over reports is the sum of each report's own variance, which is less than that of a sample.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.geo.transition import Transition

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_ZONES: Final = 400
_MAX_PIECES: Final = 600  # of all zones together: their matrix takes up to 160 MB and some seconds
_SIDE: Final = 5.0  # of a piece of a zone, in mean lengths 1 / epsilon of the noise
_SPREAD: Final = 1.0  # standard deviation of a piece's true over its deconvolved number, less 1
_LEAST_SHARE: Final = 1e-3  # of the mean over cells: fewer expected reports in a cell count as so many
_TOGETHER: Final = 8  # maps that are transformed at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ZoneCounts:
    """Subscribers by zone; NaN for a zone that holds the centre of no cell.

    Parameters
    ----------
    noisy : ndarray of int64, shape (n_zones,); reports in the zone. Exact as a count of reports; as one of
        subscribers it is biased: noise takes more out of a crowded zone than into it
    count : ndarray of float64, same shape; subscribers, in [0, n_reports]; they need not add up to n_reports
    std_error : same shape; of the noise
    ci_low, ci_high : same shape; in [0, n_reports]
    """

    noisy: Ints
    count: Floats
    std_error: Floats
    ci_low: Floats
    ci_high: Floats


def zone_counts(
    counts: Ints,
    *,
    transition: Transition,
    density: Floats,
    zones: NDArray[np.int16],
    n_zones: int,
    level: float = 0.95,
) -> ZoneCounts:
    """Estimate the subscribers in each zone, corrected for the noise.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_y, n_x); reports per cell; not modified
    transition : Transition; as the reports were made
    density : ndarray of float64, same shape; deconvolved from the same counts, sum as theirs
    zones : ndarray of int16, same shape; index of the zone in [0, n_zones), -1 for none
    n_zones : int; in [1, 400]
    level : float; of the intervals, in (0, 1)

    Raises
    ------
    LdpError : a rule above is broken

    Notes
    -----
    Zones are cut into pieces of side 5 / epsilon. In each, the deconvolved density is right up to a factor
    1 + N(0, 1); the factors are estimated by weighted least squares, which gives weights w per cell of a
    report. count = density in the zone + sum w (counts - expected). Larger pieces or smaller factors give
    narrower intervals that miss what the deconvolution smoothed away; docs/maps_accuracy.md has the figures.
    Variance: sum over subscribers x of E[w^2 | x] - E[w | x]^2, with the density for the subscribers.
    """
    _check(counts, density=density, zones=zones, n_zones=n_zones, level=level)
    total = float(counts.sum())
    pieces, zone_of_piece = _pieces(zones, transition=transition, n_zones=n_zones)
    expected = transition.forward(density)
    expected = np.maximum(expected, max(_LEAST_SHARE * total / counts.size, 1e-9))
    weights = _weights(pieces, zone_of_piece, transition, density=density, expected=expected, n_zones=n_zones)
    inside = np.bincount(zones.ravel() + 1, weights=density.ravel(), minlength=n_zones + 1)[1:]
    raw = inside + np.tensordot(weights, counts - expected, axes=2)
    std_error = np.sqrt(_variance(weights, transition=transition, density=density))
    half = NormalDist().inv_cdf((1 + level) / 2) * std_error
    unseen = np.bincount(zones.ravel() + 1, minlength=n_zones + 1)[1:] == 0
    noisy = np.bincount(zones.ravel() + 1, weights=counts.ravel(), minlength=n_zones + 1)[1:].astype(np.int64)
    return ZoneCounts(
        noisy=noisy,
        count=np.where(unseen, math.nan, np.clip(raw, 0, total)),
        std_error=np.where(unseen, math.nan, std_error),
        ci_low=np.where(unseen, math.nan, np.clip(raw - half, 0, total)),
        ci_high=np.where(unseen, math.nan, np.clip(raw + half, 0, total)),
    )


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


def _variance(weights: Floats, *, transition: Transition, density: Floats) -> Floats:
    """Variance of the sum of weights over reports, for subscribers who stay in place; shape (n_zones,)."""
    found = np.empty(weights.shape[0])
    for start in range(0, weights.shape[0], _TOGETHER):
        some = weights[start : start + _TOGETHER]
        own = transition.adjoint(some**2) - transition.adjoint(some) ** 2
        found[start : start + _TOGETHER] = np.tensordot(own, density, axes=2)
    return np.maximum(found, 0)


def _check(counts: Ints, *, density: Floats, zones: NDArray[np.int16], n_zones: int, level: float) -> None:
    if not counts.shape == density.shape == zones.shape:
        shapes = f"{counts.shape}, {density.shape} and {zones.shape}"
        raise LdpError(f"counts, density and zones must have one shape, got {shapes}")
    if not 1 <= n_zones <= MAX_ZONES:
        raise LdpError(f"n_zones must be in [1, {MAX_ZONES}], got {n_zones}; merge zones for the map")
    if zones.min() < -1 or zones.max() >= n_zones:
        raise LdpError(f"zones must be in [-1, {n_zones}), got {zones.min()}..{zones.max()}")
    if not 0 < level < 1:
        raise LdpError(f"level must be in (0, 1), got {level}")
