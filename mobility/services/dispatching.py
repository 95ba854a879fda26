"""Asking workers for work. A message holds ids only; what is lost in the queue, the sweep asks for again."""

import logging

from kombu.exceptions import OperationalError as BrokerError

from mobility.models import Batch

log = logging.getLogger(__name__)


def ask(task: str, *ids: str | int) -> None:
    """Ask for a task of mobility.tasks; asking twice does no harm."""
    try:
        send(task, *ids)
    except BrokerError as error:
        log.warning("broker_unreachable task=%s error=%s", task, type(error).__name__)


def send(task: str, *ids: str | int) -> None:
    """Hand a message to the broker."""
    from mobility import tasks

    getattr(tasks, task).apply_async(args=ids)


def ask_next(study_id: int) -> None:
    """Ask for the batch of the study that has waited longest."""
    waiting = Batch.objects.filter(study_id=study_id, state=Batch.State.QUEUED).order_by("created_at").first()
    if waiting is not None:
        ask("advance", str(waiting.pk))
