"""Running a batch: its stages in order, each of which can be repeated, and its end in done or failed."""

import errno
import logging
import os
import traceback
from collections.abc import Callable

from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone

from mobility import memory
from mobility.errors import LeaseLostError, MobilityError
from mobility.models import Batch, VaultDay, VaultStudy
from mobility.services import intake, staging
from mobility.services.leases import Lease, activate, deactivate
from mobility.services.merging import DayMoves, apply_shards, mark_days, total_counts
from mobility.services.publishing import publish
from mobility.services.reading import read_extract
from mobility.services.vault import OpenStudy, open_study

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 8
MERGED_FIELDS = (
    "rows_accepted", "rows_ignored", "notes", "subscriber_days", "subscribers_new", "reports", "state",
)  # fmt: skip
# The database or the network went away, or the task's time is over: the same step can be tried again.
PASSING_ERRORS = (OperationalError, InterfaceError, ConnectionError, SoftTimeLimitExceeded)


class BusyError(Exception):
    """Another worker holds the batch; ask again in `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the batch is held for another {seconds:.0f} s")
        self.seconds = seconds


def run(batch_id: str) -> None:
    """Run a batch to its end, or as far as this worker may.

    Raises
    ------
    BusyError : it is held by a worker that may still be alive
    PASSING_ERRORS : try again later; nothing is lost
    """
    batch = Batch.objects.get(pk=batch_id)
    if batch.is_final:
        return
    was_receiving = batch.state == Batch.State.RECEIVING
    if not was_receiving and not activate(batch):
        return  # the batch that is active now asks for this one at its end
    lease = Lease(batch)
    is_held = lease.acquire()
    # Only now is the state that this batch starts from final: another one may have ended in between.
    batch = Batch.objects.select_related("study").get(pk=batch_id)
    if not is_held:
        _leave(batch)
        return
    if batch.state == Batch.State.RECEIVING:
        _end(batch, Batch.State.FAILED, failure="the server stopped during the upload: send the file again")
        return
    if was_receiving:  # its upload has just ended: it must take its turn like any other
        lease.release()
        intake.dispatch(batch)
        return
    if batch.failure:  # it had failed already when its worker died
        _end(batch, Batch.State.FAILED, failure=batch.failure)
        return
    # Whatever kills this worker, somebody looks again when the lease has run out.
    intake.dispatch(batch, in_seconds=settings.MOBILITY_BATCH_LEASE_S + 1)
    _run_held(batch, lease)


def _leave(batch: Batch) -> None:
    """Another worker has the batch, or has just ended it."""
    if batch.is_final:
        deactivate(batch)
        intake.dispatch_next(batch.study_id)
    elif batch.lease_until is not None:
        raise BusyError(max((batch.lease_until - timezone.now()).total_seconds(), 0) + 1)


def _run_held(batch: Batch, lease: Lease) -> None:
    try:
        _stages(batch, lease)
    except LeaseLostError:
        log.warning("lease_lost batch=%s", batch.pk)
        return
    except MobilityError as error:
        _end(batch, Batch.State.FAILED, failure=str(error))
    except PASSING_ERRORS as error:
        log.warning("batch_interrupted batch=%s error=%s", batch.pk, type(error).__name__)
        if batch.attempts < MAX_ATTEMPTS:
            lease.release()
            raise
        _end(batch, Batch.State.FAILED, failure=_unexpected(batch, type(error).__name__))
    except OSError as error:
        log.error("storage_failed batch=%s errno=%s", batch.pk, error.errno)
        _end(batch, Batch.State.FAILED, failure=_unexpected(batch, storage_problem(error)))
    except Exception as error:  # noqa: BLE001 - the outermost frame of a task: a batch always ends
        # Neither the message nor the values of a traceback may be kept: they can quote a row.
        where = "".join(traceback.format_tb(error.__traceback__))
        log.error("batch_crashed batch=%s error=%s\n%s", batch.pk, type(error).__name__, where)
        _end(batch, Batch.State.FAILED, failure=_unexpected(batch, type(error).__name__))
    else:
        _end(batch, Batch.State.DONE)


def storage_problem(error: OSError) -> str:
    """What is wrong with the disk; neither a path nor a value."""
    problem = os.strerror(error.errno) if error.errno else type(error).__name__
    return f"{problem} (make room in MOBILITY_STAGING_DIR)" if error.errno == errno.ENOSPC else problem


def _unexpected(batch: Batch, problem: str) -> str:
    text = f"stopped while {batch.state}: {problem}; the worker's log says where. "
    if batch.state in Batch.RESUME_ONLY:
        return (
            text + "Part of it may be merged: upload the same file again to complete it, nothing counts twice"
        )
    return text + "Nothing was published: upload the file again"


def _end(batch: Batch, state: str, *, failure: str = "") -> None:
    if failure:
        Batch.objects.filter(pk=batch.pk).update(failure=failure)
        if batch.state == Batch.State.MERGING and batch.kind == Batch.Kind.EXTRACT:
            _keep_for_later(batch)
    staging.destroy(batch)
    batch.peak_rss_mb = memory.peak_mb()
    batch.save(update_fields=["peak_rss_mb"])
    intake.finish(batch, state=state, failure=failure)
    deactivate(batch)
    intake.dispatch_next(batch.study_id)


def _keep_for_later(batch: Batch) -> None:
    """Some shards hold rows that presence does not show: the days wait for the file, or for close_days."""
    for day in batch.days_touched:
        VaultDay.objects.update_or_create(study=batch.study, day=day, defaults={"pending": True})


def _stages(batch: Batch, lease: Lease) -> None:
    if batch.attempts >= MAX_ATTEMPTS:
        raise MobilityError(
            _unexpected(batch, f"tried {batch.attempts} times, and its worker died each time")
        )
    memory.reset_peak()
    study = open_study(batch.study)
    batch.attempts += 1
    batch.started_at = batch.started_at or timezone.now()
    batch.save(update_fields=["attempts", "started_at"])
    if batch.state in (Batch.State.QUEUED, Batch.State.READING):
        if batch.kind == Batch.Kind.EXTRACT and not _read(batch, study, lease):
            publish(study)
            return
        _advance(batch, Batch.State.MERGING)
    if batch.state == Batch.State.MERGING:
        _merge(batch, study, lease)
    batch.waiting_subscribers = publish(study)
    batch.save(update_fields=["waiting_subscribers"])


def _read(batch: Batch, study: OpenStudy, lease: Lease) -> bool:
    """Read the extract; False when the same file has been merged before."""
    earlier = _same_content(batch)
    if earlier is not None:
        batch.duplicate_of = earlier
        batch.save(update_fields=["duplicate_of"])
        return False
    _advance(batch, Batch.State.READING)
    read_extract(batch, study, lease)
    return True


def _same_content(batch: Batch) -> Batch | None:
    """An earlier batch with the same bytes that has published at least as much as this one would."""
    earlier = Batch.objects.filter(
        study_id=batch.study_id, content_hash=batch.content_hash, state=Batch.State.DONE
    ).exclude(pk=batch.pk)
    if not batch.more_to_come:
        earlier = earlier.filter(more_to_come=False)
    return earlier.filter(duplicate_of__isnull=True).order_by("created_at").first()


def _advance(batch: Batch, state: str) -> None:
    batch.state = state
    batch.save(update_fields=["state"])


def _merge(batch: Batch, study: OpenStudy, lease: Lease) -> None:
    moves = _moves(batch, study)
    apply_shards(batch, study, moves, lease)
    totals = total_counts(batch)
    duplicates = totals["duplicates"]
    # The whole batch is in every shard: now its days have moved.
    with transaction.atomic(using="vault"):
        lease.confirm()
        _move_days(batch, study)
        batch.rows_accepted -= duplicates
        if duplicates:
            batch.rows_ignored = {**batch.rows_ignored, "duplicate": duplicates}
        batch.notes = {name: totals[name] for name in ("conflicting_value", "late_change")}
        for name in ("subscriber_days", "subscribers_new", "reports"):
            setattr(batch, name, totals[name])
        batch.state = Batch.State.PUBLISHING
        # Never all fields: the lease's have moved on since this row was read.
        batch.save(update_fields=MERGED_FIELDS)


def _moves(batch: Batch, study: OpenStudy) -> DayMoves:
    if batch.kind == Batch.Kind.VOID_DAY:
        day = batch.day or 0
        intake.check_voidable(study, day=day)
        return DayMoves(undo=day, forget=frozenset([day]))
    states = {row.day: row for row in VaultDay.objects.filter(study=study.row)}
    if batch.kind == Batch.Kind.CLOSE_DAYS:
        through = frozenset(range(1, (batch.day or 0) + 1))
        pending = frozenset(day for day in through if day in states and states[day].pending)
        return DayMoves(publish_all=pending, forget=through)
    if batch.more_to_come:
        return DayMoves()
    touched = frozenset(batch.days_touched)
    everyone = frozenset(day for day in touched if day not in states or states[day].pending)
    return DayMoves(publish_all=everyone, publish_touched=touched - everyone)


def _move_days(batch: Batch, study: OpenStudy) -> None:
    """Write what the batch has made of its days."""
    moved: dict[str, Callable[[Batch, OpenStudy], None]] = {
        Batch.Kind.EXTRACT: _days_received,
        Batch.Kind.CLOSE_DAYS: _days_closed,
        Batch.Kind.VOID_DAY: _day_voided,
    }
    moved[batch.kind](batch, study)


def _days_received(batch: Batch, study: OpenStudy) -> None:
    if not batch.more_to_come:
        mark_days(study.row, batch.days_touched, state=VaultDay.State.PUBLISHED, pending=False)
        return
    for day in batch.days_touched:
        row, is_new = VaultDay.objects.get_or_create(study=study.row, day=day)
        if not is_new:
            row.pending = True
            row.save(update_fields=["pending"])


def _days_closed(batch: Batch, study: OpenStudy) -> None:
    mark_days(study.row, range(1, (batch.day or 0) + 1), state=VaultDay.State.CLOSED, pending=False)


def _day_voided(batch: Batch, study: OpenStudy) -> None:
    row = VaultDay.objects.get(study=study.row, day=batch.day or 0)
    if intake.adds_a_value(study, row):
        VaultStudy.objects.filter(pk=study.row.pk).update(voided_days=study.row.voided_days + 1)
        study.row.voided_days += 1
    row.delete()
    # A file with rows of this day may come again: it is not the same file any more.
    for earlier in Batch.objects.filter(study=study.row, kind=Batch.Kind.EXTRACT).exclude(content_hash=""):
        if batch.day in earlier.days_touched:
            earlier.content_hash = ""
            earlier.save(update_fields=["content_hash"])
