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
def cmac_absorb(  # noqa: PLR0917 (kernels take no keywords)
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
