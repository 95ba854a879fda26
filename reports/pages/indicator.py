"""The report of one indicator in one window."""

from dataclasses import replace
from typing import Any
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from reports.accounts.access import readers_only
from reports.base.status import WIDE_INTERVAL, Status
from reports.crosstab.joints import is_selectable
from reports.crosstab.query import INDICATOR
from reports.estimates import charts
from reports.estimates import texts as estimates_texts
from reports.estimates.noise import has_totals
from reports.estimates.options import CHOICES, ReportOptions, Switch, ordered, switches
from reports.estimates.page import indicator_page, window_page
from reports.estimates.picker import build_picker, requested_window
from reports.estimates.queries import (
    Counts,
    UnionNotAvailableError,
    Window,
    WindowError,
    WindowReport,
    mean_half_width,
    visitor_unions,
    window_report,
)
from reports.flows.pairs import place_pairs
from reports.flows.visited import visited_items
from reports.maps import zones as maps
from reports.maps.views import map_context
from reports.numbers.charts import survival_figure
from reports.pages.classes import classes_context
from reports.pages.events import events_indicator
from reports.pages.extrapolation import extrapolation_context
from reports.pages.grouping import grouping_context
from reports.pages.means import means_context
from reports.pages.number import number_context
from reports.privacy.statement.document import protection_of
from reports.studies import texts as studies_texts
from reports.studies.models import Indicator
from reports.studies.queries import has_unions
from reports.studies.studyfile.hours import are_hours


@require_safe
@readers_only
@gzip_page  # a map of thousands of zones is a megabyte
def indicator(request: HttpRequest, slug: str, indicator_slug: str) -> HttpResponse:
    """Chart, table, totals and privacy of one window, or which kind of nothing there is; flows of moves."""
    found, context = indicator_page(request, slug, indicator_slug, any_units=True)
    if found.study.of_events:
        return events_indicator(request, found, context)
    if found.max_moves is not None:
        days = "".join(
            f"&{name}={quote(request.GET[name])}" for name in ("from", "to") if name in request.GET
        )
        page = (
            "visited"
            if found.slug in {each.indicator.slug for each in visited_items(found.study)}
            else "flows"
        )
        return redirect(f"{reverse(f'reports:{page}', args=[slug])}?{INDICATOR}={found.slug}{days}")
    visitors = visitor_unions(found.study)
    options = ReportOptions.from_query(request.GET)
    context["options"] = options
    try:
        window = requested_window(request.GET, indicator=found, visitors=visitors)
    except WindowError as error:
        picker = build_picker(found, visitors=visitors, current=None, options=options)
        context |= {"state": "bad_window", "error": str(error), "picker": picker}
        return render(request, "estimates/indicator.html", context, status=400)
    context |= window_context(found, window, visitors=visitors, options=options, asked=request.GET)
    return render(request, "estimates/indicator.html", context)


def window_context(
    indicator: Indicator,
    window: Window,
    *,
    visitors: Counts,
    options: ReportOptions,
    asked: QueryDict | None = None,
) -> dict[str, Any]:
    """Contents of the page of one window; `asked` are further questions about a number."""
    zones = maps.zones_of(indicator)
    if options.view == "map" and not zones:
        options = replace(options, view="both")
    context = window_page(indicator, window, visitors=visitors, options=options)
    query = context["query"]
    context |= {"has_map": bool(zones), "table_query": options.query(query, view="table")}
    if not has_totals(indicator.study, visitors):
        return context | {"state": "no_data"}
    try:
        report = window_report(indicator, window)
    except UnionNotAvailableError:
        return context | {"state": "union_not_available"}
    context |= {"state": _state(report), "report": report}
    switches = report_switches(options, query, has_map=bool(zones))
    has_order = are_hours(indicator.categories)
    context["switches"] = [each for each in switches if not (has_order and each.title == gettext("Order"))]
    context["shortcuts"] = _shortcuts(options, query, indicator=indicator, has_map=bool(zones))
    if options.view == "map" and context["state"] == "report":
        context |= map_context(report, zones=zones, options=options)
    if report.cuts is not None and context["state"] == "report":
        context |= number_context(report, query=asked)
    if context["state"] == "report":
        context |= means_context(report) | extrapolation_context(report)
        context |= classes_context(report, options=options)
    context |= _report_context(report, options)
    grouped = grouping_context(report, options=options, query=query)
    context["switches"] += grouped.pop("switches")
    return context | grouped


