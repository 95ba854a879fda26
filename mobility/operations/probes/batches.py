"""Batches that wait or failed, and days that stay open. Only where there is a vault."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Count, Min, Q
from django.utils import timezone

from mobility.batches.quality.calendar import StudyCalendar
from mobility.batches.quality.coverage import unmended_files
from mobility.batches.quality.deliveries import calendar_of
from mobility.batches.states import AT_WORK
from mobility.operations.findings import Finding, Level, finding, is_trial
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultDay

Kind, State = Batch.Kind, Batch.State
FAILED_WITHIN: Final = timedelta(days=3)
LONG_OVER: Final = 4  # times MOBILITY_DAY_OPEN_DAYS after its last day, nothing more comes for a study
STUCK_LEASES: Final = 3  # the sweep takes a batch up again after one
# Two batches with the same can be the same thing, sent again.
_SAME: Final = ("study__slug", "kind", "filename", "day")


def failed() -> Iterator[Finding]:
    """Batches that failed lately, unless their file or days have come since.

    A file with another profile must have the same content, as many sources have files of one name.
    """
    since = timezone.now() - FAILED_WITHIN
    batches = Batch.objects.filter(finished_at__gt=since, study__closed_at=None, validate_only=False)
    nothing = Q(kind__in=(Kind.EXTRACT, Kind.SUBSCRIBERS), rows_accepted=0, duplicate_of=None)
    done: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for what, *end in _ends(batches.filter(state=State.DONE).exclude(nothing)):
        done[what].append(tuple(end))
    failures = batches.filter(state=State.FAILED)
    files = failures.filter(kind=Kind.EXTRACT)
    of_files = files.order_by().values_list("study", flat=True).distinct()
    unmended = {pk for study_id in of_files for pk in unmended_files(study_id, since=since)}
    lost = Counter(
        what[0]
        for what, at, profile, content in _ends(failures.exclude(pk__in=files.exclude(pk__in=unmended)))
        if not any(
            later >= at and (with_profile == profile or (content and same == content))
            for later, with_profile, same in done[what]
        )
    )
    within_s = round(FAILED_WITHIN.total_seconds())
    for slug, n in sorted(lost.items()):
        yield finding("batch_failed", Level.WARNING, slug, batches=n, within_s=within_s)
    if not lost:
        yield finding("batch_failed", within_s=within_s)


def waiting() -> Iterator[Finding]:
    """Batches that wait long for their turn, are blocked by a key or a storage, or have no worker."""
    now = timezone.now()
    lease = timedelta(seconds=settings.MOBILITY_BATCH_LEASE_S)
    unfinished = Batch.objects.exclude(state__in=Batch.FINAL)
    stuck = _oldest(
        unfinished.filter(state__in=AT_WORK, alive_until__lt=now - (STUCK_LEASES - 1) * lease), "alive_until"
    )
    held_up = _oldest(unfinished.filter(waits_since__lt=now - STUCK_LEASES * lease), "waits_since")
    queued = _oldest(unfinished.filter(state=State.QUEUED), "created_at")
    found = [_batches(slug, n, oldest=at, now=now, why="held_up") for slug, (n, at) in held_up.items()]
    found += [
        _batches(slug, n, oldest=at - lease, now=now, why="stuck")
        for slug, (n, at) in stuck.items()
        if slug not in held_up
    ]
    limit = now - timedelta(seconds=settings.MOBILITY_WAITING_MAX_S)
    for slug, (n, at) in queued.items():
        if at < limit and slug not in stuck and slug not in held_up:
            found.append(_batches(slug, n, oldest=at, now=now))
    yield from found or [finding("batch_waiting", batches=unfinished.count())]


def days() -> Iterator[Finding]:
    """Days that have been over for MOBILITY_DAY_OPEN_DAYS and were not closed, by study.

    Rows of open ones count nowhere; published ones keep their sealed times and places. A study with both is
    reported for the open ones: closing them closes both.
    """
    now = timezone.now()
    still = VaultDay.objects.filter(study__closed_at=None).exclude(state=VaultDay.State.CLOSED)
    by_study: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for slug, study_id, day, state in still.values_list("study__slug", "study", "day", "state"):
        by_study.setdefault((slug, study_id), []).append((day, state))
    found = [
        each
        for (slug, study_id), touched in sorted(by_study.items())
        if (each := _days_of(slug, calendar_of(study_id), touched, now)) is not None
    ]
    n_open = sum(state == VaultDay.State.OPEN for touched in by_study.values() for _, state in touched)
    yield from found or [finding("day_open", days=n_open)]


def _days_of(
    slug: str, calendar: StudyCalendar, touched: list[tuple[int, str]], now: datetime
) -> Finding | None:
    """Return the problems with days of a study, each as (day, state); None: nothing."""
    limit = timedelta(days=settings.MOBILITY_DAY_OPEN_DAYS)
    waiting = [day for day, state in touched if state == VaultDay.State.OPEN]
    if waiting:
        over = now - end_of(calendar, min(waiting))
        if over > limit:
            day, over_s = calendar.date_of(min(waiting)).isoformat(), round(over.total_seconds())
            return finding("day_open", Level.WARNING, slug, days=len(waiting), day=day, over_s=over_s)
    published = (day for day, state in touched if state == VaultDay.State.PUBLISHED)
    kept = sum(now - end_of(calendar, day) > limit for day in published)
    if not kept:
        return None
    is_long_over = now - end_of(calendar, calendar.days) > LONG_OVER * limit
    level = Level.WARNING if is_long_over and not is_trial() else Level.NOTE
    return finding("day_open", level, slug, why="not_closed", days=kept)


def end_of(calendar: StudyCalendar, day: int) -> datetime:
    """Return the end of a study's day."""
    zone = ZoneInfo(calendar.timezone)
    return datetime.combine(calendar.date_of(day + 1), datetime.min.time(), zone)


def _ends(batches: Any) -> Iterable[tuple[tuple[Any, ...], datetime, str, str]]:
    """Return the expected file or day of each batch, its end, its profile and the hash of its content."""
    rows = batches.values_list(*_SAME, "finished_at", "profile", "content_hash")
    return ((tuple(row[:-3]), *row[-3:]) for row in rows)


def _oldest(batches: Any, moment: str) -> dict[str, tuple[int, datetime]]:
    """Return the number and the earliest `moment`, by study."""
    rows = batches.order_by().values_list("study__slug").annotate(n=Count("pk"), oldest=Min(moment))
    return {slug: (n, oldest) for slug, n, oldest in rows.order_by("study__slug")}


def _batches(slug: str, n: int, *, oldest: datetime, now: datetime, why: str = "") -> Finding:
    level, reason = (Level.ERROR, {"why": why}) if why else (Level.WARNING, {})
    oldest_s = round((now - oldest).total_seconds())
    return finding("batch_waiting", level, slug, batches=n, oldest_s=oldest_s, **reason)
