"""Inner loops for reports as they are stored: 15 bits to a word of 16. As in `kernels`, no checks."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER, WORD_BITS

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_MASK = np.uint64(2**WORD_BITS - 1)
_PRIME = np.uint64(19)

# Powers of two have different remainders modulo 19, up to the eighteenth.
_PLACE_OF = np.argsort([pow(2, place, 19) for place in range(18)])


@njit(cache=True, nogil=True)
def pack_words(values: NDArray[np.int32], bits: NDArray[np.uint64], out: NDArray[np.uint16]) -> None:
    """Bits of a row, 64 to a word, as words of 15; NO_ANSWER where there is no value."""
    for i in range(out.shape[0]):
        for word in range(out.shape[1]):
            start = WORD_BITS * word
            group, shift = start // 64, start % 64
            found = bits[i, group] >> np.uint64(shift)
            if shift > 64 - WORD_BITS and group + 1 < bits.shape[1]:
                found |= bits[i, group + 1] << np.uint64(64 - shift)
            out[i, word] = np.uint16(NO_ANSWER) if values[i] < 0 else np.uint16(found & _MASK)


@njit(cache=True, nogil=True)
def count_broken(words: NDArray[np.uint16], domain_size: int) -> int:
    """Reports, shape (n, words), that hold a bit beyond the domain, or NO_ANSWER in some words only."""
    broken = 0
    last = words.shape[1] - 1
    limit = 1 << (domain_size - WORD_BITS * last)
    for i in range(words.shape[0]):
        is_missing = words[i, 0] == NO_ANSWER
        n_bad = 0
        for word in range(words.shape[1]):
            found = np.int64(words[i, word])
            most = limit if word == last else 1 << WORD_BITS
            is_bad = found != NO_ANSWER if is_missing else found >= most
            n_bad += 1 if is_bad else 0
        broken += min(n_bad, 1)
    return broken


@njit(cache=True, nogil=True)
def tally_words(
    bitmaps: NDArray[np.uint64],
    words: NDArray[np.uint16],
    counts: NDArray[np.int64],
    n_reports: NDArray[np.int64],
    sign: int,
) -> None:
    """Add `sign` at [value, previous present day, day] for each bit of a report, and once to `n_reports`.

    `words` has shape (n, 1, words) for a report that is the same on all days, else (n, days, words).
    """
    for i in range(bitmaps.shape[0]):
        previous = 0
        for day in range(1, n_reports.shape[1]):
            if not bitmaps[i] >> np.uint64(day - 1) & _ONE:
                continue
            row = min(day, words.shape[1]) - 1
            if words[i, row, 0] != NO_ANSWER:
                n_reports[previous, day] += sign
                for word in range(words.shape[2]):
                    bits = np.uint64(words[i, row, word])
                    while bits != _ZERO:
                        place = _PLACE_OF[(bits & (~bits + _ONE)) % _PRIME - _ONE]
                        counts[WORD_BITS * word + place, previous, day] += sign
                        bits &= bits - _ONE
            previous = day
