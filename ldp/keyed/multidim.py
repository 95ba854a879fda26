"""Several indicators by GRR: Smp (each subscriber answers one of them) and Spl (each answers all).

The answers are those of `grr.answers`, bit for bit. Here they are made slice by slice of subscribers, whose
keyed blocks stay in the processor's cache from the first step to the count. Kernels and cipher let other
threads run: two threads with half of the subscribers each take half the time.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.errors import LdpError
from ldp.kernels import codes as kernels
from ldp.kernels.entropy import (
    ANSWER,
    BUFFER_BLOCKS,
    CHOOSE_INDICATOR,
    BlockBuffer,
    KeyedPrf,
    check_words,
    pack_fields,
    slices,
    uniform_limits,
)
from ldp.keyed import grr
from ldp.keyed.choices import choose_indicator
from ldp.privacy.plans import MAX_INDICATORS
from ldp.protocols.channels import GrrChannel

Codes = NDArray[np.uint16]
Counts = NDArray[np.int64]
Part = tuple[slice, NDArray[np.uint8], NDArray[np.uint16]]
Words = NDArray[np.uint64]

_CHOOSE: Final = pack_fields(purpose=CHOOSE_INDICATOR, indicator=0, plan_version=0, counter=0)
_NO_VALUE: Final = np.zeros(1, np.uint32)


def smp_answers(
    profiles: Codes,
    *,
    pseudonyms: Words,
    prf: KeyedPrf,
    channels: Sequence[GrrChannel],
    plan_version: int,
    shares: Sequence[int] | None = None,
) -> tuple[NDArray[np.uint8], Codes]:
    """Answer of each subscriber to the one indicator that she is asked (Smp[GRR]).

    Parameters
    ----------
    profiles : ndarray of uint16, shape (d, n); true code of each indicator (row) and subscriber (column), in
        [0, domain_size), or NO_ANSWER for no value; not modified
    pseudonyms : ndarray of uint64, shape (n,)
    prf : KeyedPrf; source of the bits
    channels : sequence of GrrChannel, one per indicator in plan order
    plan_version : int; in [1, 255]
    shares : as of `choose_indicator`

    Returns
    -------
    asked : ndarray of uint8, shape (n,); as `choose_indicator` gives it
    answers : ndarray of uint16, shape (n,); NO_ANSWER where there is no value

    Raises
    ------
    LdpError : shapes differ, or a code is out of range

    Notes
    -----
    Cost: two AES blocks per subscriber. Source: Arcolezi et al., CIKM 2021 (Smp).
    """
    asked = np.empty(pseudonyms.shape[0], np.uint8)
    answers = np.empty(pseudonyms.shape[0], np.uint16)
    answerer = Answerer(prf, channels, plan_version=plan_version, shares=shares)
    for part, part_asked, part_answers in answerer.sampled(profiles, pseudonyms):
        asked[part] = part_asked
        answers[part] = part_answers
    return asked, answers


def smp_counts(
    profiles: Codes,
    *,
    pseudonyms: Words,
    prf: KeyedPrf,
    channels: Sequence[GrrChannel],
    plan_version: int,
    shares: Sequence[int] | None = None,
) -> tuple[Counts, ...]:
    """Count `smp_answers` as they are made: memory does not grow with n; arguments and errors as there.

    Returns
    -------
    tuple of ndarray of int64, shape (domain_size,), one per indicator; answers per code
    """
    answerer = Answerer(prf, channels, plan_version=plan_version, shares=shares)
    return _counts(answerer.sampled(profiles, pseudonyms), channels)


def spl_answers(
    profiles: Codes, *, pseudonyms: Words, prf: KeyedPrf, channels: Sequence[GrrChannel], plan_version: int
) -> Codes:
    """Answers of each subscriber to all indicators (Spl[GRR]); arguments and errors as of `smp_answers`.

    Returns
    -------
    ndarray of uint16, shape (d, n); NO_ANSWER where there is no value

    Notes
    -----
    Cost: d AES blocks per subscriber. Each channel has its share of epsilon.
    """
    answers = np.empty(profiles.shape, np.uint16)
    answerer = Answerer(prf, channels, plan_version=plan_version)
    for part, asked, part_answers in answerer.split(profiles, pseudonyms):
        answers[asked[0], part] = part_answers
    return answers


def spl_counts(
    profiles: Codes, *, pseudonyms: Words, prf: KeyedPrf, channels: Sequence[GrrChannel], plan_version: int
) -> tuple[Counts, ...]:
    """Count `spl_answers` as they are made; arguments, errors and result as of `smp_counts`."""
    answerer = Answerer(prf, channels, plan_version=plan_version)
    return _counts(answerer.split(profiles, pseudonyms), channels)


def asked_answers(
    codes: Codes,
    *,
    asked: NDArray[np.uint8],
    pseudonyms: Words,
    prf: KeyedPrf,
    channels: Sequence[GrrChannel],
    plan_version: int,
) -> Codes:
    """Answer of each subscriber to the indicator in `beside`, indexed by her code.

    Parameters
    ----------
    codes : ndarray of uint16, shape (n,); true codes of the indicators asked, or NO_ANSWER for no value
    asked : ndarray of uint8, shape (n,); positions in the plan
    pseudonyms, prf, channels, plan_version : as in `smp_answers`

    Returns
    -------
    ndarray of uint16, shape (n,); NO_ANSWER where there is no value

    Raises
    ------
    LdpError : shapes differ, or a position or code is out of range

    Notes
    -----
    Cost: one AES block per subscriber.
    """
    check_words("pseudonyms", pseudonyms)
    _check("codes", codes, np.uint16, shape=pseudonyms.shape)
    _check("asked", asked, np.uint8, shape=pseudonyms.shape)
    if asked.size and asked.max() >= len(channels):
        raise LdpError(f"asked must be < {len(channels)}, got {asked.max()}")
    row = kernels.first_outside(asked, codes, _sizes(channels))
    if row >= 0:
        size = channels[asked[row]].domain_size
        raise LdpError(f"code of indicator {asked[row]} must be < {size} or {NO_ANSWER}, got {codes[row]}")
    answers = np.empty_like(codes)
    answerer = Answerer(prf, channels, plan_version=plan_version)
    for part in slices(codes.shape[0]):
        answerer.name(pseudonyms[part])
        answerer.answer(codes[part], asked[part], pseudonyms[part], answers[part])
    return answers


class Answerer:
    """Answers of one slice of subscribers after another, in memory that is used again.

    Parameters
    ----------
    prf : KeyedPrf; source of the bits
    channels : sequence of GrrChannel, one per indicator in plan order
    plan_version : int; in [1, 255]
    buffer : BlockBuffer or None; room for BUFFER_BLOCKS blocks, None takes new memory
    shares : as of `choose_indicator`
    """

    __slots__ = (
        "_asked",
        "_buffer",
        "_channels",
        "_codes",
        "_fields",
        "_limits",
        "_plan_version",
        "_prf",
        "_shares",
        "_uniform",
    )

    def __init__(
        self,
        prf: KeyedPrf,
        channels: Sequence[GrrChannel],
        *,
        plan_version: int,
        buffer: BlockBuffer | None = None,
        shares: Sequence[int] | None = None,
    ) -> None:
        if not 1 <= len(channels) <= MAX_INDICATORS:
            raise LdpError(f"number of channels must be in [1, {MAX_INDICATORS}], got {len(channels)}")
        self._prf = prf
        self._channels = tuple(channels)
        self._plan_version = plan_version
        self._limits = grr.limits_of(channels)
        same = {"purpose": ANSWER, "plan_version": plan_version, "counter": 0}
        self._fields = np.array([pack_fields(indicator=i, **same) for i in range(len(channels))], np.uint64)
        self._uniform = uniform_limits(len(channels))
        self._shares = shares
        self._buffer = prf.buffer(BUFFER_BLOCKS) if buffer is None else buffer
        self._codes = np.empty((2, BUFFER_BLOCKS), np.uint16)
        self._asked = np.empty(BUFFER_BLOCKS, np.uint8)

    def sampled(self, profiles: Codes, pseudonyms: Words) -> Iterator[Part]:
        """Yield subscribers, the indicator that each is asked, and the answers, which the next overwrite."""
        sizes = self._check(profiles, pseudonyms)
        codes, step = _in_one_row(profiles)
        for part in slices(pseudonyms.shape[0]):
            names = pseudonyms[part]
            asked, picked, answers = self._room(names.shape[0])
            self.name(names)
            self._choose(names, asked)
            if not kernels.pick_asked(codes, part.start, step, sizes, asked, picked):
                self._refuse(profiles)
            self.answer(picked, asked, names, answers)
            yield part, asked, answers

    def split(self, profiles: Codes, pseudonyms: Words) -> Iterator[Part]:
        """Yield subscribers, an indicator (for each the same) and the answers, which the next overwrite."""
        self._check(profiles, pseudonyms)
        for part in slices(pseudonyms.shape[0]):
            names = pseudonyms[part]
            asked, codes, answers = self._room(names.shape[0])
            self.name(names)
            for indicator, channel in enumerate(self._channels):
                asked.fill(indicator)
                codes[:] = profiles[indicator, part]
                if kernels.max_code(codes) >= channel.domain_size:
                    self._refuse(profiles)
                kernels.fill_asked(asked, codes, self._fields, self._buffer.blocks)
                self._seal(codes, asked[:1], names, answers)  # one for all: kernels look its limits up once
                yield part, asked, answers

    def name(self, pseudonyms: Words) -> None:
        """Begin the blocks of these subscribers; as they are, they choose the indicator."""
        kernels.fill_blocks(pseudonyms, _NO_VALUE, _CHOOSE, 1, self._buffer.blocks)

    def answer(self, codes: Codes, asked: NDArray[np.uint8], names: Words, answers: Codes) -> None:
        """Answer by blocks that are begun."""
        kernels.fill_asked(asked, codes, self._fields, self._buffer.blocks)
        self._seal(codes, asked, names, answers)

    def _choose(self, names: Words, asked: NDArray[np.uint8]) -> None:
        evenly = self._shares is None
        if not evenly or kernels.reduce_words(self._buffer.seal(asked.shape[0]), *self._uniform, asked):
            asked[:] = choose_indicator(names, prf=self._prf, d=len(self._channels), shares=self._shares)

    def _seal(self, codes: Codes, asked: NDArray[np.uint8], names: Words, answers: Codes) -> None:
        sealed = self._buffer.seal(codes.shape[0])
        if kernels.grr_answers(codes, asked, sealed, self._limits, answers):
            self._answer_slowly(codes, asked, names, answers)

    def _answer_slowly(self, codes: Codes, asked: NDArray[np.uint8], names: Words, answers: Codes) -> None:
        """Answers of which one may need a second block: not once in a lifetime."""
        values = np.where(codes == NO_ANSWER, np.int32(-1), codes.astype(np.int32))
        asked = np.broadcast_to(asked, codes.shape)
        for indicator in np.unique(asked).tolist():
            rows = np.flatnonzero(asked == indicator)
            answers[rows] = grr.answers(
                values[rows],
                pseudonyms=names[rows],
                prf=self._prf,
                channel=self._channels[indicator],
                indicator=indicator,
                plan_version=self._plan_version,
            )

    def _room(self, size: int) -> tuple[NDArray[np.uint8], Codes, Codes]:
        return self._asked[:size], self._codes[0, :size], self._codes[1, :size]

    def _check(self, profiles: Codes, pseudonyms: Words) -> NDArray[np.int64]:
        """Domain sizes, if the shapes fit."""
        check_words("pseudonyms", pseudonyms)
        _check("profiles", profiles, np.uint16, shape=(len(self._channels), pseudonyms.shape[0]))
        return _sizes(self._channels)

    def _refuse(self, profiles: Codes) -> None:
        for indicator, channel in enumerate(self._channels):
            if (largest := kernels.max_code(profiles[indicator])) >= channel.domain_size:
                name, size = f"code of indicator {indicator}", channel.domain_size
                raise LdpError(f"{name} must be < {size} or {NO_ANSWER}, got {largest}")


def _counts(parts: Iterator[Part], channels: Sequence[GrrChannel]) -> tuple[Counts, ...]:
    """Answers per indicator and code, counted in one array."""
    sizes = _sizes(channels)
    ends = np.cumsum(sizes)
    counts = np.zeros(ends[-1] + 1, np.int64)
    for _, asked, answers in parts:
        kernels.count_answers(asked, answers, ends - sizes, counts)
    return tuple(np.split(counts[:-1], ends[:-1]))


def _in_one_row(profiles: Codes) -> tuple[Codes, int]:
    """Memory from the first to the last code, and the distance of the same subscriber's next code in it.

    So one compiled kernel serves whole profiles and slices of some subscribers, as fast.
    """
    d, n = profiles.shape
    row_bytes, code_bytes = profiles.strides
    if code_bytes != profiles.itemsize or row_bytes < n * code_bytes or row_bytes % code_bytes:
        profiles, row_bytes = np.ascontiguousarray(profiles), n * profiles.itemsize
    step = row_bytes // profiles.itemsize
    size = (d - 1) * step + n if n else 0
    return as_strided(profiles, shape=(size,), strides=(profiles.itemsize,), writeable=False), step


def _sizes(channels: Sequence[GrrChannel]) -> NDArray[np.int64]:
    return np.array([channel.domain_size for channel in channels], np.int64)


def _check(name: str, array: NDArray[Any], dtype: type[np.generic], *, shape: tuple[int, ...]) -> None:
    if array.dtype != dtype or array.shape != shape:
        raise LdpError(
            f"{name} must be {dtype.__name__} of shape {shape}, got {array.dtype} of {array.shape}"
        )
