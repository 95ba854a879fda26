"""Workers by their signs of life, and the jobs that they run now and then."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from mobility.operations.findings import Fact, Finding, Level, finding
from mobility.operations.jobs import NOT_PLANNED, jobs
from mobility.operations.models import JobRun
from mobility.operations.probes.broker import is_asleep
from mobility.workers.models import WorkerSign
from mobility.workers.queues import queue_names
from mobility.workers.signs import FORGOTTEN_AFTER, SILENT_S

# A job is late after three of its turns, and never before ten minutes.
LATE_TURNS, LATE_MIN_S = 3, 600


def living() -> Iterator[Finding]:
    """Return whether someone works on each queue, and who has fallen silent."""
    now = timezone.now()
    known = signs(now)
    alive = [sign for sign in known if _age_s(sign.seen_at, now) <= SILENT_S]
    for queue in queue_names():
        yield _workers(queue, [sign for sign in alive if queue in sign.queues])
    silent = [sign for sign in known if sign not in alive]
    for sign in silent:
        silent_s = round(_age_s(sign.seen_at, now))
        yield finding("worker_silent", Level.WARNING, sign.name, silent_s=silent_s)
    if not silent:
        yield finding("worker_silent", workers=len(alive))


def _workers(queue: str, mine: list[WorkerSign]) -> Finding:
    facts: dict[str, Fact] = {"workers": len(mine), "processes": sum(sign.processes for sign in mine)}
    if not mine and is_asleep():
        return finding("workers_missing", Level.NOTE, queue, **facts, why="asleep")
    return finding("workers_missing", Level.OK if mine else Level.ERROR, queue, **facts)


def signs(now: datetime) -> list[WorkerSign]:
    """Workers of this zone that are alive, or were within a day."""
    return list(WorkerSign.objects.filter(zone=settings.MOBILITY_ZONE, seen_at__gt=now - FORGOTTEN_AFTER))


def jobs_run() -> Iterator[Finding]:
    """Return whether each job runs when it should, and ends well."""
    now = timezone.now()
    alive = [sign for sign in signs(now) if _age_s(sign.seen_at, now) <= SILENT_S]
    working_s = max((_age_s(sign.started_at, now) for sign in alive), default=0.0)
    runs = {run.name: run for run in JobRun.objects.filter(zone=settings.MOBILITY_ZONE)}
    for job, every_s in jobs().items():
        yield _job(job, runs.get(job), every_s=every_s, working_s=working_s, now=now)


def _job(job: str, run: JobRun | None, *, every_s: int, working_s: float, now: datetime) -> Finding:
    """`working_s`: for how long there have been workers; without any, nothing can be late."""
    facts: dict[str, Fact] = {"every_s": every_s}
    late_s = max(LATE_TURNS * every_s, LATE_MIN_S)
    is_due = every_s != NOT_PLANNED and working_s > late_s
    finished = run.finished_at if run else None
    if run and run.failed_at and (finished is None or finished < run.failed_at):
        facts |= {"age_s": round(_age_s(run.failed_at, now)), "failure": run.failure}
    elif finished is None:
        facts["why"] = "never"
        if not is_due:
            return finding("job_failed", subject=job, every_s=every_s)
    else:
        age_s = _age_s(finished, now)
        facts["age_s"] = round(age_s)
        if not is_due or age_s <= late_s:
            return finding("job_failed", Level.OK, job, **facts)
        facts["why"] = "late"
    return finding("job_failed", Level.WARNING, job, **facts)


def _age_s(moment: datetime, now: datetime) -> float:
    return (now - moment) / timedelta(seconds=1)
