"""A process that dies at a chosen statement: no handler of it runs."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection, connections

from mobility.batches import fairness
from mobility.models import Batch
from tests.mobility.pipeline import resume

# On SQLite `make test-long` kills at every statement.
ON_POSTGRES = pytest.mark.skipif(connection.vendor == "sqlite", reason="each statement is a long test")


class Killed(BaseException):
    """The process is gone: no handler runs."""


class KillAt:
    """Dies, or meets an error, at the n-th statement of either database, and counts them."""

    def __init__(self, n: int = 0, error: type[BaseException] = Killed) -> None:
        self.n = n
        self.seen = 0
        self._error = error

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        # Closing a savepoint is the database's own doing after a death; how often compaction checks whether
        # others still read depends on them.
        if not sql.startswith(("ROLLBACK", "RELEASE")) and "pg_snapshot_xmin" not in sql:
            self.seen += 1
            if self.seen == self.n:
                raise self._error
        return execute(sql, params, many, context)


def run(work: Callable[[], object], kill: KillAt) -> None:
    # Processes are counted each time: else how long a run takes would decide how many statements it has.
    counted = patch.object(fairness, "KNOWN_S", 0.0), patch.dict(fairness._known, until=0.0)
    wrapped = (connections[name].execute_wrapper(kill) for name in ("default", "vault"))
    with ExitStack() as stack:
        for each in (*counted, *wrapped):
            stack.enter_context(each)
        work()


def dies(work: Callable[[], object], *, at: int) -> bool:
    """Return whether `work` dies at the statement `at` of both databases, before its end."""
    try:
        run(work, KillAt(at))
    except Killed:
        return True
    return False


def statements_of(work: Callable[[], object]) -> int:
    count = KillAt()
    run(work, count)
    return count.seen


def spread(n: int, *, over: int) -> list[int]:
    """`n` statements spread over all of a run, the first and the last included."""
    return sorted({1 + place * (over - 1) // (n - 1) for place in range(n)})


def check_deaths(begun, result_of=lambda pipeline: pipeline.tallies(), *, n_deaths, least=30) -> None:
    """Kill a worker at some or all of its statements, each time in a separate study: it ends as without.

    `begun` makes a study by its slug, whose queue has the work; returns it with its batch.
    """
    undisturbed, _ = begun("undisturbed")
    n_statements, expected = statements_of(undisturbed.work), result_of(undisturbed)
    assert n_statements > least
    for n in spread(n_deaths or n_statements, over=n_statements):
        pipeline, batch = begun(f"killed-at-{n}")
        # A slow first run may say once more that it is at work: the last statement is then one too many.
        assert dies(pipeline.work, at=n) or n == n_statements
        resume(pipeline, batch)
        ended = batch.state, result_of(pipeline)
        assert ended == (Batch.State.DONE, expected), f"killed at statement {n}"
