"""Keyed bits of subscribers: AES-128, never a statistical generator. Random bits come from here or `streams`.

The layout of the keyed block is frozen: a change would give a second, independent answer to every subscriber
and so spend epsilon twice. The tests hold golden vectors.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, TypedDict, Unpack

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.kernels import codes
from ldp.kernels.streams import BLOCK_BYTES, Words, check_key, last_accepted

CHOOSE_INDICATOR: Final = 1
CHOOSE_DAYS: Final = 2
ANSWER: Final = 3
FAKE_DATA: Final = 4
HASH_SEED: Final = 6
HASH_VALUE: Final = 7
SECOND_ROUND: Final = 5
FAKE_BITS: Final = 8
LOCATION: Final = 9
CHOOSE_LOCATION_DAYS: Final = 10
PRESENCE_NOISE: Final = 11  # the first 64 bits are the place of a count, not a pseudonym
CHOOSE_CUT: Final = 12
CHOOSE_SLOT: Final = 13  # one of the days of a window; not a slot of time
TRIP_PICK: Final = 14
TRIP_ANSWER: Final = 15
SLOT_NOISE: Final = 16  # as with PRESENCE_NOISE
CHOOSE_QUESTION: Final = 17
EVENT: Final = 18  # the first 64 bits are of the content of a row, not a pseudonym

BUFFER_BLOCKS: Final = 16_384  # 256 KiB of AES blocks: the fastest size, and it stays in the L2 cache

_MAX_VALUE: Final = 2**24 - 1
_MAX_COUNTER: Final = 2**16 - 1


class PlanFields(TypedDict):
    """Position of an indicator in the plan, and the plan's version; each in [0, 255]."""

    indicator: int
    plan_version: int


class BlockFields(PlanFields):
    """Fields of a keyed block next to pseudonym, value and counter; purpose in [0, 255]."""

    purpose: int


class BlockBuffer:
    """Keyed blocks of a slice of subscribers and what the cipher makes of them: memory that is used again.

    `blocks` and the result of `seal` are flat, two words to a block, with their bytes as the cipher reads and
    writes them (big-endian): kernels reverse them.

    Parameters
    ----------
    cipher : Cipher; AES-ECB under the key
    n_blocks : int; room
    """

    __slots__ = ("_encryptor", "_output", "_plain", "_sealed", "blocks")

    def __init__(self, cipher: Cipher[modes.ECB], n_blocks: int) -> None:
        self._encryptor = cipher.encryptor()
        self.blocks = np.empty(2 * n_blocks, np.uint64)
        self._plain = self.blocks.view(np.uint8).data
        output = output_buffer(n_blocks)
        self._output = output.data
        self._sealed = output[: BLOCK_BYTES * n_blocks].view(np.uint64)

    def seal(self, n_blocks: int) -> Words:
        """Cipher words of the first blocks, uint64, shape (2 * n_blocks,); valid until the next call."""
        self._encryptor.update_into(self._plain[: BLOCK_BYTES * n_blocks], self._output)
        return self._sealed[: 2 * n_blocks]


