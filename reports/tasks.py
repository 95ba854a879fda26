"""Celery tasks of the analyst zone: ids in, nothing out; every task may run twice."""

from celery import Task, shared_task
from django.db import InterfaceError, OperationalError


@shared_task(bind=True, ignore_result=True, max_retries=10)
def compute_density(self: Task, map_id: int) -> None:
    """Compute a deconvolved map that somebody has asked for."""
    from reports.services.densities import compute_map

    try:
        compute_map(map_id)
    except (OperationalError, InterfaceError):
        # The database went away. `from None`: the error's text stays out of the broker and the log.
        raise self.retry(countdown=min(2**self.request.retries, 60)) from None
