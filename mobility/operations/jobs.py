"""Jobs that workers run now and then: which there are, how often, and how the last run of each went."""

import logging
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import Error
from django.utils import timezone

from mobility.operations.models import JobRun
from mobility.workers.schedule import (
    CATCH_UP_EVERY_S,
    DIGEST_EVERY_S,
    FORECAST_EVERY_S,
    FORGET_EVERY_S,
    LEDGER_EVERY_S,
)

# A good run is noted at most that often: the sweep runs every few seconds on every worker.
NOTED_EVERY: Final = timedelta(seconds=30)
NOT_PLANNED: Final = 0

log = logging.getLogger(__name__)
_began: dict[str, datetime] = {}
_noted: dict[str, datetime] = {}


def jobs() -> dict[str, int]:
    """Jobs of this zone by name, with the seconds between two runs; NOT_PLANNED: now and then only."""
    every = {
        "forget_old_views": FORGET_EVERY_S,
        "look_after_ledger": LEDGER_EVERY_S,
        "look_for_alerts": settings.MOBILITY_ALERT_EVERY_S,
    }
    if settings.HAS_REPORTS:
        every["look_after_forecasts"] = FORECAST_EVERY_S
        every["send_digests"] = DIGEST_EVERY_S
    if settings.HAS_VAULT:
        every["sweep"] = settings.MOBILITY_SWEEP_S
        every["catch_up"] = CATCH_UP_EVERY_S if settings.HANDS_OVER else NOT_PLANNED
    if settings.HANDS_OVER:
        every["hand_over"] = settings.MOBILITY_HANDOVER_RETRY_S
    return every


def job_of(task: Any) -> str | None:
    """Name of the job that a task of Celery is, if it is one."""
    name = str(task.name).rpartition(".")[2]
    return name if name in jobs() else None


def begins(task: Any) -> None:
    """A task begins in this process."""
    if job := job_of(task):
        _began[job] = timezone.now()


def ends(task: Any, *, failure: str = "") -> None:
    """A task has ended; `failure` is the kind of the error."""
    job = job_of(task)
    if job is None:
        return
    now = timezone.now()
    if not failure and job in _noted and now - _noted[job] < NOTED_EVERY:
        return
    try:
        note(job, began=_began.get(job, now), at=now, failure=failure)
    except Error as error:
        log.warning("job_unnoted job=%s error=%s", job, type(error).__name__)
        return
    if failure:
        _noted.pop(job, None)  # the next good run ends the alarm at once
    else:
        _noted[job] = now


def note(job: str, *, began: datetime, at: datetime, failure: str = "") -> None:
    """Note how a run ended."""
    ended = {"failed_at": at, "failure": failure[:64]} if failure else {"finished_at": at}
    JobRun.objects.update_or_create(
        zone=settings.MOBILITY_ZONE, name=job, defaults={"started_at": began, **ended}
    )
