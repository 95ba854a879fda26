"""Inner loops of the frequency oracles: values, words, thresholds and counts; no epsilon, no randomness.

As in `kernels`, callers check their arguments. A value of -1 means no report.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ldp.codes import NO_COUNT

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def subset_bits(
    values: NDArray[np.int32],
    words: NDArray[np.uint64],
    threshold: np.uint64,
    last: NDArray[np.uint64],
    domain_size: int,
    out: NDArray[np.uint64],
) -> int:
    """Sets of `last.size` values (Floyd's sampling), the value in if the first word is below the threshold.

    Word 1 + i draws from as many places as `last[i]` is the largest unbiased word of: one more for each i, up
    to the number of other values. Every word is checked, used or not, so that drawing again says nothing
    about the value. Returns the number of rows to draw again; those are empty sets.
    """
    w = last.shape[0]
    redraws = 0
    for i in range(values.shape[0]):
        value = int(values[i])
        biased = False
        for step in range(w):
            biased |= words[i, 1 + step] > last[step]
        out[i, :] = _ZERO
        if value < 0 or biased:
            redraws += value >= 0
            continue
        included = words[i, 0] < threshold
        if included:
            out[i, value >> 6] = _bit(value)
        for step in range(1 if included else 0, w):
            place = domain_size - 1 - w + step  # the last one that this step may draw, among the others
            drawn = int(words[i, 1 + step] % np.uint64(place + 1))
            drawn += drawn >= value
            place += place >= value
            if out[i, drawn >> 6] & _bit(drawn):
                drawn = place
            out[i, drawn >> 6] |= _bit(drawn)
    return redraws


@njit(cache=True, nogil=True, inline="always")
def _bit(value: int) -> np.uint64:
    """Bit of a value in its word of 64."""
    return _ONE << np.uint64(value & 63)


@njit(cache=True, nogil=True)
def hadamard_columns(
    values: NDArray[np.int32],
    words: NDArray[np.uint64],
    threshold: np.uint64,
    mask: np.uint64,
    no_answer: np.uint64,
    out: NDArray[np.uint16],
) -> None:
    """Uniform column whose sign in the value's row is a plus if the first word is below the threshold."""
    for i in range(values.shape[0]):
        row = np.uint64(values[i] + 1)
        column = words[i, 1] & mask
        signs = row & column
        for shift in (8, 4, 2, 1):  # columns have less than 16 bits
            signs ^= signs >> np.uint64(shift)
        is_minus = signs & _ONE
        wants_minus = _ZERO if words[i, 0] < threshold else _ONE
        # The lowest bit of the row swaps the columns of both signs, one to one: the choice stays uniform.
        column ^= (row & (~row + _ONE)) * (is_minus ^ wants_minus)
        out[i] = no_answer if values[i] < 0 else column


@njit(cache=True, nogil=True)
def walsh_hadamard(counts: NDArray[np.int64]) -> None:
    """Multiply by the Sylvester matrix, in place; the size is a power of two."""
    half = 1
    while half < counts.shape[0]:
        for start in range(0, counts.shape[0], 2 * half):
            for i in range(start, start + half):
                a, b = counts[i], counts[i + half]
                counts[i], counts[i + half] = a + b, a - b
        half *= 2


@njit(cache=True, nogil=True, inline="always")
def bounds_reached(word: np.uint64, bounds: NDArray[np.uint64]) -> int:
    """Count the ascending bounds that are at most the word."""
    low, high = 0, bounds.shape[0]
    while low < high:
        middle = (low + high) // 2
        if word < bounds[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True, inline="always")
def _noisy_count(present: bool, word: np.uint64, bounds: NDArray[np.uint64], lowest: int) -> int:  # noqa: FBT001
    """Noisy count of the table whose running sums are `bounds`, mirrored if the value is present."""
    count = lowest + bounds_reached(word, bounds)
    return 1 - count if present else count


@njit(cache=True, nogil=True)
def noisy_counts(
    values: NDArray[np.int32],
    words: NDArray[np.uint64],
    table: tuple[NDArray[np.uint64], int],
    first: int,
    out: NDArray[np.int16],
) -> None:
    """Noisy counts `first` and `first + 1` of each report; the table's running sums and lowest count."""
    last = min(first + 2, out.shape[1])
    for i in range(values.shape[0]):
        value = values[i]
        for j in range(first, last):
            count = _noisy_count(j == value, words[i, j - first], table[0], table[1])
            out[i, j] = NO_COUNT if value < 0 else count


@njit(cache=True, nogil=True)
def noisy_sums(
    values: NDArray[np.int32],
    words: NDArray[np.uint64],
    table: tuple[NDArray[np.uint64], int],
    first: int,
    out: NDArray[np.int64],
) -> None:
    """Add the counts of `noisy_counts` to `out` instead of writing them."""
    last = min(first + 2, out.shape[0])
    for i in range(values.shape[0]):
        value = values[i]
        if value >= 0:
            for j in range(first, last):
                out[j] += _noisy_count(j == value, words[i, j - first], table[0], table[1])


@njit(cache=True, nogil=True)
def count_equal(cells: NDArray[np.uint64], answers: NDArray[np.uint16]) -> int:
    """Return the number of reports with this cell."""
    total = 0
    for i in range(cells.shape[0]):
        total += cells[i] == answers[i]
    return total


@njit(cache=True, nogil=True)
def count_codes(codes: NDArray[np.uint16], counts: NDArray[np.int64]) -> None:
    """Add one for each code; the last place of `counts` gets the codes from there on."""
    last = counts.shape[0] - 1
    for i in range(codes.shape[0]):
        counts[min(np.int64(codes[i]), last)] += 1
