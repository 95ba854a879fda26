"""The sweep: batches that were left behind are taken up again or ended, and what nobody owns is removed.

Any number of workers may sweep at once: each step happens under a condition that only one of them meets.
"""

import logging
from contextlib import suppress
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from mobility.base.errors import DiskFullError, StagingUnavailableError
from mobility.batches import fairness as sharing
from mobility.batches import staging
from mobility.batches.dispatching import ask, ask_next, has_forgotten
from mobility.batches.finalisation import end_failed, fail
from mobility.batches.states import next_sign
from mobility.plans.publishing import finish_interrupted
from mobility.uploads import watched_folder as watching
from mobility.uploads.feeds import actions as feeds
from mobility.vault.keystore import keystore
from mobility.vault.models.batch import KEY_PREFIX, Batch
from mobility.vault.models.subscribers import VaultStudy

log = logging.getLogger(__name__)

State = Batch.State


def sweep() -> None:
    """Take up what was left behind."""
    if has_forgotten():
        _ask_again()
    now = timezone.now()
    _take_up(Q(alive_until__isnull=True) | Q(alive_until__lte=now))
    _free_studies()
    _remove_orphans()
    finish_interrupted()
    watching.scan()
    feeds.end_without_maker()


def resume_at_once() -> None:
    """Take up everything but uploads: nobody else can be at work on it."""
    has_forgotten()  # of a broker that is new all is asked for here
    _take_up(~Q(state=State.RECEIVING))


def _ask_again() -> None:
    """Messages were lost: nobody waits for a lease to know it."""
    for batch in _in_line().exclude(state=State.RECEIVING):
        if Batch.objects.filter(pk=batch.pk, state=batch.state).update(alive_until=next_sign()):
            log.info("asked_again batch=%s", batch.pk)
            sharing.forget_unbegun(batch)
            ask("advance", str(batch.pk))


def _in_line() -> QuerySet[Batch]:
    """Batches that have not ended; of those that wait for their turn, the one of each study that has it next.

    The others are asked for when one before them ends.
    """
    queued = Q(state=State.QUEUED)
    earlier = Batch.objects.filter(queued, study=OuterRef("study"), created_at__lt=OuterRef("created_at"))
    is_next = Q(study__active_batch=F("pk")) | Q(~Exists(earlier), study__active_batch=None)
    return Batch.objects.exclude(state__in=Batch.FINAL).filter(~queued | is_next)


def _take_up(chosen: Q) -> None:
    for batch in _in_line().filter(chosen):
        as_seen = Batch.objects.filter(pk=batch.pk, state=batch.state, alive_until=batch.alive_until)
        if not as_seen.update(alive_until=next_sign()):
            continue
        if batch.state == State.RECEIVING:
            _end_upload(batch)
        else:
            sharing.forget_asked(batch)
            ask("advance", str(batch.pk))


def _end_upload(batch: Batch) -> None:
    # Where its key cannot be destroyed now, the next sweep does.
    with suppress(DiskFullError, StagingUnavailableError):
        if batch.failure:
            end_failed(batch)
        else:
            fail(batch, "the upload stopped before its end and was not taken up again: send the file again")


def _free_studies() -> None:
    """A worker that died between the end of a batch and the turn of the next one."""
    for study in VaultStudy.objects.filter(active_batch__state__in=Batch.FINAL):
        freed = VaultStudy.objects.filter(pk=study.pk, active_batch=study.active_batch_id)
        if freed.update(active_batch=None):
            ask_next(study.pk)


def _remove_orphans() -> None:
    """What a process left that died while it ended a batch, or that the database has forgotten."""
    # Of what the database does not know, only what is ours by its key: others may share the storage.
    keys = {UUID(name) for name in keystore().names(prefix=KEY_PREFIX)}
    known = Batch.objects.filter(pk__in=staging.staged_batches() | keys)
    ended = set(known.filter(state__in=Batch.FINAL).values_list("pk", flat=True))
    for batch_id in ended | keys - set(known.values_list("pk", flat=True)):
        log.warning("remains_removed batch=%s", batch_id)
        staging.destroy(Batch(pk=batch_id))
        if batch_id in ended:
            ask("advance", str(batch_id))  # its receipt waited for this
