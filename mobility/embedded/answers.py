"""Answers of Redis and workers to the commands that start them; loads Celery."""

from contextlib import suppress

from django.conf import settings
from kombu.exceptions import OperationalError
from redis import Redis
from redis.exceptions import RedisError

from mobility.embedded.service import ServiceError
from mobility.workers.app import app


def redis_answers() -> bool:
    """Return whether our own Redis does."""
    with suppress(RedisError), Redis(unix_socket_path=str(settings.PATHS.redis_socket)) as client:
        return bool(client.ping())
    return False


def worker_answers(timeout_s: float) -> bool:
    """Return whether any worker does, by the broker.

    Raises
    ------
    ServiceError : Redis at REDIS_URL does not answer
    """
    try:
        with app.connection_for_write() as connection:  # none of a pool: Redis may have died since
            return bool(app.control.ping(timeout=timeout_s, limit=1, connection=connection))
    except (OperationalError, RedisError, OSError) as error:
        if settings.EMBEDDED_REDIS:
            return False
        raise ServiceError(f"Redis is not responding at REDIS_URL: {error}") from error
