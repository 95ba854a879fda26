"""Raw codes to sanitised reports of one study, and which stored words belong to which indicator.

A sampled plan (Smp) keeps one static and one daily code per subscriber, for the indicator that the keyed
function picked; another plan (Spl, RS+FD) keeps one of each indicator. A report takes one word, or several
(`ldp.keyed.words`). `places` hides the difference. The noisy place of a day, which everyone reports, is
one more daily word, the last.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldp import PlanSpec
from ldp.kernels.entropy import KeyedPrf
from ldp.keyed.noise.locations import LocationSanitiser
from ldp.keyed.sanitiser import Sanitiser
from ldp.privacy.plans import Kind
from ldp.privacy.report_words import n_words, plan_words
from mobility.extracts.rows.events import NO_VALUE

Pseudonyms = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Place of an indicator: `rows` of those who report on it, `slot` of its raw code, its `words`.

    `indicator` is its position among the plan's tallies; `is_unary`: its reports have a bit per value.
    """

    indicator: int
    slot: int
    words: slice
    rows: NDArray[np.int64]
    is_unary: bool


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
        self._locations = (
            None if plan.location is None else LocationSanitiser(plan.location, prf, plan.version)
        )

    def slots(self, kind: Kind) -> int:
        """Number of raw codes of a kind that are kept of a subscriber until they are sanitised."""
        of_kind = len(self._indexes(kind))
        return min(of_kind, 1) if self.plan.is_sampled else of_kind

    def words(self, kind: Kind) -> int:
        """Number of words that all reports of a kind take."""
        return plan_words(self.plan, kind=kind) + len(self._location_words(kind))

    def starts(self, kind: Kind) -> list[int]:
        """Word with which each report of a kind begins."""
        return sorted({words.start for words in self._words_of(kind)}) + self._location_words(kind)

    def tallied(self, pseudonyms: Pseudonyms, *, kind: Kind) -> Iterator[Place]:
        """Place of each tally of a kind: of its indicators, and of the location."""
        yield from self.places(pseudonyms, kind=kind)
        for word in self._location_words(kind):
            everyone = np.arange(len(pseudonyms))
            yield Place(
                indicator=self.plan.d, slot=-1, words=slice(word, word + 1), rows=everyone, is_unary=False
            )

    def places(self, pseudonyms: Pseudonyms, *, kind: Kind) -> Iterator[Place]:
        """Place of each indicator of a kind, in plan order."""
        asked = self._sanitiser.asked(pseudonyms) if self.plan.is_sampled else None
        for slot, (index, words) in enumerate(zip(self._indexes(kind), self._words_of(kind), strict=True)):
            yield Place(
                indicator=index,
                slot=slot if asked is None else 0,
                words=words,
                rows=np.arange(len(pseudonyms)) if asked is None else np.flatnonzero(asked == index),
                is_unary=self.plan.is_unary(index),
            )

    def static_answers(self, pseudonyms: Pseudonyms, codes: NDArray[np.uint16]) -> NDArray[np.uint16]:
        """Sanitised static reports, shape (n, words), of raw `codes` of shape (n, slots).

        NO_VALUE where the value is empty.
        """
        places = list(self.places(pseudonyms, kind="static"))
        raw = [codes[place.rows, place.slot] for place in places]
        return self._reports(places, raw, pseudonyms, kind="static")

    def event_answers(self, events: Pseudonyms, codes: NDArray[np.uint16]) -> NDArray[np.uint16]:
        """Sanitised reports of events, shape (n, words), of raw `codes` of all indicators, shape (n, d)."""
        places = list(self.places(events, kind="static"))
        raw = [codes[place.rows, place.indicator] for place in places]
        return self._reports(places, raw, events, kind="static")

    def sides(self, indicator: int, pseudonyms: Pseudonyms, levels: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return whether numbers reach the cuts of their subscribers, as the library has it; raw values."""
        return self._sanitiser.sides(indicator, pseudonyms, levels)

    def picked_moves(
        self,
        indicator: int,
        pseudonyms: Pseudonyms,
        starts: NDArray[np.int64],
        moves: NDArray[np.int32],
        *,
        day: int,
    ) -> NDArray[np.uint16]:
        """Raw code of one move of the day of each subscriber; other parameters as the library has them."""
        picked = self._sanitiser.picked_moves(indicator, pseudonyms, starts=starts, codes=moves, day=day)
        return picked.astype(np.uint16)

    def daily_answers(
        self,
        pseudonyms: Pseudonyms,
        codes: NDArray[np.uint16],
        *,
        day: int,
        grid_codes: NDArray[np.uint16] | None = None,
    ) -> NDArray[np.uint16]:
        """Sanitised reports of one day, shape (n, words), of raw `codes` of shape (n, daily indicators).

        NO_VALUE where the value is empty, or the day is not among those on which the subscriber reports.

        Parameters
        ----------
        grid_codes : shape (n,); cell of the grid in which the main cell of the day lies, NO_VALUE for none;
            needed where the plan has locations
        """
        places = list(self.places(pseudonyms, kind="daily"))
        raw = []
        for column, place in enumerate(places):
            days = self._sanitiser.answer_days(place.indicator, pseudonyms[place.rows])
            raw.append(_on_day(days, day, codes[place.rows, column]))
        reports = self._reports(places, raw, pseudonyms, kind="daily", day=day)
        if self._locations is not None:
            if grid_codes is None:
                raise ValueError("grid_codes must be given: the plan has locations")
            days = self._locations.answer_days(pseudonyms, days=self.plan.days)
            reports[:, -1] = self._locations.reports(pseudonyms, _on_day(days, day, grid_codes))
        return reports

    def _reports(
        self,
        places: list[Place],
        raw: list[NDArray[np.uint16]],
        pseudonyms: Pseudonyms,
        *,
        kind: Kind,
        day: int = 0,
    ) -> NDArray[np.uint16]:
        """Reports of one kind, of the raw codes at each place; on the day, if they are daily."""
        reports = np.full((len(pseudonyms), self.words(kind)), NO_VALUE, np.uint16)
        if self.plan.has_fakes:
            values = [np.full(len(pseudonyms), -1, np.int32)] * self.plan.d
            for place, codes in zip(places, raw, strict=True):
                values[place.indicator] = _values(codes)
            sent = self._sanitiser.reports(pseudonyms, values)
            for place in places:
                reports[:, place.words] = sent[place.indicator]
            return reports
        for place, codes in zip(places, raw, strict=True):
            people = pseudonyms[place.rows]
            reports[place.rows, place.words] = self._sanitiser.report(
                place.indicator, people, _values(codes), day=day
            )
        return reports

    def _location_words(self, kind: Kind) -> list[int]:
        """The word of the location, after those of the indicators."""
        is_there = kind == "daily" and self.plan.location is not None
        return [plan_words(self.plan, kind=kind)] if is_there else []

    def _indexes(self, kind: Kind) -> list[int]:
        return [index for index, spec in enumerate(self.plan.indicators) if spec.kind == kind]

    def _words_of(self, kind: Kind) -> list[slice]:
        """Words of each indicator of a kind, in plan order."""
        found: list[slice] = []
        for index in self._indexes(kind):
            start = found[-1].stop if found and not self.plan.is_sampled else 0
            found.append(slice(start, start + n_words(self.plan.answer_channel(index))))
        return found


def _on_day(days: Pseudonyms, day: int, codes: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Codes of those who report on the day, by their bitmaps `days`; NO_VALUE of the others."""
    return np.where((days >> np.uint64(day - 1)) & np.uint64(1) == 1, codes, NO_VALUE)


def _values(raw: NDArray[np.uint16]) -> NDArray[np.int32]:
    return np.where(raw == NO_VALUE, np.int32(-1), raw.astype(np.int32))
