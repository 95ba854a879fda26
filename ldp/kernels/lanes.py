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
    drawn: NDArray[np.uint64],
) -> None:
    """Set lane `value - first_value` of `truth`, if there is one; those with a value draw all `lanes`."""
    for i in range(values.shape[0]):
        lane = np.int64(values[i]) - first_value
        truth[i] = _ONE << np.uint64(lane) if 0 <= lane < 64 else _ZERO
        drawn[i] = lanes if values[i] >= 0 else _ZERO


@njit(cache=True, nogil=True)
def compare_lanes(
    truth: NDArray[np.uint64],
    drawn: NDArray[np.uint64],
    run: NDArray[np.uint64],
    table: NDArray[np.uint64],
    lanes: int,
    n_digits: int,
    undecided: NDArray[np.uint64],
    below: NDArray[np.uint64],
) -> None:
    """Compare the random numbers of all `drawn` lanes with their thresholds, by an even number of digits.

    Both words of a block hold the binary digits of all numbers in turn, as many as fit: the first ones in
    their lowest bits. `run` has the first block of all rows, then the next. The threshold is p where the lane
    of `truth` is one, else q; `table` holds their digits, and where ones come after them. The first digit
    that differs decides a lane, or the last one of its threshold: `below` is one where the number is below.
    """
    size, per_word = truth.shape[0], 64 // lanes
    for first in range(0, n_digits, 2):
        pair = first >> 1
        start = pair // per_word * 2 * size
        words, shift = run[start : start + 2 * size], np.uint64(pair % per_word * lanes)
        q, flip = table[1, first], table[0, first] ^ table[1, first]
        next_q, next_flip = table[1, first + 1], table[0, first + 1] ^ table[1, first + 1]
        if first == 0:
            for i in range(size):
                thresholds = q ^ (truth[i] & flip), next_q ^ (truth[i] & next_flip)
                digits = words[2 * i], words[2 * i + 1]
                below[i], undecided[i] = _two_digits(drawn[i], digits, thresholds)
        else:
            for i in range(size):
                thresholds = q ^ (truth[i] & flip), next_q ^ (truth[i] & next_flip)
                digits = words[2 * i] >> shift, words[2 * i + 1] >> shift
                found, undecided[i] = _two_digits(undecided[i], digits, thresholds)
                below[i] |= found
    q_more, flip_more = table[3, n_digits - 1], table[2, n_digits - 1] ^ table[3, n_digits - 1]
    for i in range(size):
        undecided[i] &= q_more ^ (truth[i] & flip_more)


@njit(cache=True, nogil=True, inline="always")
def _two_digits(
    undecided: np.uint64, digits: tuple[np.uint64, np.uint64], thresholds: tuple[np.uint64, np.uint64]
) -> tuple[np.uint64, np.uint64]:
    """Lanes that two more digits show to be below their thresholds, and those that stay undecided."""
    differs = digits[0] ^ thresholds[0]
    found = undecided & differs & thresholds[0]
    undecided &= ~differs
    differs = digits[1] ^ thresholds[1]
    return found | (undecided & differs & thresholds[1]), undecided & ~differs


@njit(cache=True, nogil=True)
def open_rows(undecided: NDArray[np.uint64], rows: NDArray[np.int64]) -> int:
    """Write the rows with an undecided lane, and count them; `rows` has room for one more than there are."""
    size = 0
    for i in range(undecided.shape[0]):
        rows[size] = i  # without a branch: a row that is not kept is overwritten
        size += undecided[i] != _ZERO
    return size


@njit(cache=True, nogil=True)
def take_rows(
    rows: NDArray[np.int64],
    pseudonyms: NDArray[np.uint64],
    keyed: NDArray[np.uint32],
    out: NDArray[np.uint64],
    out_keyed: NDArray[np.uint32],
) -> None:
    """Copy some rows; one value for all is not copied."""
    for i in range(rows.shape[0]):
        out[i] = pseudonyms[rows[i]]
    if keyed.shape[0] != 1:
        for i in range(rows.shape[0]):
            out_keyed[i] = keyed[rows[i]]


