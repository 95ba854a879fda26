"""Inner loops of projective response: points as numbers and as coordinates, modulo a prime below 256.

Callers check their arguments, as in `codes`. `starts[m]` is the number of the first point with m free
coordinates: those after the first one that is not 0, which is 1.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.kernels.codes import remainder

_SHIFT = np.uint64(32)


@njit(cache=True, nogil=True, inline="always")
def _modulo(number: np.uint64, prime: np.uint64, factor: np.uint64) -> np.uint64:
    """Return a number below 2**24 modulo the prime; factor : 2**32 // prime + 1."""
    # Exact: the factor is at most 1 too large, and a number times that is below 2**32 / prime.
    return number - (number * factor >> _SHIFT) * prime


@njit(cache=True, nogil=True)
def projective_points(
    values: NDArray[np.int32],
    words: NDArray[np.uint64],
    limits: NDArray[np.uint64],
    coordinates: NDArray[np.uint8],
    inverses: NDArray[np.uint64],
    starts: NDArray[np.int64],
    out: NDArray[np.uint16],
) -> int:
    """Uniform point that is orthogonal to the value's if the first word is below the threshold, else is not.

    limits : threshold; the largest word that draws without bias from both kinds; number of points of each
    kind and its reciprocal; prime, and its factor of `_modulo`. Returns the number of rows to draw again,
    which depends on no value; they become NO_ANSWER.
    """
    dimension = starts.shape[0] - 1
    prime, factor = limits[6], limits[7]
    point = np.empty(dimension, np.uint64)
    redraws = 0
    for i in range(values.shape[0]):
        value = values[i]
        if value < 0 or words[i, 1] > limits[1]:
            redraws += value >= 0
            out[i] = NO_ANSWER
            continue
        pivot = 0
        while coordinates[value, pivot] == 0:
            pivot += 1
        is_outside = words[i, 0] >= limits[0]
        kind = 4 if is_outside else 2
        rest = remainder(words[i, 1], limits[kind], limits[kind + 1])
        # All coordinates but the pivot: any, or those of a point of the space with one dimension less.
        n_free, leading = dimension - 1, -1
        if not is_outside:
            n_free = dimension - 2
            while np.uint64(starts[n_free]) > rest:
                n_free -= 1
            rest -= np.uint64(starts[n_free])
            leading = dimension - 2 - n_free
        product = np.uint64(1) if is_outside else np.uint64(0)
        place = dimension - 1
        for k in range(dimension - 2, -1, -1):
            if place == pivot:
                place -= 1
            if k > leading:
                quotient = rest * factor >> _SHIFT
                digit, rest = rest - quotient * prime, quotient
            else:
                digit = np.uint64(1) if k == leading else np.uint64(0)
            point[place] = digit
            # The pivot must make the product 0, or 1 outside.
            product += np.uint64(coordinates[value, place]) * (prime - digit)
            place -= 1
        point[pivot] = _modulo(product, prime, factor)
        out[i] = _number_of(point, prime, factor, inverses, starts)
    return redraws


@njit(cache=True, nogil=True, inline="always")
def _number_of(point, prime, factor, inverses, starts):  # type: ignore[no-untyped-def]
    """Return the number of the point with these coordinates, in any multiple."""
    first, dimension = 0, point.shape[0]
    while point[first] == 0:
        first += 1
    inverse, number = inverses[point[first]], np.uint64(0)
    for place in range(first + 1, dimension):
        number = number * prime + _modulo(point[place] * inverse, prime, factor)
    return np.uint16(np.uint64(starts[dimension - 1 - first]) + number)
