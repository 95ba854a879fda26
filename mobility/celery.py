"""Celery application of the workers: their start, and hooks around each task."""

from typing import Any

import django
from celery.signals import celeryd_init, task_postrun, task_prerun, worker_process_init
from django.conf import settings
from django.db import close_old_connections

from mobility import startup
from mobility.base import memory
from mobility.base.runtime import dump_no_core, give_way
from mobility.workers.app import app

__all__ = ["app"]


@app.on_configure.connect
def _refuse_unreadable(**_: Any) -> None:
    startup.refuse_unreadable()  # before Celery itself reads the settings


@celeryd_init.connect
def _dump_no_core(**_: Any) -> None:
    dump_no_core()  # the processes of its pool inherit it


@celeryd_init.connect
def _refuse_unsafe(**_: Any) -> None:
    django.setup()
    startup.refuse_unsafe()
    startup.hold_files()
    startup.refuse_outdated()
    startup.refuse_shared()


@task_prerun.connect
def _hold_limit(**_: Any) -> None:
    memory.hold_limit()  # a task before may have lifted it to say that it met it


@task_prerun.connect
@task_postrun.connect
def _close_old_connections(**_: Any) -> None:
    close_old_connections()  # those that broke, or are too old; and the others are tried before they are used


@worker_process_init.connect
def _behave(**_: Any) -> None:
    """Processes of a worker give way to pages and to the worker itself, and their memory has a limit."""
    memory.keep_freed()
    memory.limit(settings.MOBILITY_TASK_MEMORY_MB)
    give_way(settings.MOBILITY_WORKER_NICE)
