"""Comparing: what with what is in the address, so that a link names the result."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from ldp.windows import Quantity
from reports import charts_compare, compare, wording, wording_compare
from reports.compare import Comparison, Kind, NotComparableError
from reports.models import Indicator, Study
from reports.picker import requested_window, window_query
from reports.selectors import (
    Counts,
    UnionNotAvailableError,
    Window,
    WindowError,
    has_unions,
    visitor_unions,
)
from reports.views.access import indicator_or_404, readers_only, study_or_404
from reports.views.indicator import page_context

# What an address must name before there is something to compare.
_NEEDED = {
    Kind.WINDOWS: ("from", "with_from"),
    Kind.CATEGORIES: ("from", "reference"),
    Kind.BASELINE: ("from",),
    Kind.STUDIES: ("from", "with"),
}


class AddressError(ValueError):
    """An address that names something there is not; the text is for people."""


@require_safe
@readers_only
def comparison(request: HttpRequest, slug: str, indicator_slug: str) -> HttpResponse:
    """The form of one kind of comparison, and its result or why there is none."""
    study = study_or_404(slug)
    indicators = list(study.indicators.all())
    found = indicator_or_404(indicator_slug, among=indicators)
    query = request.GET
    kind = _kind(query)
    context = page_context(study, indicators=indicators, indicator=found)
    context["crumbs"].append((found.name, reverse("reports:indicator", args=[study.slug, found.slug])))
    others = compare.comparable_indicators(found) if kind == Kind.STUDIES else []
    status = 200
    try:
        asked = _asked(query, kind, indicator=found, others=others)
    except (AddressError, WindowError) as error:
        asked = {}
        context |= {"state": "bad_address", "error": _address_error(error, found)}
        status = 400
    context |= _form(query, kind, indicator=found, others=others, asked=asked)
    if status == 200:
        context |= _answer(query, kind, indicator=found, asked=asked)
    return render(request, "reports/compare.html", context, status=status)


def _answer(
    query: QueryDict, kind: Kind, *, indicator: Indicator, asked: Mapping[str, Any]
) -> dict[str, Any]:
    if not all(query.get(name) for name in _NEEDED[kind]):
        return {"state": "ask"}
    try:
        result = _compared(kind, indicator, asked, of=_measure(query))
    except NotComparableError as error:
        return {"state": "not_comparable", "reason": wording_compare.not_comparable(error)}
    except UnionNotAvailableError:
        return {"state": "union_not_available"}
    return {"state": "result"} | result_context(result)


def _compared(kind: Kind, indicator: Indicator, asked: Mapping[str, Any], *, of: Quantity) -> Comparison:
    window: Window = asked["window"]
    if kind == Kind.WINDOWS:
        return compare.compare_windows(indicator, window, asked["with_window"], of=of)
    if kind == Kind.CATEGORIES:
        return compare.compare_categories(
            indicator, window, reference=asked["reference"], category=asked["category"], of=of
        )
    if kind == Kind.BASELINE:
        return compare.compare_baseline(indicator, window.first_day, baseline=asked["baseline"], of=of)
    return compare.compare_studies(
        indicator, window, other=asked["other"], other_window=asked["with_window"], of=of
    )


def result_context(result: Comparison) -> dict[str, Any]:
    """What the page says of a comparison."""
    return {
        "comparison": result,
        "figure": charts_compare.comparison_figure(result),
        "summary": wording_compare.summary(result),
        "value_title": wording_compare.value_title(result),
        "reference_title": wording_compare.reference_title(result),
        "window_words": wording.window_title(result.report.first_date, result.report.last_date),
        "correction": wording_compare.correction(result),
        "error_words": wording_compare.error_words(result),
        "baseline_days": _dates(result, result.baseline),
        "left_out_days": _dates(result, result.left_out),
    }


def _dates(result: Comparison, days: tuple[int, ...]) -> str:
    return wording_compare.day_list([result.report.study.date_of(day) for day in days])


# --- the address ------------------------------------------------------------------------------


def _asked(query: QueryDict, kind: Kind, *, indicator: Indicator, others: list[Indicator]) -> dict[str, Any]:
    """What an address names, checked; only windows have a default.

    Raises
    ------
    AddressError, WindowError : it names something that there is not
    """
    visitors = visitor_unions(indicator.study)
    asked: dict[str, Any] = {"window": requested_window(query, indicator=indicator, visitors=visitors)}
    if kind == Kind.WINDOWS:
        asked["with_window"] = _with_window(query, indicator, visitors=visitors)
    elif kind == Kind.CATEGORIES:
        n = len(indicator.categories)
        asked["category"] = _number(query.get("category"), below=n) if query.get("category") else None
        asked["reference"] = _number(query.get("reference") or "0", below=n)
    elif kind == Kind.BASELINE:
        day = asked["window"].first_day
        if query.get("from") and asked["window"].days > 1:
            raise AddressError(gettext("Only one day can be compared with a baseline."))
        days = [_number(text, below=indicator.study.days + 1) for text in query.getlist("day")]
        asked |= {"window": Window(day, day), "baseline": days or None}
    elif others or query.get("with"):
        asked["other"] = _other(query, others)
        unions = visitor_unions(asked["other"].study)
        asked["with_window"] = _with_window(query, asked["other"], visitors=unions)
    return asked


def _with_window(query: QueryDict, indicator: Indicator, *, visitors: Counts) -> Window:
    words = {"from": query.get("with_from", ""), "to": query.get("with_to", "")}
    return requested_window(QueryDict(urlencode(words)), indicator=indicator, visitors=visitors)


def _other(query: QueryDict, others: list[Indicator]) -> Indicator:
    text = query.get("with", "")
    for other in others:
        if not text or text == _name(other):
            return other
    raise AddressError(
        gettext("There is no other indicator %(name)s with the same categories.") % {"name": text[:80]}
    )


def _number(text: str | None, *, below: int) -> int:
    if text is None or not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) < below):
        raise AddressError(
            gettext("A number in the address must be from 0 to %(largest)d, not %(text)s.")
            % {"largest": below - 1, "text": (text or "")[:40]}
        )
    return int(text)


def _kind(query: QueryDict) -> Kind:
    """What is compared; windows if the address does not say, or names something else."""
    text = query.get("kind", "")
    return Kind(text) if text in list(Kind) else Kind.WINDOWS


def _measure(query: QueryDict) -> Quantity:
    return "visitors" if query.get("measure") == "visitors" else "frequency"


def _address_error(error: ValueError, indicator: Indicator) -> str:
    if isinstance(error, AddressError):
        return str(error)
    return gettext("The study has the days from %(first)s to %(last)s; the address names others.") % {
        "first": wording.day_title(indicator.study.first_day),
        "last": wording.day_title(indicator.study.last_day),
    }


def _name(indicator: Indicator) -> str:
    return f"{indicator.study.slug}/{indicator.slug}"


# --- the form ---------------------------------------------------------------------------------


def _form(
    query: QueryDict,
    kind: Kind,
    *,
    indicator: Indicator,
    others: list[Indicator],
    asked: Mapping[str, Any],
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
        "measure": _measure(query),
        "days": [study.date_of(day) for day in range(1, study.days + 1)],
        "unions": has_unions(indicator),
        "chosen": _ends(study, window),
        "with_days": [with_study.date_of(day) for day in range(1, with_study.days + 1)],
        "with_unions": has_unions(other or indicator),
        "with_chosen": _ends(with_study, with_window),
        "category": asked.get("category"),
        "reference": asked.get("reference", 0),
        "baseline": asked.get("baseline") or [],
        "others": [(_name(each), f"{each.study.name}: {each.name}") for each in others],
        "other": _name(other) if other else "",
        "query": kept,
    }


def _ends(study: Study, window: Window | None) -> dict[str, Any]:
    if window is None:
        return {}
    return {"first": study.date_of(window.first_day), "last": study.date_of(window.last_day)}


def _kind_labels() -> list[tuple[Kind, str]]:
    return [
        (Kind.WINDOWS, gettext("Two windows")),
        (Kind.CATEGORIES, gettext("Two categories")),
        (Kind.BASELINE, gettext("A day and a baseline")),
        (Kind.STUDIES, gettext("Two studies")),
    ]


def _kind_query(kind: Kind, kept: str, query: QueryDict) -> str:
    """Address of another kind of comparison, with the same days and measure."""
    words = {"kind": kind.value}
    if _measure(query) == "visitors":
        words["measure"] = "visitors"
    if kind == Kind.BASELINE and query.get("from") != (query.get("to") or query.get("from")):
        kept = ""
    return "&".join(part for part in (urlencode(words), kept) if part)
