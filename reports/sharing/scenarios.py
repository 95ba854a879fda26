"""Scenarios behind share links: their question is in the query of the link."""

from typing import Any, Final

from django.http import QueryDict
from django.urls import reverse

from reports.accounts.access_models import ShareLink
from reports.estimates.queries import Window, WindowError
from reports.pages.scenario import answer_context, asked_answer
from reports.scenario import texts
from reports.scenario.queries import NoScenarioError, refusal
from reports.scenario.query import question_of
from reports.sharing.boards import address_of_board, is_board
from reports.sharing.crosstabs import crosstab_address, is_crosstab
from reports.sharing.forecasts import forecast_address, is_forecast
from reports.sharing.presence import is_presence, presence_address
from reports.studies.models import Indicator

SCENARIO: Final = "scenario"  # parameter of the query of such a link: "on", or "all" for all people


def is_scenario(query: QueryDict) -> bool:
    """Return whether a query names a scenario instead of a report."""
    return SCENARIO in query


def asked_scenario(query: QueryDict, indicator: Indicator) -> tuple[Window, str]:
    """Days of the question that a query asks, and the query of its link; WindowError if there is none."""
    of_all = query[SCENARIO] == "all"
    if text := refusal(indicator.study, None if of_all else indicator):
        raise WindowError(text)
    question = question_of(query, study=indicator.study)
    return Window(1, question.days), (ShareLink.OF_ALL if of_all else f"{SCENARIO}=on&") + question.query


def address_of(query: str, indicator: Indicator) -> str:
    """Address of the page that a link with this query shows, for readers of the study."""
    found, slugs = QueryDict(query, mutable=True), [indicator.study.slug, indicator.slug]
    if is_presence(found):
        return presence_address(query, indicator.study)
    if is_board(found):
        return address_of_board(found, indicator.study)
    if is_crosstab(found):
        return crosstab_address(found, indicator)
    if is_forecast(found):
        return forecast_address(found, indicator)
    of_all = found.get(SCENARIO) == "all"
    page = "scenario_study" if of_all else "scenario" if is_scenario(found) else "indicator"
    found.pop(SCENARIO, None)
    return f"{reverse(f'reports:{page}', args=slugs[:1] if of_all else slugs)}?{found.urlencode(safe=',')}"


def shared_scenario(link: ShareLink) -> dict[str, Any]:
    """Return the context of a shared scenario; a long computation is requested in the name of its maker."""
    indicator, study = link.report, link.indicator.study
    question = question_of(QueryDict(link.query), study=study)
    context = {
        "study": study,
        "indicator": indicator,
        "link": link,
        "question_title": texts.title(question),
    }
    try:
        found, row = asked_answer(question, indicator, by=link.created_by)
    except NoScenarioError as error:  # since the link was made, more days were published
        return context | {"refusal": str(error)}
    if found is None:
        return context | {
            "file_state": row.state if row else "waiting",
            "file_stage": row.stage if row else 0,
        }
    return context | answer_context(question, found)
