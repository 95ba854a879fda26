"""Dumps of one database, consistent while others write; SQLite by itself, PostgreSQL by its own programs.

Passwords reach those programs by their environment, never by their arguments, which every account can read.
"""

import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from mobility.operations.backup_folder import Part, sha256_of
from mobility.operations.errors import OperationsError

SUFFIX: Final = {"sqlite": ".sqlite3", "postgresql": ".dump"}
# What signs somebody in, or counts guesses: left empty in every dump. Restoring ends all sessions anyway.
LEFT_OUT: Final = ("django_session", "usersessions_usersession", "signin_cache")
Ask = Callable[[str], Sequence[Sequence[Any]]]
Look = Callable[[Ask], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumped:
    """A dump, and what a look at the same state of the database found."""

    part: Part
    seen: dict[str, Any]


def dump(alias: str, folder: Path, *, look: Look) -> Dumped:
    """Write a dump into `folder`.

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
    return Dumped(part=part, seen=found["seen"])


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
        _run([_program("pg_restore"), "--list", str(path)], env=None, what="pg_restore --list")
        return
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            found = database.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.DatabaseError as error:
        raise OperationsError(f"{path.name} cannot be read: {error}") from None
    if found != "ok":
        raise OperationsError(f"{path.name} is damaged: integrity_check finds errors")


def load(path: Path, *, alias: str) -> None:
    """Put a dump in place of all that the database holds.

    Raises
    ------
    OperationsError : it failed; an SQLite database is as it was, one of PostgreSQL may be empty
    """
    connection = connections[alias]
    connection.ensure_connection()
    if connection.vendor == "sqlite":
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as source:
            source.backup(connection.connection)
    else:
        _load_postgres(connection, path)
    connection.close()


def check_programs(alias: str) -> None:
    """Raise OperationsError unless PostgreSQL's programs are there and not older than the server."""
    connection = connections[alias]
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        server = int(cursor.fetchone()[0]) // 10_000
    for name in ("pg_dump", "pg_restore"):
        printed = _run([_program(name), "--version"], env=None, what=name)
        found = re.search(r"(\d+)", printed)
        if found is None or int(found[1]) < server:
            raise OperationsError(
                f"{name} must be of version {server} or later, as the server is, got {printed.strip()!r}: "
                f"install postgresql-client-{server}"
            )


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
    check_programs(connection.alias)
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        # pg_dump joins this snapshot, so that what is counted here is what is dumped there.
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        snapshot = cursor.fetchone()[0]
        arguments, env = _addressed(connection)
        command = [_program("pg_dump"), "--format=custom", "--compress=1", "--no-owner", "--no-privileges"]
        command += [f"--exclude-table-data=public.{table}" for table in LEFT_OUT]
        command += [f"--snapshot={snapshot}", f"--file={path}", "--no-password", *arguments]
        _run(command, env=env, what="pg_dump")

        def ask(statement: str) -> Sequence[Sequence[Any]]:
            cursor.execute(statement)
            return list(cursor.fetchall())

        return look(ask)


def _load_postgres(connection: BaseDatabaseWrapper, path: Path) -> None:
    check_programs(connection.alias)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_userbyid(datdba), pg_has_role(datdba, 'MEMBER') FROM pg_database "
            "WHERE datname = current_database()"
        )
        owner, is_member = cursor.fetchone()
        _empty(connection, cursor, owner=owner if is_member else "")
    arguments, env = _addressed(connection)
    command = [_program("pg_restore"), "--no-owner", "--no-privileges", "--exit-on-error"]
    command += ["--single-transaction", "--no-password", *([f"--role={owner}"] if is_member else [])]
    connection.close()
    listed = _run([command[0], "--list", str(path)], env=None, what="pg_restore --list")
    with tempfile.NamedTemporaryFile("w", suffix=".list") as kept:
        # The schema is there, and stays as the server's people have set it up.
        kept.writelines(line for line in listed.splitlines(keepends=True) if " SCHEMA - " not in line)
        kept.flush()
        _run([*command, f"--use-list={kept.name}", *arguments, str(path)], env=env, what="pg_restore")


def _empty(connection: BaseDatabaseWrapper, cursor: Any, *, owner: str) -> None:
    """Drop all tables and functions, as `owner`: of two zones that share them, either may restore."""
    with transaction.atomic(using=connection.alias):
        if owner:
            cursor.execute(f"SET LOCAL ROLE {connection.ops.quote_name(owner)}")
        cursor.execute("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'")
        for (table,) in cursor.fetchall():
            cursor.execute(f"DROP TABLE IF EXISTS public.{table} CASCADE")
        cursor.execute(
            "SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace "
            "AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')"
        )
        for (function,) in cursor.fetchall():
            cursor.execute(f"DROP FUNCTION IF EXISTS {function} CASCADE")


def _addressed(connection: BaseDatabaseWrapper) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment that lead PostgreSQL's programs to a database, as Django's `dbshell` does."""
    words, env = connection.client.settings_to_cmd_args_env(connection.settings_dict, [])
    _, *arguments = words
    if connection.settings_dict.get("NAME"):
        arguments = [*arguments[:-1], f"--dbname={arguments[-1]}"]
    return arguments, dict(env or {})


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise OperationsError(
            f"{name} is not found: install PostgreSQL's client programs (postgresql-client)"
        )
    return found


def _run(command: list[str], *, env: dict[str, str] | None, what: str) -> str:
    """What a program prints."""
    done = subprocess.run(
        command, env=os.environ | (env or {}), capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["nothing was said"])[0]
        raise OperationsError(f"{what} failed: {said[:300]}")
    return done.stdout


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
