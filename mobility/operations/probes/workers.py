"""Workers by their signs of life, and the jobs that they run now and then."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from mobility.operations.findings import Fact, Finding, Level
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
        mine = [sign for sign in alive if queue in sign.queues]
        yield _workers(queue, mine)
    silent = [sign for sign in known if sign not in alive]
    for sign in silent:
        facts: dict[str, Fact] = {"silent_s": round(_age_s(sign.seen_at, now))}
        yield Finding(code="worker_silent", level=Level.WARNING, subject=sign.name, facts=facts)
    if not silent:
        yield Finding(code="worker_silent", level=Level.OK, facts={"workers": len(alive)})


def _workers(queue: str, mine: list[WorkerSign]) -> Finding:
    facts: dict[str, Fact] = {"workers": len(mine), "processes": sum(sign.processes for sign in mine)}
    level = Level.OK if mine else Level.ERROR
    if not mine and is_asleep():
        level, facts["why"] = Level.NOTE, "asleep"
    return Finding(code="workers_missing", level=level, subject=queue, facts=facts)


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
            return Finding(code="job_failed", level=Level.OK, subject=job, facts={"every_s": every_s})
    else:
        age_s = _age_s(finished, now)
        facts["age_s"] = round(age_s)
        if not is_due or age_s <= late_s:
            return Finding(code="job_failed", level=Level.OK, subject=job, facts=facts)
        facts["why"] = "late"
    return Finding(code="job_failed", level=Level.WARNING, subject=job, facts=facts)


def _age_s(moment: datetime, now: datetime) -> float:
    return (now - moment) / timedelta(seconds=1)
