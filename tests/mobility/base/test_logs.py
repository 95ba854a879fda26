"""A log says where something went wrong, and nothing that an error quotes."""

import json
import logging
import sys
from typing import Any

import pytest
from celery._state import _task_stack
from django.conf import settings
from django.http import HttpResponse
from django.test import RequestFactory

from mobility import tasks
from mobility.base.logs import REQUEST_ID, JsonFormatter, QuietFormatter
from mobility.operations.requests import RequestIdMiddleware

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
    assert (SECRET in text, text.startswith("ERROR upload_broken batch=7\n")) == (False, True)
    assert "in failing" in text
    assert text.index("ValueError") < text.index("which caused:") < text.index("RuntimeError")
    entry = as_json(record_of("upload_broken batch=%s", 7))
    assert (entry["event"], entry["batch"], entry["error"]) == ("upload_broken", 7, "RuntimeError")
    assert ("in failing" in entry["traceback"], SECRET in json.dumps(entry)) == (True, False)
    record = record_of("upload_broken")
    logging.Formatter().format(record)  # keeps the text, with the error's words, in the record
    assert (SECRET in record.exc_text, SECRET in written(record)) == (True, False)


def test_error_of_a_task_is_named_by_its_kind() -> None:
    record = record_of("Task %(name)s raised %(exc)s", {"name": "sweep", "exc": f"RuntimeError('{SECRET}')"})
    assert written(record).startswith("ERROR Task sweep raised RuntimeError\n")
    assert SECRET not in written(record)
    assert as_json(record)["message"] == "Task sweep raised RuntimeError"
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
    kinds = {formatter["()"] for formatter in formatters.values()}
    assert kinds == {"mobility.base.logs.QuietFormatter", "mobility.base.logs.JsonFormatter"}
    assert all(handler["formatter"] in formatters for handler in settings.LOGGING["handlers"].values())


def as_json(record: logging.LogRecord) -> dict[str, Any]:
    text = JsonFormatter().format(record)
    assert "\n" not in text
    return json.loads(text)


def made(name: str, message: str, *args: Any, **extra: Any) -> logging.LogRecord:
    record = logging.LogRecord(name, logging.INFO, "", 0, message, args, None)
    record.created = 0.0
    record.__dict__.update(extra)
    return record


def test_json_has_the_fields_of_own_messages_by_name_and_none_passes_for_another() -> None:
    words = "ab-1", 3, "fair"
    entry = as_json(made("mobility.batches.finalisation", "batch_done batch=%s rows=%s study=%r", *words))
    assert entry["time"] == "1970-01-01T00:00:00.000+00:00"
    assert (entry["level"], entry["logger"]) == ("INFO", "mobility.batches.finalisation")
    assert {"event": "batch_done", "batch": "ab-1", "rows": 3, "study": "fair"}.items() <= entry.items()
    entry = as_json(made("x", "file_refused level=FATAL time=0 request_id=mine message=no"))
    assert (entry["level"], entry["time"].startswith("1970")) == ("INFO", True)
    assert (entry["message"].startswith("file_refused"), "request_id" in entry) == (True, False)
    of_others = as_json(made("django.db", "Watching for changes with level=3"))
    assert ("event" in of_others, of_others["level"]) == (False, "INFO")


@pytest.mark.parametrize("formatter", [QuietFormatter(), JsonFormatter()])
def test_addresses_of_requests_are_not_written(formatter: logging.Formatter) -> None:
    request = RequestFactory().get(f"/shared/{SECRET}/?password={SECRET}")
    django = made("django.request", "%s: %s", "Internal Server Error", request.path, request=request)
    atoms = {"m": "GET", "s": "200", "B": 17, "L": "0.010", "U": request.path, "r": f"GET {request.path}"}
    answered = made("gunicorn.access", '%(h)s "%(r)s" %(s)s', atoms | {"h": "127.0.0.1"})
    broken = made("gunicorn.error", "Error handling request %s", request.path)
    texts = [formatter.format(record) for record in (django, answered, broken)]
    assert "view=unknown" in texts[0]
    assert "request_answered method=GET status=200 bytes=17 seconds=0.010" in texts[1]
    assert "request_broken" in texts[2]
    assert not [text for text in texts if SECRET in text]


def test_request_has_an_id_in_the_log_and_in_its_answer() -> None:
    def answered(given: str | None) -> str:
        request = RequestFactory().get("/", headers={"X-Request-ID": given} if given else {})
        return RequestIdMiddleware(lambda _: HttpResponse())(request).headers["X-Request-ID"]

    assert answered("from-the-proxy-1") == "from-the-proxy-1"
    made_here = {answered(None), answered(None)}
    assert len(made_here) == 2
    assert all(len(name) == 32 for name in made_here)
    for given in ("short", "a" * 65, "line\u2028feed", "two words", "id=1;level=2", "-" * 12):
        assert answered(given) != given  # it could break a line


def test_lines_of_a_request_or_a_task_carry_its_id_and_those_after_it_do_not() -> None:
    texts: list[str] = []

    def respond(_) -> HttpResponse:
        record = made("x", "batch_done batch=1")
        texts.extend([QuietFormatter().format(record), as_json(record)["request_id"]])
        return HttpResponse()

    RequestIdMiddleware(respond)(RequestFactory().get("/", headers={"X-Request-ID": "from-the-proxy-1"}))
    assert texts == ["batch_done batch=1 request_id=from-the-proxy-1", "from-the-proxy-1"]
    assert REQUEST_ID.get() == ""
    assert "request_id" not in as_json(made("x", "batch_done batch=1"))
    tasks.advance.push_request(id="4f-1")
    _task_stack.push(tasks.advance)
    try:
        entry = as_json(made("x", "batch_done batch=1"))
    finally:
        _task_stack.pop()
        tasks.advance.pop_request()
    assert (entry["task_id"], entry["task_name"]) == ("4f-1", "advance")


def test_requests_are_logged_by_view_when_asked_for(client, db, settings, caplog) -> None:
    caplog.set_level(logging.INFO)
    client.get(f"/shared/{SECRET}/?x={SECRET}")
    assert "request_answered" not in caplog.text
    settings.LOG_REQUESTS = True
    assert client.get(f"/shared/{SECRET}/?x={SECRET}").headers["X-Request-ID"]
    assert "request_answered method=GET view=access:shared status=" in caplog.text
    assert SECRET not in "".join(
        r.getMessage() for r in caplog.records if r.name == "mobility.operations.requests"
    )
