"""Comparing: what with what is in the address, so that a link names the result."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from ldp.estimation.joint.association import Association
from reports.accounts.access import readable, readers_only
from reports.base import formats
from reports.compare import charts as charts_compare
from reports.compare import queries, texts
from reports.compare.proposals import better_windows
from reports.compare.queries import Comparison, Kind, NotComparableError, Reason, Row, Verdict
from reports.compare.query import (
    AddressError,
    address_error,
    asked_of,
    compared,
    is_complete,
    is_whole,
    kind_of,
    measure_of,
    name_of,
    with_defaults,
)
from reports.estimates.charts import Figure
from reports.estimates.noise import noisy_window
from reports.estimates.page import compared_indicators, indicator_page
from reports.estimates.picker import MAX_TRIANGLE_DAYS, window_query, window_title
from reports.estimates.queries import UnionNotAvailableError, Window, WindowError, visitor_unions
from reports.studies.labels import label_of
from reports.studies.models import Indicator, Study
from reports.studies.policies import Somebody
from reports.studies.queries import current_plan, has_unions


@require_safe
@readers_only
def comparison(request: HttpRequest, slug: str, indicator_slug: str) -> HttpResponse:
    """The form of one kind of comparison, and its result or why there is none."""
    found, context = indicator_page(request, slug, indicator_slug, is_below=True)
    query: QueryDict = request.GET
    kind = kind_of(query)
    spec = current_plan(found.study).parsed
    context["compared"] = compared_indicators(context["indicators"], spec)
    if found not in context["compared"]:  # a number
        return redirect(_means_address(query, kind, found))
    others = queries.comparable_indicators(found, among=readable(request)) if kind == Kind.STUDIES else []
    status = 200
    try:
        query = with_defaults(query, kind, found)
        context["file_query"] = query.urlencode()
        context["is_replaced"] = query is not request.GET and is_whole(request.GET, found.study)
        asked = asked_of(query, kind, indicator=found, others=others)
    except (AddressError, WindowError) as error:
        asked = {}
        context |= {"state": "bad_address", "error": address_error(error, found)}
        status = 400
    context |= _form(query, kind, indicator=found, others=others, asked=asked, reader=request.user)
    if status == 200:
        context |= _answer(query, kind, indicator=found, asked=asked)
    return render(request, "compare/compare.html", context, status=status)


def _means_address(query: QueryDict, kind: Kind, number: Indicator) -> str:
    """Address of the same comparison of a number: its report compares the means of two date ranges."""
    with suppress(WindowError):  # the report says what is wrong with the days
        query = with_defaults(query, kind, number)
    names = ("from", "to", "with_from", "with_to") if kind == Kind.WINDOWS else ("from", "to")
    days = urlencode({name: query[name] for name in names if query.get(name)})
    report = reverse("reports:indicator", args=[number.study.slug, number.slug])
    return f"{report}?{days}#means"


def _answer(
    query: QueryDict, kind: Kind, *, indicator: Indicator, asked: Mapping[str, Any]
) -> dict[str, Any]:
    if (presence := indicator.study.presence) is not None:  # in any case: say so before a form is filled in
        return {
            "state": "not_comparable",
            "reason": texts.not_comparable(NotComparableError(Reason.NOISY)),
            "total_words": _noisy_totals(indicator.study, asked, limit=presence["max_days"])
            if kind == Kind.WINDOWS
            else "",
        }
    if indicator.protect:
        reason = texts.not_comparable(NotComparableError(Reason.GROUPS))
        return {"state": "not_comparable", "reason": reason, "total_words": ""}
    if not is_complete(query, kind):
        return {"state": "ask"}
    try:
        result = compared(kind, indicator, asked, of=measure_of(query))
    except NotComparableError as error:
        return {"state": "not_comparable", "reason": texts.not_comparable(error)}
    except UnionNotAvailableError:
        return {"state": "union_not_available"}
    return {"state": "result"} | result_context(result)


def _noisy_totals(study: Study, asked: Mapping[str, Any], *, limit: int) -> str:
    visitors, sides = visitor_unions(study), (asked["window"], asked["with_window"])
    now, then = (noisy_window(study, visitors, **side._asdict()) for side in sides)
    are_closed = all(side.last_day <= study.noisy_through for side in sides)
    if now is None or then is None or sides[0] == sides[1] or not are_closed:
        return ""
    titles = " / ".join(window_title(study, side) for side in sides)
    words = f"{titles}{formats.colon()} {texts.noisy_total_words(now, then)}"
    return f"{words} {texts.counted_days(limit)}" if limit < study.days else words


def result_context(result: Comparison) -> dict[str, Any]:
    """Context of a comparison's page."""
    differing = [row for row in result.rows if row.held != Verdict.NOT_SHOWN]
    undecided = [row for row in result.rows if row.held == Verdict.NOT_SHOWN]
    better = better_windows(result)
    return {
        "comparison": result,
        "differing": differing,
        "undecided": undecided,
        "figure": _figure(result, differing),
        "undecided_figure": _figure(result, undecided),
        "better_words": texts.proposal_words(better) if better else "",
        "better_query": _two_windows(result.report.study, *better.windows, measure="frequency")
        if better and better.tells
        else "",
        "total_words": texts.total_words(result),
        "summary": texts.summary(result),
        "overall_words": texts.overall_words(result.overall),
        "test_words": texts.test_words() if isinstance(result.overall, Association) else "",
        "value_title": texts.value_title(result),
        "reference_title": texts.reference_title(result),
        "window_words": formats.window_title(result.report.first_date, result.report.last_date),
        "correction": texts.correction(result),
        "error_words": texts.error_words(result),
        "baseline_days": _dates(result, result.baseline),
        "left_out_days": _dates(result, result.left_out),
    }


