"""Inner loops in machine code. They know values, words, thresholds and counts; no epsilon, no randomness.

Callers check their arguments: nothing here checks a bound, and a wrong code would write outside the array.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER

Places = NDArray[np.int32] | NDArray[np.int64]

_ZERO = np.uint64(0)
_ONE = np.uint64(1)

# A power of two times this number has different top six bits for each of the 64 powers (de Bruijn sequence).
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_DAY_OF = np.argsort([(0x03F79D71B4CB0A89 << bit & 2**64 - 1) >> 58 for bit in range(64)]) + 1


def _swap(_typing: Any, word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return types.uint64(word), generate


def _multiply_high(_typing: Any, a: Any, b: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(a, b), generate


# Two instructions that numba has no name for: the bytes of a word in reverse order, and the upper half of the
# 128-bit product of two words. Only for uint64.
swap = cast(Callable[[np.uint64], np.uint64], intrinsic(_swap))
multiply_high = cast(Callable[[np.uint64, np.uint64], np.uint64], intrinsic(_multiply_high))


def reciprocal(bound: int) -> np.uint64:
    """Precomputed values of `remainder` for a bound in [1, 2**64)."""
    return np.uint64((2**64 - 1) // bound)


@njit(cache=True, nogil=True, inline="always")
def remainder(word: np.uint64, bound: np.uint64, reciprocal: np.uint64) -> np.uint64:
    """Word modulo the bound, exactly, by multiplication: a division takes five times as long.

    With m the reciprocal, 2**64 / bound - 1 <= m < 2**64 / bound, so word * m / 2**64 lies above
    word / bound - 1 and at or below word / bound: its whole part is the quotient, or one less.
    """
    rest = word - multiply_high(word, reciprocal) * bound
    # If rest < bound, the difference wraps round to a larger number.
    return min(rest, rest - bound)


@njit(cache=True, nogil=True)
def fill_blocks(
    pseudonyms: NDArray[np.uint64],
    values: NDArray[np.uint32],
    fields: np.uint64,
    n_blocks: int,
    blocks: NDArray[np.uint64],
) -> None:
    """Write the keyed blocks of consecutive counters, big-endian; one value for all or one each.

    `blocks` is flat, both words of a block together, the blocks of a counter together: with two dimensions
    the compiler would not know that the words are neighbours, and use no vectors.
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
def swap_words(sealed: NDArray[np.uint64], words: NDArray[np.uint64]) -> None:
    """Cipher bytes to words."""
    for i in range(sealed.shape[0]):
        words[i] = swap(sealed[i])


@njit(cache=True, nogil=True)
def max_code(codes: NDArray[np.uint16]) -> int:
    """Largest code that is an answer; -1 without any."""
    largest = np.uint16(0)
    for i in range(codes.shape[0]):
        largest = max(largest, np.uint16(codes[i] + np.uint16(1)))  # NO_ANSWER becomes 0
    return int(largest) - 1


@njit(cache=True, nogil=True)
def first_outside(asked: NDArray[np.uint8], codes: NDArray[np.uint16], sizes: NDArray[np.int64]) -> int:
    """First row whose code is not in the domain of the indicator asked; -1 without any."""
    for i in range(codes.shape[0]):
        if codes[i] >= sizes[asked[i]] and codes[i] != NO_ANSWER:
            return i
    return -1


@njit(cache=True, nogil=True)
def fill_asked(
    asked: NDArray[np.uint8],
    codes: NDArray[np.uint16],
    fields: NDArray[np.uint64],
    blocks: NDArray[np.uint64],
) -> None:
    """Write the second words of keyed blocks: fields of the indicator that each is asked, and the code."""
    for i in range(codes.shape[0]):
        blocks[2 * i + 1] = swap(fields[asked[i]] | np.uint64(codes[i]) << np.uint64(16))


@njit(cache=True, nogil=True)
def pick_asked(
    profiles: NDArray[np.uint16],
    start: int,
    step: int,
    sizes: NDArray[np.int64],
    asked: NDArray[np.uint8],
    picked: NDArray[np.uint16],
) -> bool:
    """Code of the indicator that each is asked. False if a code is in no domain, asked or not.

    Codes of the first indicator begin at `start`, those of the next one `step` further.
    """
    is_valid = True
    # A pass over each row uses vectors; a lookup for each subscriber takes as long and checks only that code.
    for indicator in range(sizes.shape[0]):
        begin, row = start + indicator * step, np.uint8(indicator)
        codes = profiles[begin : begin + asked.shape[0]]
        largest = np.uint16(0)
        for i in range(asked.shape[0]):
            code = codes[i]
            largest = max(largest, np.uint16(code + np.uint16(1)))  # NO_ANSWER becomes 0
            picked[i] = code if asked[i] == row else picked[i]
        is_valid = is_valid and largest <= sizes[indicator]
    return is_valid


