"""From the outbox to the analyst zone: one merged delta per publication, never twice, never a small one."""

import logging
from collections.abc import Collection

from django.db import transaction

from ldp.tallies import Delta
from mobility.errors import StudyStoppedError
from mobility.handover import HandoverError
from mobility.models import Batch, OutboxDelta, VaultPublication, VaultStudy
from mobility.services import fitting, handover, presence_crossing
from mobility.services.vault import OpenStudy
from reports.services.publications import PublicationError, apply_publication, known_publications

log = logging.getLogger(__name__)


def publish(study: OpenStudy, *, batch: Batch | None = None) -> int:
    """Publish what waits, if it covers enough subscribers; returns how many still wait.

    Parameters
    ----------
    batch : whose turn it is, and that is merged whole; None when no batch of the study is at work

    Raises
    ------
    HandoverError : without a batch: an analyst server that runs apart does not have everything
    """
    if study.plan.presence is None:
        waiting = _cut(study, batch)
    else:
        presence_crossing.cut(study)
        waiting = 0
    try:
        send_missing(study.row)
    except HandoverError:
        if batch is None:
            raise
        # The batch has done its part: its totals wait in the vault, and handing over is tried again.
    return waiting


def _cut(study: OpenStudy, batch: Batch | None) -> int:
    """Merge the waiting deltas into a publication, unless they cover too few subscribers.

    They are merged outside of the transaction, since a study with places has large ones; the transaction then
    looks whether others have come, or these have gone.
    """
    delta, merged, packed = Delta.zero(study.plan), frozenset[int](), b""
    while True:
        with transaction.atomic(using="vault"):
            row = VaultStudy.objects.select_for_update().get(pk=study.row.pk)
            waiting = OutboxDelta.objects.filter(batch__study=row, number=row.publication_number)
            counted = dict(waiting.values_list("pk", "subscribers"))
            subscribers = max(sum(counted.values()), 0)
            # While the row is locked no batch gets its turn. A slow call may come in another one's: then its
            # shards are still on their way.
            is_our_turn = row.active_batch_id == (batch.pk if batch else None)
            if not is_our_turn or subscribers < max(study.definition.min_publication, 1):
                return subscribers
            if merged == counted.keys():
                _publish(row, packed, subscribers=subscribers, parts=merged)
                return 0
        if not merged <= counted.keys():  # another call has published some of them
            delta, merged = Delta.zero(study.plan), frozenset()
        for part in OutboxDelta.objects.filter(pk__in=counted.keys() - merged).iterator(chunk_size=16):
            delta.add(study.unseal_delta(part))
            merged |= {part.pk}
        packed = delta.pack()


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


def send_missing(study: VaultStudy) -> None:
    """Hand every publication that the analyst zone does not have to it, in order.

    The analyst zone is asked what it has, so that one restored from an older dump catches up by itself. An
    operator zone that runs apart keeps the totals of its studies, too.

    Raises
    ------
    HandoverError : an analyst server that runs apart does not have everything
    StudyStoppedError : the main database has totals that the vault does not know: nothing was added to them
    """
    known = known_publications(study.slug)
    fitting.check(study, known)
    for publication in VaultPublication.objects.filter(study=study).exclude(pk__in=known).order_by("number"):
        apply_publication(
            study_slug=study.slug,
            publication_id=publication.pk,
            plan_hash=study.plan_hash,
            delta=Delta.unpack(bytes(publication.delta)),
            voided_days=publication.voided_days,
        )
    fitting.let_go_on(study)
    handover.deliver(study)


def catch_up() -> None:
    """As `send_missing`, of every study: of one that gets no batch any more nobody else would ask.

    It waits for the main database, and so is no part of a sweep, which has to go on without it.
    """
    for study in VaultStudy.objects.all():
        try:
            send_missing(study)
        except PublicationError as error:  # not even the study is there: one such must not hold up others
            log.warning("publications_wait study=%s reason=%s", study.pk, error)
        except (HandoverError, StudyStoppedError):
            continue  # noted, and tried again
