"""Commands that wait outlive a restart of a database: what met none is done again when all of them answer."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from django.db import close_old_connections, connections

from mobility.base.errors import MobilityError
from mobility.base.messages import say
from reports.base.outages import AWAY, is_outage

PATIENCE_S: Final = 600.0
POLL_S: Final = 0.5
TRIES: Final = 5  # that fail although all databases answer

Result = TypeVar("Result")


class DatabasesAwayError(MobilityError):
    """A database did not answer for longer than a command waits."""


def patiently(work: Callable[[], Result]) -> Result:
    """Return what `work` returns; while a database does not answer, wait and do it again from its beginning.

    Parameters
    ----------
    work : may be done twice without harm

    Raises
    ------
    DatabasesAwayError : a database does not answer for PATIENCE_S seconds
    """
    tries = 0
    while True:
        try:
            return work()
        except Exception as error:
            tries += 1
            if not is_outage(error) or tries == TRIES:
                raise
            if not _all_answer():
                _wait()
                tries = 0


def _wait() -> None:
    say("a database is not responding: waiting for it")
    deadline = time.monotonic() + PATIENCE_S
    while not _all_answer():
        if time.monotonic() > deadline:
            raise DatabasesAwayError(
                f"a database has not responded for {PATIENCE_S / 60:.0f} minutes, so this command "
                "stops waiting. Batches received in full resume automatically: see their pages"
            )
        time.sleep(POLL_S)
    say("all databases are responding again")


def _all_answer() -> bool:
    close_old_connections()  # those that broke
    try:
        for connection in connections.all():
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
    except AWAY:
        return False
    return True
