"""The report of one indicator in one window."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from reports import charts, wording
from reports.models import Indicator, Study
from reports.picker import Picker, build_picker, requested_window, window_query
from reports.selectors import (
    Counts,
    UnionNotAvailableError,
    Window,
    WindowError,
    WindowReport,
    has_unions,
    visitor_unions,
    window_report,
)
from reports.statement import protections
from reports.views.access import indicator_or_404, readers_only, study_or_404

WIDE_INTERVAL = 0.1  # half of it, as a share: from here on a report says that it is imprecise


@require_GET
@readers_only
def indicator(request: HttpRequest, slug: str, indicator_slug: str) -> HttpResponse:
    """Chart, table, totals and privacy of one window, or which kind of nothing there is."""
    study = study_or_404(slug)
    indicators = list(study.indicators.all())
    found = indicator_or_404(indicator_slug, among=indicators)
    visitors = visitor_unions(study)
    context = page_context(study, indicators=indicators, indicator=found)
    try:
        window = requested_window(request.GET, indicator=found, visitors=visitors)
    except WindowError as error:
        context |= {"state": "bad_window", "error": str(error), "picker": _picker(found, visitors, None)}
        return render(request, "reports/indicator.html", context, status=400)
    context |= window_context(found, window, visitors=visitors)
    return render(request, "reports/indicator.html", context)


def page_context(study: Study, *, indicators: list[Indicator], indicator: Indicator) -> dict[str, Any]:
    """What pages about an indicator share."""
    return {
        "study": study,
        "indicators": indicators,
        "indicator": indicator,
        "crumbs": [
            (gettext("Studies"), reverse("reports:studies")),
            (study.name, reverse("reports:study", args=[study.slug])),
        ],
    }


def window_context(indicator: Indicator, window: Window, *, visitors: Counts) -> dict[str, Any]:
    """What the page of one window shows."""
    study = indicator.study
    context = {
        "picker": _picker(indicator, visitors, window),
        "first": study.date_of(window.first_day),
        "last": study.date_of(window.last_day),
        "window_title": wording.window_title(study.date_of(window.first_day), study.date_of(window.last_day)),
        "query": window_query(study, window),
    }
    if not visitors[1, study.days]:
        return context | {"state": "no_data"}
    try:
        report = window_report(indicator, window)
    except UnionNotAvailableError:
        return context | {"state": "union_not_available"}
    return context | {"state": _state(report), "report": report} | _report_context(report)


def _report_context(report: WindowReport) -> dict[str, Any]:
    half_width = typical_half_width(report)
    return {
        "protection": protections(report.plan)[report.indicator.slug],
        "figure": charts.report_figure(report),
        "summary": wording.report_summary(report),
        "half_width": half_width,
        "has_longer_window": report.window.days < report.study.days and has_unions(report.indicator),
        "is_wide": half_width is not None and half_width > WIDE_INTERVAL,
        "is_scaled": report.study.market_share != 1,
    }


def typical_half_width(report: WindowReport) -> float | None:
    """Mean half width of the intervals, as a share; None where nobody answered."""
    halves = [
        (estimate.ci_high - estimate.ci_low) / 2
        for estimate in report.estimates
        if estimate.ci_low is not None and estimate.ci_high is not None
    ]
    return sum(halves) / len(halves) if halves else None


def _state(report: WindowReport) -> str:
    if report.n_visitors == 0:
        return "empty_window"
    return "report" if report.n_reports else "no_answers"


def _picker(indicator: Indicator, visitors: Counts, window: Window | None) -> Picker:
    return build_picker(indicator, visitors=visitors, current=window)
