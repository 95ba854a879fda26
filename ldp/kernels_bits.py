"""Inner loops for reports of one bit per value, 64 bits to a word ("lanes"). As in `kernels`, no checks."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def one_hot(
    values: NDArray[np.int32],
    first_value: int,
    lanes: np.uint64,
    truth: NDArray[np.uint64],
    undecided: NDArray[np.uint64],
) -> None:
    """Set lane `value - first_value` of `truth`, if there is one; open `lanes` of those with a value."""
    for i in range(values.shape[0]):
        lane = np.int64(values[i]) - first_value
        truth[i] = _ONE << np.uint64(lane) if 0 <= lane < 64 else _ZERO
        undecided[i] = lanes if values[i] >= 0 else _ZERO


@njit(cache=True, nogil=True)
def compare_lanes(
    truth: NDArray[np.uint64],
    words: NDArray[np.uint64],
    p_bits: NDArray[np.uint64],
    q_bits: NDArray[np.uint64],
    undecided: NDArray[np.uint64],
    out: NDArray[np.uint64],
) -> int:
    """Compare 64 random numbers a row with their thresholds, two binary digits further.

    Each lane has its own number, of which every word holds one digit, highest first. Its threshold is p
    where the lane of `truth` is one, else q; `p_bits` and `q_bits` hold these two digits of p and q, as all
    zeros or all ones. A lane is decided by the first digit that differs: `out` is one where the number is
    below. Returns the number of rows with a lane that is still undecided.
    """
    n_open = 0
    for i in range(truth.shape[0]):
        undecided_lanes = undecided[i]
        below = out[i]
        for digit in range(2):
            threshold = (truth[i] & p_bits[digit]) | (~truth[i] & q_bits[digit])
            differs = threshold ^ words[i, digit]
            below |= undecided_lanes & differs & threshold
            undecided_lanes &= ~differs
        out[i] = below
        undecided[i] = undecided_lanes
        n_open += undecided_lanes != _ZERO
    return n_open


@njit(cache=True, nogil=True)
def keep_open(
    undecided: NDArray[np.uint64],
    below: NDArray[np.uint64],
    truth: NDArray[np.uint64],
    pseudonyms: NDArray[np.uint64],
    keyed: NDArray[np.uint32],
    rows: NDArray[np.int64],
    kept: tuple[NDArray[np.uint64], ...],
    kept_keyed: NDArray[np.uint32],
    kept_rows: NDArray[np.int64],
) -> None:
    """Copy the rows with an undecided lane, `kept` the first four arrays of them. No `rows` means all.

    What is copied to has room for one row more: without a branch, a row that is not kept is overwritten.
    """
    size = 0
    for i in range(undecided.shape[0]):
        kept[0][size] = undecided[i]
        kept[1][size] = below[i]
        kept[2][size] = truth[i]
        kept[3][size] = pseudonyms[i]
        kept_keyed[size] = keyed[i]
        kept_rows[size] = rows[i] if rows.shape[0] else i
        size += undecided[i] != _ZERO


@njit(cache=True, nogil=True)
def add_lanes(lanes: NDArray[np.uint64], counts: NDArray[np.int64]) -> None:
    """Add to `counts`, one per lane, how many rows have this lane's bit."""
    sums = np.zeros(64, np.uint64)
    for i in range(lanes.shape[0]):
        word = lanes[i]
        for lane in range(64):
            sums[lane] += (word >> np.uint64(lane)) & _ONE
    for lane in range(counts.shape[0]):
        counts[lane] += np.int64(sums[lane])


@njit(cache=True, nogil=True)
def choose_step(last: int, drawn: NDArray[np.uint64], chosen: NDArray[np.uint64]) -> None:
    """One step of Floyd's choice of a subset: add the drawn value, or `last` if that is in it already."""
    for i in range(chosen.shape[0]):
        value = np.int64(drawn[i])
        if chosen[i, value >> 6] >> np.uint64(value & 63) & _ONE:
            value = np.int64(last)
        chosen[i, value >> 6] |= _ONE << np.uint64(value & 63)
