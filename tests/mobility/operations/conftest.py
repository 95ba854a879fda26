"""Fixtures of tests of operations."""

import pytest
import redis
from django.db import connections
from django.db.backends.sqlite3.base import DatabaseWrapper

from scripts import services


@pytest.fixture
def with_broker(broker, settings):
    settings.CELERY_BROKER_URL = broker
    redis.Redis.from_url(broker).flushall()
    return broker


@pytest.fixture
def redis_server(settings):
    port = services.free_port()
    settings.CELERY_BROKER_URL, settings.EMBEDDED_REDIS = services.redis_url(port), False
    with services.private_folder("redis") as folder:
        server = services.private_redis(folder=folder, port=port)
        with services.running(server):
            yield server


@pytest.fixture
def unmount(tmp_path):
    """Take the disk of a database away: its file cannot be opened until the test ends."""
    usual = {}

    def gone(alias):
        usual[alias] = connections[alias]
        settings = usual[alias].settings_dict | {"ENGINE": "django.db.backends.sqlite3", "OPTIONS": {}}
        settings["NAME"] = str(tmp_path / "not mounted" / f"{alias}.sqlite3")
        connections[alias] = DatabaseWrapper(settings, alias)

    yield gone
    for alias, connection in usual.items():
        connections[alias] = connection
