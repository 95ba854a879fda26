"""Asking workers for tasks by name: who asks loads no task, and Celery only when something is asked for."""

from django.conf import settings
from django.db import transaction

from reports.base.later import later


class BrokerAwayError(Exception):
    """The broker did not take a message."""


def send_on_commit(task: str, pk: int, *, robust: bool = False) -> None:
    """Ask for a task once the rows that it reads are committed.

    Parameters
    ----------
    task : full name
    pk : of the row that it works on
    robust : whether an unavailable broker is only logged

    Raises
    ------
    BrokerAwayError : after the commit, unless `robust`
    """
    send = later(settings.TASK_SENDER)
    # Not a partial: Django logs a failure by a name that those lack.
    transaction.on_commit(lambda: send(task, pk), robust=robust)
