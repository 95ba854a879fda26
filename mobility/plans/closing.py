"""Closing a study: its key is destroyed, what the key sealed is erased, and a certificate says so.

First everything that may cross to the analyst zone crosses. Then one transaction decides, and counts the data
present. Then the key goes, and then the rest. From the decision on a closing only goes forward: after an
interruption, closing again ends in the same certificate.
"""

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime

from django.db import DatabaseError, transaction
from django.db.models import Model, Q, QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from mobility.base import errors
from mobility.batches import finalisation, staging
from mobility.batches.publication import certificate, handover, presence_noise, slots
from mobility.batches.publication.analyst_server import HandoverError
from mobility.batches.publication.certificate import Certificate, Copies, Dropped, Holdings
from mobility.batches.publication.day_transitions import waiting_nights
from mobility.batches.publication.publishing import may_cross, publish, send_missing
from mobility.batches.publication.receipts import record_closed
from mobility.batches.queries import is_noisy, study_head
from mobility.plans.escrows import escrow_days
from mobility.vault.compaction import compact
from mobility.vault.keystore import keystore
from mobility.vault.models.batch import Applied, Batch, Chunk, ShardRun
from mobility.vault.models.outbox import OutboxDelta, OutboxSlots, VaultPublication
from mobility.vault.models.profiles import FeedToken
from mobility.vault.models.subscribers import (
    AnswerShard,
    DayState,
    OptOutShard,
    PresenceShard,
    VaultDay,
    VaultStudy,
)
from mobility.vault.studies import OpenStudy
from reports.transfer.publications import known_publications
from reports.transfer.slots import PublicationError
from reports.transfer.studies import mark_closed

Tables = tuple[type[Model], ...]
log = logging.getLogger(__name__)

OF_STUDY: Tables = (PresenceShard, DayState, AnswerShard, OptOutShard, VaultPublication)
OF_BATCH: Tables = (OutboxDelta, OutboxSlots, Chunk, ShardRun, Applied)


