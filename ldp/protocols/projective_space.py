"""Points of projective response: their coordinates, and sums over those that are orthogonal to a point."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.protocols.numbers.threshold import ThresholdChannel
from ldp.protocols.projective import ProjectiveChannel, n_points

Floats = NDArray[np.float64]
BATCH = 2**18  # numbers that are transformed together: 2 MB


class Space(NamedTuple):
    """Points of PG(dimension - 1, prime), numbered as ProjectiveChannel says.

    coordinates : uint8, shape (points, dimension)
    starts : int64, shape (dimension + 1,); number of the first point with 0, 1, ... free coordinates
    point_of : int32, shape (prime,) * dimension; number of the point of each vector, `points` for zero
    halved : int64, shape (points, dimension); place of each point, or of minus it, in half of a transform
    """

    coordinates: NDArray[np.uint8]
    starts: NDArray[np.int64]
    point_of: NDArray[np.int32]
    halved: NDArray[np.int64]


@lru_cache(maxsize=16)
def space_of(prime: int, dimension: int) -> Space:
    """Return the points of a space; kept, since every window of an indicator asks for the same."""
    starts = np.array([n_points(prime, size) for size in range(dimension + 1)], np.int64)
    coordinates = np.zeros((starts[-1], dimension), np.uint8)
    for n_free in range(dimension):
        points = coordinates[starts[n_free] : starts[n_free + 1]]
        points[:, dimension - 1 - n_free] = 1
        free = np.indices((prime,) * n_free).reshape(n_free, len(points))
        points[:, dimension - n_free :] = free.T
    point_of = np.full((prime,) * dimension, len(coordinates), np.int32)
    for factor in range(1, prime):
        multiples = coordinates.astype(np.int64) * factor % prime
        point_of[tuple(multiples.T)] = np.arange(len(coordinates))
    # Half of the last axis is left out: minus a vector has the same value, which is real.
    vectors = coordinates.astype(np.int64)
    halved = np.where(vectors[:, -1:] <= prime // 2, vectors, -vectors % prime)
    return Space(coordinates, starts, point_of, halved)


def is_orthogonal(value: int, *, channel: ProjectiveChannel) -> NDArray[np.bool_]:
    """Return whether each point supports a value; shape (n_codes,)."""
    points = space_of(channel.prime, channel.dimension).coordinates.astype(np.int64)
    return np.asarray(points @ points[value] % channel.prime == 0)


def support_of(counts: NDArray[np.int64], *, channel: ProjectiveChannel) -> NDArray[np.int64]:
    """Reports that support each value, from the reports by point.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_codes, ...), below 2**40; not modified

    Returns
    -------
    ndarray of int64, shape (domain_size, ...)

    Raises
    ------
    LdpError : counts has another shape
    """
    if not counts.shape or counts.shape[0] != channel.n_codes:
        raise LdpError(f"counts must have shape ({channel.n_codes}, ...), got {counts.shape}")
    by_cell = counts.reshape(channel.n_codes, -1)
    out = np.zeros((channel.domain_size, by_cell.shape[1]), np.int64)
    filled = np.flatnonzero(by_cell.any(axis=0))
    n_together = max(1, BATCH // channel.prime**channel.dimension)
    for start in range(0, len(filled), n_together):
        cells = filled[start : start + n_together]
        sums = sums_over_orthogonal(by_cell[:, cells].T, channel=channel)
        out[:, cells] = np.rint(sums[:, : channel.domain_size].T)
    return out.reshape(channel.domain_size, *counts.shape[1:])


def value_counts(counts: NDArray[np.int64], *, channel: object) -> NDArray[np.int64]:
    """Reports that support each value, or reach each cut of a number, from a tally of any channel."""
    if isinstance(channel, ThresholdChannel):
        return counts[1::2]
    return support_of(counts, channel=channel) if isinstance(channel, ProjectiveChannel) else counts


def value_reports(
    counts: NDArray[np.int64], n_reports: NDArray[np.int64], *, channel: object
) -> NDArray[np.int64]:
    """Reports about each value: all of them, `n_reports`; of a number those with each cut."""
    return counts[::2] + counts[1::2] if isinstance(channel, ThresholdChannel) else n_reports


def sums_over_orthogonal(of_points: NDArray[Any], *, channel: ProjectiveChannel) -> Floats:
    """For each point, the sum of what the points that are orthogonal to it have; float64, as `of_points`.

    Parameters
    ----------
    of_points : ndarray of numbers, shape (..., n_codes), not modified

    Notes
    -----
    The mean over all factors c of exp(2 pi i c <x, y> / prime) is 1 where the product is 0, and else 0. With
    a point's number at all of its multiples, the sum over c is one value of the Fourier transform. Cost:
    that of a transform of prime**dimension numbers, about 10 ms for 4,000 values.
    """
    space = space_of(channel.prime, channel.dimension)
    with_zero = np.zeros((*of_points.shape[:-1], channel.n_codes + 1))
    with_zero[..., :-1] = of_points
    transform = np.fft.rfftn(with_zero[..., space.point_of], axes=range(-channel.dimension, 0))
    total = of_points.sum(axis=-1, keepdims=True)
    return np.asarray((total + transform[(..., *space.halved.T)].real) / channel.prime, np.float64)
