"""Checks of one batch, ready to be shown: facts with their denominators, and how they compare."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import timezone

from mobility.batches.quality import words
from mobility.batches.quality.calendar import StudyCalendar
from mobility.batches.quality.deliveries import Delivery, calendar_of, history_of
from mobility.batches.quality.facts import Facts, Share
from mobility.batches.quality.look_back import LookBack, look_back
from mobility.vault.models.batch import Batch

UNMATCHED_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchChecks:
    """Rows on the page of a batch; `compared` only once the batch has ended.

    `nothing_counts` says why no row was used, empty if one was; it is one of the `warnings`.
    """

    facts: Facts
    calendar: StudyCalendar
    first_event: datetime | None
    last_event: datetime | None
    located: Share | None
    duplicates: Share | None
    empty: tuple[tuple[str, Share], ...]
    compared: LookBack | None
    warnings: tuple[str, ...]
    nothing_counts: str

    @property
    def unusual(self) -> list[str]:
        """Warnings without the reason why no row was used, which the page gives first."""
        return [each for each in self.warnings if each != self.nothing_counts]

    @property
    def comparisons(self) -> list[dict[str, Any]]:
        found = self.compared.comparisons if self.compared else ()
        return [words.comparison_words(each, self.calendar) for each in found]

    @property
    def unmatched_shown(self) -> tuple[tuple[str, int], ...]:
        return self.facts.unmatched_cells[:UNMATCHED_SHOWN]

    @property
    def unmatched_notes(self) -> list[str]:
        return list(words.unmatched_notes(self.facts))


def batch_checks(batch: Batch) -> BatchChecks | None:
    """Checks of a batch; None until its rows were read, and for changes without a file."""
    if not batch.checks:
        return None
    delivery, calendar = _delivery(batch), calendar_of(batch.study_id)
    facts, zone = delivery.facts, ZoneInfo(calendar.timezone)
    compared = _compared(batch, delivery, calendar)
    unusual = words.warnings(compared, calendar) if compared else ()
    return BatchChecks(
        facts=facts,
        calendar=calendar,
        first_event=_local(facts.first_event, zone),
        last_event=_local(facts.last_event, zone),
        located=_share(facts.located, facts.locatable_of or None),
        duplicates=_share(facts.duplicates, facts.duplicates_of),
        empty=tuple(_empty(delivery)),
        compared=compared,
        warnings=(*words.misfits(batch, facts, calendar), *unusual),
        nothing_counts=words.nothing_counts(batch, facts, calendar) if batch.counts_nothing else "",
    )


def warnings_of(batch: Batch) -> list[str]:
    """Return unusual facts about an ended batch, in sentences; none of them refuses the batch."""
    found = batch_checks(batch)
    return list(found.warnings) if found else []


def misfits_of(batch: Batch) -> list[str]:
    """Say why a file does not fit its study or its profile, though no rule refuses it."""
    if not batch.checks:
        return []
    return list(words.misfits(batch, Facts.of(batch.checks), calendar_of(batch.study_id)))


def _delivery(batch: Batch) -> Delivery:
    values = {field.attname: getattr(batch, field.attname) for field in batch._meta.concrete_fields}
    return Delivery.of({**values, "pk": batch.pk, "finished_at": batch.finished_at or timezone.now()})


def _compared(batch: Batch, delivery: Delivery, calendar: StudyCalendar) -> LookBack | None:
    # The page asks every second while a batch runs; what it is compared with is read once it has ended.
    if not batch.is_final or batch.kind != Batch.Kind.EXTRACT:
        return None
    history = history_of(batch.study_id).before(delivery.at)
    return look_back(delivery, history=history, calendar=calendar)


def _empty(delivery: Delivery) -> Iterator[tuple[str, Share]]:
    """Columns with their empty values, most first."""
    for column, rows in sorted(delivery.facts.empty.items(), key=lambda each: (-each[1], each[0])):
        yield column, Share(part=rows, of=delivery.rows_formed)


def _share(part: int | None, of: int | None) -> Share | None:
    return None if part is None or of is None else Share(part=part, of=of)


def _local(second: int | None, zone: ZoneInfo) -> datetime | None:
    return None if second is None else datetime.fromtimestamp(second, zone)
