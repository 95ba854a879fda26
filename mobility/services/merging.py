"""Second half of a batch: one shard after the other takes its change, each in one vault transaction.

A transaction writes, together or not at all: that the batch was applied to the shard, the shard's presence
and day state (each only if nobody changed it in between), and the delta that waits to be published.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from mobility.daystate import DaySightings, merge_sightings
from mobility.errors import LeaseLostError
from mobility.ingest.durations import duration_codes
from mobility.ingest.events import Events, concatenate
from mobility.ingest.visits import GroupedEvents, group_events
from mobility.models import Applied, Batch, DayState, OutboxDelta, PresenceShard, VaultDay, VaultStudy
from mobility.presence import Change, DayArrivals, Presence, add_days, remove_day
from mobility.sanitise import differing_reports
from mobility.services import staging
from mobility.services.leases import Lease
from mobility.services.vault import OpenStudy


@dataclass(frozen=True, slots=True, kw_only=True)
class DayMoves:
    """What a batch does to the days of its study; the same for every shard and every retry."""

    publish_all: frozenset[int] = frozenset()  # everyone in the day state arrives
    publish_touched: frozenset[int] = frozenset()  # the others have arrived before
    forget: frozenset[int] = frozenset()  # the day state dies
    undo: int | None = None


def apply_shards(batch: Batch, study: OpenStudy, moves: DayMoves, lease: Lease) -> None:
    """Apply `batch` to every shard that has not taken it yet."""
    done = set(Applied.objects.filter(batch=batch).values_list("shard", flat=True))
    for shard in range(study.row.n_shards):
        if shard not in done:
            _apply_shard(batch, study, shard, moves, lease)
        lease.renew(shards_done=shard + 1)


def _apply_shard(batch: Batch, study: OpenStudy, shard: int, moves: DayMoves, lease: Lease) -> None:
    row = PresenceShard.objects.filter(study=study.row, shard=shard).first()
    stored = {state.day: state for state in DayState.objects.filter(study=study.row, shard=shard)}
    presence = study.unseal_presence(row)
    grouped = group_events(_events_of_shard(batch, study, shard))
    sightings = _merged_days(study, grouped, stored, moves)
    change = _change(study, presence, grouped, sightings, moves)
    counts = {
        "duplicates": grouped.duplicates,
        "conflicting_value": grouped.values.conflicting + _conflicts(presence, grouped, study),
        "late_change": change.late_changes,
        "subscriber_days": change.subscriber_days,
        "subscribers_new": change.subscribers_new,
        "reports": change.reports,
    }
    # Everything slow is done; what follows only writes.
    with transaction.atomic(using="vault"):
        lease.confirm()
        Applied.objects.create(batch=batch, shard=shard, counts=counts)
        if change.places:
            _store_presence(study, shard, row, change)
        for day in set(grouped.visits.day.tolist()) - moves.forget:
            _store_day(study, shard, day, stored.get(day), sightings[day])
        DayState.objects.filter(study=study.row, shard=shard, day__in=moves.forget).delete()
        if not change.delta.is_zero:
            OutboxDelta.objects.create(
                batch=batch,
                shard=shard,
                number=study.row.publication_number,
                subscribers=change.subscribers,
                delta=study.seal_delta(change.delta, batch=batch.pk, shard=shard),
            )


def _events_of_shard(batch: Batch, study: OpenStudy, shard: int) -> Events:
    name = str(shard)
    chunks = [chunk for chunk in batch.chunks.all() if name in chunk.segments]
    key = staging.chunk_key(batch) if chunks else b""
    parts = [
        Events.unpack(staging.read_segment(batch, chunk.index, shard, chunk.segments[name], key=key))
        for chunk in chunks
    ]
    return concatenate(parts, slots=study.sanitiser.slots("static"))


def _merged_days(
    study: OpenStudy, grouped: GroupedEvents, stored: dict[int, DayState], moves: DayMoves
) -> dict[int, DaySightings]:
    """Day state after the batch, of each day that it touches or publishes."""
    answers = study.sanitiser.static_answers(grouped.values.pseudonym, grouped.values.codes)
    visits = grouped.visits
    touched = {int(day) for day in np.unique(visits.day)}
    merged: dict[int, DaySightings] = {}
    for day in sorted(touched | moves.publish_all):
        earlier = study.unseal_day(stored.get(day))
        rows = np.flatnonzero(visits.day == day)
        seen = visits.pseudonym[rows]
        later = DaySightings(
            pseudonym=seen,
            first=visits.first[rows],
            last=visits.last[rows],
            static=answers[np.searchsorted(grouped.values.pseudonym, seen)],
        )
        merged[day] = merge_sightings(earlier, later)
    return merged


def _change(
    study: OpenStudy,
    presence: Presence,
    grouped: GroupedEvents,
    sightings: dict[int, DaySightings],
    moves: DayMoves,
) -> Change:
    number = study.row.publication_number
    if moves.undo is not None:
        return remove_day(presence, day=moves.undo, number=number, sanitiser=study.sanitiser)
    arrivals = []
    for day in sorted((moves.publish_all | moves.publish_touched) & sightings.keys()):
        only = None
        if day not in moves.publish_all:
            only = grouped.visits.pseudonym[grouped.visits.day == day]
        arrivals.append(_arrivals(study, day, sightings[day], only=only))
    return add_days(presence, arrivals, number=number, sanitiser=study.sanitiser)


def _arrivals(
    study: OpenStudy, day: int, sightings: DaySightings, *, only: NDArray[np.uint64] | None
) -> DayArrivals:
    """Who counts as a visitor of the day, with their answers."""
    stay_s = sightings.last - sightings.first
    visitor = stay_s >= study.definition.visitor.min_minutes * 60
    if only is not None:
        visitor &= np.isin(sightings.pseudonym, only, assume_unique=True)
    rows = np.flatnonzero(visitor)
    pseudonym = sightings.pseudonym[rows]
    # Every daily indicator derives from the stay so far.
    n_daily = sum(spec.kind == "daily" for spec in study.plan.indicators)
    codes = np.repeat(duration_codes(stay_s[rows])[:, None], n_daily, axis=1)
    return DayArrivals(
        day=day,
        pseudonym=pseudonym,
        static=sightings.static[rows],
        daily=study.sanitiser.daily_answers(pseudonym, codes, day=day),
    )


def _conflicts(presence: Presence, grouped: GroupedEvents, study: OpenStudy) -> int:
    """Answers that would differ from the final ones: at least so many values have changed since."""
    values = grouped.values
    known = np.isin(values.pseudonym, presence.pseudonym, assume_unique=True)
    pseudonym = values.pseudonym[known]
    stored = presence.static[np.searchsorted(presence.pseudonym, pseudonym)]
    answers = study.sanitiser.static_answers(pseudonym, values.codes[known])
    return differing_reports(stored, answers, starts=study.sanitiser.starts("static"))


def _store_presence(study: OpenStudy, shard: int, row: PresenceShard | None, change: Change) -> None:
    version = 1 if row is None else row.version + 1
    blob = study.seal_presence(change.presence, shard=shard, version=version)
    if row is None:
        PresenceShard.objects.create(study=study.row, shard=shard, version=version, blob=blob)
        return
    swapped = PresenceShard.objects.filter(pk=row.pk, version=row.version).update(version=version, blob=blob)
    if not swapped:
        raise LeaseLostError(f"shard {shard} was changed by another worker")


def _store_day(study: OpenStudy, shard: int, day: int, row: DayState | None, sightings: DaySightings) -> None:
    version = 1 if row is None else row.version + 1
    blob = study.seal_day(sightings, day=day, shard=shard, version=version)
    if row is None:
        DayState.objects.create(study=study.row, day=day, shard=shard, version=version, blob=blob)
        return
    if not DayState.objects.filter(pk=row.pk, version=row.version).update(version=version, blob=blob):
        raise LeaseLostError(f"day {day} of shard {shard} was changed by another worker")


def total_counts(batch: Batch) -> Counter[str]:
    """Counts of all shards of a batch."""
    totals: Counter[str] = Counter()
    for counts in Applied.objects.filter(batch=batch).values_list("counts", flat=True):
        totals.update(counts)
    return totals


def mark_days(study: VaultStudy, days: Iterable[int], *, state: str, pending: bool) -> None:
    """Note what has become of `days`."""
    for day in days:
        VaultDay.objects.update_or_create(study=study, day=day, defaults={"state": state, "pending": pending})
