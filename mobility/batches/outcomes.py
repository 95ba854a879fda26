"""Result of a batch, for scripts and for people."""

from collections.abc import Iterator
from typing import Any

from mobility.batches import queries
from mobility.batches.publication import handover
from mobility.batches.quality.batch_checks import misfits_of, warnings_of
from mobility.batches.quality.facts import Facts
from mobility.batches.queries import is_noisy
from mobility.vault.models.batch import Batch

# Of `summary`, and of its `checks`: what is not listed here is not shown to feeds.
TOLD_TO_FEEDS = frozenset({
    "batch", "profile", "validate_only", "source", "timezone", "rows_read", "rows_accepted", "rows_ignored",
    "rows_rejected", "duplicate",
})  # fmt: skip
CHECKS_TOLD_TO_FEEDS = frozenset({
    "empty", "columns", "unmatched_cells", "unmatched_more", "unmatched_hidden", "located", "locatable_of",
    "first_event", "last_event", "hours", "duplicates", "duplicates_of",
})  # fmt: skip
LATE_SHARE = 0.01  # of the subscriber-days of a file, above which its late changes are worth a word


def summary(batch: Batch) -> dict[str, Any]:
    """Result of an extract, as `manage.py ingest` prints it."""
    seconds = batch.seconds or 0.0
    return {
        "batch": str(batch.pk),
        "profile": batch.profile,
        "validate_only": batch.validate_only,
        "source": batch.source,
        "timezone": batch.study.definition["timezone"],
        "rows_read": batch.rows_read,
        "rows_accepted": batch.rows_accepted,
        "rows_ignored": dict(sorted(batch.rows_ignored.items())),
        "rows_rejected": dict(sorted(batch.rows_rejected.items())),
        "rejected_lines": rejected_lines(batch),
        "subscriber_days": batch.subscriber_days,
        "subscribers_new": batch.subscribers_new,
        "reports": batch.reports,
        "seconds": round(seconds, 3),
        "rows_per_second": round(batch.rows_read / seconds) if seconds else None,
        "peak_rss_mb": batch.peak_rss_mb,
        "duplicate": batch.duplicate_of_id is not None,
        "notes": batch.notes,
        "checks": batch.checks,
        "published": is_published(batch),
    }


def rejected_lines(batch: Batch) -> dict[str, dict[str, list[Any]]]:
    """Columns and first lines (of a Parquet file: rows) of rejected rows, by reason."""
    return {
        each.reason: {"columns": list(each.columns), "first": list(each.first_lines)}
        for each in sorted(queries.rejected_rows(batch), key=lambda each: each.reason)
    }


def summary_for_feed(batch: Batch) -> dict[str, Any]:
    """Answer to a feed about a batch that it sent: only what its file's bytes decide.

    Never what the vault holds, by no number and no combination of files: who was there before, who has opted
    out, whether others sent the same file, or whether the change covers `min_publication` subscribers.
    """
    told = {name: value for name, value in summary(batch).items() if name in TOLD_TO_FEEDS}
    checks = {name: value for name, value in batch.checks.items() if name in CHECKS_TOLD_TO_FEEDS}
    return told | {"checks": checks}


def change(batch: Batch) -> dict[str, Any]:
    """Result of closing or undoing days; the numbers may be negative when days were undone."""
    return {
        "batch": str(batch.pk),
        "subscriber_days": batch.subscriber_days,
        "reports": batch.reports,
        "published": is_published(batch),
    }


def closed_slots(batch: Batch) -> dict[str, Any]:
    """Result of closing slots; `slots_closed` of the study, all in all."""
    head = queries.study_head(batch.study_id)
    return {
        "batch": str(batch.pk),
        "through": None if head.slots_through is None else head.slots_through.isoformat(),
        "slots_closed": head.slots_closed,
        "published": is_published(batch),
    }


def is_published(batch: Batch) -> bool:
    """Return whether everything that the batch brought has crossed to the analyst zone."""
    brought_nothing = batch.duplicate_of_id is not None or batch.more_to_come or batch.validate_only
    # With presence noise only a closing of days lets anything cross.
    waits = is_noisy(batch.study) and batch.kind not in Batch.CLOSINGS
    is_out = not batch.waiting_subscribers and not waits
    return not brought_nothing and is_out and handover.has_crossed(batch.study)


def misfit(batch: Batch) -> str:
    """Say why a file is not what was meant, though no rule refuses it; empty if nothing is odd."""
    return "" if batch.duplicate_of_id is not None else " ".join(misfits_of(batch))


def notes_for_reader(batch: Batch) -> Iterator[str]:
    """Notes for a person, in addition to the numbers."""
    if batch.validate_only:
        yield "this was only a check: no data from the file was kept or published"
    if batch.duplicate_of_id is not None:
        yield (
            f"nothing new: this file was already processed as batch {batch.duplicate_of_id}, so it "
            "was not read again"
        )
    elif batch.rows_accepted and not (
        batch.more_to_come or batch.validate_only or batch.subscriber_days or batch.reports
    ):
        yield "nothing new: the study already had all of this data"
    if batch.more_to_come and not batch.validate_only:
        yield "its days stay open: they are published with their next file, or when you run close_days"
    if is_noisy(batch.study) and batch.kind == Batch.Kind.EXTRACT and not batch.validate_only:
        yield (
            "nothing is published yet: the study has presence noise, so the totals of a day are "
            "published after you close that day and all earlier days (close_days)"
        )
    if (handover_waits := queries.waiting_handover(batch.study_id)) is not None:
        yield (
            "the analyst server does not have all totals yet: "
            f"{handover_waits.problem or 'the handover is about to start'}. No data is lost: while a "
            "worker runs, the handover is retried"
        )
    if batch.waiting_subscribers:
        is_near = batch.waiting_subscribers >= batch.study.definition["min_publication"]
        few = "fewer than min_publication" + is_near * " would differ from earlier reports"
        units = "events" if batch.study.of_events else "subscribers"
        yield (
            f"not published yet: changes for {batch.waiting_subscribers} {units}, {is_near * 'but '}"
            f"{few}; they are published together with later changes"
        )
    if batch.waiting_subscribers and batch.kind == Batch.Kind.OPT_OUT:
        yield (
            "these people have been removed from the vault; the reports count them until the next "
            "publication. If the study is closed before then, the reports count them permanently, "
            "and the erasure certificate states this"
        )
    yield from _late_changes(batch)
    for reason, lines in sorted(batch.rejected_lines.items()):
        first = ", ".join(str(line) for line in lines)
        yield f"rejected as {reason}: {batch.rows_rejected[reason]:,} rows, first {batch.places} {first}"
    yield from warnings_of(batch)


def _late_changes(batch: Batch) -> Iterator[str]:
    """Files that each hold a part of a day lose daily answers if the first of them publishes the day."""
    late = batch.notes.get("late_change", 0)
    subscriber_days = sum(Facts.of(batch.checks).day_subscribers.values())
    if subscriber_days and late > LATE_SHARE * subscriber_days:
        yield (
            f"{late:,} daily answers would have changed ({subscriber_days:,} subscriber-days in the "
            "file), but earlier files had already published them, and published answers are final. "
            "Send files that contain part of a day with more_to_come, and publish the days with "
            "close_days"
        )
