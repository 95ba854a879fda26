"""The sweep: batches that were left behind are taken up again or ended, and what nobody owns is removed.

Any number of workers may sweep at once: each step happens under a condition that only one of them meets.
"""

import logging
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from mobility.keystore import keystore
from mobility.models import Batch, VaultStudy
from mobility.models.batch import KEY_PREFIX
from mobility.services import sharing, staging, watching
from mobility.services.dispatching import ask, ask_next
from mobility.services.endings import fail
from mobility.services.liveness import next_sign
from mobility.services.plan_publishing import finish_interrupted

log = logging.getLogger(__name__)

State = Batch.State


def sweep() -> None:
    """Take up what was left behind."""
    now = timezone.now()
    _take_up(Q(alive_until__isnull=True) | Q(alive_until__lte=now))
    _free_studies()
    _remove_orphans()
    finish_interrupted()
    watching.scan()


def resume_at_once() -> None:
    """Take up everything but uploads: nobody else can be at work on it."""
    _take_up(~Q(state=State.RECEIVING))


def _take_up(chosen: Q) -> None:
    for batch in Batch.objects.exclude(state__in=Batch.FINAL).filter(chosen):
        as_seen = Batch.objects.filter(pk=batch.pk, state=batch.state, alive_until=batch.alive_until)
        if not as_seen.update(alive_until=next_sign()):
            continue
        if batch.state == State.RECEIVING:
            fail(batch, "the upload stopped before its end and was not taken up again: send the file again")
        else:
            sharing.forget_asked(batch)
            ask("advance", str(batch.pk))


def _free_studies() -> None:
    """A worker that died between the end of a batch and the turn of the next one."""
    for study in VaultStudy.objects.filter(active_batch__state__in=Batch.FINAL):
        freed = VaultStudy.objects.filter(pk=study.pk, active_batch=study.active_batch_id)
        if freed.update(active_batch=None):
            ask_next(study.pk)


def _remove_orphans() -> None:
    """What a process left that died while it ended a batch, or that the database has forgotten."""
    ended = Batch.objects.filter(state__in=Batch.FINAL, pk__in=staging.staged_batches())
    left = set(ended.values_list("pk", flat=True))
    # Of what the database does not know, only what is ours by its key: others may share the storage.
    left |= {UUID(name) for name in keystore().names(prefix=KEY_PREFIX)}
    alive = Batch.objects.exclude(state__in=Batch.FINAL).filter(pk__in=left)
    for batch_id in left - set(alive.values_list("pk", flat=True)):
        log.warning("remains_removed batch=%s", batch_id)
        staging.destroy(Batch(pk=batch_id))
