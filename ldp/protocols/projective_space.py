"""Points of projective response and of permanent questions: coordinates, and sums over orthogonal ones.

A report supports the values to whose points its own is orthogonal. Projective response: points of values and
of codes are those of PG(dimension - 1, prime). Questions: value v has the point (digits of v, 1) of
PG(dimension, groups), and code c the point c + 1, which is (question, group). Point 0 is no code.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.protocols.numbers.threshold import ThresholdChannel
from ldp.protocols.numbers.wave import WaveChannel
from ldp.protocols.partial.regions import RegionChannel, regions_of
from ldp.protocols.projective import ProjectiveChannel, n_points
from ldp.protocols.repeated.question import QuestionChannel

Floats = NDArray[np.float64]
DesignChannel = ProjectiveChannel | QuestionChannel  # of which a code supports a set of values
BATCH = 2**18  # numbers that are transformed together: 2 MB
LISTED_MAX = 2**24  # codes of all values: 32 MB
LISTED_PER_VECTOR = 8  # codes that are added up while a transform takes one number


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


def space_of_codes(channel: DesignChannel) -> Space:
    """Return the space in which values and codes have points."""
    if isinstance(channel, QuestionChannel):
        return space_of(channel.groups, channel.dimension + 1)
    return space_of(channel.prime, channel.dimension)


@lru_cache(maxsize=64)
def points_of_values(channel: DesignChannel) -> NDArray[np.int64]:
    """Return the number of the point of each value; int64, shape (domain_size,)."""
    values = np.arange(channel.domain_size)
    if isinstance(channel, ProjectiveChannel):
        return values
    digits = digits_of(values, channel=channel)
    one = np.ones(channel.domain_size, np.int64)
    return np.asarray(space_of_codes(channel).point_of[(*digits, one)], np.int64)


def digits_of(values: NDArray[Any], *, channel: QuestionChannel) -> NDArray[np.int64]:
    """Digits of each value, the most significant first; int64, shape (dimension, n)."""
    powers = channel.groups ** np.arange(channel.dimension - 1, -1, -1)
    return np.asarray(values // powers[:, np.newaxis] % channel.groups, np.int64)


def is_orthogonal(value: int, *, channel: DesignChannel) -> NDArray[np.bool_]:
    """Return whether each code supports a value; shape (n_codes,)."""
    points = space_of_codes(channel).coordinates.astype(np.int64)
    own = points[points_of_values(channel)[value]]
    return np.asarray(points[-channel.n_codes :] @ own % _prime(channel) == 0)


def support_of(counts: NDArray[np.int64], *, channel: DesignChannel) -> NDArray[np.int64]:
    """Reports that support each value, from the reports by code.

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
    n_together = max(1, BATCH // space_of_codes(channel).point_of.size)
    for start in range(0, len(filled), n_together):
        cells = filled[start : start + n_together]
        out[:, cells] = np.rint(sums_of_values(by_cell[:, cells].T, channel=channel).T)
    return out.reshape(channel.domain_size, *counts.shape[1:])


def value_counts(counts: NDArray[np.int64], *, channel: object) -> NDArray[np.int64]:
    """Reports that support each value, or reach each cut of a number, from a tally of any channel.

    Of the square wave, those nearer to a level that reaches the cut than to one below it.
    """
    if isinstance(channel, ThresholdChannel):
        return counts[1::2]
    if isinstance(channel, WaveChannel):
        at_least = counts[::-1].cumsum(axis=0)[::-1]
        return at_least[channel.half_width + 1 : channel.half_width + channel.n_levels]
    if isinstance(channel, RegionChannel):
        support = np.empty((channel.domain_size, *counts.shape[1:]), np.int64)
        for region in regions_of(channel):
            support[region.values] = value_counts(counts[region.codes], channel=region.channel)
        return support
    return support_of(counts, channel=channel) if isinstance(channel, DesignChannel) else counts


def value_reports(
    counts: NDArray[np.int64], n_reports: NDArray[np.int64], *, channel: object
) -> NDArray[np.int64]:
    """Reports about each value: all of them, `n_reports`; of a number those with each cut."""
    return counts[::2] + counts[1::2] if isinstance(channel, ThresholdChannel) else n_reports


def sums_of_values(of_codes: NDArray[Any], *, channel: DesignChannel) -> Floats:
    """For each value, the sum of what the codes have that support it; shape (..., domain_size)."""
    if (codes := _listed(channel)) is not None:
        rows = of_codes.reshape(-1, channel.n_codes)
        sums = np.array([row[codes].sum(axis=1) for row in rows], np.float64)
        return sums.reshape(*of_codes.shape[:-1], channel.domain_size)
    space = space_of_codes(channel)
    of_points = np.zeros((*of_codes.shape[:-1], len(space.coordinates)))
    of_points[..., -channel.n_codes :] = of_codes
    return _over_orthogonal(of_points, space, _prime(channel))[..., points_of_values(channel)]


def sums_of_codes(of_values: NDArray[Any], *, channel: DesignChannel) -> Floats:
    """For each code, the sum of what the values have that it supports; shape (..., n_codes)."""
    if (codes := _listed(channel)) is not None:
        rows = of_values.reshape(-1, channel.domain_size)
        sums = np.array([_into_lists(row, codes, n_codes=channel.n_codes) for row in rows], np.float64)
        return sums.reshape(*of_values.shape[:-1], channel.n_codes)
    space = space_of_codes(channel)
    of_points = np.zeros((*of_values.shape[:-1], len(space.coordinates)))
    of_points[..., points_of_values(channel)] = of_values
    return _over_orthogonal(of_points, space, _prime(channel))[..., -channel.n_codes :]


def common_sums(of_values: Floats, *, each: float, channel: DesignChannel) -> Floats:
    """For each two values, the sum of what the codes have that support both.

    Parameters
    ----------
    of_values : ndarray of float64, shape (domain_size,); a code has the sum over the values that it supports
    each : float; what every code has in addition to that

    Returns
    -------
    ndarray of float64, shape (domain_size, domain_size)

    Notes
    -----
    How many codes support three values depends only on whether one is on the line through the others.
    """
    space, prime = space_of_codes(channel), _prime(channel)
    of_one, of_two, of_three = (n_points(prime, max(space.point_of.ndim - n, 0)) for n in (1, 2, 3))
    found = np.empty((channel.domain_size, channel.domain_size))
    for value, lines in enumerate(_lines_of_values(channel)):
        found[value] = of_values[value] + np.bincount(lines, weights=of_values)[lines]
    total = of_values.sum()
    found = of_two * each + of_three * total + (of_two - of_three) * found
    np.fill_diagonal(found, of_one * each + of_two * total + (of_one - of_two) * of_values)
    return np.asarray(found, np.float64)


@lru_cache(maxsize=4)
def _lines_of_values(channel: DesignChannel) -> NDArray[np.uint16]:
    """Number of the line through each two values, among those through the first; shape (domain_size,) * 2.

    A line through a point is a point of the space that remains when that point is taken as zero.
    """
    points = space_of_codes(channel).coordinates[points_of_values(channel)].astype(np.int64)
    prime = _prime(channel)
    line_of = space_of(prime, points.shape[1] - 1).point_of
    found = np.empty((len(points), len(points)), np.uint16)
    for value, point in enumerate(points):
        place = int(np.flatnonzero(point)[0])  # where it is 1
        others = (points - np.outer(points[:, place], point)) % prime
        found[value] = line_of[tuple(np.delete(others, place, axis=1).T)]
    return found


def _into_lists(of_values: NDArray[Any], codes: NDArray[np.uint16], *, n_codes: int) -> Floats:
    values = np.flatnonzero(of_values)
    weights = np.repeat(of_values[values], codes.shape[1])
    return np.asarray(np.bincount(codes[values].ravel(), weights=weights, minlength=n_codes), np.float64)


def _listed(channel: DesignChannel) -> NDArray[np.uint16] | None:
    """Codes of each value, where adding them up is faster than a transform: for large primes."""
    if not isinstance(channel, ProjectiveChannel):
        return None
    n_listed = channel.domain_size * channel.support_size
    if n_listed > min(LISTED_MAX, LISTED_PER_VECTOR * channel.prime**channel.dimension):
        return None
    return codes_of_values(channel)


@lru_cache(maxsize=4)
def codes_of_values(channel: ProjectiveChannel) -> NDArray[np.uint16]:
    """Codes that support each value; shape (domain_size, support_size).

    Vectors orthogonal to a point follow from all their coordinates but one, at which the point is not 0; so
    their points follow from those of the space with a dimension less.
    """
    space = space_of_codes(channel)
    prime, others = channel.prime, space_of(channel.prime, channel.dimension - 1).coordinates.astype(np.int64)
    inverses = np.array([pow(factor, -1, prime) for factor in range(1, prime)])
    found = np.empty((channel.domain_size, channel.support_size), np.uint16)
    for value, point in enumerate(space.coordinates[: channel.domain_size].astype(np.int64)):
        place = int(np.flatnonzero(point)[0])
        last = -(others @ np.delete(point, place)) * inverses[point[place] - 1] % prime
        vectors = (*others.T[:place], last, *others.T[place:])
        found[value] = space.point_of[vectors]
    return found


def _over_orthogonal(of_points: Floats, space: Space, prime: int) -> Floats:
    """For each point, the sum of what the points that are orthogonal to it have; as `of_points`.

    The mean over all factors c of exp(2 pi i c <x, y> / prime) is 1 where the product is 0, and else 0. With
    a point's number at all of its multiples, the sum over c is one value of the Fourier transform. Cost:
    that of a transform of as many numbers as the space has vectors, about 10 ms for 4,000 values.
    """
    with_zero = np.concatenate([of_points, np.zeros((*of_points.shape[:-1], 1))], axis=-1)
    transform = np.fft.rfftn(with_zero[..., space.point_of], axes=range(-space.point_of.ndim, 0))
    total = of_points.sum(axis=-1, keepdims=True)
    return np.asarray((total + transform[(..., *space.halved.T)].real) / prime, np.float64)


def _prime(channel: DesignChannel) -> int:
    return channel.groups if isinstance(channel, QuestionChannel) else channel.prime
