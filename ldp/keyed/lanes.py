"""Bits with keyed randomness, up to 64 of a subscriber at a time: "lanes" of a word.

Each lane has its own 64-bit random number, and is one where the number is below the threshold: p where
the true bit is one, else q. The binary digits of the numbers of a group of lanes, highest first, go to both
words of a keyed block in turn, then to those of the next counter. A word, read with its lowest byte first,
holds as many digits as fit, 64 // lanes: the first one of all lanes in the lowest bits, the next one above.
Digits that cannot matter are not drawn: 37 lanes take about 4.2 blocks, and up to 12 hardly more than one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.kernels import codes
from ldp.kernels import lanes as kernels_bits
from ldp.kernels.entropy import BUFFER_BLOCKS, KeyedPrf, pack_fields, slices
from ldp.protocols.unary import UnaryChannel

LANES: Final = 64
BLOCKS: Final = 32  # counters that one group may use

Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Digits:
    """Binary digits of both thresholds of each lane, highest first.

    Parameters
    ----------
    lanes : int; in [1, 64]
    table : ndarray of uint64, shape (4, 64); bit i of word j: digit j of p and of q of lane i, and whether
        p and q have a one after it
    """

    lanes: int
    table: Words

    @classmethod
    def of(cls, channel: UnaryChannel, *, lanes: int) -> Self:
        """Digits of a channel, the same for all lanes."""
        return cls.of_lanes(p=[channel.threshold_p] * lanes, q=[channel.threshold_q] * lanes)

    @classmethod
    def of_lanes(cls, *, p: Sequence[int], q: Sequence[int]) -> Self:
        """Digits of lanes with individual thresholds, in [0, 2**64).

        Raises
        ------
        LdpError : p and q are not of equally many lanes, from 1 to 64
        """
        if not 1 <= len(p) <= LANES or len(p) != len(q):
            raise LdpError(f"p and q must be of 1 to {LANES} lanes, the same, got {len(p)} and {len(q)}")
        table = np.zeros((4, LANES), np.uint64)
        for row, thresholds in enumerate((p, q)):
            table[row] = _transpose(thresholds)
            table[2 + row, :-1] = np.bitwise_or.accumulate(table[row, :0:-1])[::-1]
        return cls(lanes=len(p), table=table)

    @property
    def per_block(self) -> int:
        """Digits of each lane that a keyed block holds."""
        return 2 * (LANES // self.lanes)

    @property
    def first(self) -> int:
        """Digits that all rows draw before the open ones continue alone: enough that few are open."""
        bits = (self.lanes - 1).bit_length()
        n_blocks = max(1, (bits + 2 + self.per_block // 2) // self.per_block)
        return min(n_blocks * self.per_block, (bits + 5) // 2 * 2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Round:
    """Where the random numbers of a round come from, and what they are compared with.

    Parameters
    ----------
    channel : UnaryChannel
    purpose, counter : int; of the keyed blocks; 64 values further on begin 32 counters later
    """

    channel: UnaryChannel
    purpose: int
    counter: int = 0


def reports(
    values: NDArray[np.int32], *, pseudonyms: Words, rounds: Sequence[Round], prf: KeyedPrf, **fields: int
) -> Words:
    """One bit per value, one for the true one, after one round or more.

    Parameters
    ----------
    values : ndarray of int32, shape (n,); codes in [0, domain_size), or -1 for no value; not modified
    pseudonyms : ndarray of uint64, shape (n,)
    rounds : sequence of Round; each takes the bits of the one before
    prf, fields : source of the bits, and the blocks' indicator and plan_version

    Returns
    -------
    ndarray of uint64, shape (n, ceil(domain_size / 64)); bit v % 64 of word v // 64 is that of value v; no
    bit is set where the value is -1
    """
    k = rounds[0].channel.domain_size
    out = np.empty((values.shape[0], -(-k // LANES)), np.uint64)
    for part, group, bits in _groups(values, pseudonyms=pseudonyms, rounds=rounds, prf=prf, **fields):
        out[part, group] = bits
    return out


def support_counts(
    values: NDArray[np.int32], *, pseudonyms: Words, rounds: Sequence[Round], prf: KeyedPrf, **fields: int
) -> NDArray[np.int64]:
    """Ones per value in `reports`, in bounded memory; int64, shape (domain_size,); arguments as there."""
    counts = np.zeros(rounds[0].channel.domain_size, np.int64)
    for _, group, bits in _groups(values, pseudonyms=pseudonyms, rounds=rounds, prf=prf, **fields):
        kernels_bits.add_lanes(bits, counts[group * LANES : (group + 1) * LANES])
    return counts


def count_support(words: Words, *, domain_size: int) -> NDArray[np.int64]:
    """Ones per value in packed bits; int64, shape (domain_size,)."""
    counts = np.zeros(domain_size, np.int64)
    for group in range(words.shape[1]):
        lanes = np.ascontiguousarray(words[:, group])
        kernels_bits.add_lanes(lanes, counts[group * LANES : (group + 1) * LANES])
    return counts


def draw(
    truth: Words,
    *,
    drawn: Words,
    digits: Digits,
    pseudonyms: Words,
    keyed: int | NDArray[np.uint32],
    prf: KeyedPrf,
    counter: int,
    **fields: int,
) -> Words:
    """Noisy bits of one group.

    Parameters
    ----------
    truth : ndarray of uint64, shape (n,); true bits; not modified
    drawn : ndarray of uint64, shape (n,); lanes to draw, the others stay zero; not modified
    digits : Digits; of the thresholds of all lanes
    pseudonyms, keyed : ndarray, shape (n,), or one int for all; of the keyed blocks
    prf, counter, fields : source of the bits, first counter, and the other fields of the blocks

    Returns
    -------
    ndarray of uint64, shape (n,)

    Raises
    ------
    LdpError : a field of the blocks does not fit, or one of the 32 counters
    """
    out = np.empty_like(truth)
    # The last counter must fit, too.
    packed = pack_fields(**fields, counter=counter + BLOCKS - 1) - np.uint64(BLOCKS - 1)
    scratch = _Scratch(prf)
    values = keyed if isinstance(keyed, np.ndarray) else np.full(1, keyed, np.uint32)
    for part in slices(truth.shape[0], rows=BUFFER_BLOCKS):
        scratch.draw(
            truth[part], drawn[part], digits, packed, pseudonyms[part], _some(values, part), out[part]
        )
    return out


class _Scratch:
    """Memory for one part of the rows, small enough for the L2 cache, and used again for the next."""

    __slots__ = ("_buffer", "_keyed", "_pseudonyms", "_rows", "_undecided")

    def __init__(self, prf: KeyedPrf) -> None:
        self._buffer = prf.buffer(BUFFER_BLOCKS)
        self._rows = np.empty(BUFFER_BLOCKS + 1, np.int64)
        self._undecided, self._pseudonyms = np.empty((2, BUFFER_BLOCKS), np.uint64)
        self._keyed = np.empty(BUFFER_BLOCKS, np.uint32)

    def draw(
        self,
        truth: Words,
        drawn: Words,
        digits: Digits,
        fields: np.uint64,
        pseudonyms: Words,
        keyed: NDArray[np.uint32],
        out: Words,
    ) -> None:
        """Draw like the function `draw`, into `out`, for as many rows as fit; `fields` are packed."""
        undecided, table, lanes = self._undecided[: truth.shape[0]], digits.table, digits.lanes
        done, per_block = digits.first, digits.per_block
        n_blocks = -(-done // per_block)
        at_once = BUFFER_BLOCKS // n_blocks
        for part in slices(truth.shape[0], rows=at_once):
            run = self._sealed(pseudonyms[part], _some(keyed, part), fields, n_blocks)
            kernels_bits.compare_lanes(
                truth[part], drawn[part], run, table, lanes, done, undecided[part], out[part]
            )
        n_open = kernels_bits.open_rows(undecided, self._rows)
        while n_open:
            block = done // per_block  # some of its digits may be done
            # A call costs as much as 2,000 blocks or so: few rows had better take several. There is room.
            n_blocks = min(max(1, min(4, BUFFER_BLOCKS // 8 // n_open)), -(-LANES // per_block) - block)
            rows, some = self._rows[:n_open], slice(n_open)
            kernels_bits.take_rows(rows, pseudonyms, keyed, self._pseudonyms, self._keyed)
            one_each = keyed if keyed.size == 1 else self._keyed[some]
            run = self._sealed(self._pseudonyms[some], one_each, fields + np.uint64(block), n_blocks)
            last = min(LANES, (block + n_blocks) * per_block)
            n_open = kernels_bits.compare_open(truth, run, table, lanes, done, last, undecided, out, rows)
            done = last

    def _sealed(
        self, pseudonyms: Words, keyed: NDArray[np.uint32], fields: np.uint64, n_blocks: int
    ) -> Words:
        """Cipher blocks of consecutive counters."""
        size = n_blocks * pseudonyms.shape[0]
        codes.fill_blocks(pseudonyms, keyed, fields, n_blocks, self._buffer.blocks[: 2 * size])
        return self._buffer.seal(size)


def _groups(
    values: NDArray[np.int32], *, pseudonyms: Words, rounds: Sequence[Round], prf: KeyedPrf, **fields: int
) -> Iterator[tuple[slice, int, Words]]:
    """Yield subscribers, the number of a group of 64 values, and their bits, overwritten by the next."""
    starts = range(0, rounds[0].channel.domain_size, LANES)
    sizes = [min(LANES, starts.stop - start) for start in starts]
    digits = {(i, n): Digits.of(rounds[i].channel, lanes=n) for i in range(len(rounds)) for n in set(sizes)}
    scratch, room = _Scratch(prf), np.empty((3, BUFFER_BLOCKS), np.uint64)
    for part in slices(values.shape[0], rows=BUFFER_BLOCKS):
        keyed = np.maximum(values[part], 0).view(np.uint32)
        truth, drawn, bits = room[:, : keyed.size]
        for group, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            kernels_bits.one_hot(values[part], start, np.uint64(2**size - 1), bits, drawn)
            for i, each in enumerate(rounds):
                truth, bits = bits, truth
                packed = pack_fields(purpose=each.purpose, counter=each.counter + group * BLOCKS, **fields)
                scratch.draw(truth, drawn, digits[i, size], packed, pseudonyms[part], keyed, bits)
            yield part, group, bits


def _some(keyed: NDArray[np.uint32], part: slice) -> NDArray[np.uint32]:
    """Values of some rows, or the one value of all."""
    return keyed if keyed.size == 1 else keyed[part]


def _transpose(thresholds: Sequence[int]) -> Words:
    """Binary numbers, lanes across and digits down."""
    numbers = np.array(thresholds, np.uint64)
    shifts = np.arange(LANES, dtype=np.uint64)
    digits = numbers >> shifts[::-1, None] & np.uint64(1)
    return np.asarray(np.bitwise_or.reduce(digits << shifts[: numbers.size], axis=1), np.uint64)
