"""How tests empty the tables although the ledger refuses it: no way that the product has."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from django.db.backends.base.operations import BaseDatabaseOperations

TABLE = "reports_ledgerentry"


@contextmanager
def without_triggers(connection: Any) -> Iterator[None]:
    """The ledger's table without what protects it, which is put back at the end."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [TABLE]
            )
            triggers = cursor.fetchall()
            for name, _ in triggers:
                cursor.execute(f"DROP TRIGGER {name}")
        elif TABLE in connection.introspection.table_names(cursor):
            cursor.execute(f"ALTER TABLE {TABLE} DISABLE TRIGGER USER")
    yield
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for _, statement in triggers:
                cursor.execute(statement)
        elif TABLE in connection.introspection.table_names(cursor):
            cursor.execute(f"ALTER TABLE {TABLE} ENABLE TRIGGER USER")


def let_tests_flush(patch: pytest.MonkeyPatch) -> None:
    """Let the flush at the end of a test with real transactions empty the ledger, too."""
    flush = BaseDatabaseOperations.execute_sql_flush

    def flush_all(operations: BaseDatabaseOperations, statements: Sequence[str]) -> None:
        with without_triggers(operations.connection):
            flush(operations, statements)

    patch.setattr(BaseDatabaseOperations, "execute_sql_flush", flush_all)
