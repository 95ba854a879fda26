"""Bits with keyed randomness, 64 of a subscriber at a time: "lanes" of a word.

Each lane has a 64-bit random number of its own and is one where the number is below the threshold: p where
the true bit is one, else q. Word j of a group of 64 lanes holds digit j of all numbers, highest first. It is
word j % 2 of the block with counter `counter + j // 2`. Digits that cannot matter are not drawn: a group
takes about log2(lanes) / 2 + 1 blocks instead of half a block for each lane.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from ldp import kernels_bits
from ldp.entropy import KeyedPrf
from ldp.families.unary import UnaryChannel

LANES: Final = 64
BLOCKS: Final = 32  # counters that one group may use

Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Digits:
    """Binary digits of both thresholds of each lane, highest first.

    Parameters
    ----------
    p, q : ndarray of uint64, shape (64,); lane i of word j is digit j of the threshold of lane i
    """

    p: Words
    q: Words

    @classmethod
    def of(cls, channel: UnaryChannel) -> Self:
        """Digits of a channel: all lanes have its thresholds."""
        return cls.of_lanes(p=[channel.threshold_p] * LANES, q=[channel.threshold_q] * LANES)

    @classmethod
    def of_lanes(cls, *, p: Sequence[int], q: Sequence[int]) -> Self:
        """Digits of lanes with thresholds of their own, in [0, 2**64); at most 64, the others have 0."""
        return cls(p=_digits(p), q=_digits(q))


def draw(
    truth: Words,
    *,
    undecided: Words,
    digits: Digits,
    pseudonyms: Words,
    keyed: NDArray[np.uint32],
    prf: KeyedPrf,
    counter: int,
    **fields: int,
) -> Words:
    """Noisy bits of one group.

    Parameters
    ----------
    truth : ndarray of uint64, shape (n,); true bits; not modified
    undecided : ndarray of uint64, shape (n,); lanes to draw, the others stay zero; overwritten
    digits : Digits; of the thresholds
    pseudonyms, keyed : ndarray, shape (n,); of the keyed blocks
    counter, fields : int; first counter, and the other fields of the blocks

    Returns
    -------
    ndarray of uint64, shape (n,)
    """
    out = below = np.zeros_like(truth)
    rows = np.empty(0, np.int64)  # rows of `out` that are left; empty as long as all are
    for block in range(BLOCKS):
        p, q = digits.p[2 * block : 2 * block + 2], digits.q[2 * block : 2 * block + 2]
        n_open = 0
        for part, words in prf.chunks(pseudonyms, values=keyed, counter=counter + block, **fields):
            n_open += kernels_bits.compare_lanes(truth[part], words, p, q, undecided[part], below[part])
        if 2 * n_open > below.size:
            continue
        if rows.size:
            out[rows] = below
        if n_open == 0:
            return out
        kept = tuple(np.empty((4, n_open + 1), np.uint64))
        kept_keyed, kept_rows = np.empty(n_open + 1, np.uint32), np.empty(n_open + 1, np.int64)
        kernels_bits.keep_open(undecided, below, truth, pseudonyms, keyed, rows, kept, kept_keyed, kept_rows)
        undecided, below, truth, pseudonyms = (array[:n_open] for array in kept)
        keyed, rows = kept_keyed[:n_open], kept_rows[:n_open]
    # Numbers equal to their threshold in all digits are not below it.
    if rows.size:
        out[rows] = below
    return out


def _digits(thresholds: Sequence[int]) -> Words:
    """Transpose of the binary numbers: lanes across, digits down."""
    return np.array(
        [
            sum((threshold >> shift & 1) << lane for lane, threshold in enumerate(thresholds))
            for shift in range(63, -1, -1)
        ],
        np.uint64,
    )
