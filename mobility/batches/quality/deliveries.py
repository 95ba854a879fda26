"""Files of each source: the history behind comparison and coverage."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Self
from uuid import UUID

from mobility.batches.quality.calendar import StudyCalendar
from mobility.batches.quality.facts import HOURS_A_DAY, Facts, Hours
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultDay, VaultStudy
from reports.base.reasons import Reason

NO_HOURS: Hours = (0,) * HOURS_A_DAY
# Everything a delivery is made of; a batch has more, and there can be thousands.
_FIELDS = (
    "pk", "profile", "filename", "state", "failure", "more_to_come", "finished_at", "days_touched",
    "content_hash", "rows_read", "rows_accepted", "rows_ignored", "rows_rejected", "checks",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One file of events that has ended, with success or not.

    at : when it ended; files of a study are processed one after the other
    days : study days of which it has accepted rows
    content_hash : empty once one of them was undone
    rows_formed : rows with all columns, of people who may be counted: an empty value is one of them
    """

    batch: UUID
    source: str
    filename: str
    is_taken_in: bool
    failure: Reason
    more_to_come: bool
    at: datetime
    days: frozenset[int]
    content_hash: str
    rows_read: int
    rows_accepted: int
    rows_rejected: int
    rows_formed: int
    facts: Facts

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        rejected: dict[str, int] = row["rows_rejected"]
        unformed = rejected.get("wrong_columns", 0) + rejected.get("bad_text", 0)
        return cls(
            batch=row["pk"],
            source=row["profile"],
            filename=row["filename"],
            is_taken_in=row["state"] == Batch.State.DONE,
            failure=Reason(row["failure"]),
            more_to_come=row["more_to_come"],
            at=row["finished_at"],
            days=frozenset(row["days_touched"]),
            content_hash=row["content_hash"],
            rows_read=row["rows_read"],
            rows_accepted=row["rows_accepted"],
            rows_rejected=sum(rejected.values()),
            rows_formed=row["rows_read"] - unformed - row["rows_ignored"].get("opted_out", 0),
            facts=Facts.of(row["checks"]),
        )

    def hours(self, day: int) -> Hours:
        """Accepted rows of `day` by local hour, with duplicates."""
        return self.facts.hours.get(day, NO_HOURS)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All deliveries of a study in the order in which they ended, and when days were undone."""

    deliveries: tuple[Delivery, ...]
    undone: Mapping[int, tuple[datetime, ...]]

    def before(self, moment: datetime) -> "History":
        """Return the history just before `moment`."""
        return History(
            deliveries=tuple(each for each in self.deliveries if each.at < moment),
            undone={day: tuple(at for at in times if at < moment) for day, times in self.undone.items()},
        )

    def of_source(self, source: str) -> "History":
        return replace(self, deliveries=tuple(each for each in self.deliveries if each.source == source))

    def last_undone(self, day: int) -> datetime | None:
        return max(self.undone.get(day, ()), default=None)

    def since_undone(self, day: int) -> list[Delivery]:
        """Deliveries with rows of `day` that came after it was last undone, failed ones too."""
        undone = self.last_undone(day)
        return [each for each in self.deliveries if day in each.days and (undone is None or each.at > undone)]

    def latest(self, day: int) -> Delivery | None:
        """The last of them."""
        files = self.since_undone(day)
        return files[-1] if files else None

    def taken_in(self, day: int) -> list[Delivery]:
        """Deliveries whose rows of `day` are in the study now."""
        return [each for each in self.since_undone(day) if each.is_taken_in]


def total_hours(deliveries: Iterable[Delivery], day: int) -> Hours:
    """Accepted rows of `day` by local hour, with duplicates, over all `deliveries`."""
    return tuple(sum(each) for each in zip(NO_HOURS, *(one.hours(day) for one in deliveries), strict=True))


def history_of(study_id: int) -> History:
    """Every delivery of a study; files that were only checked, or are the same again, brought nothing."""
    batches = Batch.objects.filter(study=study_id, finished_at__isnull=False).order_by("finished_at", "pk")
    files = batches.filter(
        kind=Batch.Kind.EXTRACT,
        validate_only=False,
        duplicate_of__isnull=True,
        state__in=(Batch.State.DONE, Batch.State.FAILED),
    )
    undone: dict[int, list[datetime]] = defaultdict(list)
    voided = batches.filter(kind=Batch.Kind.VOID_DAY, state=Batch.State.DONE)
    for day, at in voided.values_list("day", "finished_at"):
        if day is not None and at is not None:
            undone[day].append(at)
    return History(
        deliveries=tuple(Delivery.of(row) for row in files.values(*_FIELDS)),
        undone={day: tuple(times) for day, times in undone.items()},
    )


def calendar_of(study_id: int) -> StudyCalendar:
    """Calendar of a study, without loading its whole definition."""
    parts = ("first_day", "days", "timezone", "visitor")
    asked = [*(f"definition__{part}" for part in parts), "plan__events"]
    row = VaultStudy.objects.values(*asked).get(pk=study_id)
    visitor = row["definition__visitor"]
    return StudyCalendar(
        first_day=date.fromisoformat(row["definition__first_day"]),
        days=row["definition__days"],
        timezone=row["definition__timezone"],
        from_minute=visitor["from_minute"],
        to_minute=visitor["to_minute"],
        of_events=bool(row["plan__events"]),
    )


def closed_days(study_id: int) -> frozenset[int]:
    """Days of a study that are final."""
    days = VaultDay.objects.filter(study=study_id, state=VaultDay.State.CLOSED)
    return frozenset(days.values_list("day", flat=True))
