"""Raw codes to sanitised reports of one study, and which stored words belong to which indicator.

A sampled plan (Smp) keeps one static and one daily code per subscriber, for the indicator that the keyed
function picked; another plan (Spl, RS+FD) keeps one of each indicator. A report takes one word, or several
(`ldp.keyed.words`). `places` hides the difference. The noisy place of a day, which everyone reports, is
one more daily word, the last. In a plan with classes the last static word is the class of the subscriber. It
is public, so it is not sanitised; it says by which channel the other words were.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

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
Codes = NDArray[np.uint16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Place of an indicator: `rows` of those who report on it, `slot` of its raw code, its `words`.

    `indicator` is its position among the plan's tallies; `is_unary`: its reports have a bit per value.
    `number` is the class of the people, 0 in a plan without classes.
    """

    indicator: int
    slot: int
    words: slice
    rows: NDArray[np.int64]
    is_unary: bool
    number: int = 0


class StudySanitiser:
    """Sanitises by the vault's approved plan.

    Parameters
    ----------
    plan : the approved plan
    prf : of the study's sanitising key
    """

    def __init__(self, plan: PlanSpec, *, prf: KeyedPrf) -> None:
        self.plan = plan
        self._of_class = [Sanitiser(own, prf) for own in plan.of_classes]
        self._sanitiser = self._of_class[0]  # all classes are asked alike
        self._locations = (
            None if plan.location is None else LocationSanitiser(plan.location, prf, plan.version)
        )

    def slots(self, kind: Kind) -> int:
        """Number of raw codes of a kind that are kept of a subscriber until they are sanitised.

        With classes the last static one is the class.
        """
        of_kind = len(self._indexes(kind))
        of_class = self.has_classes and kind == "static"
        return (min(of_kind, 1) if self.plan.is_sampled else of_kind) + of_class

    def words(self, kind: Kind) -> int:
        """Number of words that all reports of a kind take."""
        widths = [plan_words(own, kind=kind) for own in self.plan.of_classes]
        return max(widths) + len(self._location_words(kind)) + (self.has_classes and kind == "static")

    @property
    def has_classes(self) -> bool:
        """Return whether the last static word is the class."""
        return bool(self.plan.classes)

    def members(self, classes: Codes) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Number of each class, and the rows of its people; `classes` : shape (n,), NO_VALUE for none."""
        for number in range(len(self.plan.classes)):
            yield number, np.flatnonzero(classes == number)

    def starts(self, kind: Kind) -> list[int]:
        """Word with which each report of a kind begins; the class is one."""
        of_class = [self.words(kind) - 1] if self.has_classes and kind == "static" else []
        return self.answer_starts(kind) + of_class

    def answer_starts(self, kind: Kind) -> list[int]:
        """Word with which each answer of a kind begins."""
        return sorted({words.start for words in self._words_of(kind)}) + self._location_words(kind)

    def tallied(self, pseudonyms: Pseudonyms, *, kind: Kind, classes: Codes | None = None) -> Iterator[Place]:
        """Place of each tally of a kind: of its indicators, by class if there are any, and of the location.

        Parameters
        ----------
        classes : shape (n,); of the subscribers, in a plan with classes
        """
        places = self.places(pseudonyms, kind=kind)
        yield from places if classes is None else self._by_class(places, classes)
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

    def _by_class(self, places: Iterable[Place], classes: Codes) -> Iterator[Place]:
        """Divide places by the class of their people."""
        for place in places:
            of_rows = classes[place.rows]
            for number, rows in self.members(of_rows):
                own = self.plan.of_class(number)
                channel = own.answer_channel(place.indicator)
                yield replace(
                    place,
                    rows=place.rows[rows],
                    words=slice(0, n_words(channel)),
                    is_unary=own.is_unary(place.indicator),
                    number=number,
                )

    def static_answers(
        self, pseudonyms: Pseudonyms, codes: Codes, *, known_classes: Codes | None = None
    ) -> Codes:
        """Sanitised static reports, shape (n, words), of raw `codes` of shape (n, slots).

        NO_VALUE where the value is empty. Where each day has its own report: the answers that they follow
        from. With classes the last of both is the class that `codes` say.

        Parameters
        ----------
        known_classes : shape (n,); classes that are final already, NO_VALUE where there is none
        """
        places = list(self.places(pseudonyms, kind="static"))
        raw = [codes[place.rows, place.slot] for place in places]
        if not self.has_classes:
            return self._reports(places, raw, pseudonyms, kind="static")
        classes = codes[:, -1]
        if known_classes is not None:
            classes = np.where(known_classes == NO_VALUE, classes, known_classes)
        reports = self._reports(places, raw, pseudonyms, kind="static", classes=classes)
        reports[:, -1] = codes[:, -1]
        return reports

    def renewed(self, place: Place, pseudonyms: Pseudonyms, kept: Codes, *, days: Pseudonyms) -> Codes:
        """Reports of each day of presence, shape (n, days, words), NO_VALUE on other days.

        Parameters
        ----------
        place : static
        pseudonyms, kept : shape (n,) and (n, words); of its rows; as `static_answers` has them
        days : shape (n,); bitmaps of the days present
        """
        reports = np.full((len(kept), self.plan.days, kept.shape[1]), NO_VALUE, np.uint16)
        for day in range(1, self.plan.days + 1):
            rows = np.flatnonzero((days >> np.uint64(day - 1)) & np.uint64(1))
            people, answers = pseudonyms[rows], kept[rows]
            reports[rows, day - 1] = self._sanitiser.renewed(place.indicator, people, answers, day=day)
        return reports

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
        classes: Codes | None = None,
    ) -> NDArray[np.uint16]:
        """Sanitised reports of one day, shape (n, words), of raw `codes` of shape (n, daily indicators).

        NO_VALUE where the value is empty, or the day is not among those on which the subscriber reports.

        Parameters
        ----------
        grid_codes : shape (n,); cell of the grid in which the main cell of the day lies, NO_VALUE for none;
            needed where the plan has locations
        classes : shape (n,); needed where the plan has classes
        """
        places = list(self.places(pseudonyms, kind="daily"))
        raw = []
        for column, place in enumerate(places):
            days = self._sanitiser.answer_days(place.indicator, pseudonyms[place.rows])
            raw.append(_on_day(days, day, codes[place.rows, column]))
        reports = self._reports(places, raw, pseudonyms, kind="daily", day=day, classes=classes)
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
        classes: Codes | None = None,
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
        if self.has_classes:
            if classes is None:
                raise ValueError("classes must be given: the plan has some")
            # A person answers one indicator, so that all codes of a kind fit into one column.
            column = np.full(len(pseudonyms), -1, np.int32)
            for place, codes in zip(places, raw, strict=True):
                column[place.rows] = _values(codes)
            for place in self._by_class(places, classes):
                asked = pseudonyms[place.rows], column[place.rows]
                answers = self._of_class[place.number].report(place.indicator, *asked)
                reports[place.rows, place.words] = answers
            return reports
        for place, codes in zip(places, raw, strict=True):
            index, people, truth = place.indicator, pseudonyms[place.rows], _values(codes)
            if self.plan.is_renewed(index):
                reports[place.rows, place.words] = self._sanitiser.kept(index, people, truth)
            else:
                reports[place.rows, place.words] = self._sanitiser.report(index, people, truth, day=day)
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
