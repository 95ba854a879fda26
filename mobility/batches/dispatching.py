"""Asking workers for work. A message holds ids only; what is lost in the queue, the sweep asks for again."""

import logging
from datetime import UTC, datetime

import redis
from django.conf import settings

from mobility.vault.models.batch import Batch
from mobility.workers import app, queues
from reports.base.tasks import BrokerAwayError

RETRY_S = 2  # after which what met no database is tried again
log = logging.getLogger(__name__)


def ask(task: str, *ids: str | int, in_s: int = 0) -> None:
    """Ask for a task of mobility.tasks, at once or in a while; asking twice does no harm."""
    try:
        send(task, *ids, in_s=in_s)
    except BrokerAwayError as error:
        log.warning("broker_unreachable task=%s error=%s", task, error)


def send(task: str, *ids: str | int, in_s: int = 0) -> None:
    """Hand a message to the broker."""
    app.send(f"mobility.tasks.{task}", *ids, in_s=in_s)


def ask_next(study_id: int) -> None:
    """Ask for the batch of the study that has waited longest."""
    waiting = Batch.objects.filter(study_id=study_id, state=Batch.State.QUEUED).order_by("created_at").first()
    if waiting is not None:
        ask("advance", str(waiting.pk))


def waits_since() -> datetime | None:
    """When the chunk or shard was asked for that has waited longest in the broker; None: none waits.

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
    """Whether the broker may have lost messages since the last look: restarted, emptied or replaced.

    Of all who look, one is told so. The mark lies where messages lie, and names the server's process: one
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
