"""Coverage of days by each source: the calendar of a study."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from zoneinfo import ZoneInfo

from django.utils import timezone

from mobility.batches.quality.calendar import StudyCalendar
from mobility.batches.quality.deliveries import (
    Delivery,
    History,
    calendar_of,
    closed_days,
    history_of,
    total_hours,
)
from mobility.batches.quality.look_back import SilentHours, silent_hours
from mobility.extracts.profiles.definition import DEFAULT
from mobility.vault.models.profiles import ExtractProfile


class DayStatus(StrEnum):
    """Files of a source for a day."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    MISSING = "missing"
    FAILED = "failed"
    UNDONE = "undone"
    NOT_DUE = "not_due"
    NOT_EXPECTED = "not_expected"


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCoverage:
    """One day of one source.

    rows : accepted rows in the study now, with duplicates; files : those that brought them
    more_to_come : the last file announced further ones, and the day is not closed
    silent : hours without a row though they usually have some
    failed : the last file of this day, if it failed
    """

    day: int
    date: date
    status: DayStatus
    rows: int = 0
    files: tuple[Delivery, ...] = ()
    more_to_come: bool = False
    silent: tuple[SilentHours, ...] = ()
    failed: Delivery | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCoverage:
    """All days of one source, the first one first."""

    source: str
    days: tuple[DayCoverage, ...]

    def count(self, status: DayStatus) -> int:
        return sum(day.status == status for day in self.days)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The calendar; `unattributed` failed before it was known which days they hold."""

    sources: tuple[SourceCoverage, ...]
    unattributed: tuple[Delivery, ...]


def coverage_of(study_id: int, *, now: datetime | None = None) -> Coverage:
    """Coverage of a study as it is now; `now` decides which days are not due yet."""
    calendar = calendar_of(study_id)
    history = history_of(study_id)
    today = (now or timezone.now()).astimezone(ZoneInfo(calendar.timezone)).date()
    sources, closed = _sources(study_id, history), closed_days(study_id)
    return cover(history, calendar=calendar, sources=sources, closed=closed, today=today)


def files_by_day(coverage: Coverage) -> dict[int, dict[str, int]]:
    """Sources whose rows of a day are in the study now, each with how many files brought them."""
    found: dict[int, dict[str, int]] = {}
    for source in coverage.sources:
        for day in source.days:
            if day.files:
                found.setdefault(day.day, {})[source.source] = len(day.files)
    return found


def cover(
    history: History, *, calendar: StudyCalendar, sources: Iterable[str], closed: Collection[int], today: date
) -> Coverage:
    """The calendar of `sources`.

    A source has to bring no day before its first one that others brought: its profile may be new.

    Parameters
    ----------
    closed : days that take no more rows
    today : in the study's time zone; a day is missing only when it is over
    """
    known = _without_made_up(history)
    brought = {day for day in calendar.all_days if known.taken_in(day)}
    covered = tuple(
        _source_coverage(
            source, known.of_source(source), calendar, brought=brought, closed=closed, today=today
        )
        for source in sources
    )
    return Coverage(sources=covered, unattributed=_unattributed(history))


def _sources(study_id: int, history: History) -> list[str]:
    """Profiles of events that were created here, or whose files were accepted or failed on known days."""
    defined = ExtractProfile.objects.filter(study=study_id, definition__kind="events")
    known = _without_made_up(history)
    used = {each.source for each in known.deliveries if each.is_taken_in or each.days}
    names = used | set(defined.values_list("name", flat=True))
    return sorted(names, key=lambda name: (name != DEFAULT, name)) or [DEFAULT]


def _without_made_up(history: History) -> History:
    """Leave out failed files that were published since under the same name, with any profile."""
    published = {each.filename: each.at for each in history.deliveries if each.is_taken_in}
    kept = (
        each
        for each in history.deliveries
        if each.is_taken_in or each.filename not in published or published[each.filename] < each.at
    )
    return replace(history, deliveries=tuple(kept))


def _source_coverage(
    source: str,
    history: History,
    calendar: StudyCalendar,
    *,
    brought: Collection[int],
    closed: Collection[int],
    today: date,
) -> SourceCoverage:
    files = {day: history.taken_in(day) for day in calendar.all_days}
    hours = {day: total_hours(of_day, day) for day, of_day in files.items()}
    announced = {day for day, of_day in files.items() if of_day and of_day[-1].more_to_come} - set(closed)
    whole = {day for day, of_day in files.items() if of_day} - announced
    first = min((day for each in history.deliveries if each.is_taken_in for day in each.days), default=None)
    days = []
    for day in calendar.all_days:
        silent = silent_hours(day, hours, others=whole, calendar=calendar) if day in whole else []
        last = history.latest(day)
        is_partial, is_over = day in announced or bool(silent), calendar.date_of(day) < today
        is_expected = day not in brought or (first is not None and day > first)
        days.append(
            DayCoverage(
                day=day,
                date=calendar.date_of(day),
                status=_status(history, day, is_partial=is_partial, is_over=is_over, is_expected=is_expected),
                rows=sum(hours[day]),
                files=tuple(files[day]),
                more_to_come=day in announced,
                silent=tuple(silent),
                failed=last if last and not last.is_taken_in else None,
            )
        )
    return SourceCoverage(source=source, days=tuple(days))


def _status(history: History, day: int, *, is_partial: bool, is_over: bool, is_expected: bool) -> DayStatus:
    last = history.latest(day)
    if last is not None:
        if not last.is_taken_in:
            return DayStatus.FAILED
        return DayStatus.PARTIAL if is_partial else DayStatus.COMPLETE
    if any(day in each.days and each.is_taken_in for each in history.deliveries):
        return DayStatus.UNDONE
    if not is_expected:
        return DayStatus.NOT_EXPECTED
    return DayStatus.MISSING if is_over else DayStatus.NOT_DUE


def _unattributed(history: History) -> tuple[Delivery, ...]:
    """Files that failed without a day, newest first, unless the same name was published since.

    A file that failed with the wrong profile can be published with another one, so any source counts.
    """
    found: dict[tuple[str, str], Delivery] = {}
    for each in history.deliveries:
        name = (each.source, each.filename)
        found.pop(name, None)
        if each.is_taken_in:
            found = {key: failed for key, failed in found.items() if failed.filename != each.filename}
        elif not each.days:
            found[name] = each
    return tuple(reversed(found.values()))
