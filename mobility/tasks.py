"""Celery tasks: ids in, nothing out. The state of the work is in the database."""

from typing import Any

from celery import Task, shared_task
from celery.signals import worker_ready


@shared_task(bind=True, max_retries=None)
def run_batch(self: Task, batch_id: str) -> None:
    """Run a batch; safe to deliver twice."""
    from mobility.services.running import PASSING_ERRORS, BusyError, run

    try:
        run(batch_id)
    except BusyError as busy:
        raise self.retry(countdown=busy.seconds) from None
    except PASSING_ERRORS:
        # `from None`: the error's text stays out of the broker and the log.
        raise self.retry(countdown=min(2**self.request.retries, 60)) from None


@worker_ready.connect
def resume(**_: Any) -> None:
    """A worker that starts picks up what a dead one left."""
    from mobility.services.intake import resume_unfinished

    resume_unfinished()
