"""Coverage of days by each source: the calendar of a study."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID
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
    zone = ZoneInfo(calendar.timezone)
    today = (now or timezone.now()).astimezone(zone).date()
    sources, closed = _sources(study_id, history, zone), closed_days(study_id)
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
    history: History,
    *,
    calendar: StudyCalendar,
    sources: Mapping[str, date | None],
    closed: Collection[int],
    today: date,
) -> Coverage:
    """The calendar of `sources`.

    A source owes a day that others brought from its creation on, or from its first day if that is earlier.

    Parameters
    ----------
    sources : the day in the study's time zone on which the profile of each was created; None: built in
    closed : days that take no more rows
    today : in the study's time zone; a day is missing only when it is over
    """
    known = _without_made_up(history)
    brought = {day for day in calendar.all_days if known.taken_in(day)}
    covered = tuple(
        _source_coverage(
            source,
            known.of_source(source),
            calendar,
            created=created,
            brought=brought,
            closed=closed,
            today=today,
        )
        for source, created in sources.items()
    )
    return Coverage(sources=covered, unattributed=_unattributed(known))


def _sources(study_id: int, history: History, zone: ZoneInfo) -> dict[str, date | None]:
    """Profiles of events that were created here, or whose files were accepted or failed on known days."""
    defined = ExtractProfile.objects.filter(study=study_id, definition__kind="events")
    created = {name: at.astimezone(zone).date() for name, at in defined.values_list("name", "created_at")}
    known = _without_made_up(history)
    used = {each.source for each in known.deliveries if each.is_taken_in or each.days}
    names = sorted(used | set(created), key=lambda name: (name != DEFAULT, name)) or [DEFAULT]
    return {name: created.get(name) for name in names}


def _without_made_up(history: History) -> History:
    """Leave out failed files that were published since."""
    published: dict[str, list[Delivery]] = defaultdict(list)
    for each in history.deliveries:
        if each.is_taken_in and each.rows_accepted:
            published[each.filename].append(each)
    kept = (
        each
        for each in history.deliveries
        if each.is_taken_in or not any(_makes_up(later, each) for later in published[each.filename])
    )
    return replace(history, deliveries=tuple(kept))


def _makes_up(published: Delivery, failed: Delivery) -> bool:
    """Return whether a published file is a failed one of the same name, sent again.

    With another profile it must have the same content, as many sources have files of one name.
    """
    if published.at < failed.at:
        return False
    if published.source == failed.source:
        return True
    if published.content_hash and failed.content_hash:
        return published.content_hash == failed.content_hash
    return bool(failed.days) and failed.days <= published.days


def _source_coverage(
    source: str,
    history: History,
    calendar: StudyCalendar,
    *,
    created: date | None,
    brought: Collection[int],
    closed: Collection[int],
    today: date,
) -> SourceCoverage:
    files = {day: history.taken_in(day) for day in calendar.all_days}
    hours = {day: total_hours(of_day, day) for day, of_day in files.items()}
    announced = {day for day, of_day in files.items() if of_day and of_day[-1].more_to_come} - set(closed)
    whole = {day for day, of_day in files.items() if of_day} - announced
    starts = [calendar.date_of(day) for each in history.deliveries if each.is_taken_in for day in each.days]
    start = min(starts if created is None else [*starts, created], default=date.max)
    days = []
    for day in calendar.all_days:
        silent = silent_hours(day, hours, others=whole, calendar=calendar) if day in whole else []
        last = history.latest(day)
        is_partial, is_over = day in announced or bool(silent), calendar.date_of(day) < today
        is_expected = day not in brought or calendar.date_of(day) >= start
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


def unmended_files(study_id: int, *, since: datetime) -> Iterator[UUID]:
    """Files of events that failed, and of which no later file brought the days."""
    coverage, closed = coverage_of(study_id), closed_days(study_id)
    of_days = (
        day.failed
        for source in coverage.sources
        for day in source.days
        if day.failed and day.day not in closed
    )
    for each in (*of_days, *coverage.unattributed):
        if each.at > since:
            yield each.batch


def _unattributed(history: History) -> tuple[Delivery, ...]:
    """Files that failed without a day, newest first; of the same name and source, the last counts."""
    found: dict[tuple[str, str], Delivery] = {}
    for each in history.deliveries:
        if each.is_taken_in:
            continue
        name = (each.source, each.filename)
        found.pop(name, None)
        if not each.days:
            found[name] = each
    return tuple(reversed(found.values()))
