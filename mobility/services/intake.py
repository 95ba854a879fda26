"""The way in: every change to a study starts here as a batch, whoever asks for it and however it arrives."""

import hmac
import logging
import os
import time
from collections.abc import Callable
from typing import Protocol

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError

from ldp.accounting import check_cap
from ldp.errors import PlanError
from mobility.errors import DayStateError, MobilityError, UploadBrokenError
from mobility.models import Batch, VaultDay, VaultStudy
from mobility.services import staging
from mobility.services.leases import Lease
from mobility.services.vault import OpenStudy, open_study

log = logging.getLogger(__name__)

READ_BYTES = 1 << 18
PROGRESS_S = 0.5


class Readable(Protocol):
    """Where an upload's bytes come from."""

    def read(self, size: int, /) -> bytes: ...


def receive(
    stream: Readable,
    *,
    study: VaultStudy,
    filename: str,
    by: str,
    more_to_come: bool,
    bytes_total: int | None,
) -> Batch:
    """Take an extract in, sealed while it is read, and queue it.

    Parameters
    ----------
    more_to_come : the days of this extract stay open for further files
    bytes_total : announced length; an upload that ends before it is refused

    Raises
    ------
    KeyMissingError : the study is closed
    UploadBrokenError : the stream broke off; the batch has failed and nothing of it is left
    """
    opened = open_study(study)
    batch = Batch.objects.create(
        study=study,
        filename=filename[:255],
        created_by=by,
        more_to_come=more_to_come,
        bytes_total=bytes_total,
    )
    lease = Lease(batch)
    lease.acquire()
    # Whatever kills this process, a worker looks when the lease has run out.
    dispatch(batch, in_seconds=settings.MOBILITY_BATCH_LEASE_S + 1)
    try:
        _stage(batch, stream, opened, lease)
    except BaseException as error:  # whatever breaks an upload, nothing of it may stay
        staging.destroy(batch)
        reason = _why_broken(error, batch)
        finish(batch, state=Batch.State.FAILED, failure=reason)
        if not isinstance(error, Exception):  # Ctrl-C
            raise
        raise UploadBrokenError(reason) from None
    _queue(batch)
    return batch


def _stage(batch: Batch, stream: Readable, study: OpenStudy, lease: Lease) -> None:
    staging.create_key(batch)
    digest = hmac.new(study.content_key, digestmod="sha256")
    noted = time.monotonic()
    with staging.upload_writer(batch) as writer:
        while data := stream.read(READ_BYTES):
            writer.write(data)
            digest.update(data)
            batch.bytes_received += len(data)
            if time.monotonic() - noted > PROGRESS_S:
                noted = time.monotonic()
                lease.renew(bytes_received=batch.bytes_received)
        if batch.bytes_total is not None and batch.bytes_received != batch.bytes_total:
            raise UploadBrokenError(f"expected {batch.bytes_total} bytes")
    batch.content_hash = digest.hexdigest()
    batch.bytes_total = batch.bytes_received
    batch.save(update_fields=["content_hash", "bytes_total", "bytes_received"])


def _why_broken(error: BaseException, batch: Batch) -> str:
    log.warning("upload_broken batch=%s error=%s", batch.pk, type(error).__name__)
    of_total = f" of {batch.bytes_total}" if batch.bytes_total else ""
    problem = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
    return (
        f"the upload broke off after {batch.bytes_received}{of_total} bytes ({problem}): "
        "nothing was kept, send the file again"
    )


def request_close_days(study: VaultStudy, *, through: int, by: str) -> Batch:
    """Make days 1..through final: what is open is published, day state dies, later rows are ignored.

    Raises
    ------
    DayStateError : `through` is not a day of the study
    """
    days = open_study(study).definition.days
    if not 1 <= through <= days:
        raise DayStateError(f"day must be within the study, 1 to {days}, got {through}")
    return _requested(study, kind=Batch.Kind.CLOSE_DAYS, day=through, by=by)


