"""Inner loops for reports among fakes (RS+FD, RS+RFD). As in `kernels`, no checks.

The fakes of a few indicators are one number, whose digits in the radices of the domains are the fakes.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.kernels.codes import swap
from ldp.kernels.oracles import bounds_reached


@njit(cache=True, nogil=True)
def pick_words(
    sealed: NDArray[np.uint64], bounds: NDArray[np.uint64], out: NDArray[np.uint16] | NDArray[np.uint8]
) -> None:
    """Count the ascending bounds that the first cipher word of each row reaches."""
    for i in range(out.shape[0]):
        out[i] = bounds_reached(swap(sealed[2 * i]), bounds)


@njit(cache=True, nogil=True)
def pick_values(
    column: NDArray[np.int32], asked: NDArray[np.uint8], index: np.uint8, picked: NDArray[np.uint16]
) -> tuple[int, int]:
    """Copy the values of those who are asked this indicator; -1 becomes NO_ANSWER.

    Returns the smallest and the largest value of all, or 0 and -1 if they are larger and smaller.
    """
    low, high = np.int32(0), np.int32(-1)
    for i in range(column.shape[0]):
        value = column[i]
        low, high = min(low, value), max(high, value)
        # Without a branch, so that the compiler uses vectors.
        picked[i] = np.uint16(value) if asked[i] == index else picked[i]
    return int(low), int(high)


@njit(cache=True, nogil=True)
def put_codes(
    asked: NDArray[np.uint8],
    codes: NDArray[np.uint16],
    places: NDArray[np.uint64],
    without: NDArray[np.uint16],
    numbers: NDArray[np.uint16],
) -> None:
    """Replace one digit by the code, in the number of the group of the indicator asked.

    Row `asked` of `places` holds where in `numbers` those of the group begin, what a step of the digit adds
    to a number, and where in `without` the group's numbers with that digit 0 begin.
    """
    for i in range(asked.shape[0]):
        row = asked[i]
        if codes[i] != NO_ANSWER:
            # Unsigned positions: numba need not look for negative ones.
            place = places[row, 0] + np.uint64(i)
            without_digit = without[places[row, 2] + np.uint64(numbers[place])]
            numbers[place] = without_digit + places[row, 1] * np.uint64(codes[i])


@njit(cache=True, nogil=True)
def sort_asked(
    asked: NDArray[np.uint8],
    codes: NDArray[np.uint16],
    pseudonyms: NDArray[np.uint64],
    rows: NDArray[np.int64],
    values: NDArray[np.int32],
    names: NDArray[np.uint64],
) -> NDArray[np.int64]:
    """Rows that answer indicator 0, then 1, ...; their values and pseudonyms. Returns where each one ends.

    A row without a value answers nothing: it is left out.
    """
    ends = np.zeros(257, np.int64)
    for i in range(asked.shape[0]):
        ends[asked[i] + 1] += codes[i] != NO_ANSWER
    for indicator in range(256):
        ends[indicator + 1] += ends[indicator]
    for i in range(asked.shape[0]):
        if codes[i] != NO_ANSWER:
            # Where an indicator begins moves on to its end, row by row.
            place = ends[asked[i]]
            rows[place], values[place], names[place] = i, codes[i], pseudonyms[i]
            ends[asked[i]] = place + 1
    return ends[:256]


@njit(cache=True, nogil=True)
def count_numbers(numbers: NDArray[np.uint16], skipped: NDArray[np.bool_], counts: NDArray[np.int64]) -> None:
    """Add to `counts` how often each number occurs; no `skipped` means none is."""
    if skipped.shape[0] == 0:
        for number in numbers:
            counts[number] += 1
    else:
        for i in range(numbers.shape[0]):
            counts[numbers[i]] += not skipped[i]


@njit(cache=True, nogil=True)
def other_lanes(
    asked: NDArray[np.uint8], own: NDArray[np.uint64], lanes: np.uint64, out: NDArray[np.uint64]
) -> None:
    """Lanes without those of the indicator asked."""
    for i in range(asked.shape[0]):
        out[i] = lanes & ~own[asked[i]]
