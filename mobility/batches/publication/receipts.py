"""Entries of the vault for the ledger, which is in the other database: receipts of batches, ends of keys.

No transaction spans both databases. Events are stored in the vault first; an entry of the ledger has an
id, so that it can be tried again, and `record_missing` adds what a process left out that died in between.
"""

import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, InterfaceError, OperationalError
from django.utils import timezone

from mobility.base.errors import StagingUnavailableError
from mobility.batches import staging
from mobility.batches.dispatching import RETRY_S, ask
from mobility.batches.publication import certificate as certificates
from mobility.batches.queries import study_head
from mobility.vault.keystore import keystore
from mobility.vault.models.batch import Batch
from mobility.vault.models.profiles import FeedToken
from mobility.vault.models.subscribers import VaultStudy
from reports.ledger.actions import record, recorded_events
from reports.ledger.chain import Json, canonical_hash, moment
from reports.ledger.key import LedgerKeyError
from reports.ledger.models import LedgerKind

log = logging.getLogger(__name__)

CLEANED_WITHIN = timedelta(hours=1)  # the sweep has removed by then what a process left behind


def record_ended(batch: Batch) -> None:
    """Add the receipt of a batch that has ended, once nothing is left of what it staged."""
    try:
        _record_ended(Batch.objects.select_related("study").get(pk=batch.pk))
    except (DatabaseError, InterfaceError, LedgerKeyError, StagingUnavailableError) as error:
        # The batch has ended all the same: the receipt comes when the ledger can be written again.
        log.warning("receipt_postponed batch=%s error=%s", batch.pk, type(error).__name__)
        if isinstance(error, OperationalError | InterfaceError):  # other problems last until the hourly look
            ask("advance", str(batch.pk), in_s=RETRY_S)


def record_closed(study: VaultStudy) -> None:
    """Add that a study was closed and its keys were destroyed, as its certificate says; once."""
    certificate = study.certificate
    if certificate is None or not certificates.is_complete(certificate):
        return
    by = certificate["closed_by"]
    for key in certificate["keys"]:
        record(
            LedgerKind.KEY_DESTROYED,
            actor=by,
            study=study.slug,
            facts={"key": key["id"], "key_left": keystore().exists(key["id"]), "at": key["destroyed_at"]},
            event_id=f"key.destroyed/{key['id']}/{study.created_at.isoformat()}",
        )
    record(
        LedgerKind.STUDY_CLOSED,
        actor=by,
        study=study.slug,
        facts={
            "certificate_sha256": canonical_hash(certificate),
            "key_was_lost": certificate["key_was_lost"],
        },
        event_id=closed_event(study),
    )


def record_feed(token: FeedToken) -> None:
    """Add that a program may send files of a study."""
    record(
        LedgerKind.TOKEN_CREATED,
        actor=token.created_by,
        study=token.study.slug,
        facts={"sends": True, "token": str(token.pk), "until": token.expires_at.date().isoformat()},
        event_id=_feed_event(token),
    )


def record_feed_revoked(token: FeedToken, *, by: str) -> None:
    """Add that a program may send no more; once."""
    record(
        LedgerKind.TOKEN_REVOKED,
        actor=by,
        study=token.study.slug,
        facts={"sends": True, "token": str(token.pk)},
        event_id=_feed_event(token).replace("created", "revoked", 1),
    )


def record_missing() -> None:
    """Add what is in the vault and not in the ledger; any worker may do it, at any time."""
    until = timezone.now() - CLEANED_WITHIN
    ended = Batch.objects.filter(state__in=Batch.FINAL)
    known = recorded_events(LedgerKind.BATCH_ENDED)
    for batch in ended.select_related("study").order_by("finished_at").iterator(chunk_size=500):
        if _batch_event(batch) not in known:
            _record_ended(batch, is_patient=batch.finished_at is None or batch.finished_at > until)
    known = recorded_events(LedgerKind.STUDY_CLOSED)
    for study in VaultStudy.objects.exclude(certificate=None):
        if closed_event(study) not in known:
            record_closed(study)
    known = recorded_events(LedgerKind.TOKEN_CREATED)
    for token in FeedToken.objects.select_related("study").order_by("pk"):
        if _feed_event(token) not in known:
            record_feed(token)


def _record_ended(batch: Batch, *, is_patient: bool = True) -> None:
    """Add a receipt; one who is patient leaves it to a later look while something is still staged."""
    if not batch.is_final:
        return
    left = {
        "staged_bytes_left": staging.bytes_left(batch.pk),
        "key_left": keystore().exists(batch.key_id),
    }
    if is_patient and any(left.values()):
        return
    record(
        LedgerKind.BATCH_ENDED,
        actor=batch.created_by,
        study=batch.study.slug,
        facts=dict(_receipt(batch)) | left,
        event_id=_batch_event(batch),
    )


def _receipt(batch: Batch) -> Iterator[tuple[str, Json]]:
    yield "batch", str(batch.pk)
    yield "kind", str(batch.kind)
    yield "state", str(batch.state)
    yield "key", batch.key_id
    if batch.kind == Batch.Kind.VOID_DAY:
        yield "day", study_head(batch.study_id).date_of(batch.day or 1).isoformat()
    if batch.validate_only:
        yield "only_checked", True
    if batch.duplicate_of_id is not None:
        yield "duplicate_of", str(batch.duplicate_of_id)
    if _says_of_few(batch):
        yield "counts_withheld", True
    elif batch.kind in Batch.FILES:
        # Nothing says what the vault holds: neither answers added, nor rows of who has opted out, nor events
        # that were there already. Duplicates within a file of people stay apart from its accepted rows.
        of_vault = ("opted_out", "duplicate") if batch.study.of_events else ("opted_out",)
        ignored = _sorted(batch.rows_ignored)
        yield "rows_read", batch.rows_read
        yield "rows_accepted", batch.rows_accepted + sum(ignored.pop(name, 0) for name in of_vault)
        yield "rows_ignored", ignored
        yield "rows_rejected", _sorted(batch.rows_rejected)


def _says_of_few(batch: Batch) -> bool:
    """Return whether counts of rows could reveal a few people, or what noise on totals hides."""
    if batch.study.plan.get("presence") is not None or batch.kind == Batch.Kind.OPT_OUT:
        return True
    is_file = batch.kind in Batch.FILES and batch.duplicate_of_id is None
    least = max(batch.study.definition.get(name, 0) for name in ("min_publication", "small_cell"))
    return is_file and (batch.checks.get("subscribers") or 0) < least


def _sorted(counts: dict[str, int]) -> dict[str, Any]:
    return dict(sorted(counts.items()))


def _batch_event(batch: Batch) -> str:
    return f"batch.ended/{batch.pk}"


def closed_event(study: VaultStudy) -> str:
    # With the time of its creation: the demo can be removed, made again, and closed again within a second.
    return f"study.closed/{study.slug}/{study.created_at.isoformat()}"


def _feed_event(token: FeedToken) -> str:
    return f"feed.created/{token.pk}/{moment(token.created_at)}"
