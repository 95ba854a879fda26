"""The broker as Celery uses it: which queues there are, how long each is, how old its oldest task."""

import json
import re
import time
from functools import cache
from typing import Any, Final

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from mobility.workers.app import SENT_AT, app

TIMEOUT_S: Final = 2
# As kombu.transport.redis names the lists of a queue with priorities.
SEPARATOR, STEPS = "\x06\x16", (0, 3, 6, 9)


def client() -> redis.Redis:
    """The broker, by a client that gives up soon."""
    return _client(settings.CELERY_BROKER_URL)


def queue_names() -> list[str]:
    """Queues that workers of this zone fetch from."""
    return sorted(app.amqp.queues)


def ping() -> float:
    """Seconds that the broker takes to answer.

    Raises
    ------
    redis.RedisError, OSError : it does not
    """
    began = time.monotonic()
    client().ping()
    return time.monotonic() - began


def depth(queue: str) -> tuple[int, float | None]:
    """Tasks of a queue that no worker has fetched; age of the oldest in seconds, None where it is not known.

    Raises
    ------
    redis.RedisError, OSError : the broker does not answer
    """
    lists = _lists(queue)
    pipeline = client().pipeline(transaction=False)
    for name in lists:
        pipeline.llen(name)
        pipeline.lindex(name, -1)  # pushed at the left, fetched at the right
    answers = pipeline.execute()
    sent = [at for at in map(_sent_at, answers[1::2]) if at is not None]
    return sum(answers[::2]), max(time.time() - min(sent), 0.0) if sent else None


def waits_since(queue: str, *, level: int) -> float | None:
    """When the oldest message of a level was sent, in seconds since 1970; None: none waits.

    Raises
    ------
    redis.RedisError, OSError : the broker does not answer
    """
    options: dict[str, Any] = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    name = _lists(queue)[sorted(options.get("priority_steps", STEPS)).index(level)]
    oldest: Any = client().lindex(name, -1)
    return _sent_at(oldest)


def _lists(queue: str) -> list[str]:
    options: dict[str, Any] = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    separator = options.get("sep", SEPARATOR)
    steps = sorted(options.get("priority_steps", STEPS))
    prefix = options.get("global_keyprefix", "")
    return [f"{prefix}{queue}{separator}{step}" if step else f"{prefix}{queue}" for step in steps]


def _sent_at(message: bytes | None) -> float | None:
    """Return the request time of a task; the rest of its message is not read."""
    try:
        return float(json.loads(message or b"{}")["headers"][SENT_AT])
    except (KeyError, TypeError, ValueError):
        return None


@cache
def _client(url: str) -> redis.Redis:
    """Return a client with short timeouts; after a connection error, the next question opens another."""
    address = re.sub(r"^redis\+socket://", "unix://", url)
    address = re.sub(r"ssl_cert_reqs=CERT_(\w+)", lambda found: f"ssl_cert_reqs={found[1].lower()}", address)
    limits = {"socket_connect_timeout": TIMEOUT_S, "socket_timeout": TIMEOUT_S}
    return redis.Redis.from_url(address, **limits, retry=Retry(NoBackoff(), 0))