class KeyedPrf:
    """Keyed bits of a subscriber for one purpose: the same on every worker and every retry.

    One AES-128 call per subscriber on the block (big-endian fields, leftmost first)
    ``pseudonym 64 | purpose 8 | indicator 8 | plan_version 8 | value 24 | counter 16``.

    Parameters
    ----------
    key : bytes, 16 of them (`derive_subkey(master, purpose="sanitise")`)

    Raises
    ------
    LdpError : key has not 16 bytes
    """

    __slots__ = ("_cipher",)

    def __init__(self, key: bytes) -> None:
        self._cipher = aes_ecb(key)

    def words(
        self,
        pseudonyms: Words,
        *,
        values: int | NDArray[np.uint32],
        counter: int,
        **fields: Unpack[BlockFields],
    ) -> Words:
        """Two 64-bit words per subscriber: the first and the last 8 bytes of the cipher block, big-endian.

        Parameters
        ----------
        pseudonyms : ndarray of uint64, shape (n,); not modified
        values : int or ndarray of uint32, shape (n,), in [0, 2**24)
        counter : int in [0, 2**16)
        fields : purpose, indicator and plan_version

        Returns
        -------
        ndarray of uint64, shape (n, 2)

        Raises
        ------
        LdpError : a field does not fit, or shapes differ
        """
        words = np.empty((pseudonyms.shape[0], 2), np.uint64)
        for part, chunk in self.chunks(pseudonyms, values=values, counter=counter, **fields):
            words[part] = chunk
        return words

    def chunks(
        self,
        pseudonyms: Words,
        *,
        values: int | NDArray[np.uint32],
        counter: int,
        **fields: Unpack[BlockFields],
    ) -> Iterator[tuple[slice, Words]]:
        """Yield the words of `words` slice by slice, in one buffer that the next slice overwrites."""
        words = np.empty(2 * min(BUFFER_BLOCKS, pseudonyms.shape[0]), np.uint64)
        for part, sealed in self.runs(pseudonyms, values=values, counter=counter, **fields):
            chunk = words[: sealed.shape[0]]
            codes.swap_words(sealed, chunk)
            yield part, chunk.reshape(-1, 2)

    def runs(
        self,
        pseudonyms: Words,
        *,
        values: int | NDArray[np.uint32],
        counter: int,
        n_blocks: int = 1,
        **fields: Unpack[BlockFields],
    ) -> Iterator[tuple[slice, Words]]:
        """Yield the blocks of consecutive counters slice by slice, in one buffer that the next overwrites.

        Yields
        ------
        rows, and ndarray of uint64, shape (2 * n_blocks * rows,): both words of every row under the first
        counter, then those under the next. Their bytes are in the order of the cipher: `words` reverses them.
        """
        check_words("pseudonyms", pseudonyms)
        pack_fields(**fields, counter=counter + n_blocks - 1)
        packed = pack_fields(**fields, counter=counter)
        checked = _checked_values(values, size=pseudonyms.shape[0])
        rows = max(1, BUFFER_BLOCKS // n_blocks)
        buffer = self.buffer(n_blocks * min(rows, pseudonyms.shape[0]))
        for part in slices(pseudonyms.shape[0], rows=rows):
            one_each = checked if checked.size == 1 else checked[part]
            size = n_blocks * pseudonyms[part].shape[0]
            codes.fill_blocks(pseudonyms[part], one_each, packed, n_blocks, buffer.blocks[: 2 * size])
            yield part, buffer.seal(size)

    def buffer(self, n_blocks: int) -> BlockBuffer:
        """Room for blocks that a caller fills itself."""
        return BlockBuffer(self._cipher, n_blocks)

    def below(
        self,
        pseudonyms: Words,
        *,
        bound: int,
        value: int | NDArray[np.uint32],
        counter: int = 0,
        **fields: Unpack[BlockFields],
    ) -> Words:
        """Uniform integer below `bound` per subscriber, without modulo bias (rejection with the counter).

        Parameters
        ----------
        bound : int; at least 1
        counter : int; the first one; what is rejected takes the next ones

        Returns
        -------
        ndarray of uint64, shape (n,)

        Raises
        ------
        LdpError : bound < 1, or a field does not fit
        """
        if bound < 1:
            raise LdpError(f"bound must be >= 1, got {bound}")
        drawn, biased = self._below_once(pseudonyms, bound=bound, values=value, counter=counter, **fields)
        while biased:
            counter += 1
            rows = np.flatnonzero(drawn == bound)
            keyed = value[rows] if isinstance(value, np.ndarray) else value
            drawn[rows], biased = self._below_once(
                pseudonyms[rows], bound=bound, values=keyed, counter=counter, **fields
            )
        return drawn

    def _below_once(
        self,
        pseudonyms: Words,
        *,
        bound: int,
        values: int | NDArray[np.uint32],
        counter: int,
        **fields: Unpack[BlockFields],
    ) -> tuple[Words, int]:
        """Integers below `bound`, and how many are not, but `bound` itself: their words were biased."""
        drawn = np.empty(pseudonyms.shape[0], np.uint64)
        limits = uniform_limits(bound)
        biased = 0
        for part, sealed in self.runs(pseudonyms, values=values, counter=counter, **fields):
            biased += codes.reduce_words(sealed, *limits, drawn[part])
        return drawn, biased


def slices(size: int, *, rows: int = BUFFER_BLOCKS) -> Iterator[slice]:
    """Yield slices of at most `rows` rows that together cover all of them."""
    for start in range(0, size, rows):
        yield slice(start, min(start + rows, size))


def uniform_limits(bound: int) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Precomputed values for numbers below `bound`: itself, its reciprocal, and the largest unbiased word."""
    return np.uint64(bound), codes.reciprocal(bound), last_accepted(bound)


def word_bounds(weights: Sequence[int]) -> Words:
    """Running sums of weights out of 2**64: how many of them a word reaches is what it stands for.

    The sum 2**64 is left out, since no word reaches it.
    """
    return np.array([total for total in accumulate(weights) if total < 2**64], np.uint64)


def check_words(name: str, words: Words) -> None:
    """Raise LdpError unless these are words in one row."""
    if words.dtype != np.uint64 or words.ndim != 1:
        raise LdpError(f"{name} must be uint64 of shape (n,), got {words.dtype} of {words.shape}")


def aes_ecb(key: bytes) -> Cipher[modes.ECB]:
    check_key(key)
    # ECB is the bare block function: every block here is distinct by construction and nothing is a message.
    return Cipher(algorithms.AES(key), modes.ECB())  # noqa: S305


def output_buffer(n_blocks: int) -> NDArray[np.uint8]:
    """Room for n blocks; `update_into` insists on one block less one byte more."""
    return np.empty(n_blocks * BLOCK_BYTES + BLOCK_BYTES - 1, np.uint8)


def pack_fields(*, purpose: int, indicator: int, plan_version: int, counter: int) -> np.uint64:
    """Everything of the block's second half but the value; LdpError if a field does not fit."""
    bounds = {
        "purpose": (purpose, 255),
        "indicator": (indicator, 255),
        "plan_version": (plan_version, 255),
        "counter": (counter, _MAX_COUNTER),
    }
    for name, (value, high) in bounds.items():
        if not 0 <= value <= high:
            raise LdpError(f"{name} must be in [0, {high}], got {value}")
    return np.uint64(purpose << 56 | indicator << 48 | plan_version << 40 | counter)


def _checked_values(values: int | NDArray[np.uint32], *, size: int) -> NDArray[np.uint32]:
    """One value for all (shape (1,)) or one each (shape (size,))."""
    if not isinstance(values, np.ndarray):
        if not 0 <= values <= _MAX_VALUE:
            raise LdpError(f"value must be in [0, {_MAX_VALUE}], got {values}")
        return np.full(1, values, np.uint32)
    if values.shape != (size,):
        raise LdpError(f"values must have shape ({size},), got {values.shape}")
    if size and int(values.max()) > _MAX_VALUE:
        raise LdpError(f"value must be in [0, {_MAX_VALUE}], got {values.max()}")
    return values