class StudyNotClosedError(errors.MobilityError):
    """The study cannot be closed now; nothing was erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """Permissions of a closing to continue instead of refusing.

    cancel_batches : end batches that have changed nothing yet
    drop_unpublished : lose the rows of days that were never published
    lost_key : close although the key is not in the keystore
    came_back : it was closed before, or does not fit what analysts have, since a database was restored: end
        its batches, hand over only what fits, and erase the rest
    """

    cancel_batches: bool = False
    drop_unpublished: bool = False
    lost_key: bool = False
    came_back: bool = False


def close_study(study: VaultStudy, *, by: str, leave: Leave) -> Certificate:
    """Close a study permanently; a study that is closed gives its certificate again.

    Raises
    ------
    StudyNotClosedError : an obstacle exists; nothing was erased
    VaultBusyError : the key is destroyed, but old pages could not be given back: close it again
    """
    study.refresh_from_db()
    if study.certificate is None and leave.came_back:
        _decide_again(study, by=by)
    elif study.certificate is None:
        _end_batches(study, by=by, may_cancel=leave.cancel_batches)
        opened = _opened(study, key_may_be_lost=leave.lost_key)
        _publish_last(study, opened)
        _decide(study, opened, by=by, leave=leave)
        log.info("study_closing study=%s", study.slug)
    if not certificate.is_complete(study.certificate):
        _erase(study)
        log.info("study_closed study=%s", study.slug)
        handover.try_to_deliver(study)  # that it is closed; otherwise the next try says so
    record_closed(study)
    return study.certificate or {}


def unfinished(study: VaultStudy) -> QuerySet[Batch]:
    """Batches that prevent closing."""
    return Batch.objects.filter(study=study).exclude(state__in=Batch.FINAL)


def unpublished_days(study: VaultStudy) -> tuple[date, ...]:
    """Days with unpublished rows, including those of their nights."""
    head = study_head(study.pk)
    waits = Q(state=VaultDay.State.OPEN) | Q(pending=True)
    if is_noisy(study):  # then nothing crosses before its day is closed
        waits |= Q(state=VaultDay.State.PUBLISHED)
    waiting = VaultDay.objects.filter(waits, study=study)
    days = {*waiting.values_list("day", flat=True), *waiting_nights(study), *slots.waiting_days(study)}
    return tuple(head.date_of(day) for day in sorted(days))


def waiting_subscribers(study: VaultStudy) -> tuple[int, int]:
    """Subscribers whose changes are too few to be published; and those of them who have opted out."""
    waiting = OutboxDelta.objects.filter(batch__study=study, number=study.publication_number)
    sums = waiting.aggregate(all=Sum("subscribers"), opted_out=Sum("opted_out"))
    subscribers, opted_out = int(sums["all"] or 0), int(sums["opted_out"] or 0)
    # Publications count what an earlier release left in another way: to them it may be fewer.
    return max(subscribers, opted_out), opted_out


def _end_batches(study: VaultStudy, *, by: str, may_cancel: bool) -> None:
    if may_cancel:
        for batch in unfinished(study).filter(state__in=Batch.CANCELLABLE):
            try:
                finalisation.cancel(batch, by=by)
            except errors.CancelError:
                continue  # it has moved on: what remains is refused below
    _check_ended(study)


def _check_ended(study: VaultStudy) -> None:
    states = Counter(unfinished(study).values_list("state", flat=True))
    if not states:
        return
    listed = ", ".join(f"{n} {state}" for state, n in sorted(states.items()))
    cancel = " or cancel them (--cancel-batches)" if set(states) & set(Batch.CANCELLABLE) else ""
    raise StudyNotClosedError(
        f"batches of the study have not ended ({listed}): wait until they end{cancel}; if one waits "
        "for a key or storage that is permanently lost, run manage.py cancel_batch BATCH --give-up. "
        "Nothing was erased"
    )


def _opened(study: VaultStudy, *, key_may_be_lost: bool) -> OpenStudy | None:
    """The study with its key; None when the key is lost."""
    try:
        return OpenStudy(row=study, master_key=keystore().read(study.key_id))
    except errors.KeyMissingError as error:
        if key_may_be_lost:
            return None
        raise StudyNotClosedError(
            f"{error}. If another host has the key, close the study there; if the key is permanently "
            "lost, close with --key-is-lost. Nothing was erased"
        ) from None


def _publish_last(study: VaultStudy, opened: OpenStudy | None) -> None:
    """Hand over what may cross: afterwards nothing is left to send it again from."""
    try:
        if opened is not None:
            publish(opened)
        else:
            send_missing(study)
    except (PublicationError, errors.StudyStoppedError) as error:
        raise StudyNotClosedError(f"{error}: nothing was erased") from None
    except HandoverError as error:
        raise StudyNotClosedError(
            f"the last totals could not be handed over: {error}. Nothing was erased; close the study "
            "again when the analyst server has the totals"
        ) from None
    except DatabaseError as error:
        raise StudyNotClosedError(
            f"the last totals could not be sent to the analyst zone ({type(error).__name__}), so "
            "nothing was erased. Close the study again when both databases respond"
        ) from None


def _decide_again(study: VaultStudy, *, by: str) -> None:
    """Close a study that a restore brought back, in spite of obstacles."""
    for batch in unfinished(study):
        finalisation.fail(batch, _("ended: the study was closed, but a restored backup brought it back"))
    try:
        send_missing(study)
    except (PublicationError, HandoverError, errors.StudyStoppedError) as error:
        log.warning("study_closed_unsent study=%s reason=%s", study.slug, type(error).__name__)
    _decide(study, None, by=by, leave=Leave(came_back=True))


def _decide(study: VaultStudy, opened: OpenStudy | None, *, by: str, leave: Leave) -> None:
    """Close the study and draft its certificate in one transaction: from here on it only goes forward."""
    in_escrow = escrow_days(study.key_id)
    with transaction.atomic(using="vault"):
        locked = VaultStudy.objects.select_for_update().get(pk=study.pk)
        if locked.certificate is None:
            _check_ended(locked)
            days = unpublished_days(locked)
            if not leave.came_back:
                _check_crossed(locked, opened)
                _check_published(days, may_drop=leave.drop_unpublished)
            locked.closed_at = timezone.now()
            locked.certificate = certificate.draft(
                locked,
                by=by,
                at=locked.closed_at,
                key_ids=_key_ids(locked),
                destroyed_before=keystore().destroyed_at(locked.key_id),
                holdings=_holdings(locked, opened),
                dropped=_dropped(locked, days),
                copies=Copies(in_escrow=in_escrow, came_back=leave.came_back),
            )
            locked.save(update_fields=["closed_at", "certificate"])
    study.refresh_from_db()


def _dropped(study: VaultStudy, days: tuple[date, ...]) -> Dropped:
    """Count changes that never cross; with presence noise the number of subscribers stays secret."""
    has_noise = study.plan.get("presence") is not None
    waiting, opted_out = (None, None) if has_noise else waiting_subscribers(study)
    return Dropped(waiting_subscribers=waiting, opted_out_in_totals=opted_out, unpublished_days=days)


def _check_crossed(study: VaultStudy, opened: OpenStudy | None) -> None:
    is_late = presence_noise.waits(study) or slots.waits(study) or (opened is not None and may_cross(opened))
    known = known_publications(study.slug)
    is_left = VaultPublication.objects.filter(study=study).exclude(pk__in=known).exists()
    if is_late or is_left or not handover.has_crossed(study):
        raise StudyNotClosedError("the study changed while it was being closed: close it again")


def _check_published(days: tuple[date, ...], *, may_drop: bool) -> None:
    if days and not may_drop:
        listed = ", ".join(day.isoformat() for day in days)
        raise StudyNotClosedError(
            f"some days have rows that were never published ({listed}): publish them (close_days) or "
            "discard them (--drop-unpublished). Nothing was erased"
        )


def _key_ids(study: VaultStudy) -> list[str]:
    """Keys that are there, the study's first: it opens the most."""
    keys = keystore()
    batches = (batch.key_id for batch in Batch.objects.filter(study=study).order_by("created_at"))
    return [key_id for key_id in (study.key_id, *batches) if keys.exists(key_id)]