def request_void_day(study: VaultStudy, *, day: int, by: str) -> Batch:
    """Undo everything uploaded for a day that is not closed.

    Raises
    ------
    DayStateError : nothing was uploaded for the day, it is closed, or the plan's cap forbids another value
    """
    check_voidable(open_study(study), day=day)
    return _requested(study, kind=Batch.Kind.VOID_DAY, day=day, by=by)


def check_voidable(study: OpenStudy, *, day: int) -> None:
    """Raise DayStateError unless `day` can be undone now."""
    days = study.definition.days
    if not 1 <= day <= days:
        raise DayStateError(f"day must be within the study, 1 to {days}, got {day}")
    row = VaultDay.objects.filter(study=study.row, day=day).first()
    if row is None:
        raise DayStateError(f"day {day} cannot be undone: nothing was uploaded for it")
    if row.state == VaultDay.State.CLOSED:
        raise DayStateError(f"day {day} cannot be undone: it is closed, and closed days are final")
    cap = study.definition.plan.epsilon_profile
    if cap is not None and adds_a_value(study, row):
        try:
            check_cap(study.plan, cap, extra_daily_values=study.row.voided_days + 1)
        except PlanError as error:
            raise DayStateError(
                f"day {day} cannot be undone: its upload would add a daily value per subscriber; {error}"
            ) from None


def adds_a_value(study: OpenStudy, day: VaultDay) -> bool:
    """Whether undoing `day` lets subscribers answer a daily indicator once more: it was published."""
    has_daily = any(spec.kind == "daily" for spec in study.plan.indicators)
    return has_daily and day.state == VaultDay.State.PUBLISHED


def _requested(study: VaultStudy, *, kind: str, day: int, by: str) -> Batch:
    batch = Batch.objects.create(study=study, kind=kind, day=day, created_by=by)
    _queue(batch)
    return batch


def _queue(batch: Batch) -> None:
    batch.state = Batch.State.QUEUED
    batch.lease_until = None
    with transaction.atomic(using="vault"):
        batch.save(update_fields=["state", "lease_until"])
        transaction.on_commit(lambda: dispatch(batch), using="vault")


def dispatch(batch: Batch, *, in_seconds: float = 0) -> None:
    """Ask a worker to run the batch; asking twice does no harm.

    Without a broker the batch stays queued: a worker asks for it again when it starts.
    """
    from mobility.tasks import run_batch

    try:
        run_batch.apply_async(args=[str(batch.pk)], countdown=in_seconds or None)
    except BrokerError:
        log.exception("broker_unreachable batch=%s", batch.pk)


def dispatch_next(study_id: int) -> None:
    """Ask for the batch of the study that has waited longest."""
    waiting = Batch.objects.filter(study_id=study_id, state=Batch.State.QUEUED).order_by("created_at").first()
    if waiting is not None:
        dispatch(waiting)


def resume_unfinished() -> int:
    """Ask for every batch that a dead worker or a lost queue left behind; returns how many."""
    now = timezone.now()
    left = Batch.objects.exclude(state__in=Batch.FINAL)
    for batch in left:
        wait = max((batch.lease_until - now).total_seconds(), 0) if batch.lease_until else 0
        dispatch(batch, in_seconds=wait)
    return len(left)


def finish(batch: Batch, *, state: str, failure: str = "") -> None:
    """Write the end of a batch."""
    batch.state = state
    batch.failure = failure
    batch.finished_at = timezone.now()
    if batch.started_at is not None:
        batch.seconds = (batch.finished_at - batch.started_at).total_seconds()
    batch.lease_until = None
    batch.save(update_fields=["state", "failure", "finished_at", "seconds", "lease_until"])
    log.info("batch_%s batch=%s rows=%s seconds=%s", state, batch.pk, batch.rows_read, batch.seconds)


def wait_for(batch: Batch, *, progress: Callable[[Batch], None], poll_s: float = 0.1) -> Batch:
    """Wait until a worker has ended the batch.

    Raises
    ------
    MobilityError : the batch failed; the text is its reason
    """
    while True:
        batch.refresh_from_db()
        progress(batch)
        if batch.state == Batch.State.FAILED:
            raise MobilityError(batch.failure)
        if batch.is_final:
            return batch
        time.sleep(poll_s)
