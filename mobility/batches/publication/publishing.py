"""From the outbox to the analyst zone: one merged delta per publication, never twice, never a small one.

A publication covers the subscribers who count otherwise than in all publications before it together. Shards
count them from the state that they keep (`Presence.published`), so that a day that is undone and sent again,
or a subscriber who comes and opts out, covers no one.
"""

import logging
from collections.abc import Collection

from django.db import transaction

from ldp.estimation.tallies import Delta
from mobility.base.errors import StudyStoppedError
from mobility.batches.publication import handover, min_publication, presence_noise, slots
from mobility.batches.publication.analyst_server import HandoverError
from mobility.vault import consistency
from mobility.vault.models.batch import Batch
from mobility.vault.models.outbox import OutboxDelta, VaultPublication
from mobility.vault.models.subscribers import VaultStudy
from mobility.vault.studies import OpenStudy
from reports.transfer.publications import apply_publication, known_publications
from reports.transfer.slots import PublicationError

log = logging.getLogger(__name__)


def publish(study: OpenStudy, *, batch: Batch | None = None) -> None:
    """Publish what waits, if enough subscribers count otherwise than in what was published before.

    Parameters
    ----------
    batch : whose turn it is, and that is merged whole; None when no batch of the study is at work

    Raises
    ------
    HandoverError : without a batch: an analyst server that runs apart does not have everything
    """
    if study.plan.presence is None:
        _cut(study, batch)
    else:
        presence_noise.cut(study)
    slots.cut(study)
    try:
        send_missing(study.row)
    except HandoverError:
        if batch is None:
            raise
        # The batch has done its part: its totals wait in the vault, and handing over is tried again.


def _cut(study: OpenStudy, batch: Batch | None) -> None:
    """Merge the waiting deltas into a publication, or into one delta that waits on.

    They are merged outside of the transaction, since a study with places has large ones; the transaction then
    checks whether others have come, or these have gone.
    """
    delta, merged, packed, is_enough = Delta.zero(study.plan), frozenset[int](), b"", False
    while True:
        with transaction.atomic(using="vault"):
            row = VaultStudy.objects.select_for_update().get(pk=study.row.pk)
            waiting = OutboxDelta.objects.filter(batch__study=row, number=row.publication_number)
            parts = {part.pk: part for part in waiting.defer("delta").order_by("pk")}
            # While the row is locked no batch gets its turn. A slow call may come in another one's: then its
            # shards are still on their way.
            is_our_turn = row.active_batch_id == (batch.pk if batch else None)
            if not is_our_turn or not parts:
                return
            subscribers = sum(part.subscribers for part in parts.values())
            if merged == parts.keys():
                if is_enough:
                    _publish(row, packed, subscribers=subscribers, parts=merged)
                else:
                    _wait_on(study, delta, list(parts.values()), batch=batch)
                return
        if not merged <= parts.keys():  # another call has published some of them
            delta, merged = Delta.zero(study.plan), frozenset()
        for part in OutboxDelta.objects.filter(pk__in=parts.keys() - merged).iterator(chunk_size=16):
            delta.add(study.unseal_delta(part))
            merged |= {part.pk}
        packed = delta.pack()
        is_enough = min_publication.is_enough(study, row, delta, list(parts.values()))


def may_cross(study: OpenStudy) -> bool:
    """Return whether what waits could be published now; False if nothing does."""
    row = VaultStudy.objects.get(pk=study.row.pk)
    parts = list(OutboxDelta.objects.filter(batch__study=row, number=row.publication_number))
    delta = Delta.zero(study.plan)
    for part in parts:
        delta.add(study.unseal_delta(part))
    return min_publication.is_enough(study, row, delta, parts)


def _wait_on(study: OpenStudy, delta: Delta, parts: list[OutboxDelta], *, batch: Batch | None) -> None:
    """Let one delta wait in the place of several: what came and was taken back meanwhile is in it no more."""
    subscribers = sum(part.subscribers for part in parts)
    opted_out = sum(part.opted_out for part in parts)
    of, place = parts[-1].batch_id, study.row.n_shards  # a place that no shard has
    OutboxDelta.objects.filter(pk__in=[part.pk for part in parts]).delete()
    if delta.is_zero and not subscribers and not opted_out:
        _nobody_waits(study.row)
        return
    OutboxDelta.objects.create(
        batch_id=of,
        shard=place,
        number=parts[-1].number,
        subscribers=subscribers,
        opted_out=opted_out,
        delta=study.seal_delta(delta, batch=of, shard=place),
    )
    if batch is not None:
        Batch.objects.filter(pk=batch.pk).update(waiting_subscribers=max(subscribers, 1))


def _publish(row: VaultStudy, packed: bytes, *, subscribers: int, parts: Collection[int]) -> None:
    """Write the next publication of a study, in place of the deltas that it is merged of."""
    VaultPublication.objects.create(
        study=row,
        number=row.publication_number,
        subscribers=subscribers,
        voided_days=row.voided_days,
        delta=packed,
    )
    OutboxDelta.objects.filter(pk__in=parts).delete()
    row.publication_number += 1
    row.save(update_fields=["publication_number"])
    _nobody_waits(row)


def _nobody_waits(study: VaultStudy) -> None:
    Batch.objects.filter(study=study, waiting_subscribers__gt=0).update(waiting_subscribers=0)


def send_missing(study: VaultStudy) -> None:
    """Hand every publication that the analyst zone does not have to it, in order.

    The analyst zone is asked what it has, so one restored from an older dump catches up automatically. An
    operator zone that runs apart keeps the totals of its studies, too.

    Raises
    ------
    HandoverError : an analyst server that runs apart does not have everything
    StudyStoppedError : the main database has totals that the vault does not know: nothing was added to them
    """
    known = known_publications(study.slug)
    consistency.check(study, known)
    missing = VaultPublication.objects.filter(study=study).exclude(pk__in=known)
    for publication in missing.order_by("number", "slots_through"):
        apply_publication(
            study_slug=study.slug,
            publication_id=publication.pk,
            plan_hash=study.plan_hash,
            delta=Delta.unpack(bytes(publication.delta)),
            voided_days=publication.voided_days,
            slots=slots.published(study, publication),
        )
    consistency.let_go_on(study)
    handover.deliver(study)


def catch_up() -> None:
    """Send the missing publications of every study: one without new batches would never be handled otherwise.

    It waits for the main database, and so is no part of a sweep, which has to continue without it.
    """
    for study in VaultStudy.objects.all():
        try:
            send_missing(study)
        except PublicationError as error:  # not even the study is there: it must not delay others
            log.warning("publications_wait study=%s reason=%s", study.pk, error)
        except (HandoverError, StudyStoppedError):
            continue  # noted, and tried again
