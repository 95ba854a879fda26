"""Inner loops in machine code. They know values, words, thresholds and counts; no epsilon, no randomness.

Callers check their arguments: nothing here checks a bound, and a wrong code would write outside the array.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

NO_ANSWER = 65535
REDRAW = 65534  # the replacement word was rejected; one code below NO_ANSWER, above every domain

_ZERO = np.uint64(0)
_ONE = np.uint64(1)

# A power of two times this number has different top six bits for each of the 64 powers (de Bruijn sequence).
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_DAY_OF = np.argsort([(0x03F79D71B4CB0A89 << bit & 2**64 - 1) >> 58 for bit in range(64)]) + 1


@intrinsic
def swap(_typing: Any, word: Any) -> Any:
    """Reverse the bytes of a word: one instruction, which numba has no name for."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return types.uint64(word), generate


@intrinsic
def _multiply_high(_typing: Any, a: Any, b: Any) -> Any:
    """Upper half of the 128-bit product of two words: one instruction, which numba has no name for."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(a, b), generate


def reciprocal(bound: int) -> np.uint64:
    """What `remainder` needs to know of a bound in [1, 2**64)."""
    return np.uint64((2**64 - 1) // bound)


@njit(cache=True, nogil=True, inline="always")
def remainder(word: np.uint64, bound: np.uint64, reciprocal: np.uint64) -> np.uint64:
    """Word modulo the bound, exactly, by multiplication: a division takes five times as long.

    With m the reciprocal, 2**64 / bound - 1 <= m < 2**64 / bound, so word * m / 2**64 lies above
    word / bound - 1 and at or below word / bound: its whole part is the quotient, or one less.
    """
    rest = word - _multiply_high(word, reciprocal) * bound
    # If rest < bound, the difference wraps round to a larger number.
    return min(rest, rest - bound)


@njit(cache=True, nogil=True)
def fill_blocks(
    pseudonyms: NDArray[np.uint64], values: NDArray[np.uint32], fields: np.uint64, blocks: NDArray[np.uint64]
) -> None:
    """Write the keyed blocks, big-endian; one value for all or one each."""
    if values.shape[0] == 1:
        second = swap(fields | np.uint64(values[0]) << np.uint64(16))
        for i in range(pseudonyms.shape[0]):
            blocks[i, 0] = swap(pseudonyms[i])
            blocks[i, 1] = second
    else:
        for i in range(pseudonyms.shape[0]):
            blocks[i, 0] = swap(pseudonyms[i])
            blocks[i, 1] = swap(fields | np.uint64(values[i]) << np.uint64(16))


@njit(cache=True, nogil=True)
def fill_runs(
    pseudonyms: NDArray[np.uint64],
    values: NDArray[np.uint32],
    fields: np.uint64,
    n_blocks: int,
    blocks: NDArray[np.uint64],
) -> None:
    """As `fill_blocks` for consecutive counters, one after the other; `blocks` is flat, both words together.

    With two dimensions the compiler would not know that the words are neighbours, and use no vectors.
    """
    size = pseudonyms.shape[0]
    for block in range(n_blocks):
        place = blocks[2 * block * size : 2 * (block + 1) * size]
        rest = fields + np.uint64(block)
        if values.shape[0] == 1:
            second = swap(rest | np.uint64(values[0]) << np.uint64(16))
            for i in range(size):
                place[2 * i] = swap(pseudonyms[i])
                place[2 * i + 1] = second
        else:
            for i in range(size):
                place[2 * i] = swap(pseudonyms[i])
                place[2 * i + 1] = swap(rest | np.uint64(values[i]) << np.uint64(16))


@njit(cache=True, nogil=True)
def swap_bytes(sealed: NDArray[np.uint64], words: NDArray[np.uint64]) -> None:
    """Big-endian cipher blocks to words."""
    for i in range(sealed.shape[0]):
        words[i, 0] = swap(sealed[i, 0])
        words[i, 1] = swap(sealed[i, 1])


@njit(cache=True, nogil=True, inline="always")
def _load(data: NDArray[np.uint8], begin: int, size: int) -> np.uint64:
    """Up to 8 bytes as a little-endian word, zeros after `size` of them."""
    word = _ZERO
    if size <= 0:
        return word
    if begin + 8 > data.shape[0]:
        for j in range(size):
            word |= np.uint64(data[begin + j]) << np.uint64(8 * j)
        return word
    # Unsigned positions and a fixed count compile to a single load, eight times faster.
    first = np.uint64(begin)
    for k in range(8):
        word |= np.uint64(data[first + np.uint64(k)]) << np.uint64(8 * k)
    return word if size >= 8 else word & ((_ONE << np.uint64(8 * size)) - _ONE)


@njit(cache=True, nogil=True)
def cmac_absorb(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    messages: NDArray[np.int64],
    block: int,
    n_blocks: int,
    masks: NDArray[np.uint64],
    state: NDArray[np.uint64],
) -> None:
    """XOR one block of each message into its state (words little-endian); the last one padded and masked."""
    for i in range(messages.shape[0]):
        begin = offsets[messages[i]] + 16 * block
        size = min(offsets[messages[i] + 1] - begin, 16)
        state[i, 0] ^= _load(data, begin, size)
        state[i, 1] ^= _load(data, begin + 8, size - 8)
        if block == n_blocks - 1:
            padded = 0
            if size < 16:
                padded = 1
                state[i, size >> 3] ^= np.uint64(0x80) << np.uint64(8 * (size & 7))
            state[i, 0] ^= masks[padded, 0]
            state[i, 1] ^= masks[padded, 1]


@njit(cache=True, nogil=True, inline="always")
def _first_day(bits: np.uint64) -> int:
    """Day of the lowest set bit, from 1; no loop over the days of a long study."""
    return int(_DAY_OF[((bits & (~bits + _ONE)) * _DE_BRUIJN) >> np.uint64(58)])


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
        while bits != _ZERO:
            day = _first_day(bits)
            out[code, previous, day] += sign
            previous = day
            bits &= bits - _ONE


@njit(cache=True, nogil=True)
def tally_patterns(
    bitmaps: NDArray[np.uint64], codes: NDArray[np.uint16], out: NDArray[np.int64], sign: int
) -> None:
    """As `tally_static`, by counting equal (code, bitmap) first: many times faster, if there are few."""
    size = 1 << (out.shape[2] - 1)
    patterns = np.zeros((out.shape[0], size), np.int64)
    for i in range(bitmaps.shape[0]):
        if codes[i] != NO_ANSWER:
            patterns[codes[i], np.int64(bitmaps[i])] += 1
    for code in range(out.shape[0]):
        for pattern in range(size):
            bits = np.uint64(pattern)
            previous = 0
            while bits != _ZERO:
                day = _first_day(bits)
                out[code, previous, day] += sign * patterns[code, pattern]
                previous = day
                bits &= bits - _ONE


@njit(cache=True, nogil=True)
def tally_daily(
    bitmaps: NDArray[np.uint64], codes: NDArray[np.uint16], out: NDArray[np.int64], sign: int
) -> None:
    """As `tally_static` with one code per day; the previous day counts whatever its answer was."""
    for i in range(bitmaps.shape[0]):
        bits = bitmaps[i]
        previous = 0
        while bits != _ZERO:
            day = _first_day(bits)
            code = codes[i, day - 1]
            if code != NO_ANSWER:
                out[code, previous, day] += sign
            previous = day
            bits &= bits - _ONE


@njit(cache=True, nogil=True)
def max_code(codes: NDArray[np.uint16]) -> int:
    """Largest code that is an answer; -1 without any."""
    largest = -1
    for code in codes.flat:
        if code != NO_ANSWER and code > largest:
            largest = int(code)
    return largest


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

    Returns how many are REDRAW. `others` is the domain size less one, `last` its largest unbiased word.
    """
    redraws = 0
    for i in range(values.shape[0]):
        value = np.int64(values[i])
        # Conditional moves, not branches: the bits are random, so a processor would guess half of them wrong.
        index = np.int64(words[i, 1] % others)
        replacement = REDRAW if words[i, 1] > last else index + (index >= value)
        answer = value if words[i, 0] < threshold else replacement
        answer = NO_ANSWER if value < 0 else answer
        redraws += answer == REDRAW
        out[i] = answer
    return redraws


@njit(cache=True, nogil=True)
def reduce_words(
    words: NDArray[np.uint64], bound: np.uint64, last: np.uint64, out: NDArray[np.uint64]
) -> int:
    """First word modulo the bound; `bound` itself where the word is biased. Returns how many are."""
    redraws = 0
    for i in range(words.shape[0]):
        biased = words[i, 0] > last
        out[i] = bound if biased else words[i, 0] % bound
        redraws += biased
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
