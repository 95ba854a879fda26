"""The Celery application; its settings are Django's, with the prefix CELERY_."""

import os
import sys
from typing import Any

from celery import Celery
from celery.signals import celeryd_init, task_postrun, task_prerun, worker_process_init

from mobility.base import memory
from mobility.base.runtime import dump_no_core, give_way
from mobility.workers import transport

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mobility.settings")
# Processes are what uses the cores; threads of matrix products would multiply them. Before numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

transport.use_it()
app = Celery("mobility")
app.config_from_object("django.conf:settings", namespace="CELERY")
# Celery would open every database anew for each task: Django's rules for requests do for tasks (below).
app.add_defaults({"CELERY_DB_REUSE_MAX": sys.maxsize})
app.autodiscover_tasks(["mobility", "reports"])


@app.on_configure.connect
def _refuse_unreadable(**_: Any) -> None:
    from mobility.startup import refuse_unreadable

    refuse_unreadable()  # before Celery itself reads the settings


@celeryd_init.connect
def _dump_no_core(**_: Any) -> None:
    dump_no_core()  # the processes of its pool inherit it


@celeryd_init.connect
def _refuse_unsafe(**_: Any) -> None:
    import django

    from mobility.startup import hold_files, refuse_outdated, refuse_shared, refuse_unsafe

    django.setup()
    refuse_unsafe()
    hold_files()
    refuse_outdated()
    refuse_shared()


@celeryd_init.connect
def _answer_the_doctor(**_: Any) -> None:
    from mobility.operations.probes import worker_answers  # noqa: F401 - importing registers what it answers


@task_prerun.connect
def _hold_limit(**_: Any) -> None:
    memory.hold_limit()  # a task before may have lifted it to say that it met it


@task_prerun.connect
@task_postrun.connect
def _close_old_connections(**_: Any) -> None:
    from django.db import close_old_connections

    close_old_connections()  # those that broke, or are too old; and the others are tried before they are used


@worker_process_init.connect
def _behave(**_: Any) -> None:
    """Processes of a worker give way to pages and to the worker itself, and their memory has a limit."""
    from django.conf import settings

    memory.keep_freed()
    memory.limit(settings.MOBILITY_TASK_MEMORY_MB)
    give_way(settings.MOBILITY_WORKER_NICE)
