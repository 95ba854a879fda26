"""Second half of a batch: every shard takes its change, each in one vault transaction.

A transaction writes, together or not at all: that the batch was applied to the shard, the shard's presence
and day state (each only if no one changed it in between), and the delta that waits to be published.
"""

from collections import Counter
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from mobility.base import memory
from mobility.base.errors import SupersededError
from mobility.batches.publication import day_transitions, slots
from mobility.batches.publication.day_transitions import DayMoves
from mobility.batches.publication.shard_changes import Outcome, outcome_of
from mobility.batches.quality.facts import merged_checks
from mobility.batches.states import move, show_life
from mobility.vault.blobs import store
from mobility.vault.models.batch import Applied, Batch
from mobility.vault.models.outbox import OutboxDelta
from mobility.vault.models.subscribers import DayState, PresenceShard
from mobility.vault.studies import OpenStudy

COUNTED = ("subscriber_days", "subscribers_new", "reports")
NOTED = ("conflicting_value", "late_change")
SLOT_CLOSED = "slot_closed"  # rows that came after the counts of their slot were final
PEAK = "peak_rss_mb"
State = Batch.State


def shards_of(batch: Batch, study: OpenStudy, moves: DayMoves) -> list[int]:
    """Shards that have to take the batch: those with rows of it, and those with state of days that move."""
    shards = {
        int(shard)
        for segments in batch.chunks.values_list("segments", flat=True)
        for staged in segments
        for shard in staged
    }
    states = DayState.objects.filter(study=study.row, day__in=moves.of_everyone)
    shards |= set(states.values_list("shard", flat=True))
    if moves.undo is not None or moves.crossing is not None:
        shards |= set(PresenceShard.objects.filter(study=study.row).values_list("shard", flat=True))
    return sorted(shards)


def apply_shard(batch: Batch, study: OpenStudy, shard: int, moves: DayMoves) -> None:
    """Bring the batch into one shard; nothing happens if it is there already.

    Raises
    ------
    SupersededError : the batch has ended meanwhile
    """
    memory.reset_peak()
    show_life(batch, state=State.MERGING)
    outcome = outcome_of(batch, study, shard, moves)
    counts = {
        **outcome.counts,
        "late_change": outcome.change.late_changes,
        **{name: getattr(outcome.change, name) for name in COUNTED},
        PEAK: memory.peak_mb(),
    }
    # Everything slow is done; what follows only writes.
    try:
        with transaction.atomic(using="vault"):
            show_life(batch, state=State.MERGING, shards_done=F("shards_done") + 1)
            Applied.objects.create(batch=batch, shard=shard, counts=counts)
            if not batch.validate_only:
                _store(batch, study, shard, outcome, moves)
    except IntegrityError:
        if Applied.objects.filter(batch=batch, shard=shard).exists():
            raise SupersededError(f"shard {shard} has taken batch {batch.pk} already") from None
        raise


def _store(batch: Batch, study: OpenStudy, shard: int, outcome: Outcome, moves: DayMoves) -> None:
    store(outcome.successors)
    DayState.objects.filter(study=study.row, shard=shard, day__in=moves.forget).delete()
    if outcome.slots is not None and outcome.slots.counts.any():
        slots.store(batch, study, shard, outcome.slots)
    change = outcome.change
    # Anyone who leaves after their days were undone changes no total, and still remains in what is published.
    if not change.delta.is_zero or change.subscribers or change.opted_out:
        OutboxDelta.objects.create(
            batch=batch,
            shard=shard,
            number=study.row.publication_number,
            subscribers=change.subscribers,
            opted_out=change.opted_out,
            delta=study.seal_delta(change.delta, batch=batch.pk, shard=shard),
        )


def finish(batch: Batch, study: OpenStudy) -> None:
    """Note what all shards did, and move the days: only now is the whole batch in."""
    shards = list(Applied.objects.filter(batch=batch).values_list("counts", flat=True))
    noted = NOTED if study.definition.slots is None else (*NOTED, SLOT_CLOSED)
    totals: Counter[str] = Counter()
    days: Counter[int] = Counter()
    for counts in shards:
        added = ("duplicates", "subscribers", *COUNTED, *noted)
        totals.update({name: counts.get(name, 0) for name in added})
        days.update({int(day): n for day, n in counts.get("day_subscribers", {}).items()})
    rows, duplicates = batch.rows_accepted, totals["duplicates"]
    with transaction.atomic(using="vault"):
        mine = move(
            batch,
            "publish",
            rows_accepted=rows - duplicates,
            rows_ignored={**batch.rows_ignored, "duplicate": duplicates}
            if duplicates
            else batch.rows_ignored,
            notes={name: totals[name] for name in noted},
            checks=merged_checks(
                batch.checks,
                rows=rows,
                duplicates=duplicates,
                subscribers=totals["subscribers"],
                day_subscribers=days,
            ),
            peak_rss_mb=_peak(batch, shards),
            **{name: totals[name] for name in COUNTED},
        )
        if mine and not batch.validate_only:
            day_transitions.make(batch, study)


def _peak(batch: Batch, shards: list[dict[str, Any]]) -> float | None:
    """Largest memory of a process that worked on the batch, in MB."""
    peaks = [counts[PEAK] for counts in shards] + list(batch.chunks.values_list("peak_rss_mb", flat=True))
    return max((peak for peak in peaks if peak is not None), default=None)
