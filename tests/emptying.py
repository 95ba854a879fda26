"""Empty the tables after real transactions of tests.

Also the ledger, which refuses it: no way that the product has. Rows are deleted: TRUNCATE of many small
tables takes PostgreSQL a second. Rows of Django about models stay, and the groups of roles, which a
migration makes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pytest
from django.core.management.commands import flush as command
from django.db.backends.base.operations import BaseDatabaseOperations

TABLE: Final = "reports_ledgerentry"
KEPT: Final = {"django_content_type", "auth_permission", "auth_group"}


@contextmanager
def without_triggers(connection: Any) -> Iterator[None]:
    """The ledger's table without what protects it, which is put back at the end."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            of_table = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s"
            cursor.execute(of_table, [TABLE])
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
    """Let the flush at the end of a test with real transactions empty all tables but `KEPT`."""
    flush = BaseDatabaseOperations.execute_sql_flush

    def statements(_: object, connection: Any, **__: object) -> list[str]:
        tables = set(connection.introspection.django_table_names(only_existing=True, include_views=False))
        quoted = map(connection.ops.quote_name, sorted(tables - KEPT))
        return [f"DELETE FROM {name}" for name in quoted]  # noqa: S608 - names of our tables

    def flush_all(operations: BaseDatabaseOperations, given: Sequence[str]) -> None:
        with without_triggers(operations.connection):
            flush(operations, given)

    patch.setattr(command, "sql_flush", statements)
    patch.setattr(command, "emit_post_migrate_signal", lambda *_, **__: None)
    patch.setattr(BaseDatabaseOperations, "execute_sql_flush", flush_all)
