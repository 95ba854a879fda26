"""Raw codes to sanitised answers of one study, and which answer slot belongs to which indicator.

A sampled plan (Smp) stores one static and one daily answer per subscriber, whatever the indicator that the
keyed function picked; a split plan (Spl) stores one of each indicator. `places` hides the difference.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldp import PlanSpec
from ldp.entropy import KeyedPrf
from ldp.mechanisms.sanitiser import Sanitiser
from mobility.ingest.events import NO_VALUE

Pseudonyms = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the answers of one indicator stand: `rows` of the subscribers asked, and their `slot`."""

    indicator: int
    slot: int
    rows: NDArray[np.int64]


class StudySanitiser:
    """Sanitises by the vault's approved plan.

    Parameters
    ----------
    plan : the approved plan
    prf : of the study's sanitising key
    """

    def __init__(self, plan: PlanSpec, *, prf: KeyedPrf) -> None:
        self.plan = plan
        self._sanitiser = Sanitiser(plan, prf)

    def slots(self, kind: str) -> int:
        """Number of answers of a kind that a subscriber has room for."""
        of_kind = sum(spec.kind == kind for spec in self.plan.indicators)
        return min(of_kind, 1) if self.plan.is_sampled else of_kind

    def places(self, pseudonyms: Pseudonyms, *, kind: str) -> Iterator[Place]:
        """Place of the answers of each indicator of a kind, in plan order."""
        indexes = [index for index, spec in enumerate(self.plan.indicators) if spec.kind == kind]
        asked = self._sanitiser.asked(pseudonyms) if self.plan.is_sampled else None
        for slot, index in enumerate(indexes):
            if asked is None:
                yield Place(indicator=index, slot=slot, rows=np.arange(len(pseudonyms)))
            else:
                yield Place(indicator=index, slot=0, rows=np.flatnonzero(asked == index))

    def static_answers(self, pseudonyms: Pseudonyms, codes: NDArray[np.uint16]) -> NDArray[np.uint16]:
        """Sanitised static answers, shape (n, slots), of raw `codes` of that shape; NO_VALUE stays."""
        answers = np.full_like(codes, NO_VALUE)
        for place in self.places(pseudonyms, kind="static"):
            raw = codes[place.rows, place.slot]
            answers[place.rows, place.slot] = self._answer(place, pseudonyms, raw)
        return answers

    def daily_answers(
        self, pseudonyms: Pseudonyms, codes: NDArray[np.uint16], *, day: int
    ) -> NDArray[np.uint16]:
        """Sanitised answers of one day, shape (n, slots), of raw `codes` of shape (n, daily indicators).

        NO_VALUE where the value is empty, or the day is not among those on which the subscriber answers.
        """
        answers = np.full((len(pseudonyms), self.slots("daily")), NO_VALUE, np.uint16)
        for column, place in enumerate(self.places(pseudonyms, kind="daily")):
            days = self._sanitiser.answer_days(place.indicator, pseudonyms[place.rows])
            answers_today = (days >> np.uint64(day - 1)) & np.uint64(1) == 1
            raw = np.where(answers_today, codes[place.rows, column], NO_VALUE)
            answers[place.rows, place.slot] = self._answer(place, pseudonyms, raw)
        return answers

    def _answer(self, place: Place, pseudonyms: Pseudonyms, raw: NDArray[np.uint16]) -> NDArray[np.uint16]:
        values = np.where(raw == NO_VALUE, np.int32(-1), raw.astype(np.int32))
        return self._sanitiser.answer(place.indicator, pseudonyms[place.rows], values)
