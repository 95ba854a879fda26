"""Bits of unary encoding among fakes: of no value (-z) or of a fake value (-r), and those of the answers.

The bits of no value of all indicators are side by side in plan order, 64 to a group: group g has the blocks
of purpose FAKE_BITS, the first of these indicators, value 0, and counters from 32 g on. The bits of a fake
value have those of purpose FAKE_BITS, the indicator and the fake value. Both are `lanes`.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp.kernels import fakes as kernels_fake
from ldp.kernels import lanes as kernels_bits
from ldp.kernels.entropy import ANSWER, FAKE_BITS, KeyedPrf
from ldp.keyed import lanes
from ldp.keyed.fakes.values import FakeNumbers, Part
from ldp.protocols.unary import UnaryChannel

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

    __slots__ = ("_answers", "_channels", "_counts", "_digits", "_own", "_source", "_starts")

    def __init__(
        self, channels: dict[int, UnaryChannel], *, d: int, prf: KeyedPrf, plan_version: int
    ) -> None:
        self._channels = channels
        self._answers = _Answers(channels, prf=prf, plan_version=plan_version)
        self._source: dict[str, Any] = {
            "prf": prf,
            "purpose": FAKE_BITS,
            "indicator": next(iter(channels)),
            "plan_version": plan_version,
        }
        thresholds: list[int] = []
        self._starts = {}
        for index, channel in channels.items():
            self._starts[index] = len(thresholds)
            thresholds += [channel.threshold_q] * channel.domain_size
        groups = [thresholds[i : i + lanes.LANES] for i in range(0, len(thresholds), lanes.LANES)]
        self._digits = [lanes.Digits.of_lanes(p=group, q=group) for group in groups]
        self._own = np.zeros((len(groups), d), np.uint64)
        for index, start in self._starts.items():
            for lane in range(start, start + channels[index].domain_size):
                self._own[lane // lanes.LANES, index] |= np.uint64(1 << lane % lanes.LANES)
        self._counts = np.zeros((len(groups), lanes.LANES), np.int64)

    def reports(self, part: Part) -> Iterator[tuple[int, Words]]:
        """Yield indicators and their bits as `answers` of the mechanism returns them."""
        bits = np.stack([self._fakes(part, group) for group in range(len(self._digits))])
        for index, rows, answered in self._answers.reports(part):
            _insert(bits, rows, answered, start=self._starts[index])
        for index, channel in self._channels.items():
            yield index, _extract(bits, start=self._starts[index], size=channel.domain_size)

    def count(self, part: Part) -> None:
        """Add the reports to the counts: the fakes of all side by side, the answers of each."""
        for group, counts in enumerate(self._counts):
            kernels_bits.add_lanes(self._fakes(part, group), counts)
        self._answers.count(part)

    def counts(self) -> Iterator[tuple[int, Counts]]:
        """Yield indicators and how many reports support each of their values."""
        for index, counts in self._answers.counts.items():
            start = self._starts[index]
            yield index, counts + self._counts.reshape(-1)[start : start + counts.size]

    def _fakes(self, part: Part, group: int) -> Words:
        """Fake bits of a group; no bit of the indicator asked, nor of a value that is missing."""
        own = self._own[group]
        left = np.empty(part.pseudonyms.shape[0], np.uint64)
        kernels_fake.other_lanes(part.asked, own, np.bitwise_or.reduce(own), left)
        for index in part.missing:
            if own[index]:
                left[part.columns[index] < 0] &= ~own[index]
        return lanes.draw(
            np.zeros_like(left),
            drawn=left,
            digits=self._digits[group],
            pseudonyms=part.pseudonyms,
            keyed=0,
            counter=group * lanes.BLOCKS,
            **self._source,
        )


class EncodedBits:
    """Reports whose fakes are the bits of a fake value (-r).

    Parameters
    ----------
    channels, prf, plan_version : as of `BlankBits`
    numbers : FakeNumbers; of the fake values
    """

    __slots__ = ("_answers", "_channels", "_counts", "_numbers", "_source")

    def __init__(
        self, channels: dict[int, UnaryChannel], *, numbers: FakeNumbers, prf: KeyedPrf, plan_version: int
    ) -> None:
        self._channels = channels
        self._answers = _Answers(channels, prf=prf, plan_version=plan_version)
        self._numbers = numbers
        self._source: dict[str, Any] = {"prf": prf, "plan_version": plan_version}
        self._counts = {index: np.zeros(channel.domain_size, np.int64) for index, channel in channels.items()}

    def reports(self, part: Part) -> Iterator[tuple[int, Words]]:
        """Return the reports like `BlankBits`."""
        found = {
            index: lanes.reports(self._fakes(part, index), **self._encoding(part, index))
            for index in self._channels
        }
        for index, rows, answered in self._answers.reports(part):
            found[index][rows] = answered
        yield from found.items()

    def count(self, part: Part) -> None:
        """Add the reports to the counts."""
        for index, counts in self._counts.items():
            counts[:] += lanes.support_counts(self._fakes(part, index), **self._encoding(part, index))
        self._answers.count(part)

    def counts(self) -> Iterator[tuple[int, Counts]]:
        """Return the counts like `BlankBits`."""
        for index, counts in self._answers.counts.items():
            yield index, counts + self._counts[index]

    def _fakes(self, part: Part, index: int) -> NDArray[np.int32]:
        """Fake values; -1 where the report is the answer, or there is none."""
        fakes = self._numbers.codes(part.numbers, index).astype(np.int32)
        fakes[(part.asked == index) | (part.columns[index] < 0)] = -1
        return fakes

    def _encoding(self, part: Part, index: int) -> dict[str, Any]:
        rounds = [lanes.Round(channel=self._channels[index], purpose=FAKE_BITS)]
        return {"pseudonyms": part.pseudonyms, "rounds": rounds, "indicator": index, **self._source}


class _Answers:
    """Bits of the answers; parameters as of `BlankBits`.

    Attributes
    ----------
    counts : dict of ndarray of int64, shape (domain_size,); answers so far that support each value
    """

    __slots__ = ("_channels", "_source", "counts")

    def __init__(self, channels: dict[int, UnaryChannel], *, prf: KeyedPrf, plan_version: int) -> None:
        self._channels = channels
        self._source: dict[str, Any] = {"prf": prf, "plan_version": plan_version}
        self.counts = {index: np.zeros(channel.domain_size, np.int64) for index, channel in channels.items()}

    def reports(self, part: Part) -> Iterator[tuple[int, NDArray[np.int64], Words]]:
        """Yield indicators, the rows that answer them, and the bits of the answers."""
        for index, rows, asked in self._asked(part):
            yield index, rows, lanes.reports(**asked)

    def count(self, part: Part) -> None:
        """Add the answers to the counts."""
        for index, _, asked in self._asked(part):
            self.counts[index] += lanes.support_counts(**asked)

    def _asked(self, part: Part) -> Iterator[tuple[int, NDArray[np.int64], dict[str, Any]]]:
        """Yield indicators, the rows that answer them, and what `lanes` needs to know of these."""
        size = part.asked.shape[0]
        rows, names = np.empty(size, np.int64), np.empty(size, np.uint64)
        values = np.empty(size, np.int32)
        ends = kernels_fake.sort_asked(part.asked, part.picked, part.pseudonyms, rows, values, names)
        for index, channel in self._channels.items():
            place = slice(ends[index - 1] if index else 0, ends[index])
            asked = {"values": values[place], "pseudonyms": names[place], "indicator": index}
            rounds = [lanes.Round(channel=channel, purpose=ANSWER)]
            yield index, rows[place], {**asked, "rounds": rounds, **self._source}


def _insert(bits: Words, rows: NDArray[np.int64], answered: Words, *, start: int) -> None:
    """Set the bits of reports from lane `start` on; they are zero."""
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
