"""Nothing that lies where others may write is a program: neither counts of guesses nor tasks of workers."""

import base64
import json
import os
import pickle

import pytest
from django.conf import settings
from django.contrib.sessions.serializers import JSONSerializer
from django.core.cache import cache, caches
from django.db import connection
from django.utils.module_loading import import_string
from kombu.exceptions import ContentDisallowed
from kombu.message import Message
from kombu.serialization import prepare_accept_content

from mobility.celery import app
from mobility.signin.cache import JsonCache

pytestmark = pytest.mark.django_db
CONTENT_TYPES = ("application/x-python-serialize", "application/x-yaml", "application/x-msgpack")


class Planted:
    def __init__(self, trace: str) -> None:
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (self.trace,)


@pytest.mark.database
def test_a_pickle_among_the_counts_is_a_text_and_is_not_run(client, tmp_path):
    trace = tmp_path / "was-run"
    text = base64.b64encode(pickle.dumps(Planted(str(trace)))).decode()
    cache.set("count", [1.5])
    with connection.cursor() as cursor:
        cursor.execute("UPDATE signin_cache SET value = %s", [json.dumps(text)])
    assert cache.get("count") == text
    assert not trace.exists()


def test_no_store_of_the_settings_keeps_pickles():
    assert [type(each) for each in caches.all(initialized_only=False)] == [JsonCache]
    assert import_string(settings.SESSION_SERIALIZER) is JSONSerializer
    assert app.conf.task_ignore_result and not app.conf.result_backend
    assert {app.conf.task_serializer, app.conf.event_serializer, app.conf.result_serializer} == {"json"}


@pytest.mark.parametrize("content_type", CONTENT_TYPES)
def test_a_worker_takes_no_message_but_json(content_type, tmp_path):
    trace = tmp_path / "was-run"
    body = pickle.dumps(Planted(str(trace)))
    accept = prepare_accept_content(app.conf.accept_content)  # as the consumer of a worker does
    assert Message(b"[]", content_type="application/json", accept=accept).decode() == []
    with pytest.raises(ContentDisallowed):
        Message(body, content_type=content_type, content_encoding="binary", accept=accept).decode()
    assert not trace.exists()


@pytest.mark.database
def test_counts_come_back_as_they_were_until_they_are_over(clock):
    for value in ([1764096000.25, 1764096000.0], True, "y", 3):
        cache.set("count", value, 60)
        assert cache.get("count") == value
    clock.shift(59)
    assert not cache.add("count", "another", 60)
    clock.shift(1)
    assert cache.get("count", []) == []
    assert [cache.add("count", "another", 60) for _ in range(2)] == [True, False]
    assert cache.delete("count")
    assert cache.get("count") is None
    cache.set("x" * 5000 + "\0", "long", None)  # typed text
    assert cache.get("x" * 5000 + "\0") == "long"
