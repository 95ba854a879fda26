"""Forecasts as the API sends them: those that are kept; a worker computes new ones."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext

from reports.api.answers import answer, as_json
from reports.base.problems import ProblemError
from reports.exports.forecasts import days_record, slots_record
from reports.forecasts.computing import SLOTS_AHEAD
from reports.forecasts.queries import day_forecast, slot_forecast
from reports.forecasts.series import DAYS_AHEAD
from reports.slots.queries import has_slots
from reports.studies.models import Indicator, Study


def slots_answer(request: HttpRequest, study: Study) -> HttpResponseBase:
    """The next slots; ProblemError: 404 without slots."""
    if not has_slots(study):
        raise ProblemError(404, gettext("This study does not count presence by time slot."))
    found = slot_forecast(study, days=1)
    state = [study.pk, found.row.fingerprint, str(found.row.computed_at), str(study.market_share)]
    return answer(request, state=state, build=lambda: as_json(slots_record(found, horizons=SLOTS_AHEAD)))


def days_answer(request: HttpRequest, study: Study, indicator: Indicator | None) -> HttpResponseBase:
    """The next days; empty in studies that are too short for it."""
    found = day_forecast(study, indicator)
    state = [study.pk, indicator and indicator.pk, found.row.fingerprint, str(found.row.computed_at)]
    return answer(request, state=state, build=lambda: as_json(days_record(found, horizons=DAYS_AHEAD)))
