"""From the outbox to the analyst zone: one merged delta per publication, never twice, never a small one."""

from django.db import transaction
from django.db.models import Sum

from ldp.tallies import Delta
from mobility.models import OutboxDelta, VaultPublication, VaultStudy
from mobility.services.vault import OpenStudy
from reports.services.publications import apply_publication, known_publications


def publish(study: OpenStudy) -> int:
    """Publish what waits, if it covers enough subscribers; returns how many still wait."""
    waiting = _cut(study)
    send_missing(study.row)
    return waiting


def _cut(study: OpenStudy) -> int:
    """Merge the waiting deltas into a publication, unless they cover too few subscribers."""
    with transaction.atomic(using="vault"):
        row = VaultStudy.objects.select_for_update().get(pk=study.row.pk)
        waiting = OutboxDelta.objects.filter(batch__study=row, number=row.publication_number)
        subscribers = waiting.aggregate(total=Sum("subscribers"))["total"] or 0
        if subscribers < study.definition.min_publication or subscribers == 0:
            return int(subscribers)
        delta = Delta.zero(study.plan)
        for part in waiting.iterator(chunk_size=16):
            delta = delta + study.unseal_delta(part)
        VaultPublication.objects.create(
            study=row,
            number=row.publication_number,
            subscribers=subscribers,
            voided_days=row.voided_days,
            delta=delta.pack(),
        )
        waiting.delete()
        row.publication_number += 1
        row.save(update_fields=["publication_number"])
    return 0


def send_missing(study: VaultStudy) -> None:
    """Hand every publication that the analyst zone does not have to it, in order.

    The analyst zone is asked what it has, so that one restored from an older dump catches up by itself.
    """
    known = known_publications(study.slug)
    for publication in VaultPublication.objects.filter(study=study).exclude(pk__in=known).order_by("number"):
        apply_publication(
            study_slug=study.slug,
            publication_id=publication.pk,
            plan_hash=study.plan_hash,
            delta=Delta.unpack(bytes(publication.delta)),
            voided_days=publication.voided_days,
        )
