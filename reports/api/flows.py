"""Flows and visited zones as the API sends them: what the files have."""

from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase

from reports.api.answers import Content, answer, as_json
from reports.base.problems import ProblemError
from reports.crosstab.queries import NoCrosstabError
from reports.estimates.fingerprints import state_of
from reports.estimates.picker import window_query
from reports.estimates.queries import Window
from reports.exports.errors import ExportError
from reports.exports.findings.flows import Asked
from reports.flows.queries import NoFlowsError
from reports.studies.models import Study
from reports.studies.texts import status_reason


def findings_answer(
    request: HttpRequest, study: Study, window: Window, *, indicator: str, asked: Asked
) -> HttpResponseBase:
    """Flows or visits of an indicator, by default of the first one that has some.

    Raises
    ------
    ProblemError : 422 where the study has none in the window
    WindowError : no such indicator has that name
    """
    query = QueryDict(window_query(study, window), mutable=True)
    query["indicator"] = indicator
    try:
        view, find = asked(study, query)
    except ExportError as error:
        raise ProblemError(422, str(error)) from error

    def build() -> Content:
        try:
            findings = find()
        except NoFlowsError as error:
            raise ProblemError(422, status_reason(error.status, study)) from error
        except NoCrosstabError as error:
            raise ProblemError(422, str(error)) from error
        return as_json(findings.before | {"rows": findings.rows} | findings.after)

    return answer(request, state=[state_of([study]), view.query("")], build=build)
