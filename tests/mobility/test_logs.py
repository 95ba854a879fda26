"""A log says where something went wrong, and nothing that an error quotes."""

import logging
import sys
from typing import Any

from django.conf import settings

from mobility.logs import QuietFormatter

SECRET = "33699887766"


def failing(text: str) -> int:
    return int(text)


def record_of(message: str, *args: Any) -> logging.LogRecord:
    try:
        try:
            failing(f"{SECRET}x")
        except ValueError as error:
            raise RuntimeError(f"row of {SECRET}") from error
    except RuntimeError:
        return logging.LogRecord("celery.app.trace", logging.ERROR, "", 0, message, args, sys.exc_info())


def written(record: logging.LogRecord) -> str:
    return QuietFormatter("%(levelname)s %(message)s").format(record)


def test_traceback_names_places_and_kinds_only() -> None:
    text = written(record_of("upload_broken batch=%s", 7))
    assert SECRET not in text
    assert text.startswith("ERROR upload_broken batch=7\n")
    assert "in failing" in text
    assert text.index("ValueError") < text.index("which led to:") < text.index("RuntimeError")


def test_error_of_a_task_is_named_by_its_kind() -> None:
    record = record_of("Task %(name)s raised %(exc)s", {"name": "sweep", "exc": f"RuntimeError('{SECRET}')"})
    assert written(record).startswith("ERROR Task sweep raised RuntimeError\n")
    assert SECRET not in written(record)
    assert SECRET in record.getMessage()  # other handlers get what was logged


def test_context_that_was_cut_off_stays_cut_off() -> None:
    try:
        try:
            failing("x")
        except ValueError:
            raise RuntimeError from None
    except RuntimeError:
        record = logging.LogRecord("x", logging.ERROR, "", 0, "gone", (), sys.exc_info())
    assert "ValueError" not in written(record)


def test_every_handler_of_the_settings_writes_like_that() -> None:
    formatters = settings.LOGGING["formatters"]
    for handler in settings.LOGGING["handlers"].values():
        assert formatters[handler["formatter"]]["()"] == "mobility.logs.QuietFormatter"
