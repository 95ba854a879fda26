"""The Celery application; its settings are Django's, with the prefix CELERY_."""

import os
from typing import Any

from celery import Celery
from celery.signals import celeryd_init, worker_process_init

from mobility import memory
from mobility.runtime import dump_no_core

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mobility.settings")

app = Celery("mobility")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["mobility", "reports"])


@celeryd_init.connect
def _dump_no_core(**_: Any) -> None:
    dump_no_core()  # the processes of its pool inherit it


@worker_process_init.connect
def _keep_freed_memory(**_: Any) -> None:
    memory.keep_freed()
