"""Scenarios behind share links: their question is in the query of the link."""

from typing import Any, Final

from django.http import QueryDict

from reports.accounts.access_models import ShareLink
from reports.estimates.queries import Window, WindowError
from reports.pages.scenario import answer_context, asked_answer
from reports.scenario import texts
from reports.scenario.queries import refusal
from reports.scenario.query import question_of
from reports.studies.models import Indicator

SCENARIO: Final = "scenario"  # parameter of the query of such a link


def is_scenario(query: QueryDict) -> bool:
    """Return whether a query names a scenario instead of a report."""
    return SCENARIO in query


def asked_scenario(query: QueryDict, indicator: Indicator) -> tuple[Window, str]:
    """Days of the question that a query asks, and the query of its link; WindowError if there is none."""
    if text := refusal(indicator.study, indicator):
        raise WindowError(text)
    question = question_of(query, study=indicator.study)
    return Window(1, question.days), f"{SCENARIO}=on&{question.query}"


def shared_scenario(link: ShareLink) -> dict[str, Any]:
    """Return the context of a shared scenario; a long computation is requested in the name of its maker."""
    indicator = link.indicator
    question = question_of(QueryDict(link.query), study=indicator.study)
    found, row = asked_answer(question, indicator, by=link.created_by)
    context = {
        "study": indicator.study,
        "indicator": indicator,
        "link": link,
        "question_title": texts.title(question),
    }
    if found is None:
        return context | {
            "file_state": row.state if row else "waiting",
            "file_stage": row.stage if row else 0,
        }
    return context | answer_context(question, found)
