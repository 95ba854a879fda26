"""Flows as the API sends them: what the files have."""

from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase

from reports.api.answers import Content, answer, as_json
from reports.base.problems import ProblemError
from reports.crosstab.queries import NoCrosstabError
from reports.estimates.fingerprints import state_of
from reports.estimates.picker import window_query
from reports.estimates.queries import Window, visitor_unions
from reports.exports.findings.flows import flow_findings, no_pairs
from reports.flows.pairs import place_pairs
from reports.flows.queries import NoFlowsError, flows_of
from reports.flows.query import flow_view
from reports.studies.models import Study
from reports.studies.texts import status_reason


def flows_answer(
    request: HttpRequest, study: Study, window: Window | None, *, indicator: str
) -> HttpResponseBase:
    """Flows of a pair of places, by default the first.

    Raises
    ------
    ProblemError : 422 where the study has no flows in the window
    WindowError : no pair of places has that name
    """
    pairs = place_pairs(study)
    if not pairs:
        raise ProblemError(422, no_pairs())
    query = QueryDict(window_query(study, window) if window else "", mutable=True)
    query["indicator"] = indicator
    view = flow_view(query, pairs, visitors=visitor_unions(study))

    def build() -> Content:
        try:
            findings = flow_findings(flows_of(view.pair, view.window))
        except NoFlowsError as error:
            raise ProblemError(422, status_reason(error.status, study)) from error
        except NoCrosstabError as error:
            raise ProblemError(422, str(error)) from error
        return as_json(findings.before | {"rows": findings.rows} | findings.after)

    return answer(request, state=[state_of([study]), view.query()], build=build)
