"""Recovery: a batch is taken up again when its worker has died, or its message was lost."""

import logging
from contextlib import suppress

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from mobility.base.errors import DiskFullError, StagingUnavailableError
from mobility.batches import fairness
from mobility.batches.broker import has_forgotten
from mobility.batches.dispatching import ask, ask_next
from mobility.batches.finalisation import end_failed, fail
from mobility.batches.states import next_sign
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultStudy

State = Batch.State
log = logging.getLogger(__name__)


def recover() -> None:
    """Take up batches that were left behind, or end them; any number of workers may do so at once.

    Each step happens under a condition that only one of them meets.
    """
    if has_forgotten():
        _ask_again()
    now = timezone.now()
    _take_up(Q(alive_until__isnull=True) | Q(alive_until__lte=now))
    _free_studies()


def resume_at_once() -> None:
    """Take up everything but uploads: no one else can be at work on it."""
    has_forgotten()  # of a broker that is new all is asked for here
    _take_up(~Q(state=State.RECEIVING))


def _ask_again() -> None:
    """Messages were lost: no one waits for a lease to know it."""
    for batch in _in_line().exclude(state=State.RECEIVING):
        if Batch.objects.filter(pk=batch.pk, state=batch.state).update(alive_until=next_sign()):
            log.info("asked_again batch=%s", batch.pk)
            fairness.forget_unbegun(batch)
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
            fairness.forget_asked(batch)
            ask("advance", str(batch.pk))


def _end_upload(batch: Batch) -> None:
    # Where its key cannot be destroyed now, the next sweep does.
    with suppress(DiskFullError, StagingUnavailableError):
        if batch.failure:
            end_failed(batch)
        else:
            fail(batch, _("the upload stopped before its end and was not resumed: send the file again"))


def _free_studies() -> None:
    """A worker that died between the end of a batch and the turn of the next one."""
    for study in VaultStudy.objects.filter(active_batch__state__in=Batch.FINAL):
        freed = VaultStudy.objects.filter(pk=study.pk, active_batch=study.active_batch_id)
        if freed.update(active_batch=None):
            ask_next(study.pk)
