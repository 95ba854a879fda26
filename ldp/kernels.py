"""Inner loops in machine code. They know values, words, thresholds and counts; no epsilon, no randomness.

Callers check their arguments: nothing here checks a bound, and a wrong code would write outside the array.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

NO_ANSWER = 65535
REDRAW = 65534  # the replacement word was rejected; one code below NO_ANSWER, above every domain

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@njit(cache=True, nogil=True, inline="always")
def _swap(x: np.uint64) -> np.uint64:
    """Reverse the bytes of a word."""
    x = ((x >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)) | (
        (x & np.uint64(0x00FF00FF00FF00FF)) << np.uint64(8)
    )
    x = ((x >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)) | (
        (x & np.uint64(0x0000FFFF0000FFFF)) << np.uint64(16)
    )
    return (x >> np.uint64(32)) | (x << np.uint64(32))


@njit(cache=True, nogil=True)
def fill_blocks(
    pseudonyms: NDArray[np.uint64], values: NDArray[np.uint32], fields: np.uint64, blocks: NDArray[np.uint64]
) -> None:
    """Write the keyed blocks, big-endian; one value for all or one each."""
    if values.shape[0] == 1:
        second = _swap(fields | np.uint64(values[0]) << np.uint64(16))
        for i in range(pseudonyms.shape[0]):
            blocks[i, 0] = _swap(pseudonyms[i])
            blocks[i, 1] = second
    else:
        for i in range(pseudonyms.shape[0]):
            blocks[i, 0] = _swap(pseudonyms[i])
            blocks[i, 1] = _swap(fields | np.uint64(values[i]) << np.uint64(16))


@njit(cache=True, nogil=True)
def swap_bytes(sealed: NDArray[np.uint64], words: NDArray[np.uint64]) -> None:
    """Big-endian cipher blocks to words."""
    for i in range(sealed.shape[0]):
        words[i, 0] = _swap(sealed[i, 0])
        words[i, 1] = _swap(sealed[i, 1])


@njit(cache=True, nogil=True)
def cmac_absorb(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    messages: NDArray[np.int64],
    block: int,
    n_blocks: int,
    masks: NDArray[np.uint8],
    state: NDArray[np.uint8],
) -> None:
    """XOR one block of each message into its state; the last one padded and masked."""
    for i in range(messages.shape[0]):
        begin = offsets[messages[i]] + 16 * block
        size = min(offsets[messages[i] + 1] - begin, 16)
        for j in range(size):
            state[i, j] ^= data[begin + j]
        if block == n_blocks - 1:
            if size < 16:
                state[i, size] ^= np.uint8(0x80)
            mask = masks[0 if size == 16 else 1]
            for j in range(16):
                state[i, j] ^= mask[j]


@njit(cache=True, nogil=True)
def tally_static(
    bitmaps: NDArray[np.uint64], codes: NDArray[np.uint16], out: NDArray[np.int64], sign: int
) -> None:
    """Add `sign` at [code, previous present day, day] for each present day of a subscriber."""
    for i in range(bitmaps.shape[0]):
        code = codes[i]
        if code == NO_ANSWER:
            continue
        bits = bitmaps[i]
        previous = 0
        day = 1
        while bits != _ZERO:
            if bits & _ONE != _ZERO:
                out[code, previous, day] += sign
                previous = day
            bits >>= _ONE
            day += 1


@njit(cache=True, nogil=True)
def tally_daily(
    bitmaps: NDArray[np.uint64], codes: NDArray[np.uint16], out: NDArray[np.int64], sign: int
) -> None:
    """As `tally_static` with one code per day; the previous day counts whatever its answer was."""
    for i in range(bitmaps.shape[0]):
        bits = bitmaps[i]
        previous = 0
        day = 1
        while bits != _ZERO:
            if bits & _ONE != _ZERO:
                code = codes[i, day - 1]
                if code != NO_ANSWER:
                    out[code, previous, day] += sign
                previous = day
            bits >>= _ONE
            day += 1


@njit(cache=True, nogil=True)
def tally_visitors(bitmaps: NDArray[np.uint64], out: NDArray[np.int64], sign: int) -> None:
    """Add `sign` at [previous present day, day] for each present day of a subscriber."""
    for i in range(bitmaps.shape[0]):
        bits = bitmaps[i]
        previous = 0
        day = 1
        while bits != _ZERO:
            if bits & _ONE != _ZERO:
                out[previous, day] += sign
                previous = day
            bits >>= _ONE
            day += 1


@njit(cache=True, nogil=True)
def max_code(codes: NDArray[np.uint16]) -> int:
    """Largest code that is an answer; -1 without any."""
    largest = -1
    for code in codes.flat:
        if code != NO_ANSWER and code > largest:
            largest = int(code)
    return largest


@njit(cache=True, nogil=True, inline="always")
def _replacement(value: int, word: np.uint64, others: np.uint64, last: np.uint64) -> np.uint16:
    """One of the other values, each equally likely, or REDRAW."""
    if word > last:
        return np.uint16(REDRAW)
    index = np.int64(word % others)
    return np.uint16(index + 1 if index >= value else index)


@njit(cache=True, nogil=True)
def grr_answers(
    values: NDArray[np.int32],
    words: NDArray[np.uint64],
    threshold: np.uint64,
    others: np.uint64,
    last: np.uint64,
    out: NDArray[np.uint16],
) -> int:
    """Keep the value where the first word is below the threshold, else replace it by the second word.

    Returns how many answers are REDRAW. `others` is the domain size less one, `last` its largest unbiased word.
    """
    redraws = 0
    for i in range(values.shape[0]):
        value = values[i]
        if value < 0:
            out[i] = NO_ANSWER
        elif words[i, 0] < threshold:
            out[i] = value
        else:
            out[i] = _replacement(value, words[i, 1], others, last)
            redraws += out[i] == REDRAW
    return redraws


@njit(cache=True, nogil=True)
def grr_redraw(
    values: NDArray[np.int32],
    rows: NDArray[np.intp],
    words: NDArray[np.uint64],
    others: np.uint64,
    last: np.uint64,
    out: NDArray[np.uint16],
) -> int:
    """Replace the values of some rows by the second word; returns how many are REDRAW again."""
    redraws = 0
    for j in range(rows.shape[0]):
        row = rows[j]
        out[row] = _replacement(values[row], words[j, 1], others, last)
        redraws += out[row] == REDRAW
    return redraws


@njit(cache=True, nogil=True)
def shuffle_step(
    order: NDArray[np.uint8], step: int, drawn: NDArray[np.uint64], bitmaps: NDArray[np.uint64]
) -> None:
    """One step of Fisher and Yates per row: pick a day not yet picked, and set its bit."""
    for i in range(order.shape[0]):
        chosen = step + np.int64(drawn[i])
        day = order[i, chosen]
        order[i, chosen] = order[i, step]
        bitmaps[i] |= _ONE << np.uint64(day)
