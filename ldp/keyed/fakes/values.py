"""Fake values with keyed bits: they depend on the subscriber, the indicator and the plan, never on a value.

Fakes that are equally likely are drawn together: a uniform number below the product of a few domain sizes is
as many independent fakes. Groups 2g and 2g + 1 take the first and the second word of the block of purpose
FAKE_DATA, indicator 0 and value g; a biased word is drawn again with the next counter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.kernels import codes as kernels
from ldp.kernels import fakes
from ldp.kernels.entropy import FAKE_DATA, BlockBuffer, pack_fields, uniform_limits, word_bounds
from ldp.protocols.faked_reports import FakedChannel, PriorFakedChannel

_MOST: Final = 2**12  # numbers of several indicators together: their counts stay in the fastest cache

Codes = NDArray[np.uint16]
Words = NDArray[np.uint64]
Limits = tuple[np.uint64, np.uint64, np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some subscribers, and what is drawn for them.

    Parameters
    ----------
    columns : sequence of ndarray of int32, shape (n,), per indicator; true codes, or -1 for no value
    missing : tuple of int; the indicators that someone has no value of
    pseudonyms : ndarray of uint64, shape (n,)
    asked : ndarray of uint8, shape (n,); the indicator that each subscriber answers
    picked : ndarray of uint16, shape (n,); her true code of it, NO_ANSWER for no value
    numbers : ndarray of uint16, shape (groups, n); of the fakes, as `FakeNumbers.draw` gives them, but with
        each answer that is a code in the place of its fake
    """

    columns: Sequence[NDArray[np.int32]]
    missing: tuple[int, ...]
    pseudonyms: Words
    asked: NDArray[np.uint8]
    picked: Codes
    numbers: Codes


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeGroup:
    """Indicators whose fakes are the digits of one number, lowest first.

    Parameters
    ----------
    indicators : tuple of int, shape (m,); positions in the plan
    sizes : tuple of int, shape (m,); of their domains
    prior : tuple of int, shape (sizes[0],), or None; weights of a single indicator's values out of 2**64
    """

    indicators: tuple[int, ...]
    sizes: tuple[int, ...]
    prior: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """Return how many numbers there are."""
        return prod(self.sizes)

    @property
    def steps(self) -> tuple[int, ...]:
        """Return the value of one more in each digit."""
        return tuple(accumulate(self.sizes[:-1], lambda step, size: step * size, initial=1))


class FakeNumbers:
    """Groups of the indicators whose fakes have a value, in plan order.

    A group grows as long as it has at most 2**12 numbers; one indicator alone may have more. Fakes with a
    prior have a word each.

    Parameters
    ----------
    reports : sequence of FakedChannel or PriorFakedChannel, shape (d,)
    plan_version : int; in [1, 255]
    """

    __slots__ = ("_fields", "_limits", "groups", "places")

    def __init__(self, reports: Sequence[FakedChannel | PriorFakedChannel], *, plan_version: int) -> None:
        self._fields = pack_fields(purpose=FAKE_DATA, indicator=0, plan_version=plan_version, counter=0)
        self.groups: list[FakeGroup] = []
        for index, report in enumerate(reports):
            if report.fake != "no value":
                self._add(index, report)
        self._limits = [_limits(group) for group in self.groups]
        self.places = {
            index: (group, digit)
            for group, each in enumerate(self.groups)
            for digit, index in enumerate(each.indicators)
        }

    def draw(self, pseudonyms: Words, *, buffer: BlockBuffer, out: Codes) -> None:
        """Write the number of each group and subscriber.

        Parameters
        ----------
        pseudonyms : ndarray of uint64, shape (n,)
        buffer : BlockBuffer; with room for them
        out : ndarray of uint16, shape (groups, n)
        """
        for block in range((len(self.groups) + 1) // 2):
            pair = slice(2 * block, 2 * block + 2)
            limits, drawn, fields = self._limits[pair], out[pair], self._fields
            biased = _read(limits, seal(buffer, pseudonyms, fields=fields, value=block), drawn)
            while biased:
                fields += np.uint64(1)  # the next counter
                beyond = drawn == np.array([[group.size] for group in self.groups[pair]])
                rows = np.flatnonzero(beyond.any(axis=0))
                again = np.empty((len(limits), rows.size), np.uint16)
                biased = _read(limits, seal(buffer, pseudonyms[rows], fields=fields, value=block), again)
                drawn[:, rows] = np.where(beyond[:, rows], again, drawn[:, rows])

    def codes(self, numbers: Codes, index: int) -> Codes:
        """Codes of an indicator in the numbers of the groups; uint16, shape (n,)."""
        group, digit = self.places[index]
        step, size = self.groups[group].steps[digit], self.groups[group].sizes[digit]
        return np.asarray(numbers[group] // np.uint16(step) % np.uint16(size), np.uint16)

    def _add(self, index: int, report: FakedChannel | PriorFakedChannel) -> None:
        k = report.domain_size
        prior = report.prior if isinstance(report, PriorFakedChannel) else None
        last = self.groups[-1] if self.groups else None
        if prior is None and last is not None and last.prior is None and last.size * k <= _MOST:
            self.groups[-1] = FakeGroup(indicators=(*last.indicators, index), sizes=(*last.sizes, k))
        else:
            self.groups.append(FakeGroup(indicators=(index,), sizes=(k,), prior=prior))


def seal(buffer: BlockBuffer, pseudonyms: Words, *, fields: np.uint64, value: int) -> Words:
    """Cipher words of a block for each subscriber; `fields` are packed."""
    kernels.fill_blocks(pseudonyms, np.full(1, value, np.uint32), fields, 1, buffer.blocks)
    return buffer.seal(pseudonyms.shape[0])


def _limits(group: FakeGroup) -> Limits | Words:
    """Return the thresholds of a word."""
    return uniform_limits(group.size) if group.prior is None else word_bounds(group.prior)


def _read(limits_of_words: Sequence[Limits | Words], sealed: Words, out: Codes) -> int:
    """Write the numbers of one block's groups, their size where a word is biased; how many are."""
    biased = 0
    for word, (limits, row) in enumerate(zip(limits_of_words, out, strict=True)):
        if isinstance(limits, tuple):
            biased += kernels.reduce_words(sealed[word:], *limits, row)
        else:
            fakes.pick_words(sealed[word:], limits, row)
    return biased
