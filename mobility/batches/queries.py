"""Queries of the vault for pages of operators; whole definitions, with their areas, stay there."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.utils.timezone import now

from mobility.batches.quality.facts import Facts
from mobility.extracts.rows.counts import IGNORED, REJECTED
from mobility.vault.models.batch import Applied, Batch
from mobility.vault.models.handover import Handover
from mobility.vault.models.outbox import OutboxDelta, VaultPublication
from mobility.vault.models.subscribers import VaultDay, VaultStudy
from reports.base.reasons import Reason
from reports.studies.names import in_language
from reports.studies.slots import SlotClock

BATCHES_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyHead:
    """Facts of a study for an operator.

    shown_name : in the active language
    closed_at : since then it takes nothing; None while it is open
    is_noisy : its totals have presence noise, and cross when days are closed
    of_events : it counts events, not people
    slot_minutes : length of its slots; None = it has none
    slots_closed : how many of its slots are closed, the first ones; has_slot_noise : their counts have noise
    """

    slug: str
    shown_name: str
    timezone: str
    first_day: date
    days: int
    min_publication: int
    closed_at: datetime | None
    is_noisy: bool = False
    of_events: bool = False
    slot_minutes: int | None = None
    slots_closed: int = 0
    has_slot_noise: bool = False

    @property
    def last_day(self) -> date:
        return self.date_of(self.days)

    def date_of(self, day: int) -> date:
        """Calendar date of study day `day` (1 = first)."""
        return self.first_day + timedelta(days=day - 1)

    @property
    def slot_clock(self) -> SlotClock:
        """Times of the slots of a study that has them."""
        return SlotClock.of(
            self.timezone, first_day=self.first_day, days=self.days, minutes=self.slot_minutes or 0
        )

    def slot_end(self, slots: int) -> datetime:
        """Local time at which the first `slots` slots have ended, at least one."""
        return datetime.fromtimestamp(int(self.slot_clock.end[slots - 1]), ZoneInfo(self.timezone))

    @property
    def slots_through(self) -> datetime | None:
        """Local time through which slots are closed; None if none is."""
        return self.slot_end(self.slots_closed) if self.slots_closed else None

    @property
    def slots_ended(self) -> datetime | None:
        """Local end of the last slot that can be closed now; None if there is none."""
        ended = self.slot_clock.closed_by(int(now().timestamp()))
        return self.slot_end(ended) if ended > self.slots_closed else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyDay:
    """One day of a study; `state` is empty while nothing was uploaded for it."""

    day: int
    date: date
    state: str
    pending: bool
    is_merging: bool  # a file with rows of the day is not published yet

    @property
    def can_be_undone(self) -> bool:
        """Return whether it has data that are not final and are not being published now."""
        return self.state in (VaultDay.State.OPEN, VaultDay.State.PUBLISHED) and not self.is_merging


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOutcome:
    """Rows of a batch that share an outcome; `columns`: those that the reason can concern."""

    reason: str
    rows: int
    first_lines: tuple[int, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingHandover:
    """Backlog of a study for a separate analyst server.

    publications : how many wait; 0 when it does not know of the study, or of its end
    problem : why the last try failed, empty before the first
    tried_at : when that was; None before the first
    """

    publications: int
    problem: Reason
    tried_at: datetime | None
    server: str
    every_s: int


def waiting_handover(study_id: int) -> WaitingHandover | None:
    """Return the backlog of a study; None when nothing waits, or no separate analyst server is set."""
    if not settings.HANDS_OVER:
        return None
    waiting = VaultPublication.objects.filter(study=study_id, handed_over_at=None).count()
    tried = Handover.objects.filter(study=study_id).first()
    if tried is not None and not tried.problem and not waiting:
        return None
    return WaitingHandover(
        publications=waiting,
        problem=Reason() if tried is None else tried.problem,
        tried_at=None if tried is None else tried.tried_at,
        server=settings.MOBILITY_ANALYST_URL,
        every_s=settings.MOBILITY_HANDOVER_RETRY_S,
    )


def study_head(study_id: int) -> StudyHead:
    """Head of one study."""
    return _heads([study_id])[study_id]


def study_rows(*, slugs: Collection[str]) -> list[dict[str, Any]]:
    """Some studies of the vault, newest first: head, number of days by state, last batch."""
    newest = Batch.objects.filter(study=OuterRef("pk")).order_by("-created_at").values("pk")[:1]
    studies = VaultStudy.objects.filter(slug__in=slugs)
    last = dict(studies.annotate(last=Subquery(newest)).values_list("pk", "last"))
    batches = Batch.objects.in_bulk([pk for pk in last.values() if pk is not None])
    days: dict[int, dict[str, int]] = {pk: dict.fromkeys(VaultDay.State.values, 0) for pk in last}
    counted = VaultDay.objects.filter(study__in=last).order_by().values_list("study", "state")
    for study_id, state, n in counted.annotate(n=Count("pk")):
        days[study_id][state] = n
    heads = sorted(_heads(last).items(), key=lambda each: (each[1].first_day, each[1].slug), reverse=True)
    return [{"head": head, "days": days[pk], "last_batch": batches.get(last[pk])} for pk, head in heads]


def study_days(study_id: int, head: StudyHead) -> list[StudyDay]:
    """Every day of a study with its state."""
    found = {row.day: (row.state, row.pending) for row in VaultDay.objects.filter(study=study_id)}
    merging = _days_merging(study_id) if any(pending for _, pending in found.values()) else set()
    return [
        StudyDay(
            day=day,
            date=head.date_of(day),
            state=state,
            pending=pending,
            is_merging=pending and day in merging,
        )
        for day in range(1, head.days + 1)
        for state, pending in [found.get(day, ("", False))]
    ]


def _days_merging(study_id: int) -> set[int]:
    states = Batch.State.MERGING, Batch.State.PUBLISHING
    files = Batch.objects.filter(study=study_id, kind__in=Batch.FILES, state__in=states, validate_only=False)
    return {day for days in files.values_list("days_touched", flat=True) for day in days}


def study_batches(study_id: int) -> QuerySet[Batch]:
    """The newest batches of a study."""
    return Batch.objects.filter(study=study_id).order_by("-created_at")[:BATCHES_SHOWN]


def undone_days(batch: Batch, others: Iterable[Batch]) -> list[int]:
    """Days of a file that one of the other batches of its study undid after it."""
    if batch.kind not in Batch.FILES or batch.finished_at is None:
        return []
    undone = {
        each.day
        for each in others
        if each.day is not None and each.kind == Batch.Kind.VOID_DAY and each.state == Batch.State.DONE
        if each.finished_at is not None and each.finished_at > batch.finished_at
    }
    return sorted(undone.intersection(batch.days_touched))


def rejected_rows(batch: Batch) -> list[RowOutcome]:
    """Rejected rows by reason, most first, with their first line numbers."""
    return _outcomes(batch, batch.rows_rejected, order=REJECTED, lines=batch.rejected_lines)


def ignored_rows(batch: Batch) -> list[RowOutcome]:
    """Rows that the study does not ask about, by reason, most first."""
    return _outcomes(batch, batch.rows_ignored, order=IGNORED, lines={})


def is_blocked(batch: Batch) -> bool:
    """Return whether a queued batch waits for another one of its study."""
    is_free = Q(active_batch__isnull=True) | Q(active_batch=batch.pk)
    return VaultStudy.objects.filter(pk=batch.study_id).exclude(is_free).exists()


def waiting_subscribers(batch: Batch) -> int:
    """Count subscribers that wait for a publication now; 0 when nothing of this batch waits.

    Of a study that was closed: those that waited at the end of the batch, and were never published.
    """
    if not batch.waiting_subscribers or batch.study.closed_at is not None:
        return batch.waiting_subscribers
    current = F("batch__study__publication_number")
    waiting = OutboxDelta.objects.filter(batch__study=batch.study_id, number=current)
    total = waiting.aggregate(total=Sum("subscribers"))["total"]
    return 0 if total is None else max(total, 1)


def _outcomes(
    batch: Batch, rows: dict[str, int], *, order: Iterable[str], lines: dict[str, list[int]]
) -> list[RowOutcome]:
    known, columns = list(order), Facts.of(batch.checks).columns
    found = sorted(rows.items(), key=lambda each: (-each[1], known.index(each[0])))
    first = {reason: tuple(lines.get(reason, ())) for reason in rows}
    return [
        RowOutcome(reason=reason, rows=n, first_lines=first[reason], columns=columns.get(reason, ()))
        for reason, n in found
    ]


def _heads(study_ids: Iterable[int]) -> dict[int, StudyHead]:
    """Heads by study, without loading whole definitions: an area can have 100,000 cells."""
    parts = ("name", "name_fr", "timezone", "first_day", "days", "min_publication")
    rows = VaultStudy.objects.filter(pk__in=list(study_ids)).values(
        "pk",
        "slug",
        "closed_at",
        "plan__presence",
        "plan__events",
        "slots_closed",
        "definition__slots__minutes",
        "plan__slots__variance",
        *(f"definition__{part}" for part in parts),
    )
    return {row["pk"]: _head(row) for row in rows}


def _head(row: dict[str, Any]) -> StudyHead:
    return StudyHead(
        slug=row["slug"],
        shown_name=in_language(row["definition__name"], row["definition__name_fr"]),
        timezone=row["definition__timezone"],
        first_day=date.fromisoformat(row["definition__first_day"]),
        days=row["definition__days"],
        min_publication=row["definition__min_publication"],
        closed_at=row["closed_at"],
        is_noisy=row["plan__presence"] is not None,
        of_events=bool(row["plan__events"]),
        slot_minutes=row["definition__slots__minutes"],
        slots_closed=row["slots_closed"],
        has_slot_noise=row["plan__slots__variance"] is not None,
    )


def is_noisy(study: VaultStudy) -> bool:
    """Return whether the plan of a study has presence noise."""
    return "presence" in study.plan


def shards_left(batch: Batch) -> list[int] | None:
    """Shards that have not taken the batch yet; None unless it is being merged."""
    merged = Batch.objects.filter(pk=batch.pk, state=Batch.State.MERGING)
    wanted: list[int] | None = merged.values_list("shards", flat=True).first()
    if wanted is None:
        return None
    taken = set(Applied.objects.filter(batch=batch).values_list("shard", flat=True))
    return [shard for shard in wanted if shard not in taken]
