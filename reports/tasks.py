"""Celery tasks of the analyst zone: ids in, nothing out; every task may run twice."""

from celery import shared_task


@shared_task(ignore_result=True)
def compute_density(map_id: int) -> None:
    """Compute a deconvolved map that somebody has asked for."""
    from reports.services.densities import compute_map

    compute_map(map_id)
