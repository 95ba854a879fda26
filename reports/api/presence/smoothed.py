"""Smoothed shares of a stream as the API sends them."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from reports.api.answers import answer, as_json
from reports.estimates.fingerprints import state_of
from reports.exports.smoothed import smoothed_record
from reports.studies.models import Indicator


def smoothed_answer(request: HttpRequest, indicator: Indicator) -> HttpResponseBase:
    """Smoothed shares of all days; no rows for an indicator that is no stream."""
    return answer(
        request,
        state=[state_of([indicator.study]), indicator.slug],
        build=lambda: as_json(smoothed_record(indicator)),
    )
