"""Signs of life of workers: each writes a row every few seconds, and takes it away when it stops."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import Error, connections
from django.utils import timezone

from mobility.workers.models import WorkerSign
from reports.base.version import software

EVERY_S: Final = 10
SILENT_S: Final = 60  # after which a worker counts as gone
FORGOTTEN_AFTER: Final = timedelta(days=1)
WAIT_S: Final = 2  # the worker's loop must not hang with a database

log = logging.getLogger(__name__)


def begin(worker: Any) -> None:
    """Show life from now on.

    Parameters
    ----------
    worker : consumer of Celery that is ready: its timer calls
    """
    began = timezone.now()
    name, queues = worker.hostname, sorted(worker.app.amqp.queues.consume_from)
    processes = int(worker.controller.concurrency or 1)

    def beat() -> None:
        _apart(lambda: show(name, queues=queues, processes=processes, started_at=began))

    _apart(forget_old)
    beat()
    worker.timer.call_repeatedly(EVERY_S, beat)


def end(name: str) -> None:
    """A worker stops as it should."""
    _apart(lambda: WorkerSign.objects.filter(zone=settings.MOBILITY_ZONE, name=name).delete())


def show(name: str, *, queues: Sequence[str], processes: int, started_at: Any) -> None:
    """Note that a worker is alive."""
    facts = {"queues": list(queues), "processes": processes, "version": software()["version"]}
    facts |= {"started_at": started_at, "seen_at": timezone.now()}
    WorkerSign.objects.update_or_create(zone=settings.MOBILITY_ZONE, name=name, defaults=facts)


def forget_old() -> None:
    """Remove workers that have been silent for a day: they are not coming back."""
    WorkerSign.objects.filter(seen_at__lt=timezone.now() - FORGOTTEN_AFTER).delete()


def _apart(write: Callable[[], Any]) -> None:
    """Write by a connection that waits for no one for long; without a database a worker continues."""
    connection = connections["default"]
    try:
        with connection.cursor() as cursor:
            for limit in _LIMITS.get(connection.vendor, ()):
                cursor.execute(limit)
        write()
    except Error as error:
        log.warning("worker_sign_missed error=%s", type(error).__name__)
    finally:
        # With it go the limits; and a process that is forked later inherits nothing.
        with suppress(Error):
            connection.close()


_LIMITS: Final = {
    "sqlite": (f"PRAGMA busy_timeout = {WAIT_S * 1000}",),
    "postgresql": (f"SET lock_timeout = '{WAIT_S}s'", f"SET statement_timeout = '{WAIT_S}s'"),
}
