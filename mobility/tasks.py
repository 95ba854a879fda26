"""Celery tasks: ids in, nothing out. The state of the work is in the database; every task may run twice."""

from collections.abc import Callable
from typing import Any

from celery import Task, shared_task
from celery.signals import worker_ready
from django.conf import settings

from mobility.operations import forgetting, recording
from mobility.operations.alerts import rules
from mobility.operations.doctor import worker_answers
from mobility.operations.metrics import tasks as metrics_tasks
from mobility.workers.schedule import (
    CATCH_UP_EVERY_S,
    DIGEST_EVERY_S,
    FORECAST_EVERY_S,
    FORGET_EVERY_S,
    LEDGER_EVERY_S,
)
from reports.base.outages import is_outage
from reports.forecasts.actions import ask_for_due
from reports.ledger.checks import check_now_and_then
from reports.sharing.digests import send_due

if settings.HAS_VAULT:  # the models of a vault exist there only
    from mobility.batches import recovery, running
    from mobility.batches.dispatching import RETRY_S
    from mobility.batches.finalisation import PASSING_ERRORS
    from mobility.batches.publication import handover, publishing, receipts
    from mobility.batches.states import LONGEST_WAIT_S
    from mobility.operations import sweeping
    from mobility.uploads import watched_folder

# Importing them connects them to Celery: workers import this module, and nothing else does.
__all__ = ["metrics_tasks", "recording", "worker_answers"]

WATCHED_LIMIT_S = 24 * 3600  # one file may be large, and its transfer from the folder slow


@shared_task(bind=True, max_retries=None)
def advance(self: Task, batch_id: str) -> None:
    """Take a batch as far as it can go without waiting for other tasks."""
    _until_it_passes(self, running.advance, batch_id)


@shared_task(bind=True, max_retries=None)
def read_chunk(self: Task, batch_id: str, index: int) -> None:
    """Read one part of a batch's file."""
    _until_it_passes(self, running.read_chunk, batch_id, index)


@shared_task(bind=True, max_retries=None)
def apply_shard(self: Task, batch_id: str, shard: int) -> None:
    """Bring a batch into one shard of its study."""
    _until_it_passes(self, running.apply_shard, batch_id, shard)


@shared_task(ignore_result=True)
def sweep() -> None:
    """Take up what was left behind, and look into the watched folder."""
    sweeping.sweep()


@shared_task(ignore_result=True, soft_time_limit=WATCHED_LIMIT_S, time_limit=WATCHED_LIMIT_S + 600)
def take_in_watched() -> None:
    """Read files of the watched folder."""
    watched_folder.take_in_watched()


@shared_task(bind=True, ignore_result=True, max_retries=None)
def catch_up(self: Task) -> None:
    """Hand the analyst zone what it has lost, if it was restored from an older dump."""
    _until_it_passes(self, publishing.catch_up)


@shared_task(ignore_result=True)
def hand_over() -> None:
    """Try again to hand over what an analyst server that runs apart does not have."""
    handover.deliver_what_waits()


@shared_task(ignore_result=True)
def forget_old_views() -> None:
    """Remove what is no longer kept: openings of share links, ended sessions, old alerts, and more."""
    forgetting.forget()


@shared_task(ignore_result=True)
def look_after_ledger() -> None:
    """Add to the ledger what a process left out that died, and compute its chain again."""
    if settings.HAS_VAULT:
        receipts.record_missing()
    check_now_and_then()


@shared_task(ignore_result=True)
def look_after_forecasts() -> None:
    """Ask for forecasts that are out of date: of days, and those that no one could ask for."""
    ask_for_due()


@shared_task(ignore_result=True)
def send_digests() -> None:
    """Send boards by e-mail to those who get them today."""
    send_due()


@shared_task(ignore_result=True)
def look_for_alerts() -> None:
    """Send people new problems, and the end of old ones."""
    rules.look_in_turn()


def _until_it_passes(task: Task, work: Callable[..., None], *ids: str | int) -> None:
    try:
        work(*ids)
    except PASSING_ERRORS as error:
        longest_s = RETRY_S if is_outage(error) else LONGEST_WAIT_S
        # `from None`: the error's text stays out of the broker and the log.
        raise task.retry(countdown=min(2**task.request.retries, longest_s)) from None


@worker_ready.connect
def sweep_from_now_on(sender: Any, **_: Any) -> None:
    """Every worker requests sweeps: if one dies, the others continue."""
    asks = _asked_for()
    # All timers first: a broker or a database that is down now must leave no worker without them.
    for ask, every_s in asks:
        sender.timer.call_repeatedly(every_s, ask)
    if settings.HANDS_OVER:
        _hand_over_from_now_on(sender)
    if settings.HAS_VAULT and settings.EMBEDDED_REDIS:
        recovery.resume_at_once()  # the only worker has just started: no one else can be at work
    for ask, _every_s in asks:
        ask()
    if settings.HAS_VAULT:
        catch_up.delay()


def _asked_for() -> list[tuple[Callable[[], object], float]]:
    """Return the periodic tasks of a worker of this zone, and their intervals in seconds."""
    alerts_s, sweep_s = settings.MOBILITY_ALERT_EVERY_S, settings.MOBILITY_SWEEP_S
    asks: list[tuple[Callable[[], object], float]] = [
        (forget_old_views.delay, FORGET_EVERY_S),
        (look_after_ledger.delay, LEDGER_EVERY_S),
        (lambda: look_for_alerts.apply_async(expires=alerts_s), alerts_s),
    ]
    if settings.HAS_REPORTS:
        asks.append((look_after_forecasts.delay, FORECAST_EVERY_S))
        asks.append((send_digests.delay, DIGEST_EVERY_S))
    if settings.HAS_VAULT:  # a worker of the analyst zone computes maps: batches are no business of its
        asks.append((lambda: sweep.apply_async(expires=sweep_s), sweep_s))
    return asks


def _hand_over_from_now_on(sender: Any) -> None:
    """No one here hears that the analyst server answers again, or that it was restored: it is asked."""
    every_s = settings.MOBILITY_HANDOVER_RETRY_S
    sender.timer.call_repeatedly(every_s, lambda: hand_over.apply_async(expires=every_s))
    sender.timer.call_repeatedly(CATCH_UP_EVERY_S, lambda: catch_up.apply_async(expires=CATCH_UP_EVERY_S))
