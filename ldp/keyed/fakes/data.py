"""RS+FD and RS+RFD with keyed bits: a lasting report per subscriber and indicator, one of them an answer.

Which indicator is answered is drawn as for Smp if all shares are equal; else the first word of the same block
is compared with the running sums of the shares. The answer is that of the oracle alone. The fakes are those
of `fake_values` and `fake_bits`.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.kernels import codes, fakes
from ldp.kernels.entropy import (
    BUFFER_BLOCKS,
    CHOOSE_INDICATOR,
    KeyedPrf,
    check_words,
    pack_fields,
    uniform_limits,
    word_bounds,
)
from ldp.keyed.choices import choose_indicator
from ldp.keyed.fakes.bits import BlankBits, EncodedBits
from ldp.keyed.fakes.codes import CodeReports
from ldp.keyed.fakes.values import FakeNumbers, Part, seal
from ldp.protocols.channels import WORD
from ldp.protocols.fake_data import FakeDataChannel, PriorFakeDataChannel
from ldp.protocols.faked_reports import FakedChannel, PriorFakedChannel

_CHOOSE = pack_fields(purpose=CHOOSE_INDICATOR, indicator=0, plan_version=0, counter=0)
_ROWS_AT_ONCE = 16 * BUFFER_BLOCKS

Channel = FakeDataChannel | PriorFakeDataChannel
Values = NDArray[np.int32]
Words = NDArray[np.uint64]


def answers(
    values: Sequence[Values], *, pseudonyms: Words, prf: KeyedPrf, channel: Channel, plan_version: int
) -> tuple[NDArray[Any], ...]:
    """Reports of each subscriber on all indicators; the same arguments always give the same reports.

    Parameters
    ----------
    values : sequence of ndarray of int32, shape (n,), one per indicator in plan order; true codes in
        [0, domain_size), or -1 for no value; not modified
    pseudonyms : ndarray of uint64, shape (n,)
    prf : KeyedPrf; source of the bits
    channel : FakeDataChannel or PriorFakeDataChannel; shares are equal, or integers out of 2**64
    plan_version : int; in [1, 255]

    Returns
    -------
    tuple of ndarrays, per indicator: of GRR, uint16 codes, shape (n,), NO_ANSWER where the value is -1, in
    the answer or a fake; of unary encoding, uint64 words of bits, shape (n, ceil(domain_size / 64)), bit
    v % 64 of word v // 64 being that of value v, and no bit set where the value is -1

    Raises
    ------
    LdpError : shapes differ, a value is out of range, or a share is none of these

    Notes
    -----
    A fake does not depend on the value: it stays when the value changes, so a report that changes is the
    answer. The losses of the channel are therefore those of unchanged values, answered under one
    plan. Cost: two AES blocks per subscriber and one for each two groups of fake values; four for 64 bits.
    Source: Arcolezi et al., CIKM 2021 (RS+FD); Arcolezi et al., PVLDB 16(5), 2023 (RS+RFD).
    """
    reporter = _Reporter(channel, prf=prf, plan_version=plan_version)
    parts = [reporter.reports(part) for part in reporter.parts(values, pseudonyms)]
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def support_counts(
    values: Sequence[Values], *, pseudonyms: Words, prf: KeyedPrf, channel: Channel, plan_version: int
) -> tuple[NDArray[np.int64], ...]:
    """Reports that support each value, per indicator, straight from the values.

    Takes what `answers` takes, and raises what it raises.

    Returns
    -------
    tuple of ndarray of int64, shape (domain_size,); what `pure_frequencies` takes for `channel.reports`

    Notes
    -----
    Reports are made, counted and forgotten in parts: memory does not grow with n.
    """
    reporter = _Reporter(channel, prf=prf, plan_version=plan_version)
    for part in reporter.parts(values, pseudonyms):
        reporter.count(part)
    return reporter.counts()


class _Reporter:
    """Reports of one plan, by the kind of their fakes, and counts of them so far."""

    def __init__(self, channel: Channel, *, prf: KeyedPrf, plan_version: int) -> None:
        reports: Sequence[FakedChannel | PriorFakedChannel] = channel.reports
        self._prf = prf
        self._plan_version = plan_version
        self._channels = [report.answer for report in reports]
        self._bounds = _share_bounds([report.share for report in reports])
        self._evenly = uniform_limits(len(reports))
        self._numbers = FakeNumbers(reports, plan_version=plan_version)
        self._buffer = prf.buffer(BUFFER_BLOCKS)
        kinds: dict[str, dict[int, Any]] = {"code": {}, "no value": {}, "any value": {}}
        for index, report in enumerate(reports):
            kinds[report.fake][index] = report.answer
        source: dict[str, Any] = {"prf": prf, "plan_version": plan_version}
        self._codes = (
            CodeReports(kinds["code"], d=len(reports), numbers=self._numbers, buffer=self._buffer, **source)
            if kinds["code"]
            else None
        )
        self._makers: list[CodeReports | BlankBits | EncodedBits] = [self._codes] if self._codes else []
        if kinds["no value"]:
            self._makers.append(BlankBits(kinds["no value"], d=len(reports), **source))
        if kinds["any value"]:
            self._makers.append(EncodedBits(kinds["any value"], numbers=self._numbers, **source))

    def parts(self, values: Sequence[Values], pseudonyms: Words) -> Iterator[Part]:
        """Yield the subscribers part by part, with what is drawn for them; at least one part."""
        if len(values) != len(self._channels):
            raise LdpError(f"values must be of {len(self._channels)} indicators, got {len(values)}")
        check_words("pseudonyms", pseudonyms)
        for column in values:
            if column.dtype != np.int32 or column.shape != pseudonyms.shape:
                shape = pseudonyms.shape
                raise LdpError(f"values must be int32 of shape {shape}, got {column.dtype} of {column.shape}")
        for start in range(0, max(1, pseudonyms.shape[0]), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            yield self._part([column[rows] for column in values], pseudonyms[rows])

    def reports(self, part: Part) -> list[NDArray[Any]]:
        """Reports per indicator."""
        found = {index: reports for maker in self._makers for index, reports in maker.reports(part)}
        return [found[index] for index in range(len(self._channels))]

    def count(self, part: Part) -> None:
        """Add the reports to the counts."""
        for maker in self._makers:
            maker.count(part)

    def counts(self) -> tuple[NDArray[np.int64], ...]:
        """Counts per indicator."""
        found = {index: counts for maker in self._makers for index, counts in maker.counts()}
        return tuple(found[index] for index in range(len(self._channels)))

    def _part(self, columns: list[Values], pseudonyms: Words) -> Part:
        """Draw slice by slice: keyed blocks stay in the processor's cache until they are used."""
        size = pseudonyms.shape[0]
        asked, picked = np.empty(size, np.uint8), np.empty(size, np.uint16)
        missing = np.zeros(len(columns), np.bool_)
        numbers = np.empty((len(self._numbers.groups), size), np.uint16)
        for start in range(0, size, BUFFER_BLOCKS):
            rows = slice(start, min(start + BUFFER_BLOCKS, size))
            names = pseudonyms[rows]
            self._choose(names, asked[rows])
            missing |= self._pick([column[rows] for column in columns], asked[rows], picked[rows])
            self._numbers.draw(names, buffer=self._buffer, out=numbers[:, rows])
            if self._codes:
                self._codes.answer(
                    picked[rows], asked=asked[rows], pseudonyms=names, numbers=numbers, start=start
                )
        return Part(
            columns=columns,
            missing=tuple(np.flatnonzero(missing).tolist()),
            pseudonyms=pseudonyms,
            asked=asked,
            picked=picked,
            numbers=numbers,
        )

    def _choose(self, pseudonyms: Words, asked: NDArray[np.uint8]) -> None:
        """Write the indicator that each subscriber answers."""
        sealed = seal(self._buffer, pseudonyms, fields=_CHOOSE, value=0)
        if self._bounds is not None:
            fakes.pick_words(sealed, self._bounds, asked)
        elif codes.reduce_words(sealed, *self._evenly, asked):
            asked[:] = choose_indicator(pseudonyms, prf=self._prf, d=len(self._channels))

    def _pick(
        self, columns: list[Values], asked: NDArray[np.uint8], picked: NDArray[np.uint16]
    ) -> NDArray[np.bool_]:
        """Write the codes of the indicators asked; whether someone has no value, per indicator."""
        missing = np.zeros(len(columns), np.bool_)
        for index, (column, channel) in enumerate(zip(columns, self._channels, strict=True)):
            low, high = fakes.pick_values(column, asked, np.uint8(index), picked)
            if low < -1 or high >= channel.domain_size:
                k = channel.domain_size
                raise LdpError(f"value must be in [-1, {k}), got {column.min()} to {column.max()}")
            missing[index] = low < 0
        return missing


def _share_bounds(shares: Sequence[Fraction]) -> Words | None:
    """Running sums of the shares out of 2**64; None if all are equal."""
    if all(share == shares[0] for share in shares):
        return None
    weights = [WORD * share for share in shares]
    if any(weight.denominator != 1 for weight in weights):
        found = ", ".join(map(str, shares))
        raise LdpError(f"shares must be equal, or integers out of {WORD}, got {found}")
    return word_bounds([weight.numerator for weight in weights])
