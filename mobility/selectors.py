"""What the pages of operators read from the vault; definitions of areas stay in the database."""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.db.models.fields.json import KT

from mobility.ingest.rows import IGNORED, REJECTED
from mobility.models import Batch, VaultDay, VaultStudy

BATCHES_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyHead:
    """A study in a list or above a batch."""

    slug: str
    name: str
    first_day: date
    days: int
    min_publication: int

    @property
    def last_day(self) -> date:
        return self.date_of(self.days)

    def date_of(self, day: int) -> date:
        """Calendar date of study day `day` (1 = first)."""
        return self.first_day + timedelta(days=day - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRow:
    """One line of the list of studies."""

    head: StudyHead
    days_open: int
    days_published: int
    days_closed: int
    batches_running: int
    last_batch: Batch | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyDay:
    """One day of a study; `state` is empty while nothing was uploaded for it."""

    day: int
    date: date
    state: str
    pending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOutcome:
    """Rows of a batch that share an outcome."""

    reason: str
    rows: int
    first_lines: tuple[int, ...]


def study_rows() -> list[StudyRow]:
    """All studies of the vault, newest first."""
    states = VaultDay.State
    studies = _with_head(VaultStudy.objects).annotate(
        n_open=_days_in(states.OPEN), n_published=_days_in(states.PUBLISHED), n_closed=_days_in(states.CLOSED)
    )
    last = {batch.study_id: batch for batch in Batch.objects.order_by("created_at")}
    running = dict(
        Batch.objects.exclude(state__in=Batch.FINAL)
        .order_by()
        .values_list("study_id")
        .annotate(Count("id"))
    )
    rows = [
        StudyRow(
            head=_head(study),
            days_open=study.n_open,
            days_published=study.n_published,
            days_closed=study.n_closed,
            batches_running=running.get(study.pk, 0),
            last_batch=last.get(study.pk),
        )
        for study in studies
    ]
    return sorted(rows, key=lambda row: row.head.first_day, reverse=True)


def study_days(study: VaultStudy, head: StudyHead) -> list[StudyDay]:
    """Every day of a study with its state."""
    found = {row.day: row for row in VaultDay.objects.filter(study=study)}
    return [
        StudyDay(
            day=day,
            date=head.date_of(day),
            state=found[day].state if day in found else "",
            pending=day in found and found[day].pending,
        )
        for day in range(1, head.days + 1)
    ]


def study_batches(study: VaultStudy) -> QuerySet[Batch]:
    """The newest batches of a study."""
    return Batch.objects.filter(study=study).order_by("-created_at")[:BATCHES_SHOWN]