def _report_context(report: WindowReport, options: ReportOptions) -> dict[str, Any]:
    half_width, spec = mean_half_width(report.estimates), report.plan.parsed
    index = spec.index(report.indicator.slug)
    is_joint = spec.is_table(index)
    pairs = place_pairs(report.study) if is_joint else []
    return {
        "is_joint": is_joint,
        "is_selectable": report.noisy_visitors is None and is_selectable(spec, report.indicator),
        "is_flow": any(pair.indicator == report.indicator for pair in pairs),
        "is_number": report.cuts is not None,
        "protection": protection_of(report.plan, report.indicator.slug),
        "mechanism_words": studies_texts.plan_words(spec, [index]),
        "visitor_rule": studies_texts.visitor_rule(report.study),
        "estimates": ordered(report, options=options),
        "figure": charts.report_figure(report, options=options)
        if report.cuts is None
        else survival_figure(report, options=options),
        "sentences": (sentences := estimates_texts.report_sentences(report, options=options)),
        "summary": " ".join(sentences),
        "half_width": half_width,
        "has_longer_window": report.window.days < report.study.days and has_unions(report.indicator),
        "is_wide": half_width is not None
        and half_width > WIDE_INTERVAL
        and report.status != Status.OUTAGE,  # too few reports are not what is wrong with it
        "is_scaled": report.study.market_share != 1,
    }


def _shortcuts(
    options: ReportOptions, query: str, *, indicator: Indicator, has_map: bool
) -> list[dict[str, str]]:
    """Keys of this page, for the list of shortcuts."""
    other_order = "natural" if options.order == "sorted" else "sorted"
    other_measure = "frequency" if options.measure == "visitors" else "visitors"
    days = reverse("reports:days", args=[indicator.study.slug, indicator.slug])
    to_map = {"key": "a", "go": f"?{options.query(query, view='map')}", "text": gettext("Show the map")}
    return [
        {"key": "w", "focus": "windows", "text": gettext("Go to the date ranges of this study")},
        {"key": "m", "focus": "method", "text": gettext("Go to method and limitations")},
        {"key": "t", "go": f"?{options.query(query, view='table')}", "text": gettext("Show only the table")},
        {"key": "g", "go": f"?{options.query(query, view='chart')}", "text": gettext("Show only the chart")},
        {"key": "b", "go": f"?{options.query(query, view='both')}", "text": gettext("Show chart and table")},
        *([to_map] if has_map else []),
        {
            "key": "o",
            "go": f"?{options.query(query, order=other_order)}",
            "text": gettext("Sort by size or show in plan order"),
        },
        {
            "key": "v",
            "go": f"?{options.query(query, measure=other_measure)}",
            "text": gettext("Switch between shares and visitors"),
        },
        {"key": "d", "go": days, "text": gettext("Go to all days for this indicator")},
    ]


def report_switches(options: ReportOptions, query: str, *, has_map: bool) -> list[Switch]:
    """Links to the other ways to show the same result."""
    labels = {
        "both": gettext("Chart and table"),
        "chart": gettext("Chart"),
        "table": gettext("Table"),
        "map": gettext("Map"),
        "natural": gettext("Plan order"),
        "sorted": gettext("Largest first"),
        "frequency": gettext("Shares"),
        "visitors": gettext("Visitors"),
        **estimates_texts.values_names(),
        "estimate": gettext("Estimate"),
        "uncertainty": gettext("Uncertainty"),
        **maps.classes_names(),
    }
    titles = {
        "view": gettext("View"),
        "measure": gettext("Measure"),
        "order": gettext("Order"),
        "values": gettext("Values"),
    }
    choices = dict(CHOICES)
    if options.view == "map":
        titles |= {"layer": gettext("Colours"), "classes": gettext("Classes")}
    if not has_map:
        choices["view"] = tuple(view for view in choices["view"] if view != "map")
    return switches(options, titles=titles, labels=labels, choices=choices, kept=query)


def _state(report: WindowReport) -> str:
    if report.status == Status.SUPPRESSED or (report.status == Status.OUTAGE and not report.n_reports):
        return str(report.status)
    if report.study.presence is not None:
        return "empty_window" if report.noisy_visitors is None else "report"
    if report.n_visitors == 0:
        return "empty_window"
    return "report" if report.n_reports else "no_answers"