@njit(cache=True, nogil=True)
def compare_open(
    truth: NDArray[np.uint64],
    run: NDArray[np.uint64],
    table: NDArray[np.uint64],
    lanes: int,
    first: int,
    last: int,
    undecided: NDArray[np.uint64],
    below: NDArray[np.uint64],
    rows: NDArray[np.int64],
) -> int:
    """Compare in some `rows` only, from digit `first` up to `last`; `run` begins with its block.

    Keeps in front the rows that are still open, and counts them.
    """
    size, n_open = rows.shape[0], 0
    first_shift = (first >> 1) % (64 // lanes) * lanes
    for i in range(size):
        row = rows[i]
        one, left, found = truth[row], undecided[row], _ZERO
        place, shift = 2 * i, first_shift
        for digit in range(first, last, 2):
            q, flip = table[1, digit], table[0, digit] ^ table[1, digit]
            next_q, next_flip = table[1, digit + 1], table[0, digit + 1] ^ table[1, digit + 1]
            thresholds = q ^ (one & flip), next_q ^ (one & next_flip)
            digits = run[place] >> np.uint64(shift), run[place + 1] >> np.uint64(shift)
            below_now, left = _two_digits(left, digits, thresholds)
            found |= below_now
            left &= table[3, digit + 1] ^ (one & (table[2, digit + 1] ^ table[3, digit + 1]))
            if left == _ZERO:
                break
            shift += lanes  # the next two digits; a division would take longer than all the rest
            if shift + lanes > 64:
                place, shift = place + 2 * size, 0
        below[row] |= found
        undecided[row] = left
        rows[n_open] = row
        n_open += left != _ZERO
    return n_open


@njit(cache=True, nogil=True, inline="always")
def _add(a: np.uint64, b: np.uint64, c: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Sum of three bits in each lane: its lower digit and its upper one."""
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


@njit(cache=True, nogil=True)
def add_lanes(lanes: NDArray[np.uint64], counts: NDArray[np.int64]) -> None:
    """Add to `counts`, one per lane, how many rows have this lane's bit.

    Sixteen rows at a time are added up in all lanes at once, as binary numbers (Harley and Seal's counter);
    only the sixteens go to the counts one by one.
    """
    ones = twos = fours = eights = _ZERO
    whole = lanes.shape[0] // 16 * 16
    for start in range(0, whole, 16):
        sixteens = _ZERO
        for half in range(2):
            eight = _ZERO
            for quarter in range(2):
                first = start + 8 * half + 4 * quarter
                ones, two = _add(ones, lanes[first], lanes[first + 1])
                ones, other = _add(ones, lanes[first + 2], lanes[first + 3])
                twos, four = _add(twos, two, other)
                if quarter == 0:
                    eight = four
                else:
                    fours, eight = _add(fours, eight, four)
            if half == 0:
                sixteens = eight
            else:
                eights, sixteens = _add(eights, sixteens, eight)
        _count(sixteens, 16, counts)
    _count(ones, 1, counts)
    _count(twos, 2, counts)
    _count(fours, 4, counts)
    _count(eights, 8, counts)
    for i in range(whole, lanes.shape[0]):
        _count(lanes[i], 1, counts)


@njit(cache=True, nogil=True, inline="always")
def _count(word: np.uint64, weight: int, counts: NDArray[np.int64]) -> None:
    """Add the weight to the counts of the lanes of a word."""
    for lane in range(counts.shape[0]):
        counts[lane] += weight * np.int64((word >> np.uint64(lane)) & _ONE)


@njit(cache=True, nogil=True)
def choose_step(last: int, drawn: NDArray[np.uint64], chosen: NDArray[np.uint64]) -> None:
    """One step of Floyd's choice of a subset: add the drawn value, or `last` if that is in it already."""
    for i in range(chosen.shape[0]):
        value = np.int64(drawn[i])
        if chosen[i, value >> 6] >> np.uint64(value & 63) & _ONE:
            value = np.int64(last)
        chosen[i, value >> 6] |= _ONE << np.uint64(value & 63)
