"""Studies made once a process: for the next test that asks for one, its rows are written again."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from django.conf import settings
from django.db import connection

from reports.models import LedgerEntry, Study


@dataclass
class Kept:
    """The key of a study, and the statements that wrote it, in their order."""

    statements: list[tuple[str, Any]] = field(default_factory=list)
    study: int = 0

    def note(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(("INSERT", "UPDATE", "DELETE")):
            assert not many
            self.statements.append((sql, params))
        return execute(sql, params, many, context)


_KEPT: dict[bytes, Kept] = {}


def made_once(make: Callable[..., Study]) -> Callable[..., Study]:
    """Write what `make` wrote for the same arguments into a database with the same last keys."""

    @wraps(make)
    def call(*args: Any, **changes: Any) -> Study:
        # Elsewhere new rows need new keys, commits have effects, and an entry of the ledger follows another.
        if connection.vendor != "sqlite" or not connection.in_atomic_block or LedgerEntry.objects.exists():
            return make(*args, **changes)
        state = settings.MOBILITY_LEDGER_KEY_FILE, last_keys()
        key = pickle.dumps((make.__module__, make.__qualname__, state, args, changes))
        if key in _KEPT:
            with connection.cursor() as cursor:
                for statement in _KEPT[key].statements:
                    cursor.execute(*statement)
        else:
            kept = Kept()
            with connection.execute_wrapper(kept.note):
                kept.study = make(*args, **changes).pk
            _KEPT[key] = kept
        return Study.objects.get(pk=_KEPT[key].study)

    return call


def last_keys() -> list[tuple[str, int]]:
    """Last keys of the tables that a study may have rows in."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, seq FROM sqlite_sequence WHERE name LIKE 'reports_%' ORDER BY name")
        return list(cursor.fetchall())