@njit(cache=True, nogil=True, inline="always")
def load_word(data: NDArray[np.uint8], begin: int, size: int) -> np.uint64:
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
def cmac_first(
    data: NDArray[np.uint8],
    begins: Places,
    ends: Places,
    masks: NDArray[np.uint64],
    blocks: NDArray[np.uint64],
    longer: NDArray[np.int32],
) -> int:
    """Fill the first block of each message, two words each, the only one of up to 16 bytes padded and masked.

    Fills `longer` with the places of messages of more than one block; returns how many there are.
    """
    # By length: which bytes of either word belong to the message, and what is added to them.
    within, added = np.zeros((18, 2), np.uint64), np.zeros((18, 2), np.uint64)
    for size in range(17):
        padded = 1 if size < 16 else 0
        for word in range(2):
            for _ in range(min(max(size - 8 * word, 0), 8)):
                within[size, word] = within[size, word] << np.uint64(8) | np.uint64(0xFF)
            added[size, word] = masks[padded, word]
        if padded:
            added[size, size >> 3] ^= np.uint64(0x80) << np.uint64(8 * (size & 7))
    for word in range(2):  # a copy of the row would be compiled for seconds
        within[17, word] = within[16, word]
    n = 0
    for i in range(begins.shape[0]):
        length = ends[i] - begins[i]
        if length > 16:
            longer[n] = i
            n += 1
        row = np.uint64(min(length, 17))
        if begins[i] + 16 <= data.shape[0]:
            first, second = load_word(data, begins[i], 8), load_word(data, begins[i] + 8, 8)
        else:
            first, second = load_word(data, begins[i], length), load_word(data, begins[i] + 8, length - 8)
        blocks[2 * i] = first & within[row, 0] ^ added[row, 0]
        blocks[2 * i + 1] = second & within[row, 1] ^ added[row, 1]
    return n


@njit(cache=True, nogil=True)
def cmac_next(
    data: NDArray[np.uint8],
    begins: Places,
    ends: Places,
    longer: NDArray[np.int32],
    done: int,
    masks: NDArray[np.uint64],
    states: NDArray[np.uint64],
    blocks: NDArray[np.uint64],
) -> None:
    """Fill the block after the first `done` ones of each longer message: added to what the cipher made.

    states : two words each; after the first block those of all messages, then of the longer ones alone
    """
    for j in range(longer.shape[0]):
        i = longer[j]
        state = i if done == 1 else j
        begin = begins[i] + 16 * done
        size = min(ends[i] - begin, 16)
        first = states[2 * state] ^ load_word(data, begin, size)
        second = states[2 * state + 1] ^ load_word(data, begin + 8, size - 8)
        if begin + size == ends[i]:
            padded = 1 if size < 16 else 0
            if padded and size < 8:
                first ^= np.uint64(0x80) << np.uint64(8 * size)
            elif padded:
                second ^= np.uint64(0x80) << np.uint64(8 * (size - 8))
            first ^= masks[padded, 0]
            second ^= masks[padded, 1]
        blocks[2 * j], blocks[2 * j + 1] = first, second


@njit(cache=True, nogil=True)
def cmac_tags(
    begins: Places,
    ends: Places,
    longer: NDArray[np.int32],
    done: int,
    states: NDArray[np.uint64],
    tags: NDArray[np.uint64],
) -> int:
    """Write the tags of longer messages with `done` blocks; moves the others, and their states, to the front.

    Returns how many others there are.
    """
    n = 0
    for j in range(longer.shape[0]):
        i = longer[j]
        if ends[i] - begins[i] <= 16 * done:
            tags[i] = swap(states[2 * j])
        else:
            longer[n], states[2 * n], states[2 * n + 1] = i, states[2 * j], states[2 * j + 1]
            n += 1
    return n


@njit(cache=True, nogil=True)
def first_words(sealed: NDArray[np.uint64], words: NDArray[np.uint64]) -> None:
    """First word of each cipher block."""
    for i in range(words.shape[0]):
        words[i] = swap(sealed[2 * i])


@njit(cache=True, nogil=True, inline="always")
def first_day(bits: np.uint64) -> int:
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
            day = first_day(bits)
            out[code, previous, day] += sign
            previous = day
            bits &= bits - _ONE


@njit(cache=True, nogil=True)
def spread_patterns(patterns: NDArray[np.int64], out: NDArray[np.int64], sign: int) -> None:
    """Add `tally_static` of the given number of subscribers with each code (row) and bitmap (column)."""
    for code in range(patterns.shape[0]):
        for pattern in range(patterns.shape[1]):
            bits = np.uint64(pattern)
            previous = 0
            while bits != _ZERO:
                day = first_day(bits)
                out[code, previous, day] += sign * patterns[code, pattern]
                previous = day
                bits &= bits - _ONE


