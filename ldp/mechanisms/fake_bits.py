"""Bits of unary encoding among fakes: of no value (-z) or of a fake value (-r), and those of the answers.

The bits of no value of all indicators stand side by side in plan order, 64 to a group: group g has the blocks
of purpose FAKE_BITS, the first of these indicators, value 0, and counters from 32 g on. The bits of a fake
value have those of purpose FAKE_BITS, the indicator and the fake value. Both are `lanes`.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ldp import kernels_bits, kernels_fake
from ldp.entropy import ANSWER, FAKE_BITS, KeyedPrf
from ldp.families.unary import UnaryChannel
from ldp.mechanisms import lanes
from ldp.mechanisms.fake_values import FakeNumbers, Part

Counts = NDArray[np.int64]
Words = NDArray[np.uint64]


class BlankBits:
    """Reports whose fakes are the bits of no value (-z).

    Parameters
    ----------
    channels : dict of UnaryChannel; of the indicators with such reports, in plan order
    d : int; number of all indicators
    prf, plan_version : source of the bits
    """

    __slots__ = ("_channels", "_counts", "_digits", "_own", "_plan_version", "_prf", "_starts")

    def __init__(
        self, channels: dict[int, UnaryChannel], *, d: int, prf: KeyedPrf, plan_version: int
    ) -> None:
        self._channels = channels
        self._prf = prf
        self._plan_version = plan_version
        sizes = [channel.domain_size for channel in channels.values()]
        self._starts = dict(zip(channels, np.cumsum([0, *sizes]).tolist(), strict=False))
        thresholds = [
            channel.threshold_q for channel in channels.values() for _ in range(channel.domain_size)
        ]
        groups = [thresholds[i : i + lanes.LANES] for i in range(0, len(thresholds), lanes.LANES)]
        self._digits = [lanes.Digits.of_lanes(p=group, q=group) for group in groups]
        self._own = np.zeros((len(groups), d), np.uint64)
        for index, start in self._starts.items():
            for lane in range(start, start + channels[index].domain_size):
                self._own[lane // lanes.LANES, index] |= np.uint64(1 << lane % lanes.LANES)
        self._counts = np.zeros((len(groups), lanes.LANES), np.int64)

    def reports(self, part: Part) -> Iterator[tuple[int, Words]]:
        """Yield indicators and their bits as `answers` of the mechanism returns them."""
        bits = self._bits(part)
        for index, channel in self._channels.items():
            yield index, _extract(bits, start=self._starts[index], size=channel.domain_size)

    def count(self, part: Part) -> None:
        """Add the reports to the counts."""
        for bits, counts in zip(self._bits(part), self._counts, strict=True):
            kernels_bits.add_lanes(bits, counts)

    def counts(self) -> Iterator[tuple[int, Counts]]:
        """Yield indicators and how many reports support each of their values."""
        for index, channel in self._channels.items():
            start = self._starts[index]
            yield index, self._counts.reshape(-1)[start : start + channel.domain_size].copy()

    def _bits(self, part: Part) -> Words:
        """All bits side by side; uint64, shape (groups, n)."""
        bits = np.empty((len(self._digits), part.pseudonyms.shape[0]), np.uint64)
        nothing = np.zeros(part.pseudonyms.shape[0], np.uint64)
        first = next(iter(self._channels))
        for group, digits in enumerate(self._digits):
            bits[group] = lanes.draw(
                nothing,
                drawn=self._fake_lanes(part, group),
                digits=digits,
                pseudonyms=part.pseudonyms,
                keyed=0,
                prf=self._prf,
                counter=group * lanes.BLOCKS,
                purpose=FAKE_BITS,
                indicator=first,
                plan_version=self._plan_version,
            )
        for index, channel in self._channels.items():
            rows, answered = answer_bits(
                part, index=index, channel=channel, prf=self._prf, plan_version=self._plan_version
            )
            _insert(bits, rows, answered, start=self._starts[index])
        return bits

    def _fake_lanes(self, part: Part, group: int) -> Words:
        """Lanes that are fakes: not those of the indicator asked, nor of a value that is missing."""
        own = self._own[group]
        left = np.empty(part.pseudonyms.shape[0], np.uint64)
        kernels_fake.other_lanes(part.asked, own, np.bitwise_or.reduce(own), left)
        for index in part.missing:
            if own[index]:
                left[part.columns[index] < 0] &= ~own[index]
        return left


class EncodedBits:
    """Reports whose fakes are the bits of a fake value (-r); parameters as of `BlankBits`.

    numbers : FakeNumbers; of the fake values
    """

    __slots__ = ("_channels", "_counts", "_numbers", "_plan_version", "_prf")

    def __init__(
        self,
        channels: dict[int, UnaryChannel],
        *,
        numbers: FakeNumbers,
        prf: KeyedPrf,
        plan_version: int,
    ) -> None:
        self._channels = channels
        self._numbers = numbers
        self._prf = prf
        self._plan_version = plan_version
        self._counts = {i: np.zeros(channel.domain_size, np.int64) for i, channel in channels.items()}

    def reports(self, part: Part) -> Iterator[tuple[int, Words]]:
        """As of `BlankBits`."""
        for index, channel in self._channels.items():
            fakes = self._numbers.codes(part.numbers, index).astype(np.int32)
            fakes[(part.asked == index) | (part.columns[index] < 0)] = -1
            bits = lanes.reports(
                fakes,
                pseudonyms=part.pseudonyms,
                rounds=[lanes.Round(channel=channel, purpose=FAKE_BITS)],
                prf=self._prf,
                indicator=index,
                plan_version=self._plan_version,
            )
            rows, answered = answer_bits(
                part, index=index, channel=channel, prf=self._prf, plan_version=self._plan_version
            )
            bits[rows] = answered
            yield index, bits

    def count(self, part: Part) -> None:
        """Add the reports to the counts."""
        for index, bits in self.reports(part):
            self._counts[index] += lanes.count_support(bits, domain_size=self._channels[index].domain_size)

    def counts(self) -> Iterator[tuple[int, Counts]]:
        """As of `BlankBits`."""
        yield from self._counts.items()


def answer_bits(
    part: Part, *, index: int, channel: UnaryChannel, prf: KeyedPrf, plan_version: int
) -> tuple[NDArray[np.int64], Words]:
    """Rows that answer an indicator, and the bits of their answers."""
    rows = np.flatnonzero((part.asked == index) & (part.columns[index] >= 0))
    answered = lanes.reports(
        part.columns[index][rows],
        pseudonyms=part.pseudonyms[rows],
        rounds=[lanes.Round(channel=channel, purpose=ANSWER)],
        prf=prf,
        indicator=index,
        plan_version=plan_version,
    )
    return rows, answered


def _insert(bits: Words, rows: NDArray[np.int64], answered: Words, *, start: int) -> None:
    """Set the bits of a report from lane `start` on; they are zero."""
    for word in range(answered.shape[1]):
        group, shift = divmod(start + word * lanes.LANES, lanes.LANES)
        bits[group, rows] |= answered[:, word] << np.uint64(shift)
        if shift and group + 1 < bits.shape[0]:
            bits[group + 1, rows] |= answered[:, word] >> np.uint64(lanes.LANES - shift)


def _extract(bits: Words, *, start: int, size: int) -> Words:
    """Bits from lane `start` on as a report."""
    out = np.empty((bits.shape[1], -(-size // lanes.LANES)), np.uint64)
    for word in range(out.shape[1]):
        group, shift = divmod(start + word * lanes.LANES, lanes.LANES)
        out[:, word] = bits[group] >> np.uint64(shift)
        if shift and group + 1 < bits.shape[0]:
            out[:, word] |= bits[group + 1] << np.uint64(lanes.LANES - shift)
    used = size % lanes.LANES
    if used:
        out[:, -1] &= np.uint64((1 << used) - 1)
    return out
