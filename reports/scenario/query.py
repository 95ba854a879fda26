"""The question of an address: which days, or how many of them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext

from ldp import Scenario, days_in_a_row, exactly_days, on_days
from reports.estimates.queries import WindowError
from reports.studies.models import Study

PRESENT, ABSENT = "present", "absent"
LEAST_DAYS: Final = 2  # of a study with scenarios: with one day, everyone has the same
_SHOWN: Final = 40  # characters of a parameter in a refusal
_MOST_DATES: Final = 20  # of more days an address has the numbers, so that links hold any question
_NUMBERS: Final = re.compile(r"([0-9]{1,2})(?:-([0-9]{1,2}))?")  # a day, or a run of days, by number from 1
_PROGRAM_S: Final = 0.015  # of linear programs without variables


class Kind(StrEnum):
    """Kind of question; the values are parameters of addresses.

    days : present on all of some days, on none of others
    exactly : present on exactly k days
    in_a_row : present on at least k consecutive days
    nights : there for at least k nights in a row, which is k + 1 days in a row
    """

    DAYS = "days"
    EXACTLY = "exactly"
    IN_A_ROW = "in_a_row"
    NIGHTS = "nights"


NAMES: Final = (PRESENT, ABSENT, Kind.EXACTLY, Kind.IN_A_ROW, Kind.NIGHTS)  # parameters of an address


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about the days of a study.

    Parameters
    ----------
    days : of the study that count, from its first one
    present, absent : days from 1; of the kind `days`
    k : days or nights; of the other kinds, else 0
    """

    study: Study
    days: int
    kind: Kind = Kind.DAYS
    present: tuple[int, ...] = ()
    absent: tuple[int, ...] = ()
    k: int = 0

    @property
    def in_a_row(self) -> int:
        """Return the consecutive days that are asked for; 0 of other kinds."""
        return self.k + (self.kind == Kind.NIGHTS) if self.kind in (Kind.IN_A_ROW, Kind.NIGHTS) else 0

    @property
    def scenario(self) -> Scenario:
        """Return the question for the library."""
        if self.kind == Kind.EXACTLY:
            return exactly_days(self.k, days=self.days)
        if self.in_a_row:
            return days_in_a_row(self.in_a_row, days=self.days)
        return on_days(days=self.days, present=self.present, absent=self.absent)

    @property
    def query(self) -> str:
        """The question as a part of an address."""
        if self.kind != Kind.DAYS:
            return urlencode({str(self.kind): self.k})
        chosen = ((PRESENT, self.present), (ABSENT, self.absent))
        is_long = len(self.present) + len(self.absent) > _MOST_DATES
        texts = {
            name: _numbers(days) if is_long else ",".join(map(str, self.dates(days)))
            for name, days in chosen
            if days
        }
        return urlencode(texts, safe=",")

    def dates(self, days: Iterable[int]) -> list[date]:
        """Dates of some days of the study."""
        return [self.study.date_of(day) for day in days]


def counted_days(study: Study) -> int:
    """Days of a study that questions are about; with presence noise, those that are published."""
    return study.days if study.presence is None else study.noisy_through


def default_question(study: Study) -> Question:
    """Return the question about people who came on all days."""
    days = counted_days(study)
    return Question(study=study, days=days, present=tuple(range(1, days + 1)))


def question_of(query: QueryDict, *, study: Study) -> Question:
    """Return the question that an address asks; without one, who came on all days.

    Parameters
    ----------
    query : dates or numbers of days (3, or 3-9) separated by commas in `present` and `absent`, or a number in
        one of the other names
    study : Study; with at least two days that count

    Raises
    ------
    WindowError : the question is none, or not one of this study; the text says what works instead
    """
    asked = [name for name in NAMES if query.get(name)]
    if not asked:
        if any(name in query for name in NAMES):
            raise WindowError(_nothing())
        return default_question(study)
    days = counted_days(study)
    numbers = [name for name in asked if name not in (PRESENT, ABSENT)]
    if not numbers:
        return _of_days(query, study=study, days=days)
    if len(asked) > 1:
        raise WindowError(
            gettext(
                "Ask one question at a time: about specific days, a number of days, or a number of nights."
            )
        )
    kind = Kind(numbers[0])
    return Question(study=study, days=days, kind=kind, k=_number(query.get(kind, ""), kind=kind, days=days))


def _of_days(query: QueryDict, *, study: Study, days: int) -> Question:
    present, absent = (_days(query.getlist(name), study=study, days=days) for name in (PRESENT, ABSENT))
    if not present | absent:
        raise WindowError(_nothing())
    if both := present & absent:
        raise WindowError(
            gettext("A day can be marked as “present” or “absent”, but not as both. Choose one for %s.")
            % ", ".join(study.date_of(day).isoformat() for day in sorted(both))
        )
    if len(absent) == days:
        raise WindowError(
            gettext(
                "You cannot mark a person as absent on every day, because people who never visited "
                "are not counted."
            )
        )
    return Question(study=study, days=days, present=tuple(sorted(present)), absent=tuple(sorted(absent)))


def _nothing() -> str:
    return gettext("Mark at least one day as present or absent, or enter a number of days.")


def _days(texts: list[str], *, study: Study, days: int) -> set[int]:
    found: set[int] = set()
    for text in (part.strip() for each in texts for part in each.split(",")):
        if not text:
            continue
        first, last = _run(text, study=study)
        if not 1 <= first <= last <= days:
            raise WindowError(
                gettext("Days must be from %(first)s to %(last)s, not %(day)s.")
                % {"first": study.first_day, "last": study.date_of(days), "day": text}
            )
        found.update(range(first, last + 1))
    return found


def _run(text: str, *, study: Study) -> tuple[int, int]:
    """Numbers of the first and last day of a part of an address."""
    if numbers := _NUMBERS.fullmatch(text):
        return int(numbers[1]), int(numbers[2] or numbers[1])
    try:
        day = study.day_of(date.fromisoformat(text))
    except ValueError:
        raise WindowError(
            gettext("“%s” is not a valid day. Enter a date such as 2017-05-31.") % text[:_SHOWN]
        ) from None
    return day, day


def _numbers(days: Sequence[int]) -> str:
    """Days in order by number, such as 1-3,7."""
    starts = [day for day in days if day - 1 not in days]
    ends = [day for day in days if day + 1 not in days]
    return ",".join(f"{a}-{b}" if a < b else str(a) for a, b in zip(starts, ends, strict=True))


def _number(text: str, *, kind: Kind, days: int) -> int:
    most = days - 1 if kind == Kind.NIGHTS else days
    is_number = text.isascii() and text.isdigit() and len(text) <= 2
    if not is_number or not 1 <= int(text) <= most:
        refusal = gettext("The number of days must be from 1 to %(most)d, not “%(text)s”.")
        if kind == Kind.NIGHTS:
            refusal = gettext("The number of nights must be from 1 to %(most)d, not “%(text)s”.")
        raise WindowError(refusal % {"most": most, "text": text[:_SHOWN]})
    return int(text)


def unsolved() -> str:
    """Say that the solver gave up; its own message is neither translated nor about what was asked."""
    return gettext("The calculation for this question (a linear program) failed. Ask another question.")


def program_seconds(scenario: Scenario, *, per_step_s: float) -> float:
    """Estimate how long linear programs take, in seconds on one core; `per_step_s`: each edge and state."""
    edges = (scenario.days + 1) * (scenario.days + 2) // 2
    return _PROGRAM_S + per_step_s * scenario.n_states * edges
