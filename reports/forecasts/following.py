"""Work after a publication: limits of now at once, then forecasts, then limits of what they expect."""

from reports.forecasts.actions import refresh
from reports.forecasts.crowds import judge
from reports.studies.models import Study


def follow(study_id: int) -> None:
    """Compute what is out of date of a study; nothing if it is gone."""
    study = Study.objects.filter(pk=study_id).first()
    if study is None:
        return
    judge(study)
    if refresh(study):
        judge(study)