def _holdings(study: VaultStudy, opened: OpenStudy | None) -> Holdings:
    pseudonyms, damaged = _pseudonyms(study, opened)
    count: Callable[..., int] = lambda model: model.objects.filter(study=study).count()  # noqa: E731
    batches = Batch.objects.filter(study=study)
    held = Holdings(
        presence_shards=count(PresenceShard),
        pseudonyms=pseudonyms,
        damaged_shards=damaged,
        day_states=count(DayState),
        answer_shards=count(AnswerShard),
        opt_out_shards=count(OptOutShard),
        waiting_deltas=OutboxDelta.objects.filter(batch__study=study).count(),
        publications=count(VaultPublication),
        staged_uploads=len(_staged(study)),
        batches=dict(sorted(Counter(batches.values_list("state", flat=True)).items())),
        feed_tokens=_valid_tokens(study).count(),
    )
    return held.without_presence() if is_noisy(study) else held


def _pseudonyms(study: VaultStudy, opened: OpenStudy | None) -> tuple[int | None, int]:
    """Count pseudonyms with a place, and unreadable shards."""
    if opened is None:
        return None, 0
    total = damaged = 0
    table, opens = opened.kept_units
    for row in table._default_manager.filter(study=study).iterator(chunk_size=16):
        try:
            total += len(opens(row))
        except errors.SealBrokenError:
            damaged += 1
    return total, damaged


def _staged(study: VaultStudy) -> list[Batch]:
    """Batches of the study of which staged bytes are left: normally none."""
    left = {str(batch_id) for batch_id in staging.staged_batches()}
    return [batch for batch in Batch.objects.filter(study=study) if str(batch.pk) in left]


def _valid_tokens(study: VaultStudy) -> QuerySet[FeedToken]:
    return FeedToken.objects.filter(study=study, revoked_at=None)


def _erase(study: VaultStudy) -> None:
    """Every step can be repeated; the key comes first, so that nothing readable outlives it."""
    _destroy_keys(study)
    _delete_rows(study)
    _delete_staged(study)
    compact(*OF_STUDY, *OF_BATCH, Batch, VaultStudy)
    mark_closed(study_slug=study.slug, closed_at=study.closed_at or timezone.now())
    _note(study, certificate.completed, timezone.now())


def _destroy_keys(study: VaultStudy) -> None:
    for key_id in certificate.key_ids(study.certificate or {}):
        keystore().destroy(key_id)
    was_lost = bool((study.certificate or {}).get("key_was_lost"))
    keystore().destroy(study.key_id, was_lost=was_lost)  # should a lost one turn up, it is refused
    _note(study, certificate.keys_destroyed, timezone.now())


def _delete_rows(study: VaultStudy) -> None:
    with transaction.atomic(using="vault"):
        for table in OF_STUDY:
            table._default_manager.filter(study=study).delete()
        for table in OF_BATCH:
            table._default_manager.filter(batch__study=study).delete()
        Batch.objects.filter(study=study).update(content_hash="")
        _valid_tokens(study).update(revoked_at=timezone.now())


def _delete_staged(study: VaultStudy) -> None:
    for batch in _staged(study):
        staging.destroy(batch)
    if _staged(study):
        raise errors.StagingUnavailableError(
            "staged uploads of the study could not be deleted, but their keys are destroyed: close "
            "the study again when the staging storage responds"
        )


def _note(study: VaultStudy, change: Callable[..., Certificate], at: datetime) -> None:
    """Write progress into the certificate, unless another closing has completed it."""
    with transaction.atomic(using="vault"):
        locked = VaultStudy.objects.select_for_update().get(pk=study.pk)
        if not certificate.is_complete(locked.certificate):
            locked.certificate = change(locked.certificate, at=at)
            locked.save(update_fields=["certificate"])
    study.certificate = locked.certificate
