"""Inner loops of the tallies of presence that a plan may ask for; callers check their arguments."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ldp.kernels.codes import first_day

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def tally_visits(bitmaps: NDArray[np.uint64], out: NDArray[np.int64], sign: int) -> None:
    """Add `sign` at [k, day] for the k-th present day of each subscriber."""
    for i in range(bitmaps.shape[0]):
        bits = bitmaps[i]
        k = 0
        while bits != _ZERO:
            k += 1
            out[k, first_day(bits)] += sign
            bits &= bits - _ONE


@njit(cache=True, nogil=True)
def tally_runs(bitmaps: NDArray[np.uint64], out: NDArray[np.int64], sign: int) -> None:
    """Add `sign` at [length, day] for each present day, where the run of days up to it has this length."""
    for i in range(bitmaps.shape[0]):
        bits = bitmaps[i]
        length, previous = 0, 0
        while bits != _ZERO:
            day = first_day(bits)
            length = length + 1 if day == previous + 1 else 1
            out[length, day] += sign
            previous = day
            bits &= bits - _ONE
