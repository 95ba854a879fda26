"""A process that dies at a chosen statement: no handler of it runs."""

from collections.abc import Callable
from typing import Any


class Killed(BaseException):
    """The process is gone: no handler runs."""


class KillAt:
    """Dies at the n-th statement of either database."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        # Closing a savepoint is the database's own doing after a death.
        if not sql.startswith(("ROLLBACK", "RELEASE")):
            self.left -= 1
            if self.left == 0:
                raise Killed
        return execute(sql, params, many, context)
