"""Dumps of one database, consistent while others write; SQLite directly, PostgreSQL by its own programs."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from mobility.base.errors import OperationsError
from mobility.operations.backup.folder import Part, sha256_of
from mobility.operations.backup.postgres_load import load_postgres
from mobility.operations.backup.postgres_programs import addressed, check_versions, program, run

SUFFIX: Final = {"sqlite": ".sqlite3", "postgresql": ".dump"}
# Tables of sessions and counts of guesses: left empty in every dump. Restoring ends all sessions anyway.
LEFT_OUT: Final = ("django_session", "usersessions_usersession", "signin_cache")
Ask = Callable[[str], Sequence[Sequence[Any]]]
Look = Callable[[Ask], dict[str, Any]]


def dump(alias: str, folder: Path, *, look: Look) -> tuple[Part, dict[str, Any]]:
    """Write a dump into `folder`; returns it, and what the look at the same state of the database found.

    Parameters
    ----------
    look : is given a function that answers SQL from the very state that is dumped

    Raises
    ------
    OperationsError : a program is missing, too old, or fails
    """
    connection = connections[alias]
    connection.ensure_connection()
    path = folder / f"{alias}{SUFFIX[connection.vendor]}"
    work = _dump_sqlite if connection.vendor == "sqlite" else _dump_postgres
    found = work(connection, path, lambda ask: {**_rows(connection, ask), "seen": look(ask)})
    part = Part(
        alias=alias,
        vendor=connection.vendor,
        file=path.name,
        bytes=path.stat().st_size,
        sha256=sha256_of(path),
        rows=found["rows"],
        migrations=found["migrations"],
    )
    return part, found["seen"]


def count_rows(alias: str) -> dict[str, int]:
    """{table: rows} of a database as it is now."""
    connection = connections[alias]
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        counted = {}
        for table in sorted(tables):
            cursor.execute(f"SELECT COUNT(*) FROM {connection.ops.quote_name(table)}")  # noqa: S608 - a table of ours
            counted[table] = int(cursor.fetchone()[0])
    return counted


def check_readable(path: Path, *, vendor: str) -> None:
    """Raise OperationsError unless the database's own tools can read a dump."""
    if vendor == "postgresql":
        run([program("pg_restore"), "--list", str(path)], env=None, what="pg_restore --list")
        return
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            found = database.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.DatabaseError as error:
        raise OperationsError(f"{path.name} cannot be read: {error}") from None
    if found != "ok":
        raise OperationsError(f"{path.name} is damaged: integrity_check found errors")


def load(path: Path, *, alias: str) -> None:
    """Put a dump in place of all that the database holds.

    Raises
    ------
    OperationsError : it failed, and the database is as it was
    """
    connection = connections[alias]
    connection.ensure_connection()
    if connection.vendor == "sqlite":
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as source:
                source.backup(connection.connection)
        except sqlite3.Error as error:
            raise OperationsError(f"{path.name} cannot be loaded: {error}") from None
    else:
        load_postgres(connection, path)
    connection.close()


def check_programs(alias: str) -> None:
    """Raise OperationsError unless PostgreSQL's programs are there and not older than the server."""
    connection = connections[alias]
    if connection.vendor == "postgresql":
        check_versions(connection)


# --- SQLite -----------------------------------------------------------------------------------


def _dump_sqlite(connection: BaseDatabaseWrapper, path: Path, look: Look) -> dict[str, Any]:
    if connection.in_atomic_block:
        raise OperationsError("a backup cannot be made inside a transaction")
    with closing(sqlite3.connect(path)) as copy:
        connection.connection.backup(copy)
        _leave_out(copy)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, without those of the write-ahead log
        return look(lambda statement: copy.execute(statement).fetchall())


def _leave_out(copy: sqlite3.Connection) -> None:
    there = {name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table in there.intersection(LEFT_OUT):
        copy.execute(f"DELETE FROM {table}")  # noqa: S608 - a table of ours
    copy.commit()
    copy.execute("VACUUM")  # deleted rows stay in free pages


# --- PostgreSQL -------------------------------------------------------------------------------


def _dump_postgres(connection: BaseDatabaseWrapper, path: Path, look: Look) -> dict[str, Any]:
    check_versions(connection)
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        # pg_dump joins this snapshot, so that what is counted here is what is dumped there.
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        snapshot = cursor.fetchone()[0]
        arguments, env = addressed(connection)
        command = [program("pg_dump"), "--format=custom", "--compress=1", "--no-owner", "--no-privileges"]
        command += [f"--exclude-table-data=public.{table}" for table in LEFT_OUT]
        command += [f"--snapshot={snapshot}", f"--file={path}", "--no-password", *arguments]
        run(command, env=env, what="pg_dump")

        def ask(statement: str) -> Sequence[Sequence[Any]]:
            cursor.execute(statement)
            return list(cursor.fetchall())

        return look(ask)


# --- both -------------------------------------------------------------------------------------


def _rows(connection: BaseDatabaseWrapper, ask: Ask) -> dict[str, Any]:
    listed = {
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
        "postgresql": "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename",
    }
    tables = [str(name) for (name,) in ask(listed[connection.vendor])]
    quote = connection.ops.quote_name
    rows = {name: int(ask(f"SELECT COUNT(*) FROM {quote(name)}")[0][0]) for name in tables}  # noqa: S608
    rows |= dict.fromkeys(set(LEFT_OUT).intersection(rows), 0)
    applied = ask("SELECT app, name FROM django_migrations ORDER BY app, name")
    return {"rows": rows, "migrations": [[str(app), str(name)] for app, name in applied]}
