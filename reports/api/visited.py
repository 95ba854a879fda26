"""Visited zones as the API sends them: what the files have."""

from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase

from reports.api.answers import Content, answer, as_json
from reports.base.problems import ProblemError
from reports.estimates.fingerprints import state_of
from reports.estimates.picker import window_query
from reports.estimates.queries import Window, visitor_unions
from reports.exports.findings.visited import no_visits, visited_findings
from reports.flows.queries import NoFlowsError
from reports.flows.visited import visited_items, visited_of, visited_view
from reports.studies.models import Study
from reports.studies.texts import status_reason


def visited_answer(
    request: HttpRequest, study: Study, window: Window | None, *, indicator: str
) -> HttpResponseBase:
    """Visits of an indicator, by default the first.

    Raises
    ------
    ProblemError : 422 where the study has no visited zones in the window
    WindowError : no such indicator has that name
    """
    items = visited_items(study)
    if not items:
        raise ProblemError(422, no_visits())
    query = QueryDict(window_query(study, window) if window else "", mutable=True)
    query["indicator"] = indicator
    view = visited_view(query, items, visitors=visitor_unions(study))

    def build() -> Content:
        try:
            findings = visited_findings(visited_of(view.items, view.window))
        except NoFlowsError as error:
            raise ProblemError(422, status_reason(error.status, study)) from error
        return as_json(findings.before | {"rows": findings.rows} | findings.after)

    return answer(request, state=[state_of([study]), view.query()], build=build)
