"""Celery tasks of the analyst zone: ids in, nothing out; every task may run twice."""

from celery import Task, shared_task

from reports.base.outages import AWAY
from reports.exports.actions import make_file
from reports.forecasts.following import follow
from reports.maps.actions import compute_map

RETRY_S = 2


@shared_task(bind=True, ignore_result=True, max_retries=None)
def compute_density(self: Task, map_id: int) -> None:
    """Compute a deconvolved map that someone has asked for."""
    try:
        compute_map(map_id)
    except AWAY:
        # `from None`: the error's text stays out of the broker and the log.
        raise self.retry(countdown=RETRY_S) from None


@shared_task(bind=True, ignore_result=True, max_retries=None)
def make_export(self: Task, file_id: int) -> None:
    """Make a file that someone has asked for and waits for; who waits asks again if this one is lost."""
    try:
        make_file(file_id, is_again=self.request.retries > 0)
    except AWAY:
        raise self.retry(countdown=RETRY_S) from None


@shared_task(bind=True, ignore_result=True, max_retries=None)
def refresh_forecasts(self: Task, study_id: int) -> None:
    """Forecast newly published figures of a study, and compare them with the limits of its zones."""
    try:
        follow(study_id)
    except AWAY:
        raise self.retry(countdown=RETRY_S) from None