@njit(cache=True, nogil=True)
def tally_patterns(
    bitmaps: NDArray[np.uint64], codes: NDArray[np.uint16], out: NDArray[np.int64], sign: int
) -> None:
    """Add `tally_static`, counting equal (code, bitmap) pairs first: faster if there are few."""
    patterns = np.zeros((out.shape[0], 1 << (out.shape[2] - 1)), np.int64)
    for i in range(bitmaps.shape[0]):
        if codes[i] != NO_ANSWER:
            patterns[codes[i], np.int64(bitmaps[i])] += 1
    spread_patterns(patterns, out, sign)


@njit(cache=True, nogil=True)
def count_patterns(
    bitmaps: NDArray[np.uint64],
    asked: NDArray[np.uint8],
    codes: NDArray[np.uint16],
    starts: NDArray[np.int64],
    days: int,
    counts: NDArray[np.int64],
) -> None:
    """Add one for each answer at its bitmap, after `2**days` places for each code of each indicator.

    `starts` and the last place of `counts` as in `count_answers`.
    """
    nowhere = counts.shape[0] - 1
    for i in range(codes.shape[0]):
        code = np.int64(codes[i])
        place = (starts[asked[i]] + code) << days | np.int64(bitmaps[i])
        counts[nowhere if code == NO_ANSWER else place] += 1


@njit(cache=True, nogil=True)
def tally_daily(
    bitmaps: NDArray[np.uint64], codes: NDArray[np.uint16], out: NDArray[np.int64], sign: int
) -> None:
    """Count like `tally_static` with one code per day; the previous day counts with any answer."""
    for i in range(bitmaps.shape[0]):
        bits = bitmaps[i]
        previous = 0
        while bits != _ZERO:
            day = first_day(bits)
            code = codes[i, day - 1]
            if code != NO_ANSWER:
                out[code, previous, day] += sign
            previous = day
            bits &= bits - _ONE


@njit(cache=True, nogil=True)
def count_answers(
    asked: NDArray[np.uint8],
    codes: NDArray[np.uint16],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Add one for each answer, at the start of the indicator asked plus its code.

    The last place of `counts` gets those without an answer.
    """
    nowhere = counts.shape[0] - 1
    for i in range(codes.shape[0]):
        code = np.int64(codes[i])
        counts[nowhere if code == NO_ANSWER else starts[asked[i]] + code] += 1


@njit(cache=True, nogil=True, inline="always")
def _randomise(
    value: np.int64,
    first: np.uint64,
    second: np.uint64,
    threshold: np.uint64,
    others: np.uint64,
    others_reciprocal: np.uint64,
) -> np.int64:
    """Keep the value if the first word is below the threshold, else replace it by the second word."""
    # Conditional moves, not branches: the bits are random, so a processor would guess half of them wrong.
    index = np.int64(remainder(second, others, others_reciprocal))
    replacement = index + np.int64(index >= value)
    return value if (first < threshold) | (value == NO_ANSWER) else replacement


@njit(cache=True, nogil=True)
def grr_answers(
    values: NDArray[np.int32] | NDArray[np.uint16],
    asked: NDArray[np.uint8],
    sealed: NDArray[np.uint64],
    limits: NDArray[np.uint64],
    out: NDArray[np.uint16],
) -> int:
    """Randomise each value by the two cipher words of its row; NO_ANSWER, or -1, stays NO_ANSWER.

    Row `asked` of `limits` holds the threshold, the domain size less one, its reciprocal, and its largest
    unbiased word; one row number for all or one each. Returns how many second words are biased: where one
    replaced the value, the answer must be drawn again.
    """
    biased = 0
    if asked.shape[0] == 1:
        row = asked[0]
        threshold, others, rec, last = limits[row, 0], limits[row, 1], limits[row, 2], limits[row, 3]
        for i in range(values.shape[0]):
            value, first, second = np.uint16(values[i]), swap(sealed[2 * i]), swap(sealed[2 * i + 1])
            out[i] = _randomise(np.int64(value), first, second, threshold, others, rec)
            biased += second > last
    else:
        for i in range(values.shape[0]):
            row = asked[i]
            value, first, second = np.uint16(values[i]), swap(sealed[2 * i]), swap(sealed[2 * i + 1])
            out[i] = _randomise(
                np.int64(value), first, second, limits[row, 0], limits[row, 1], limits[row, 2]
            )
            biased += second > limits[row, 3]
    return biased


@njit(cache=True, nogil=True)
def reduce_words(
    sealed: NDArray[np.uint64],
    bound: np.uint64,
    bound_reciprocal: np.uint64,
    last: np.uint64,
    out: NDArray[np.uint64] | NDArray[np.uint16] | NDArray[np.uint8],
) -> int:
    """First cipher word of each row modulo the bound. Returns how many are biased; there, `bound` itself."""
    biased = 0
    for i in range(out.shape[0]):
        word = swap(sealed[2 * i])
        # A branch, for once: it is never taken, and without it the compiler cuts words up to use vectors.
        if word > last:
            out[i] = bound
            biased += 1
        else:
            out[i] = remainder(word, bound, bound_reciprocal)
    return biased


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
