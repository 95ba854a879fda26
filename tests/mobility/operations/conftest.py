"""Fixtures of tests of operations."""

from collections.abc import Iterator

import pytest
import redis
from pytest_django.fixtures import Settings

from scripts import services


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Redis."""
    port = services.free_port()
    with services.running(services.private_redis(folder=tmp_path_factory.mktemp("redis"), port=port)):
        yield services.redis_url(port)


@pytest.fixture
def with_broker(broker: str, settings: Settings) -> str:
    settings.CELERY_BROKER_URL = broker
    redis.Redis.from_url(broker).flushall()
    return broker


@pytest.fixture
def redis_server(settings: Settings) -> Iterator[services.Server]:
    """The broker of this test alone: a server that it may stop."""
    port = services.free_port()
    settings.CELERY_BROKER_URL, settings.EMBEDDED_REDIS = services.redis_url(port), False
    with services.private_folder("redis") as folder:
        server = services.private_redis(folder=folder, port=port)
        with services.running(server):
            yield server
