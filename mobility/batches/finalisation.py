"""End of a batch: done, failed with a reason, or cancelled; its staged data are destroyed first."""

import errno
import logging
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from billiard.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from mobility.base import errors, memory
from mobility.batches import fairness, staging
from mobility.batches.dispatching import ask_next
from mobility.batches.publication.receipts import record_ended
from mobility.batches.states import Event, deactivate, move, show_waiting
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultDay
from reports.base.reasons import Reason

log = logging.getLogger(__name__)

FULL = (errno.ENOSPC, errno.EDQUOT)
# Not mounted, mounted read-only or for others, or its server is down.
AWAY = (
    errno.EACCES, errno.EHOSTDOWN, errno.EIO, errno.ENODEV, errno.ENOENT, errno.ENOTCONN, errno.ENXIO,
    errno.EPERM, errno.EROFS, errno.ESTALE, errno.ETIMEDOUT,
)  # fmt: skip
# The database, the network or the keystore failed, a disk is full, or the task's time is over: the same
# work can be tried again. Nothing staged may be destroyed for it: it is all that is left of the file.
PASSING_ERRORS = (
    OperationalError, InterfaceError, ConnectionError, errors.DiskFullError, errors.KeyAwayError,
    SoftTimeLimitExceeded,
)  # fmt: skip
_AT_WORK = {  # the states of batches, as a part of a sentence
    Batch.State.RECEIVING: _("receiving"),
    Batch.State.QUEUED: _("queued"),
    Batch.State.READING: _("reading"),
    Batch.State.MERGING: _("merging"),
    Batch.State.PUBLISHING: _("publishing"),
}


@contextmanager
def waiting_for_storage() -> Iterator[None]:
    """A disk that is full or away is nothing that the work in this block did: it is tried again.

    Raises
    ------
    DiskFullError, StagingUnavailableError
    """
    try:
        yield
    except OSError as error:  # which itself names a path
        if error.errno in FULL:
            raise errors.DiskFullError(storage_problem(error)) from None
        if error.errno in AWAY:
            raise errors.StagingUnavailableError(storage_problem(error)) from None
        raise


@contextmanager
def failing_with_a_reason(batch: Batch) -> Iterator[None]:
    """Errors in this block end the batch, unless they pass or the work is no longer wanted.

    Raises
    ------
    PASSING_ERRORS : try again later; nothing is lost
    """
    try:
        with waiting_for_storage():
            yield
    except errors.SupersededError as error:
        log.info("work_dropped batch=%s reason=%s", batch.pk, error)
    except PASSING_ERRORS as error:
        log.warning("work_interrupted batch=%s error=%s", batch.pk, type(error).__name__)
        with suppress(*PASSING_ERRORS):
            show_waiting(
                batch, waits_for=error.reason if isinstance(error, errors.MobilityError) else Reason()
            )
        raise
    except errors.MobilityError as error:
        fail(batch, error.reason)
    except MemoryError:
        memory.lift_limit()
        log.error("memory_exceeded batch=%s limit_mb=%s", batch.pk, memory.limit_mb())
        fail(batch, stopped(batch, memory_problem()))
    except OSError as error:
        log.error("storage_failed batch=%s errno=%s", batch.pk, error.errno)
        fail(batch, stopped(batch, storage_problem(error)))
    except Exception as error:  # noqa: BLE001 - the outermost frame of a task: a batch always ends
        # Neither the message nor the values of a traceback may be kept: they can quote a row.
        where = "".join(traceback.format_tb(error.__traceback__))
        log.error("batch_crashed batch=%s error=%s\n%s", batch.pk, type(error).__name__, where)
        fail(batch, stopped(batch, Reason(_("an unexpected error"))))


def memory_problem() -> Reason:
    """A task needs more memory than it may have."""
    limit_mb = memory.limit_mb()
    if limit_mb is None:
        return Reason(_("this machine does not have enough memory for the batch"))
    text = _("the batch needs more memory than %(limit)s MB (MOBILITY_TASK_MEMORY_MB)")
    return Reason(text, limit=limit_mb)


def time_problem(*, tries: int) -> Reason:
    """Say that a task was stopped because it took too long, and that this was its last try."""
    text = _(
        "the batch takes longer than %(limit)s s, nine tenths of MOBILITY_TASK_TIME_LIMIT_S, and was tried "
        "%(tries)s times: raise that limit first"
    )
    return Reason(text, limit=settings.CELERY_TASK_SOFT_TIME_LIMIT, tries=tries)


def death_problem(*, tries: int) -> Reason:
    """Every try of a task has ended without an error: its worker died of an unknown cause."""
    text = _(
        "tried %(tries)s times, and each time the worker stopped unexpectedly or exceeded "
        "MOBILITY_TASK_TIME_LIMIT_S"
    )
    return Reason(text, tries=tries)


