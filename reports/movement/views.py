"""Arrivals, departures and returns: totals of every day, and one figure per category."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from reports.accounts.access import readers_only
from reports.base import formats
from reports.estimates.fingerprints import kept
from reports.estimates.options import MAX_LINES, asked_categories
from reports.estimates.page import indicator_page
from reports.estimates.queries import WindowError
from reports.movement import charts as charts_movement
from reports.movement import texts
from reports.movement.figures import OF_A_DAY, Movement, Show, Unit
from reports.movement.queries import NoMovementError, consistent, movement
from reports.movement.query import Asked, asked_of, counted_window
from reports.privacy.statement.document import protection_of
from reports.studies.models import Indicator
from reports.studies.queries import current_plan

MAX_ROWS = 12  # that differ, in the list on top
MAX_CELLS = 1000  # of the table; with more categories and days it has those of the chart only


@require_safe
@readers_only
def movements(request: HttpRequest, slug: str, indicator_slug: str) -> HttpResponse:
    """Totals, the chosen figure as chart and table, and what it means."""
    found, context = indicator_page(request, slug, indicator_slug, is_below=True)
    status, asked = 200, Asked()
    try:
        asked = asked_of(request.GET, indicator=found)
    except WindowError as error:
        context["problem"] = str(error)
        status = 400
    context["protection"] = protection_of(current_plan(found.study), found.slug)

    def figures() -> str:
        result = movement(found, **asked)
        if all(day.coverage.visitors is None for day in result.totals):
            return ""
        if request.GET.get("values") != "unbiased":
            result = consistent(result)
        return render_to_string("movement/_figures.html", context | _context(request.GET, found, result))

    try:
        context["figures"] = kept(found.study, "movement", found.pk, request.GET.urlencode(), make=figures)
    except NoMovementError as error:
        context["refusal"] = str(error)
    return render(request, "movement/movement.html", context, status=status)


def _context(query: QueryDict, indicator: Indicator, found: Movement) -> dict[str, Any]:
    study = indicator.study
    shown = _shown(query, found)
    n_cells = len(found.points) * len(indicator.categories)
    codes = range(len(indicator.categories)) if n_cells <= MAX_CELLS else shown
    rows = [_row(found, code) for code in codes] if found.points else []
    show = found.show
    cohort_date = study.date_of(found.cohort) if found.cohort else None
    differences = found.findings.differences if found.findings else ()
    is_unbiased = query.get("values") == "unbiased"
    return {
        "found": found,
        "mean_days": texts.value_text(found.key.mean_days, unit=Unit.DAYS),
        "has_outage": any(note.kind == "outage" for note in found.notes),
        "totals_figure": charts_movement.totals_figure(study, found.totals),
        "shows": [
            (each, texts.WORDS[each].title, _address(query, each, indicator)) for each in found.available
        ],
        "verdict": texts.verdict(found),
        "proposal_words": texts.proposal_words(found),
        "proposal_query": _proposed(found),
        "differing": [
            (texts.row_name(found, each), texts.change(found, each), texts.change_range(found, each))
            for each in differences[:MAX_ROWS]
        ],
        "is_more": len(differences) > MAX_ROWS,
        "is_chosen": bool(differences) or "category" in query,
        "is_unbiased": is_unbiased,
        "other_values": _with(query, values="consistent" if is_unbiased else "unbiased"),
        "words": texts.WORDS[show] if show else None,
        "interval_words": texts.interval_words(found),
        "nothing": texts.reason_for_nothing(indicator),
        "less": texts.reason_for_less(indicator),
        "summary": texts.summary(found, indicator=indicator),
        "figure": charts_movement.movement_figure(found, study=study, shown=shown),
        "columns": _columns(found),
        "rows": rows,
        "is_cut": len(codes) < len(indicator.categories),
        "shown": shown,
        "max_lines": MAX_LINES,
        "is_lines": show not in (Show.DAYS_PRESENT, Show.WINDOW),
        "is_of_a_day": show in OF_A_DAY,
        "days": [day.coverage.date for day in found.totals],
        "cohort_date": cohort_date,
        "kept_choices": [
            ("show", show),
            *([("values", "unbiased")] if is_unbiased else []),
            *([("day", cohort_date.isoformat())] if cohort_date else []),
        ],
        "window_dates": [study.date_of(day) for day in (found.window.first_day, found.window.last_day)]
        if found.window
        else None,
        "is_scaled": study.market_share != 1,
    }


def _columns(found: Movement) -> list[dict[str, Any]]:
    """Heads of the table's columns, with the total of each."""
    return [
        {
            "name": _head(found, place),
            "is_exact": point.is_exact,
            "status": point.status if point.low is None else "ok",
            "total": texts.total_text(point, unit=found.unit),
        }
        for place, point in enumerate(found.points)
    ]


def _head(found: Movement, place: int) -> str:
    """Return the subject of a column."""
    if found.show in (Show.DAYS_PRESENT, Show.WINDOW):
        return charts_movement.point_name(found, place)
    return formats.short_day(found.points[place].date)


def _row(found: Movement, code: int) -> dict[str, Any]:
    estimates = [point.estimates[code] for point in found.points]
    cells = []
    for place, estimate in enumerate(estimates):
        text, interval = texts.derived_text(estimate, unit=found.unit)
        values = {"status": estimate.status, "text": text, "interval": interval or text}
        cells.append({"head": _head(found, place), **values})
    return {"category": estimates[0].shown_category, "cells": cells}


def _shown(query: QueryDict, found: Movement) -> list[int]:
    """Codes of the categories to draw: those asked for, else the largest."""
    n_categories = len(found.points[0].estimates) if found.points else 0
    chosen = asked_categories(query, n_categories=n_categories)
    differences = found.findings.differences if found.findings else ()
    differing = list(dict.fromkeys(each.code for each in differences))
    return chosen[:MAX_LINES] or sorted(differing[:5]) or charts_movement.largest_categories(found)


def _proposed(found: Movement) -> str:
    """Part of an address that shows the proposed days; empty where they would not tell."""
    proposal = found.findings.proposal if found.findings else None
    if proposal is None or not proposal.tells:
        return ""
    days = [found.report.study.date_of(day).isoformat() for day in proposal.window]
    return urlencode({"show": Show.WINDOW.value, "from": days[0], "to": days[1]})


def _with(query: QueryDict, **changes: str) -> str:
    changed = query.copy()
    for name, value in changes.items():
        changed[name] = value
    return changed.urlencode()


def _address(query: QueryDict, show: Show, indicator: Indicator) -> str:
    """The query with another figure; its days stay where the figure can have them."""
    changed = query.copy()
    changed["show"] = show
    if show == Show.WINDOW and counted_window(query, indicator) is None:
        for name in ("from", "to"):
            changed.pop(name, None)
    return changed.urlencode()
