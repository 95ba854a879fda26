"""The broker's view of messages: how long they have waited, and whether it may have lost some."""

import logging
from datetime import UTC, datetime

import redis
from django.conf import settings

from mobility.workers import queues

log = logging.getLogger(__name__)


def waits_since() -> datetime | None:
    """Return the request time of the chunk or shard that has waited longest in the broker; None: none waits.

    They are fetched in their order: what was asked for before it, and has not begun, waits no more.
    """
    level = settings.CELERY_TASK_ROUTES["mobility.tasks.read_chunk"]["priority"]
    try:
        sent_at = queues.waits_since(settings.CELERY_TASK_DEFAULT_QUEUE, level=level)
    except (redis.RedisError, OSError) as error:
        log.warning("broker_not_asked error=%s", type(error).__name__)
        return None
    return None if sent_at is None else datetime.fromtimestamp(sent_at, UTC)


def has_forgotten() -> bool:
    """Return whether the broker may have lost messages since the last look: restarted, emptied or replaced.

    Only one caller gets True. The mark is stored with the messages and names the server's process: one
    that reads an older state from a disk has another name than its mark.
    """
    mark = f"mobility.{settings.CELERY_TASK_DEFAULT_QUEUE}.process"
    try:
        broker = queues.client()
        process = str(broker.info("server").get("run_id", ""))
        return bool(broker.getset(mark, process) != process.encode())
    except (redis.RedisError, OSError) as error:
        log.warning("broker_not_asked error=%s", type(error).__name__)
        return False
