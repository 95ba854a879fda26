"""Slots in the vault: what of them crosses when they are closed, and only then.

The count of a slot and zone crosses once, with its noise: published again after a change, with the same
noise, the difference would show what the noise hides. So slots are closed in their order, and what comes
later changes none of them. Each shard counts its people; the transaction that ends the merging notes that all
shards have, and that the slots are closed. Only then is the noise drawn, from the study's key, and all counts
cross, zeros too: whether a publication happens must not depend on who was there, so `min_publication` is not
asked. Counts of a batch that fails before are never published: its slots stay open, and the next closing
counts them again.
"""

from dataclasses import replace

import numpy as np
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.series.counts import SlotCounts
from ldp.estimation.tallies import Delta
from ldp.keyed.noise.slots import slot_noise_counts
from mobility.vault.models.batch import Batch
from mobility.vault.models.outbox import OutboxSlots, VaultPublication
from mobility.vault.models.subscribers import VaultDay, VaultStudy
from mobility.vault.queries import clock_of
from mobility.vault.state.slots import slot_counter
from mobility.vault.studies import OpenStudy
from reports.studies.studyfile import StudyDefinition


def closing(batch: Batch, study: OpenStudy) -> tuple[int, int] | None:
    """First slot that a batch closes, and the first that it leaves open; None if it closes none.

    The same for every shard and every retry: slots are closed when all shards have taken the batch.
    """
    counter = study.daily.slots
    if counter is None:
        return None
    through = batch.slots_through if batch.day is None else counter.through_day(batch.day)
    first = study.row.slots_closed
    return (first, through) if through is not None and first < through else None


def finish(batch: Batch, study: OpenStudy) -> None:
    """Note, in the transaction that ends merging, that all shards have counted and the slots are closed."""
    slots, counter = closing(batch, study), study.daily.slots
    if slots is None or counter is None:
        return
    first, through = slots
    _failed(study.row).exclude(batch=batch).delete()
    complete = SlotCounts(first_slot=first, counts=np.zeros((through - first, counter.n_zones), np.int64))
    store(batch, study, study.row.n_shards, complete)
    VaultStudy.objects.filter(pk=study.row.pk).update(slots_closed=through)


def store(batch: Batch, study: OpenStudy, shard: int, counts: SlotCounts) -> None:
    """Let the counts of a shard wait."""
    sealed = study.seal_slots(counts, batch=batch.pk, shard=shard)
    OutboxSlots.objects.create(batch=batch, shard=shard, counts=sealed)


def cut(study: OpenStudy) -> None:
    """Make a publication of each closing that is complete, in the order of its slots."""
    if study.definition.slots is None:
        return
    for complete in _complete(study.row).order_by("pk"):
        total = study.unseal_slots(complete)
        for part in OutboxSlots.objects.filter(batch=complete.batch_id).iterator(chunk_size=16):
            total = replace(total, counts=total.counts + study.unseal_slots(part).counts)
        noisy = replace(total, counts=total.counts + _noise(study, total))
        packed, nothing = noisy.pack(), Delta.zero(study.plan).pack()
        with transaction.atomic(using="vault"):
            row = VaultStudy.objects.select_for_update().get(pk=study.row.pk)
            if not OutboxSlots.objects.filter(pk=complete.pk).exists():
                continue  # another call has published it
            VaultPublication.objects.create(
                study=row,
                number=row.publication_number,
                subscribers=0,
                delta=nothing,
                slots=packed,
                slots_through=total.first_slot + len(total.counts),
            )
            OutboxSlots.objects.filter(batch=complete.batch_id).delete()


def published(study: VaultStudy, publication: VaultPublication) -> SlotCounts | None:
    """Counts of slots that a publication brings; None if it brings totals."""
    if publication.slots is None:
        return None
    counter = slot_counter(StudyDefinition.from_json(study.definition))
    if counter is None:
        raise LdpError(f"study {study.slug!r} has no slots, and a publication of some")
    return SlotCounts.unpack(bytes(publication.slots), slots=len(counter.clock), zones=counter.n_zones)


def waits(study: VaultStudy) -> bool:
    """Return whether counts of closed slots wait to be published."""
    return _complete(study).exists()


def waiting_days(study: VaultStudy) -> frozenset[int]:
    """Days that came in and have slots that are not closed."""
    if study.definition.get("slots") is None:
        return frozenset()
    open_slots = clock_of(study).day[study.slots_closed :]
    rows = VaultDay.objects.filter(study=study, day__in=np.unique(open_slots).tolist())
    return frozenset(rows.values_list("day", flat=True))


def _noise(study: OpenStudy, counts: SlotCounts) -> NDArray[np.int64]:
    spec = study.plan.slots
    if spec is None or spec.noise is None:
        return np.zeros_like(counts.counts)
    slots, zones = np.indices(counts.counts.shape).reshape(2, -1)
    drawn = slot_noise_counts(
        spec.noise,
        prf=study.prf,
        slots=slots + counts.first_slot,
        zones=zones,
        plan_version=study.plan.version,
    )
    return drawn.reshape(counts.counts.shape)


def _complete(study: VaultStudy) -> QuerySet[OutboxSlots]:
    """Select the mark of each closing whose shards have all counted."""
    return OutboxSlots.objects.filter(batch__study=study, shard=study.n_shards)


def _failed(study: VaultStudy) -> QuerySet[OutboxSlots]:
    """Select the counts of batches that failed."""
    is_complete = Exists(_complete(study).filter(batch=OuterRef("batch")))
    return OutboxSlots.objects.filter(~is_complete, batch__study=study)
