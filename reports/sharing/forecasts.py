"""Forecasts behind share links: the query of the link names what is forecast."""

from typing import Any

from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext

from reports.accounts.access_models import ShareLink
from reports.estimates.queries import Window, WindowError
from reports.forecasts.actions import has_days_forecast
from reports.pages.forecast import days_context, slots_context
from reports.slots.queries import has_slots
from reports.studies.models import Indicator

FORECAST = ShareLink.FORECAST


def is_forecast(query: QueryDict) -> bool:
    """Return whether a query names a forecast instead of a report."""
    return FORECAST in query


def asked_forecast(query: QueryDict, indicator: Indicator) -> tuple[Window, str]:
    """All days of the study, and the query of the link; WindowError if there is no such forecast."""
    study, kind = indicator.study, query[FORECAST]
    is_there = has_slots(study) if kind == ShareLink.SLOTS else has_days_forecast(study)
    if not is_there or kind not in ShareLink.FORECASTS:
        raise WindowError(gettext("This forecast is not available for this study."))
    asked = QueryDict(mutable=True)
    asked[FORECAST] = kind
    for name in ("zone", "category"):
        if name in query:
            asked[name] = str(query[name])
    return Window(1, study.days), asked.urlencode()


def forecast_address(query: QueryDict, indicator: Indicator) -> str:
    """Address of the page that a link with this query shows, for readers of the study."""
    slug, kind = indicator.study.slug, query[FORECAST]
    asked = query.copy()
    asked.pop(FORECAST)
    if kind == ShareLink.CATEGORY:
        address = reverse("reports:forecast_indicator", args=[slug, indicator.slug])
    else:
        page = "presence_forecast" if kind == ShareLink.SLOTS else "forecast"
        address = reverse(f"reports:{page}", args=[slug])
    return f"{address}?{asked.urlencode()}"


def shared_forecast(link: ShareLink) -> dict[str, Any]:
    """Return the context of a shared forecast."""
    query, study = QueryDict(link.query), link.indicator.study
    if query[FORECAST] == ShareLink.SLOTS:
        context = slots_context(study, query.get("zone", ""))
        context["crowded"] = []
    else:
        context = days_context(study, link.report, query.get("category", ""))
    return context | {"link": link, "is_shared": True}
