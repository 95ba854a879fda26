"""How log lines are written: where something went wrong and its kind, never the words of the error.

The message of an error may quote what it failed on: a cell of a row, a parameter of a statement.
"""

import logging
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Any

ErrorInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class QuietFormatter(logging.Formatter):
    """Writes tracebacks without the messages of their errors."""

    def format(self, record: logging.LogRecord) -> str:
        # A task that fails is logged by Celery, with the error's words among the arguments.
        if record.exc_info and isinstance(record.args, dict) and "exc" in record.args:
            record = logging.makeLogRecord(record.__dict__ | {"args": {**record.args, "exc": _kind(record)}})
        return super().format(record)

    def formatException(self, ei: ErrorInfo) -> str:
        return "\n".join(_parts(ei[1]))


def _kind(record: logging.LogRecord) -> str:
    found: Any = record.exc_info[0] if record.exc_info else None
    return found.__name__ if found else "unknown"


def _parts(error: BaseException | None) -> Iterator[str]:
    """The error that came first, then those that it led to."""
    if error is None:
        return
    earlier = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if earlier is not None:
        yield from _parts(earlier)
        yield "which led to:"
    yield "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
