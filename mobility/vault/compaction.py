"""After a deletion: the vault gives old pages back, so that no erased bytes stay in its files."""

import time
from collections.abc import Callable

from django.db import OperationalError, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from mobility.base.errors import MobilityError

PATIENCE_S = 60.0
POLL_S = 0.2


class VaultBusyError(MobilityError):
    """Someone uses the vault for so long that old pages cannot be given back."""


class _InUseError(Exception):
    """Others have not left the vault within PATIENCE_S; it answers."""


def compact(*tables: type[models.Model]) -> None:
    """Rewrite what held deleted rows of `tables`; anyone who works in them meanwhile waits.

    Raises
    ------
    VaultBusyError : the vault stays in use; nothing is lost, do it again
    """
    connection = connections["vault"]
    if connection.in_atomic_block:
        raise RuntimeError("compact must be called outside of a transaction")
    try:
        _rewrite(connection, tables)
    except (OperationalError, _InUseError) as error:
        raise VaultBusyError(
            "the vault database is in use, so free pages could not be released: try again"
        ) from error


def _rewrite(connection: BaseDatabaseWrapper, tables: tuple[type[models.Model], ...]) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_current_xact_id()::text")
            (now,) = cursor.fetchone()
            _wait_while(lambda: _has_older_reader(cursor, now))
            for table in tables:
                # Plain VACUUM leaves the bytes of dead rows in the file until something overwrites them.
                cursor.execute(f"VACUUM (FULL) {connection.ops.quote_name(table._meta.db_table)}")
            return
        cursor.execute("VACUUM")
        # The log still has pages of before, and the file has those that the log has not reached.
        _wait_while(lambda: _log_is_in_use(cursor))


def _wait_while(is_busy: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while is_busy():
        if time.monotonic() > deadline:
            raise _InUseError
        time.sleep(POLL_S)


def _has_older_reader(cursor: CursorWrapper, now: str) -> bool:
    """Return whether someone may still see rows deleted before transaction `now`: they would be kept.

    Transactions that write in any database of the server count: every snapshot reaches back to it,
    also the one under which a table is rewritten.
    """
    cursor.execute(
        "SELECT pg_snapshot_xmin(pg_current_snapshot()) < %s::xid8 OR EXISTS ("
        "SELECT FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND age(backend_xmin) > age(%s::xid8::xid))",
        [now, now],
    )
    return bool(cursor.fetchone()[0])


def _log_is_in_use(cursor: CursorWrapper) -> bool:
    cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    is_busy, _, _ = cursor.fetchone()
    return bool(is_busy)
