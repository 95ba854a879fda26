"""Asking workers for work. A message holds ids only; what is lost in the queue, the sweep asks for again."""

import logging

from django.conf import settings

from mobility.vault.models.batch import Batch
from reports.base.later import later
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
    later(settings.TASK_SENDER)(f"mobility.tasks.{task}", *ids, in_s=in_s)


def ask_next(study_id: int) -> None:
    """Ask for the batch of the study that has waited longest."""
    waiting = Batch.objects.filter(study_id=study_id, state=Batch.State.QUEUED).order_by("created_at").first()
    if waiting is not None:
        ask("advance", str(waiting.pk))
