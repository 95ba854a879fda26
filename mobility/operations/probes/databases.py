"""Databases: do they answer, how large are they, do they fit this version."""

import time
from collections.abc import Iterator
from functools import cache
from typing import Final

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from mobility.operations.findings import Finding, Level, finding

CONNECT_S: Final = 2  # libpq takes no less
ERRORS: Final = (DatabaseError, InterfaceError)
_SIZES: Final = {
    "postgresql": "SELECT pg_database_size(current_database())",
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
}


def reached() -> Iterator[Finding]:
    """Return whether each database answers a new connection."""
    yield from map(answer, settings.DATABASES)


def answer(alias: str) -> Finding:
    """Return whether a database answers."""
    began = time.monotonic()
    try:
        n_bytes = _asked(alias)
    except Exception as error:  # noqa: BLE001 - drivers have different kinds
        return finding("database_unreachable", Level.ERROR, alias, error=type(error).__name__)
    ms = round((time.monotonic() - began) * 1000)
    return finding("database_unreachable", subject=alias, ms=ms, bytes=n_bytes)


def migrated() -> Iterator[Finding]:
    """Return whether every migration of this code has run."""
    for alias in settings.DATABASES:
        missing = pending(alias)
        level = Level.ERROR if missing else Level.OK
        yield finding("migrations_pending", level, alias, migrations=len(missing))


def pending(alias: str) -> frozenset[tuple[str, str]]:
    """Migrations, as (app, name), that a database lacks; only those of apps that live there."""
    here = frozenset(each for each in _known() if router.allow_migrate(alias, each[0]))
    return here - MigrationRecorder(connections[alias]).applied_migrations().keys()


@cache
def _known() -> frozenset[tuple[str, str]]:
    """Migrations on disk: they stay the same as long as the process lives."""
    return frozenset(MigrationLoader(None).disk_migrations)


def _asked(alias: str) -> int:
    """Size of a database in bytes, by a connection that gives up soon.

    A server that hangs would hold the usual connection for minutes, and one that is full refuses new ones.
    """
    usual = connections[alias]
    if usual.vendor == "sqlite":
        return _size(usual)
    own = usual.copy()
    own.settings_dict["OPTIONS"] = {
        **own.settings_dict.get("OPTIONS", {}),
        "connect_timeout": CONNECT_S,
        "tcp_user_timeout": CONNECT_S * 1000,
        "options": f"-c statement_timeout={CONNECT_S * 1000}",
    }
    try:
        return _size(own)
    finally:
        own.close()


def _size(connection: BaseDatabaseWrapper) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_SIZES[connection.vendor])
        row = cursor.fetchone()
    return int(row[0])