def storage_problem(error: OSError) -> Reason:
    """Describe what is wrong with the disk; neither a path nor a value."""
    return Reason(os.strerror(error.errno) if error.errno else _("the storage failed"))


def stopped(batch: Batch, problem: Reason, *, see_log: bool = True) -> Reason:
    """Why a batch failed that no rule refused, and what to do."""
    text = _("stopped while %(state)s: %(problem)s. %(advice)s")
    if see_log:
        text = _("stopped while %(state)s: %(problem)s; see the worker log. %(advice)s")
    advice = _("Part of the change may be done. Request it again to complete it")
    if batch.validate_only or batch.state in Batch.CANCELLABLE:
        advice = _("Nothing was published. Start the batch again")
    elif batch.kind in Batch.FILES:
        advice = _(
            "Some rows may be merged. Upload the same file again to complete the batch; no row counts twice"
        )
    return Reason(
        text, state=Reason(_AT_WORK[Batch.State(batch.state)]), problem=problem, advice=Reason(advice)
    )


def done(batch: Batch) -> None:
    """End a batch well."""
    _end(batch, "finish")


def fail(batch: Batch, reason: str) -> None:
    """End a batch badly, if it is still in the state that `batch` has; the first reason counts.

    A task that was slow, or came twice, must not end what others have taken further.
    """
    # The reason is noted first: should this process die here, the sweep ends the batch with it.
    here = Batch.objects.filter(pk=batch.pk, state=batch.state, failure="")
    if here.exclude(state__in=Batch.FINAL).update(failure=reason):
        end_failed(batch)


def end_failed(batch: Batch, *, leaves_remains: bool = False) -> None:
    """End a batch whose failure is noted.

    Parameters
    ----------
    leaves_remains : also where its key and what was staged cannot be destroyed now: the sweep comes back
    """
    if batch.state == Batch.State.MERGING and batch.kind == Batch.Kind.EXTRACT and not batch.validate_only:
        _keep_for_later(batch)
    _end(batch, "fail", leaves_remains=leaves_remains)


def give_up(batch: Batch, *, by: str) -> None:
    """End a batch that waits for a lost key or storage, however much of it is merged.

    Raises
    ------
    CancelError : it has ended
    """
    if batch.state in Batch.FINAL:
        text = f"the batch cannot be given up, because it has already ended ({batch.state})"
        raise errors.CancelError(text)
    reason = stopped(batch, Reason(_("given up by %(by)s"), by=by), see_log=False)
    Batch.objects.filter(pk=batch.pk, failure="").exclude(state__in=Batch.FINAL).update(failure=reason)
    batch.refresh_from_db()
    end_failed(batch, leaves_remains=True)
    batch.refresh_from_db()


def cancel(batch: Batch, *, by: str) -> None:
    """End a batch that has changed nothing yet.

    Raises
    ------
    CancelError : it has ended, or parts of it are merged already
    """
    was_long = any(fairness.is_long(batch, chunk.plan) for chunk in batch.chunks.all()[:1])
    # The state goes first: it stops the tasks that are at work.
    reason = Reason(_("cancelled by %(by)s: none of its data was published or kept"), by=by)
    if not move(batch, "cancel", failure=reason):
        raise errors.CancelError(
            _(
                "the batch can no longer be cancelled: it has ended or is being merged. You can undo its "
                "data day by day (void_day)"
            )
        )
    log.info("batch_cancelled batch=%s", batch.pk)
    staging.destroy(batch)
    if was_long:
        fairness.let_long_go_on(batch)
    settle(batch)


def _end(batch: Batch, event: Event, *, leaves_remains: bool = False) -> None:
    try:
        with waiting_for_storage():
            staging.destroy(batch)
    except PASSING_ERRORS as error:
        if not leaves_remains:
            raise
        log.warning("remains_left batch=%s error=%s", batch.pk, type(error).__name__)
    now = timezone.now()
    fresh = Batch.objects.get(pk=batch.pk)
    seconds = (now - fresh.started_at).total_seconds() if fresh.started_at else None
    if state := move(batch, event, finished_at=now, seconds=seconds):
        log.info("batch_%s batch=%s rows=%s seconds=%s", state, batch.pk, fresh.rows_read, seconds)
    settle(batch)


def settle(batch: Batch) -> None:
    """Let the next batch of the study have its turn, and record that this one ended; twice does no harm."""
    deactivate(batch)
    ask_next(batch.study_id)
    record_ended(batch)


def _keep_for_later(batch: Batch) -> None:
    """Some shards hold rows that presence does not show: the days wait for the file, or for close_days."""
    for day in Batch.objects.values_list("days_touched", flat=True).get(pk=batch.pk):
        VaultDay.objects.update_or_create(study_id=batch.study_id, day=day, defaults={"pending": True})
