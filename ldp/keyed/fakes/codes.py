"""Reports of GRR among fake codes, and their joint counts."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.kernels import fakes
from ldp.kernels.entropy import BlockBuffer, KeyedPrf
from ldp.keyed.fakes.values import FakeNumbers, Part
from ldp.keyed.multidim import Answerer
from ldp.protocols.channels import GrrChannel

Codes = NDArray[np.uint16]
Counts = NDArray[np.int64]
Words = NDArray[np.uint64]


class CodeReports:
    """Reports whose fakes are codes.

    The fakes of a group of indicators are one number: it is counted as one, with the answer in the place of
    its digit, and the digits are distinguished in the end.

    Parameters
    ----------
    channels : dict of GrrChannel; of the indicators with such reports, in plan order
    d : int; number of all indicators
    numbers : FakeNumbers; of the fake codes
    prf, plan_version, buffer : source of the bits, and memory for the blocks of a slice of subscribers
    """

    __slots__ = (
        "_alone",
        "_answerer",
        "_channels",
        "_is_code",
        "_joint",
        "_numbers",
        "_places",
        "_without",
    )

    def __init__(
        self,
        channels: dict[int, GrrChannel],
        *,
        d: int,
        numbers: FakeNumbers,
        prf: KeyedPrf,
        plan_version: int,
        buffer: BlockBuffer,
    ) -> None:
        self._channels = channels
        self._numbers = numbers
        self._joint = [np.zeros(group.size, np.int64) for group in numbers.groups]
        self._alone = {index: np.zeros(channel.domain_size, np.int64) for index, channel in channels.items()}
        self._is_code = np.isin(np.arange(d), list(channels))
        # Where a report is none of these no one is asked here: any channel holds the place.
        every = [channels.get(index, next(iter(channels.values()))) for index in range(d)]
        self._answerer = Answerer(prf, every, plan_version=plan_version, buffer=buffer)
        self._places = np.zeros((d, 3), np.uint64)
        without: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        for index in channels:
            group, digit = numbers.places[index]
            step, size = numbers.groups[group].steps[digit], numbers.groups[group].sizes[digit]
            whole = np.arange(numbers.groups[group].size)
            self._places[index] = group, step, sum(map(len, without))
            without.append(whole - whole // step % size * step)
        self._without = np.concatenate(without).astype(np.uint16)

    def answer(
        self, codes: Codes, *, asked: NDArray[np.uint8], pseudonyms: Words, numbers: Codes, start: int
    ) -> None:
        """Put the answers of some subscribers in the place of their fakes.

        Parameters
        ----------
        codes : ndarray of uint16, shape (m,); true codes of the indicators asked, or NO_ANSWER for no value
        asked, pseudonyms : ndarray, shape (m,)
        numbers : ndarray of uint16, shape (groups, n); of a part of all; changed
        start : int; where these subscribers begin in it
        """
        answers = np.full(codes.shape[0], NO_ANSWER, np.uint16)
        if self._is_code.all():
            self._answerer.name(pseudonyms)
            self._answerer.answer(codes, asked, pseudonyms, answers)
        else:
            rows = np.flatnonzero(self._is_code[asked])
            names, some = pseudonyms[rows], np.empty(rows.size, np.uint16)
            self._answerer.name(names)
            self._answerer.answer(codes[rows], asked[rows], names, some)
            answers[rows] = some
        places = self._places * np.array([numbers.shape[1], 1, 1], np.uint64)
        places[:, 0] += np.uint64(start)
        fakes.put_codes(asked, answers, places, self._without, numbers.reshape(-1))

    def reports(self, part: Part) -> Iterator[tuple[int, Codes]]:
        """Yield indicators and their codes as `answers` of the mechanism returns them."""
        for index in self._channels:
            codes = self._numbers.codes(part.numbers, index)
            codes[part.columns[index] < 0] = NO_ANSWER
            yield index, codes

    def count(self, part: Part) -> None:
        """Add the reports to the counts."""
        skipped = np.zeros(0, np.bool_)
        missing = [part.columns[index] < 0 for index in part.missing if index in self._channels]
        if missing:
            skipped = np.logical_or.reduce(missing)
            self._count_alone(part, rows=np.flatnonzero(skipped))
        for each, joint in zip(part.numbers, self._joint, strict=True):
            fakes.count_numbers(each, skipped, joint)

    def counts(self) -> Iterator[tuple[int, Counts]]:
        """Yield indicators and how many reports support each of their values."""
        for index in self._channels:
            group, digit = self._numbers.places[index]
            # The lowest digit is the last axis.
            joint = self._joint[group].reshape(self._numbers.groups[group].sizes[::-1])
            axes = tuple(axis for axis in range(joint.ndim) if axis != joint.ndim - 1 - digit)
            yield index, self._alone[index] + joint.sum(axis=axes)

    def _count_alone(self, part: Part, *, rows: NDArray[np.int64]) -> None:
        """Count the rows that lack a value, per indicator."""
        for index, channel in self._channels.items():
            codes = self._numbers.codes(part.numbers[:, rows], index)
            codes = codes[part.columns[index][rows] >= 0]
            self._alone[index] += np.bincount(codes, minlength=channel.domain_size)
