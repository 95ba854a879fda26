"""The broker and its queues."""

from collections.abc import Iterator

import redis
from django.conf import settings

from mobility.embedded.shared import in_use
from mobility.operations.findings import Fact, Finding, Level, finding
from mobility.workers.queues import depth, ping, queue_names

ERRORS = (redis.RedisError, OSError)


def reached() -> Iterator[Finding]:
    """Return whether the broker answers, and what waits in its queues."""
    found = answer()
    yield found
    if found.level == Level.OK:
        for queue in queue_names():
            yield _queue(queue)


def answer() -> Finding:
    """Return whether the broker answers."""
    try:
        ms = round(ping() * 1000)
    except ERRORS as error:
        kind = type(error).__name__
        if is_asleep():
            return finding("broker_unreachable", Level.NOTE, error=kind, why="asleep")
        return finding("broker_unreachable", Level.ERROR, error=kind)
    return finding("broker_unreachable", ms=ms)


def is_asleep() -> bool:
    """Return whether broker and workers are embedded, and no command needs them now."""
    return settings.EMBEDDED_REDIS and not in_use()


def _queue(queue: str) -> Finding:
    """Many tasks alone are no trouble: a large file is cut into many. One that waits long is."""
    tasks, oldest_s = depth(queue)
    facts: dict[str, Fact] = {"tasks": tasks}
    if oldest_s is not None:
        facts["oldest_s"] = round(oldest_s)
    is_long = oldest_s is not None and oldest_s > settings.MOBILITY_WAITING_MAX_S
    return finding("queue_long", Level.WARNING if is_long else Level.OK, queue, **facts)