def _figure(result: Comparison, rows: list[Row]) -> Figure | None:
    return charts_compare.comparison_figure(replace(result, rows=tuple(rows))) if rows else None


def _two_windows(study: Study, window: Window, reference: Window, *, measure: str) -> str:
    """Part of an address that names two windows to compare."""
    address = {"kind": Kind.WINDOWS.value, "measure": measure}
    for prefix, side in (("", window), ("with_", reference)):
        address[f"{prefix}from"] = study.date_of(side.first_day).isoformat()
        address[f"{prefix}to"] = study.date_of(side.last_day).isoformat()
    return urlencode(address)


def _dates(result: Comparison, days: tuple[int, ...]) -> str:
    return texts.day_list([result.report.study.date_of(day) for day in days])


# --- the form ---------------------------------------------------------------------------------


def _form(
    query: QueryDict,
    kind: Kind,
    *,
    indicator: Indicator,
    others: list[Indicator],
    asked: Mapping[str, Any],
    reader: Somebody,
) -> dict[str, Any]:
    """Fields with what was asked for, or what a person may want to begin with."""
    study = indicator.study
    other = asked.get("other")
    with_study = other.study if other else study
    window, with_window = asked.get("window"), asked.get("with_window")
    if kind == Kind.WINDOWS and not query.get("with_from"):
        with_window = Window(1, 1)
    kept = window_query(study, window) if window and query.get("from") else ""
    return {
        "kind": kind.value,
        "kinds": [(each.value, label, _kind_query(each, kept, query)) for each, label in _kind_labels()],
        "measure": measure_of(query),
        "days": [study.date_of(day) for day in range(1, study.days + 1)],
        "unions": has_unions(indicator),
        "chosen": _ends(study, window),
        "sides": _sides(study, window, with_window, measure=measure_of(query))
        if kind == Kind.WINDOWS
        else [],
        "with_days": [with_study.date_of(day) for day in range(1, with_study.days + 1)],
        "with_unions": has_unions(other or indicator),
        "with_chosen": _ends(with_study, with_window),
        "category": asked.get("category"),
        "reference": asked.get("reference", 0),
        "baseline": asked.get("baseline") or [],
        "others": [
            (name_of(each), f"{label_of(each.study, reader)}{formats.colon()} {each.shown_name}")
            for each in others
        ],
        "other": name_of(other) if other else "",
        "query": kept,
        "switch": _two_windows(study, window, with_window, measure=measure_of(query))
        if kind == Kind.WINDOWS and window and with_window
        else _kind_query(kind, kept, query),
    }


def _sides(
    study: Study, window: Window | None, reference: Window | None, *, measure: str
) -> list[dict[str, Any]]:
    """Links that put one day on a side of two windows, for a study with few days."""
    if study.days > MAX_TRIANGLE_DAYS or window is None or reference is None:
        return []
    days = [Window(day, day) for day in range(1, study.days + 1)]
    sides = (
        (gettext("Days to compare"), window, [(each, reference) for each in days]),
        (gettext("Compared with"), reference, [(window, each) for each in days]),
    )
    return [
        {
            "name": name,
            "days": [
                {
                    "date": study.date_of(day.first_day),
                    "is_current": day == current,
                    # No window is compared with itself.
                    "query": _two_windows(study, *both, measure=measure) if both[0] != both[1] else "",
                }
                for day, both in zip(days, pairs, strict=True)
            ],
        }
        for name, current, pairs in sides
    ]


def _ends(study: Study, window: Window | None) -> dict[str, Any]:
    if window is None:
        return {}
    return {"first": study.date_of(window.first_day), "last": study.date_of(window.last_day)}


def _kind_labels() -> list[tuple[Kind, str]]:
    return [
        (Kind.WINDOWS, gettext("Two date ranges")),
        (Kind.CATEGORIES, gettext("Two categories")),
        (Kind.BASELINE, gettext("A day and a baseline")),
        (Kind.STUDIES, gettext("Two studies")),
    ]


def _kind_query(kind: Kind, kept: str, query: QueryDict) -> str:
    """Address of another kind of comparison, with the same days and measure."""
    words = {"kind": kind.value}
    if measure_of(query) == "visitors":
        words["measure"] = "visitors"
    if kind == Kind.BASELINE and query.get("from") != (query.get("to") or query.get("from")):
        kept = ""
    return "&".join(part for part in (urlencode(words), kept) if part)
