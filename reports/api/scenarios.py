"""Scenarios as the API sends them; what takes long is computed by a worker while a program asks again."""

from collections.abc import Mapping

from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.utils.translation import gettext

from reports.api.answers import Content, answer, as_json
from reports.api.auth import reader_of
from reports.base.problems import ProblemError
from reports.estimates.fingerprints import state_of
from reports.exports.findings.scenarios import scenario_record
from reports.exports.models import ExportFile
from reports.pages.scenario import asked_answer
from reports.scenario.queries import refusal
from reports.scenario.query import question_of
from reports.studies.models import Indicator, Study


def scenario_answer(
    request: HttpRequest, study: Study, indicator: Indicator | None, *, asked: Mapping[str, str]
) -> HttpResponseBase:
    """The answer to a question about days.

    Raises
    ------
    ProblemError : 422 without such scenarios; 503 while a worker computes the answer
    WindowError : the question is none of this study
    """
    if text := refusal(study, indicator):
        raise ProblemError(422, text)
    query = QueryDict(mutable=True)
    query.update({name: text for name, text in asked.items() if name in request.GET})
    question = question_of(query, study=study)

    def build() -> Content:
        found, row = asked_answer(question, indicator, by=reader_of(request).user)
        if found is not None:
            return as_json(scenario_record(question, indicator, found))
        if row is not None and row.state == ExportFile.State.FAILED:
            raise ProblemError(503, gettext("The result could not be computed. Try again in a minute."))
        raise ProblemError(503, gettext("The result is being computed. Try again in a few seconds."))

    return answer(request, state=[state_of([study]), indicator and indicator.pk], build=build)
