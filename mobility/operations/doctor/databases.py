"""Checks of databases: durability settings, integrity of files, and clocks."""

import time
from typing import Final

from django.conf import settings
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from mobility.operations.doctor.clocks import compared
from mobility.operations.doctor.diagnosis import Diagnoses, error, error_if

OLDEST_POSTGRESQL: Final = 150_000
_POSTGRESQL: Final = {
    "fsync": ("on", "a power failure may destroy the database"),
    "full_page_writes": ("on", "a power failure may corrupt pages of the database"),
    "synchronous_commit": (
        "on, local, remote_write, remote_apply",
        "committed data may be lost in a power failure: a file could count twice, or not at all",
    ),
    "server_encoding": ("UTF8", "the database cannot store all names that people enter"),
}
# value of a PRAGMA, what it should be, what follows otherwise
_SQLITE: Final = {
    "journal_mode": ("wal", "readers and writers block each other"),
    "synchronous": ("2", "committed data may be lost in a power failure"),
    "secure_delete": ("1", "erased data stays in the file"),
}


def promises() -> Diagnoses:
    """Return whether each database keeps what it has confirmed."""
    for alias in settings.DATABASES:
        of_vendor = _of_postgresql if connections[alias].vendor == "postgresql" else _of_sqlite
        yield from of_vendor(alias, connections[alias])


def clocks() -> Diagnoses:
    """Clocks of database servers; a file has none."""
    for alias in settings.DATABASES:
        connection = connections[alias]
        if connection.vendor == "postgresql":
            before = time.time()
            theirs = float(_value(connection, "SELECT extract(epoch FROM clock_timestamp())"))
            yield compared(alias, theirs=theirs, before=before, after=time.time())


def whole() -> Diagnoses:
    """Files of SQLite, page by page. PostgreSQL has its own tools: docs/doctor.md."""
    for alias in settings.DATABASES:
        if connections[alias].vendor == "sqlite":
            is_damaged = _value(connections[alias], "PRAGMA quick_check(1)") != "ok"
            todo = "stop all services, keep the file, and restore the last backup (docs/backup.md)"
            yield error_if(
                is_damaged, "database_damaged", "the database file is damaged", todo, subject=alias
            )


def _of_postgresql(alias: str, connection: BaseDatabaseWrapper) -> Diagnoses:
    version = int(_value(connection, "SHOW server_version_num"))
    if version < OLDEST_POSTGRESQL:
        what = f"PostgreSQL must be version 15 or later, got {version // 10_000}"
        todo = "upgrade the server (pg_upgrade)"
        yield error("database_setting", what, todo, subject=f"{alias} version")
    for name, (wanted, otherwise) in _POSTGRESQL.items():
        found = _value(connection, f"SHOW {name}")
        what, is_wrong = f"{name} is {found}: {otherwise}", found not in wanted.split(", ")
        todo = f"set {name} to {wanted.partition(',')[0]} in postgresql.conf, and reload the server"
        if name == "server_encoding":
            todo = "create the database with ENCODING 'UTF8', and restore a dump to it"
        yield error_if(is_wrong, "database_setting", what, todo, subject=f"{alias} {name}")


def _of_sqlite(alias: str, connection: BaseDatabaseWrapper) -> Diagnoses:
    for name, (wanted, otherwise) in _SQLITE.items():
        found = _value(connection, f"PRAGMA {name}")
        what = f"PRAGMA {name} is {found} instead of {wanted}: {otherwise}"
        todo = "move the file to a local disk: network file systems do not support this setting"
        yield error_if(found != wanted, "database_setting", what, todo, subject=f"{alias} {name}")


def _value(connection: BaseDatabaseWrapper, statement: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        row = cursor.fetchone()
    return str(row[0])
