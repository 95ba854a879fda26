"""Keyed noise of gap cells: the same for a cell on every worker and every retry, so that it is drawn once.

Drawn twice, a cell would lose twice; the same noise on two different counts would show their difference. So a
cell's noise depends on nothing but the key and the place of the cell, and a cell is published once.

The block of `ldp.kernels.entropy` has in place of the pseudonym ``draw 48 | previous day 8 | day 8``, as
indicator the position in the plan (255: visitors), as value the category. A draw is one word: the first 8
bytes of the cipher block. Try i of a magnitude uses the draws i x 2**24 onwards: its sign, its digits from
the lowest, and one for each time that the tail continues.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.tallies import Delta
from ldp.kernels.entropy import PRESENCE_NOISE, KeyedPrf
from ldp.privacy.plans import MAX_INDICATORS, PlanSpec
from ldp.protocols.geometric import GeometricChannel

VISITORS: Final = MAX_INDICATORS  # no indicator has this position

_TRY: Final = 2**24  # draws of one try: more happen with a probability below 2**-(2**23)
_HALF: Final = np.uint64(2**63)

Words = NDArray[np.uint64]
Counts = NDArray[np.int64]


def noise_delta(plan: PlanSpec, *, prf: KeyedPrf, first_day: int, last_day: int) -> Delta:
    """Noise of all cells [previous day][day] with the day in first_day..last_day, empty ones too.

    Parameters
    ----------
    plan : PlanSpec; with presence noise
    prf : KeyedPrf; of the study
    first_day, last_day : int; 1 <= first_day <= last_day <= days

    Returns
    -------
    Delta to be added to the exact counts; its `n_reports` are the sums of its counts, as those of codes are

    Raises
    ------
    LdpError : the plan has no presence noise, or the days are not days of the study
    """
    if plan.visitor_noise is None or plan.answer_noise is None:
        raise LdpError("presence noise must be part of the plan, got a plan whose counts are exact")
    if not 1 <= first_day <= last_day <= plan.days:
        raise LdpError(f"days must be in [1, {plan.days}] and in order, got {first_day}..{last_day}")
    cells = [(p, t) for t in range(first_day, last_day + 1) for p in range(t)]
    previous, day = (np.array(part, np.uint64) for part in zip(*cells, strict=True))
    places = previous << np.uint64(8) | day
    delta = Delta.zero(plan)
    visitors = _draw(
        places,
        np.zeros(places.size, np.uint32),
        prf=prf,
        channel=plan.visitor_noise.channel,
        indicator=VISITORS,
        version=plan.version,
    )
    delta.visitors[previous, day] = visitors
    for index, counts in enumerate(delta.counts):
        codes = np.arange(counts.shape[0], dtype=np.uint32)
        drawn = _draw(
            np.tile(places, codes.size),
            np.repeat(codes, places.size),
            prf=prf,
            channel=plan.answer_noise.channel,
            indicator=index,
            version=plan.version,
        )
        counts[:, previous, day] = drawn.reshape(codes.size, places.size)
        delta.n_reports[index][...] = counts.sum(axis=0)
    return delta


def _draw(
    places: Words,
    codes: NDArray[np.uint32],
    *,
    prf: KeyedPrf,
    channel: GeometricChannel,
    indicator: int,
    version: int,
) -> Counts:
    """Noise of each place and code, int64; minus zero is tried again."""
    noise = np.zeros(places.size, np.int64)
    left, attempt = np.arange(places.size), 0
    while left.size:
        source = _Source(
            prf, places[left], codes[left], attempt=attempt, indicator=indicator, version=version
        )
        is_negative = source.word(0) >= _HALF
        magnitude = _magnitudes(source, channel)
        noise[left] = np.where(is_negative, -magnitude, magnitude)
        left, attempt = left[is_negative & (magnitude == 0)], attempt + 1
    return noise


def _magnitudes(source: "_Source", channel: GeometricChannel) -> Counts:
    magnitude = np.zeros(source.size, np.int64)
    for digit, threshold in enumerate(channel.digits):
        magnitude += (source.word(1 + digit) < np.uint64(threshold)).astype(np.int64) << digit
    going, draw = np.arange(source.size), 1 + len(channel.digits)
    while going.size:
        if draw >= _TRY:
            raise LdpError(f"noise must end within {_TRY} draws: the key or the cipher is broken")
        going = going[source.word(draw, rows=going) < np.uint64(channel.tail)]
        magnitude[going] += 1 << len(channel.digits)
        draw += 1
    return magnitude


class _Source:
    """Words of some places in one try."""

    def __init__(
        self,
        prf: KeyedPrf,
        places: Words,
        codes: NDArray[np.uint32],
        *,
        attempt: int,
        indicator: int,
        version: int,
    ) -> None:
        self._prf, self._places, self._codes = prf, places, codes
        self._first = attempt * _TRY
        self._indicator, self._version = indicator, version
        self.size = places.size

    def word(self, draw: int, *, rows: NDArray[np.int64] | None = None) -> Words:
        """One word for each place, or for each of `rows`."""
        places = self._places if rows is None else self._places[rows]
        codes = self._codes if rows is None else self._codes[rows]
        words = self._prf.words(
            places | np.uint64((self._first + draw) << 16),
            purpose=PRESENCE_NOISE,
            indicator=self._indicator,
            plan_version=self._version,
            values=codes,
            counter=0,
        )
        return words[:, 0]
