"""The list of studies, and the page of one."""

from typing import Any

from django.db.models import prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from ldp.geo.location import LocationSpec
from reports.accounts.access import (
    account,
    any_study_or_404,
    readable,
    readable_events,
    readers_only,
    saved_views_of,
)
from reports.boards.contents import chart_notes, shown_tiles, study_tiles
from reports.boards.queries import boards_of
from reports.boards.tiles import Kind
from reports.estimates import charts
from reports.estimates.coverage import coverage_of, study_overviews
from reports.estimates.derived import key_figures
from reports.estimates.fingerprints import kept
from reports.estimates.locations import check_mapped
from reports.estimates.noise import has_totals, noisy_window
from reports.estimates.options import ReportOptions
from reports.estimates.page import compared_indicators, weekdays, widest_indicator, window_page
from reports.estimates.picker import kept_days, requested_window
from reports.estimates.queries import Window, WindowError, shown_visitors, visitor_unions
from reports.estimates.texts import key_facts
from reports.flows.pairs import place_pairs
from reports.maps.base_layers import state_of_layers
from reports.pages.events import events_study
from reports.privacy.statement.document import certified
from reports.slots.queries import has_slots
from reports.studies import policies
from reports.studies import texts as studies_texts
from reports.studies.models import Area, Indicator, Study
from reports.studies.policies import Role
from reports.studies.queries import current_plan
from reports.studies.texts import crumbs_to


@require_safe
@readers_only
def studies(request: HttpRequest) -> HttpResponse:
    """The studies that are open to the reader, one line each."""
    context = {
        "rows": study_overviews(readable(request)),
        "of_events": readable_events(request).order_by("-first_day", "slug"),
        "saved_views": saved_views_of(account(request)),
    }
    return render(request, "estimates/studies.html", context)


@require_safe
@readers_only
@gzip_page  # a map of thousands of zones is a megabyte
def study(request: HttpRequest, slug: str) -> HttpResponse:
    """Subject, place, days, visitor rule, protection, visitors per day and indicators of a study."""
    found = any_study_or_404(request, slug)
    if found.of_events:
        return events_study(request, found)
    plan = current_plan(found)
    spec, certificate = certified(plan)
    visitors = visitor_unions(found)
    prefetch_related_objects([found], "indicators")
    indicators = list(found.indicators.all())
    has_data, status = has_totals(found, visitors), 200
    try:
        window = requested_window(request.GET, indicator=widest_indicator(indicators), visitors=visitors)
    except WindowError:
        window, status = Window(1, found.days), 400
    comparable = compared_indicators(indicators, spec) if found.days > 1 else []
    has_zones = any(each.kind == Kind.MAP for each in study_tiles(indicators))
    context = {
        "study": found,
        "area": Area.objects.filter(study=found).first(),
        "plan": plan,
        "spec": spec,
        "certificate": certificate,
        "indicators": indicators,
        "has_maps": has_data and has_zones,
        **(_places(found, spec.location, window) if has_data and not has_zones else {}),
        "comparable": comparable,
        "compared": widest_indicator(comparable) if comparable else None,
        "boards": boards_of(found, reader=account(request)),
        "visitor_rule": studies_texts.visitor_rule(found),
        "has_slots": has_slots(found),
        "has_joints": any(spec.is_table(index) for index in range(spec.d)),
        "has_flows": any(each.parts or each.moves for each in spec.indicators) and bool(place_pairs(found)),
        "has_visited": any(each.moves and each.moves.items != "moves" for each in spec.indicators),
        "has_data": has_data,
        "coverage": coverage_of(found, visitors=visitors, notes=found.day_notes.all()),
        "kept_days": kept_days(request.GET, found),
        "weekdays": weekdays(),
        "may_note": bool(policies.roles_of(request.user) & {Role.ADMINISTRATOR, Role.OPERATOR}),
        "n_windows": found.days * (found.days + 1) // 2,
        "crumbs": crumbs_to(),
    }
    context |= window_page(widest_indicator(indicators), window, visitors=visitors, options=ReportOptions())
    asked = ("study", window, state_of_layers(found))
    context["figures"] = kept(found, *asked, make=lambda: _figures(found, indicators, window, context))
    return render(request, "estimates/study.html", context, status=status)


def _figures(study: Study, indicators: list[Indicator], window: Window, page: dict[str, Any]) -> str:
    """Key figures, visitors by day and tiles, the same for all readers of the page."""
    visitors = visitor_unions(study)
    days = coverage_of(study, visitors=visitors, notes=study.day_notes.all()).days
    shown_days = days[window.first_day - 1 : window.last_day]
    figures = key_figures(study, visitors=visitors, window=window)
    has_data = has_totals(study, visitors)
    tiles = shown_tiles(indicators, study_tiles(indicators), window, visitors=visitors) if has_data else []
    context = page | {
        "has_data": has_data,
        "n_visitors": shown_visitors(study, int(visitors[window.first_day, window.last_day])),
        "noisy_visitors": noisy_window(study, visitors, **window._asdict()),
        "shown_days": shown_days,
        "figure": charts.visitors_figure(study, shown_days),
        "figures": figures,
        "key_facts": key_facts(figures),
        "tiles": tiles,
        "chart_notes": chart_notes(tiles),
    }
    return render_to_string("estimates/_study_figures.html", context)


def _places(study: Study, spec: LocationSpec | None, window: Window) -> dict[str, Any]:
    """Tell the page to fetch the maps of places, or why the window has none; nothing without a spec."""
    if spec is None:
        return {}
    try:
        check_mapped(window, study, spec)
    except WindowError as error:
        return {"has_places": True, "no_places": str(error)}
    return {"has_places": True}
