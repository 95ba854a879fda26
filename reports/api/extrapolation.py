"""Totals of the population as the API answers them."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from reports.api.answers import Content, answer, as_json
from reports.base.problems import ProblemError
from reports.estimates.fingerprints import state_of
from reports.estimates.queries import Window
from reports.exports.findings.extrapolation import extrapolation_rows
from reports.extrapolation.queries import NoSharesError, extrapolations
from reports.extrapolation.texts import total_sentence
from reports.studies.models import Indicator


def extrapolation_answer(request: HttpRequest, indicator: Indicator, window: Window) -> HttpResponseBase:
    """Totals of a window and of its days.

    ProblemError : 422 where the study has no market shares for the categories of the indicator
    """

    def build() -> Content:
        try:
            whole, days = extrapolations(indicator, window)
        except NoSharesError as error:
            raise ProblemError(422, str(error)) from error
        return as_json({"sentence": total_sentence(whole), "rows": extrapolation_rows([whole, *days])})

    state = [state_of([indicator.study]), indicator.pk, window, "extrapolation"]
    return answer(request, state=state, build=build)
