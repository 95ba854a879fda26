"""Who works on what: batches that show signs of life, and the one batch at a time that changes a study.

No lock guards the work itself. Chunks and shards may be worked on twice; what counts is written under a
condition that only one of them meets. A sign of life only tells the sweep whom to leave alone.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from mobility.base.errors import SupersededError
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultStudy

LONGEST_WAIT_S = 60  # between two tries of work that a storage or a database holds up


def next_sign() -> datetime:
    """When a batch that shows no further sign of life is taken for abandoned."""
    return timezone.now() + timedelta(seconds=settings.MOBILITY_BATCH_LEASE_S)


def sign_of_waiting() -> datetime:
    """The same of work that is tried again by itself: what waits for its next try is not abandoned."""
    return next_sign() + timedelta(seconds=LONGEST_WAIT_S)


def show_waiting(batch: Batch, *, waits_for: str = "") -> None:
    """Note that a task of the batch will be tried again: until then the sweep asks for nothing of it.

    Parameters
    ----------
    waits_for : a key or a storage, in words; empty for what passes by itself
    """
    # An upload has signs of its own.
    at_work = Batch.objects.exclude(state__in=(*Batch.FINAL, Batch.State.RECEIVING)).filter(pk=batch.pk)
    at_work.update(alive_until=sign_of_waiting())
    if waits_for:
        at_work.update(waits_since=Coalesce("waits_since", timezone.now()), waits_for=waits_for[:200])


def goes_on(batch: Batch) -> None:
    """Note that what the batch waited for was there."""
    if batch.waits_since is not None:
        Batch.objects.filter(pk=batch.pk).update(waits_since=None, waits_for="")


def has_ended(batch: Batch) -> bool:
    """Whether a batch has ended, or is about to: before that, a key of it that is missing is elsewhere."""
    unended = Batch.objects.exclude(state__in=Batch.FINAL).filter(pk=batch.pk, failure="")
    return not unended.exists()


def show_life(batch: Batch, *, state: str, **progress: object) -> None:
    """Note that somebody works on the batch, and how far it is; call it every few seconds.

    Raises
    ------
    SupersededError : the batch has left `state`: it was cancelled, or has failed
    """
    kept = Batch.objects.filter(pk=batch.pk, state=state).update(alive_until=next_sign(), **progress)
    if not kept:
        raise SupersededError(f"batch {batch.pk} is not {state} any more")


def activate(batch: Batch) -> bool:
    """Make `batch` the one that changes its study; False while another one does, or the study is closed."""
    return bool(
        VaultStudy.objects.filter(
            Q(active_batch__isnull=True) | Q(active_batch=batch), pk=batch.study_id, closed_at__isnull=True
        ).update(active_batch=batch)
    )


def deactivate(batch: Batch) -> None:
    """Let the next batch of the study have its turn."""
    VaultStudy.objects.filter(pk=batch.study_id, active_batch=batch).update(active_batch=None)
