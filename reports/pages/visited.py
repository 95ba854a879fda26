"""Zones that people visit on a day, and pairs of zones of one day."""

from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from reports.accounts.access import readers_only, study_or_404
from reports.estimates.page import weekdays, window_page
from reports.estimates.picker import kept_days
from reports.estimates.queries import WindowError, visitor_unions
from reports.flows import visited_texts as texts
from reports.flows.queries import NoFlowsError
from reports.flows.texts import missing_words, people_cell, share_cell
from reports.flows.visited import Visited, visited_items, visited_of, visited_view
from reports.privacy.statement.document import protection_of
from reports.studies.texts import crumbs_to, status_reason


@require_safe
@readers_only
def visited(request: HttpRequest, slug: str) -> HttpResponse:
    """Visits of the view in the address; an address that is none has the default."""
    study = study_or_404(request, slug)
    found = visited_items(study)
    context: dict[str, Any] = {
        "study": study,
        "crumbs": crumbs_to(study, kept_days(request.GET, study)),
        "all_items": found,
    }
    if not found:
        return render(request, "flows/visited.html", context | {"state": "none"})
    status = 200
    try:
        view = visited_view(request.GET, found)
    except WindowError as error:
        view, status = visited_view(QueryDict(), found), 400
        context["problem"] = str(error)
    context |= window_page(view.items.indicator, view.window, visitors=visitor_unions(study), options=view)
    context |= {"view": view, "items": view.items, "weekdays": weekdays()}
    try:
        context |= _figures(visited_of(view.items, view.window))
    except NoFlowsError as error:
        reason = status_reason(error.status, study)
        context |= {"state": "blank", "status": error.status, "reason": reason}
    return render(request, "flows/visited.html", context, status=status)


def _figures(found: Visited) -> dict[str, Any]:
    items, is_listed = found.items, found.is_listed.tolist()
    names = items.names
    return {
        "state": "figures",
        "report": found.reports[0],
        "protection": protection_of(found.reports[0].plan, items.indicator.slug),
        "is_scaled": items.indicator.study.market_share != 1,
        "list_title": texts.list_title(found),
        "list_words": texts.list_words(found),
        "people_title": texts.people_title(found),
        "share_title": texts.share_title(found),
        "unit_words": texts.unit_words(found),
        "error_words": texts.error_words(),
        "missing_words": missing_words(found),
        "rows": [
            (
                names[code],
                people_cell(found.figures[code], is_listed=is_listed[code]),
                share_cell(found.figures[code]),
            )
            for code in found.shown
        ],
        "is_short": len(found.shown) < len(found.figures),
    }
