"""Test databases of SQLite, migrated once for all processes of a run: it takes each one seconds.

`MIGRATED_DIR` is a folder of the run (scripts/run_tests.py, scripts/mutants.py); without it each process
migrates its own.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from django.db import connections

from mobility.base import locks
from mobility.operations.management.commands import migrate

VARIABLE: Final = "MIGRATED_DIR"


@contextmanager
def once_a_run() -> Iterator[None]:
    """Let `migrate` copy what another process of this run has migrated."""
    folder = os.environ.get(VARIABLE)
    if not folder or any(each.vendor != "sqlite" for each in connections.all()):
        yield
        return
    really = migrate.Command.handle

    def handle(command: migrate.Command, *words: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        kept = Path(folder) / f"{connection.alias}.sqlite3"
        with locks.exclusive(kept.with_suffix(".lock")):
            if not kept.exists():
                really(command, *words, **options)
                with closing(sqlite3.connect(kept.with_suffix(".part"))) as target:
                    connection.connection.backup(target)
                kept.with_suffix(".part").rename(kept)
                return
        connection.ensure_connection()
        with closing(sqlite3.connect(kept)) as source:
            source.backup(connection.connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate.Command, "handle", handle)
        yield
