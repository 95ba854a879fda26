"""Cross-tabulations and selected categories behind share links, whose query names table and question."""

from typing import Any, Final

from django.http import QueryDict
from django.urls import reverse

from reports.accounts.access_models import ShareLink
from reports.crosstab.joints import selectable_indicators
from reports.crosstab.queries import NoCrosstabError, measure
from reports.crosstab.query import View, check_selected, joint_of, view_of
from reports.estimates.picker import window_title
from reports.estimates.queries import Window, WindowError, visitor_unions
from reports.pages.crosstab import figures_context, within_links
from reports.studies.models import Indicator

CROSSTAB: Final = "crosstab"  # parameter of the query of such a link


def is_crosstab(query: QueryDict) -> bool:
    """Return whether a query names a cross-tabulation instead of a report."""
    return CROSSTAB in query


def asked_crosstab(query: QueryDict, indicator: Indicator) -> tuple[Window, str]:
    """Days of the table that a query asks for, and the query of its link; WindowError if there is none."""
    view = _view(query, indicator)
    if view.joint.is_single:  # has no table
        check_selected(view)
    try:
        measure(view.joint, view.window)
    except NoCrosstabError as error:
        raise WindowError(str(error)) from error
    return view.window, f"{CROSSTAB}=on&{view.query()}"


def crosstab_address(query: QueryDict, indicator: Indicator) -> str:
    """Address of the page that a link with this query shows, for readers of the study."""
    asked = query.copy()
    asked.pop(CROSSTAB)
    return f"{reverse('reports:crosstab', args=[indicator.study.slug])}?{asked.urlencode(safe=',')}"


def shared_crosstab(link: ShareLink) -> dict[str, Any]:
    """Return the context of a shared table and the answer to its question."""
    view = _view(QueryDict(link.query), link.indicator)
    context: dict[str, Any] = {
        "study": link.indicator.study,
        "joint": view.joint,
        "view": view,
        "window_title": window_title(link.indicator.study, view.window),
        "within_links": within_links(view),
        "link": link,
        "is_shared": True,
    }
    try:
        return context | figures_context(measure(view.joint, view.window), view)
    except NoCrosstabError as error:  # the study got presence noise since
        return context | {"state": "refused", "refusal": str(error)}


def _view(query: QueryDict, indicator: Indicator) -> View:
    study = indicator.study
    joint = joint_of(indicator.slug, selectable_indicators(study))
    return view_of(query, [joint], visitors=visitor_unions(study))
