"""The Celery application, and asking workers for tasks by name: who asks loads no task.

Its settings are Django's, with the prefix CELERY_. Use by workers: mobility/celery.py.
"""

import sys
import time
from typing import Any, Final

from celery import Celery
from celery.signals import before_task_publish
from kombu.exceptions import OperationalError
from kombu.transport import TRANSPORT_ALIASES

from reports.base.tasks import BrokerAwayError

SENT_AT: Final = "sent_at"  # header of a task's message: seconds since 1970
# Names of all tasks, as pages of metrics list them: mobility/tasks.py and reports/tasks.py.
TASKS: Final = frozenset({
    "mobility.tasks.advance", "mobility.tasks.apply_shard", "mobility.tasks.catch_up",
    "mobility.tasks.forget_old_views", "mobility.tasks.hand_over", "mobility.tasks.look_after_ledger",
    "mobility.tasks.look_for_alerts", "mobility.tasks.read_chunk", "mobility.tasks.sweep",
    "mobility.tasks.take_in_watched", "reports.tasks.compute_density", "reports.tasks.make_export",
    "reports.tasks.refresh_forecasts", "mobility.tasks.look_after_forecasts", "mobility.tasks.send_digests",
})  # fmt: skip

TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), "mobility.workers.transport:Transport"))
app = Celery("mobility")
app.config_from_object("django.conf:settings", namespace="CELERY")
# Celery would open every database again for each task: Django's rules for requests do for tasks.
app.add_defaults({"CELERY_DB_REUSE_MAX": sys.maxsize})
app.autodiscover_tasks(["mobility", "reports"])


def send(task: str, *ids: str | int, in_s: int = 0) -> None:
    """Hand a message to the broker.

    Parameters
    ----------
    task : full name
    in_s : seconds that a worker waits

    Raises
    ------
    BrokerAwayError : the broker did not take it
    """
    try:
        app.send_task(task, args=ids, countdown=in_s or None, ignore_result=True)
    except OperationalError as error:
        raise BrokerAwayError(type(error).__name__) from error


@before_task_publish.connect
def _say_when(headers: dict[str, Any] | None = None, **_: Any) -> None:
    """So that a queue can be asked for how long its oldest task has waited."""
    if headers is not None:
        headers[SENT_AT] = time.time()
