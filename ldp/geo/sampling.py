"""Inner loops of planar Laplace noise. They know words, a scale in squares and sides; no epsilon.

Everything is +, -, *, / and comparisons of doubles, whose results IEEE 754 fixes, in this order: the same
bits on every machine. There is no call of a mathematical library, whose last digits differ, and no fused
multiply-add, which rounds once less. As in `ldp.kernels.codes`, nothing here checks a bound.

One AES block holds three numbers: the upper 48 bits of each word are a number V in (0, 1), the lower 16 bits
of both are the angle. A number below 2**-16 would be too coarse for its logarithm: it is drawn again from the
block of the next counter and counts as 2**-16 times that, which has the same law. So the radius has no end,
and its precision does not depend on how large it is.

Bounds of what the arithmetic adds to the ideal noise (`ldp.geo.precision` says what follows):

- RADIUS_ERROR, in units of 1 / epsilon: half a step of each number, 2 * 2**-33; the series of the logarithm,
  2 s**13 / (13 (1 - s**2)) with s <= (sqrt(2) - 1) / (sqrt(2) + 1), 1.8e-11; roundings.
- ANGLE_ERROR, in radians: half a step of the angle, pi / 2**32; the series of the sine, (pi/4)**13 / 13!,
  7e-12, and of the cosine, (pi/4)**14 / 14!, 4e-13; roundings.
- PLACE_ERROR, in squares: adding the noise to a column or row below 65,536.
"""

from collections.abc import Callable
from math import pi
from typing import Any, Final, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.geo import precision
from ldp.kernels.codes import swap

RADIUS_ERROR: Final = precision.RADIUS_ERROR
ANGLE_ERROR: Final = precision.ANGLE_ERROR
PLACE_ERROR: Final = precision.PLACE_ERROR

AGAIN = 65534  # a code that no square has: the numbers of this row need the block of the next counter

_LOW_BITS = np.uint64(0xFFFF)
SHORTEST: Final = np.uint64(2**32)  # numbers below it, out of 2**48, begin with 16 zeros
ZEROS: Final = 16
_BITS = 98  # of a product of two numbers, doubled and made odd so that they lie in the middle of their step
_MANTISSA = np.uint64(2**52 - 1)
_ROOT_HALF = np.uint64(0x3FE6A09E667F3BCD)  # the double next to sqrt(1/2)
_LN_2 = 0.6931471805599453  # not math.log: its last digit is the platform's
_STEP = pi / 2**32  # half of the width of a quadrant, out of 2**31: the angle counts in odd numbers of it


def _bits_of(_typing: Any, number: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.uint64(number), generate


def _double_of(_typing: Any, word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(word), generate


# The bits of a double as a word, and back. Only for float64 and uint64.
bits_of = cast(Callable[[np.float64], np.uint64], intrinsic(_bits_of))
double_of = cast(Callable[[np.uint64], np.float64], intrinsic(_double_of))


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def radius(first: np.uint64, second: np.uint64, zeros: int) -> float:
    """Minus the logarithm of the product of two numbers out of 2**48, and of 2**-zeros."""
    product = np.float64(np.int64(first) * 2 + 1) * np.float64(np.int64(second) * 2 + 1)
    # product = m 2**power with m in [sqrt(1/2), sqrt(2)): the subtraction moves the border of powers there.
    moved = bits_of(product) - _ROOT_HALF
    power = np.int64(moved >> np.uint64(52))
    m = double_of((moved & _MANTISSA) + _ROOT_HALF)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = 1 / 7 + z * (1 / 9 + z * (1 / 11))
    series = 1.0 + z * (1 / 3 + z * (1 / 5 + z * series))
    return np.float64(_BITS + zeros - power) * _LN_2 - 2.0 * s * series


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def direction(angle: np.uint64) -> tuple[float, float]:
    """Cosine and sine of an angle out of 2**32: its upper two bits are the quadrant, which begins at -45°."""
    quadrant = np.int64(angle >> np.uint64(30))
    offset = np.int64(angle & np.uint64(2**30 - 1)) * 2 + 1 - 2**30
    phi = np.float64(offset) * _STEP
    z = phi * phi
    sine = 1 / 362880 - z * (1 / 39916800)
    sine = phi * (1.0 - z * (1 / 6 - z * (1 / 120 - z * (1 / 5040 - z * sine))))
    cosine = 1 / 40320 - z * (1 / 3628800 - z * (1 / 479001600))
    cosine = 1.0 - z * (0.5 - z * (1 / 24 - z * (1 / 720 - z * cosine)))
    is_odd = (quadrant & 1) == 1
    east = sine if is_odd else cosine
    north = cosine if is_odd else sine
    # A quarter turn is (-sine, cosine), a half (-cosine, -sine), three quarters (sine, -cosine).
    east = -east if ((quadrant + 1) & 2) == 2 else east
    north = -north if (quadrant & 2) == 2 else north
    return east, north


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def square_of(place: np.uint16, east: float, north: float, n_x: int, n_y: int) -> np.uint16:
    """Return the code of the square at an offset in squares from a square's middle, or the nearest one."""
    columns = np.float64(n_x)
    row = np.floor((np.float64(place) + 0.5) / columns)
    column = np.float64(place) - row * columns
    # Clamped before the conversion: a large double has no int.
    to_column = min(max(np.floor(column + 0.5 + east), 0.0), columns - 1.0)
    to_row = min(max(np.floor(row + 0.5 + north), 0.0), np.float64(n_y) - 1.0)
    return np.uint16(np.int32(to_row * columns + to_column))


@njit(cache=True, nogil=True, error_model="numpy")
def noisy_codes(
    places: NDArray[np.uint16],
    sealed: NDArray[np.uint64],
    n_x: int,
    n_y: int,
    scale: float,
    out: NDArray[np.uint16],
) -> int:
    """Code after noise for each place; NO_ANSWER stays. Returns how many rows are AGAIN.

    `scale` is 1 / epsilon in squares.
    """
    again = 0
    for i in range(places.shape[0]):
        first, second = swap(sealed[2 * i]), swap(sealed[2 * i + 1])
        angle = (first & _LOW_BITS) << np.uint64(16) | second & _LOW_BITS
        one, two = first >> np.uint64(16), second >> np.uint64(16)
        length = scale * radius(one, two, 0)
        east, north = direction(angle)
        code = square_of(places[i], length * east, length * north, n_x, n_y)
        is_short = min(one, two) < SHORTEST
        again += 1 if is_short else 0
        code = np.uint16(AGAIN) if is_short else code
        out[i] = np.uint16(NO_ANSWER) if places[i] == NO_ANSWER else code
    return again


@njit(cache=True, nogil=True, error_model="numpy")
def shifts(
    first: NDArray[np.uint64],
    second: NDArray[np.uint64],
    zeros: NDArray[np.int64],
    angles: NDArray[np.uint64],
    scale: float,
    out: NDArray[np.float64],
) -> None:
    """Noise in squares east and north, shape (2, n), of two numbers less some zeros, and an angle."""
    for i in range(first.shape[0]):
        length = scale * radius(first[i], second[i], zeros[i])
        east, north = direction(angles[i])
        out[0, i], out[1, i] = length * east, length * north


@njit(cache=True, nogil=True, error_model="numpy")
def shifted_codes(
    places: NDArray[np.uint16], shifted: NDArray[np.float64], n_x: int, n_y: int, out: NDArray[np.uint16]
) -> None:
    """Code of each place after noise in squares, shape (2, n); no place is NO_ANSWER."""
    for i in range(places.shape[0]):
        out[i] = square_of(places[i], shifted[0, i], shifted[1, i], n_x, n_y)
