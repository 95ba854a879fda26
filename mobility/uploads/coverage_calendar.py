"""Coverage as pages show it: a mark and words for each day, and weeks of months."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any

from mobility.batches.quality import words
from mobility.batches.quality.coverage import Coverage, DayCoverage, DayStatus, SourceCoverage
from reports.base.formats import window_title

# Never colour alone: a letter in its own shape, and words next to it or for screen readers.
LETTERS = {
    DayStatus.COMPLETE: "C",
    DayStatus.PARTIAL: "P",
    DayStatus.MISSING: "M",
    DayStatus.FAILED: "F",
    DayStatus.UNDONE: "U",
    DayStatus.NOT_DUE: "·",
    DayStatus.NOT_EXPECTED: "\u2013",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A state of a day: `status` names its shape in coverage.css."""

    status: str
    letter: str
    words: str
    help: str

    @classmethod
    def of(cls, status: DayStatus) -> "Mark":
        said, explained = words.status_words(status), words.status_help(status)
        return cls(status=status.value, letter=LETTERS[status], words=said, help=explained)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarDay:
    """A day of a source with why it is not complete; `line` names its line by the first day of that."""

    coverage: DayCoverage
    mark: Mark
    notes: tuple[str, ...]
    line: int


def legend() -> list[Mark]:
    """All states."""
    return [Mark.of(status) for status in DayStatus]


def calendars(coverage: Coverage) -> list[dict[str, Any]]:
    """For each source titled lines of days, weeks from Monday (None: no day of it), and days by state."""
    return [_calendar(each) for each in coverage.sources]


def day_marks(coverage: Coverage) -> Mapping[int, list[tuple[str, Mark]]]:
    """Return the name and the mark of each source for each day."""
    marks: dict[int, list[tuple[str, Mark]]] = defaultdict(list)
    for source in coverage.sources:
        for day in source.days:
            marks[day.day].append((source.source, Mark.of(day.status)))
    return marks


def _calendar(source: SourceCoverage) -> dict[str, Any]:
    runs = [list(run) for _, run in groupby(source.days, key=_run_of)]
    days = tuple(
        CalendarDay(
            coverage=day, mark=Mark.of(day.status), notes=tuple(words.day_notes(day)), line=run[0].day
        )
        for run in runs
        for day in run
    )
    titles = {run[0].day: window_title(run[0].date, run[-1].date) for run in runs}
    lines = [(titles[day.line], day) for day in days if day.line == day.coverage.day]
    counts = [(Mark.of(status), source.count(status)) for status in DayStatus if source.count(status)]
    return {"source": source.source, "lines": lines, "weeks": list(_weeks(days)), "counts": counts}


def _run_of(day: DayCoverage) -> tuple[DayStatus, int]:
    """Days without anything to say share a line; every other one has its own."""
    says_nothing = day.status in (DayStatus.MISSING, DayStatus.NOT_DUE, DayStatus.NOT_EXPECTED)
    return (day.status, 0 if says_nothing else day.day)


def _weeks(days: tuple[CalendarDay, ...]) -> Iterator[tuple[CalendarDay | None, ...]]:
    of_date = {day.coverage.date: day for day in days}
    first, last = days[0].coverage.date, days[-1].coverage.date
    monday = first - timedelta(days=first.weekday())
    while monday <= last:
        yield tuple(of_date.get(monday + timedelta(days=weekday)) for weekday in range(7))
        monday += timedelta(days=7)
