"""Format of log lines: place and kind of an error, never its words.

The message of an error may quote what it failed on: a cell of a row, a parameter of a statement. The address
of a request may hold the secret of a share link. Neither is written: a view's name stands for its address.
"""

import json
import logging
import re
import sys
import traceback
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final

ErrorInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

# Of the request that is being answered; the middleware in mobility.operations.requests sets it.
REQUEST_ID: Final[ContextVar[str]] = ContextVar("request_id", default="")
# Own messages begin with what happened: batch_done batch=ID rows=3.
EVENT = re.compile(r"([a-z][a-z0-9]*(?:_[a-z0-9]+)+)(?=$|[\s:])")
FIELD = re.compile(r"(?<!\S)([a-z][a-z0-9_]*)=('[^'\n]*'|\S*)")
# A field of a message cannot pass for one of these.
RESERVED: Final = frozenset({"time", "level", "logger", "event", "message", "request_id", "traceback"})
# gunicorn's own format has the address with its query, and who asked.
ACCESS: Final = "request_answered method=%(m)s status=%(s)s bytes=%(B)s seconds=%(L)s"


class QuietFormatter(logging.Formatter):
    """Writes tracebacks without the messages of their errors, and requests without their addresses."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(quieted(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        ids = "".join(f" {name}={value}" for name, value in current_ids().items())
        return super().formatMessage(record) + ids

    def formatException(self, ei: ErrorInfo) -> str:
        return "\n".join(_parts(ei[1]))


class JsonFormatter(QuietFormatter):
    """One JSON object a line: time, level, logger, event, message, and the fields of own messages by name."""

    def format(self, record: logging.LogRecord) -> str:
        record = quieted(record)
        message = record.getMessage()
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            **fields_of(message),
            "message": message,
            **current_ids(),
        }
        if record.exc_info:
            entry |= {"error": _kind(record), "traceback": self.formatException(record.exc_info)}
        return json.dumps(entry, ensure_ascii=False, default=str)


def fields_of(message: str) -> dict[str, object]:
    """Return the fields of messages: {"event": "batch_done", "batch": ..., "rows": 3}; empty of others."""
    event = EVENT.match(message)
    if event is None:
        return {}
    found = {name: _value(text) for name, text in FIELD.findall(message.partition("\n")[0])}
    return {"event": event[1]} | {name: value for name, value in found.items() if name not in RESERVED}


def current_ids() -> dict[str, str]:
    """The request that is being answered, and the task that is being run."""
    celery = sys.modules.get("celery")  # a process that has not loaded it runs no task
    task = celery and celery.current_task
    ids = {"request_id": REQUEST_ID.get()}
    if task and task.request.id:
        ids |= {"task_id": task.request.id, "task_name": task.name.rpartition(".")[2]}
    return {name: value for name, value in ids.items() if value}


def quieted(record: logging.LogRecord) -> logging.LogRecord:
    """A copy of a record without the words of an error and without the address of a request."""
    changed: dict[str, Any] = {"exc_text": None}  # another handler may have kept a traceback with its words
    request = getattr(record, "request", None)
    if record.exc_info and isinstance(record.args, dict) and "exc" in record.args:
        # A task that fails is logged by Celery, with the error's words among the arguments.
        changed["args"] = {**record.args, "exc": _kind(record)}
    elif record.name == "gunicorn.access":
        changed["msg"] = ACCESS
    elif record.name.startswith("gunicorn") and str(record.msg).startswith("Error handling request"):
        changed |= {"msg": "request_broken", "args": ()}
    elif request is not None and isinstance(record.args, tuple):
        changed["args"] = tuple(_without_address(value, request) for value in record.args)
    return logging.makeLogRecord(record.__dict__ | changed)


def _without_address(value: object, request: Any) -> object:
    addresses = (getattr(request, "path", None), getattr(request, "path_info", None))
    if value not in addresses:
        return value
    match = getattr(request, "resolver_match", None)
    return f"view={match.view_name}" if match else "view=unknown"


def _value(text: str) -> object:
    if text.isascii() and text.isdigit():
        return int(text)
    return text.strip("'")


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
        yield "which caused:"
    yield "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
