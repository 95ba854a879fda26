"""Signals of Celery about workers and tasks, recorded."""

import atexit
from typing import Any

from celery.signals import task_failure, task_prerun, task_success, worker_ready, worker_shutdown

from mobility.operations import jobs
from mobility.workers import signs


@worker_ready.connect
def _begins(sender: Any, **_: Any) -> None:
    signs.begin(sender)
    # One that must stop at once (REMAP_SIGTERM=SIGQUIT) sends no `worker_shutdown`. At the end of its
    # process its timer is silent: nothing writes the sign again. Processes that it forks end without this.
    atexit.unregister(signs.end)  # it is ready again whenever it has found its broker again
    atexit.register(signs.end, sender.hostname)


@worker_shutdown.connect
def _stops(sender: Any, **_: Any) -> None:
    signs.end(sender.hostname)


@task_prerun.connect
def _task_begins(task: Any, **_: Any) -> None:
    jobs.begins(task)


@task_success.connect
def _task_done(sender: Any, **_: Any) -> None:
    jobs.ends(sender)


@task_failure.connect
def _task_failed(sender: Any, exception: BaseException | None = None, **_: Any) -> None:
    jobs.ends(sender, failure=type(exception).__name__)
