"""Pages of a study of events: figures by period, each a sum of the counts of its days."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext, ngettext

from ldp.estimation.series.levels import WEEKDAY_DAYS, YEAR_DAYS
from reports.base import formats
from reports.estimates.options import (
    MAX_LINES,
    DaysOptions,
    ReportOptions,
    Switch,
    asked_categories,
    ordered,
    shown_categories,
)
from reports.events.charts import counts_figure, shares_figure
from reports.events.periods import PERIODS, Period, PeriodKind
from reports.events.queries import (
    DEFAULT,
    PeriodCount,
    PeriodReport,
    known_periods,
    period_counts,
    period_reports,
)
from reports.events.texts import period_label
from reports.exports.events import WRITERS
from reports.exports.forecasts import WRITERS as FORECAST_WRITERS
from reports.forecasts import texts as forecast_texts
from reports.forecasts.actions import has_days_forecast
from reports.forecasts.queries import EventForecast, Expected, Judged, event_forecast
from reports.pages.days import chosen_categories
from reports.privacy.statement.document import certified, protection_of
from reports.studies.models import Area, Indicator, Study
from reports.studies.queries import current_plan
from reports.studies.texts import answered_events_words, crumbs_to

PERIODS_SHOWN: Final = 53  # of a page; the weeks of a year
CELLS_SHOWN: Final = 1500  # of a table
LEAST_SHOWN: Final = 7
Shown = TypeVar("Shown", PeriodCount, Period)


def asked_period(query: QueryDict) -> PeriodKind:
    """Kind of period that an address names; months without a valid one."""
    return next((kind for kind in PERIODS if kind == query.get("period")), DEFAULT)


def events_study(request: HttpRequest, study: Study) -> HttpResponse:
    """Number of events in each period, the indicators, and the protection of answers."""
    indicators = list(study.indicators.all())
    kind = asked_period(request.GET)
    page = _page(period_counts(study, kind), request, most=PERIODS_SHOWN)
    plan = current_plan(study)
    spec, certificate = certified(plan)
    context = {
        "study": study,
        "indicators": indicators,
        "area": Area.objects.filter(study=study).first(),
        "plan": plan,
        "spec": spec,
        "certificate": certificate,
        "page": page,
        "figure": counts_figure(list(page)) if page else None,
        "switches": _periods(kind, kept=""),
        "kind": kind,
        "crumbs": crumbs_to(),
    }
    return render(request, "events/study.html", context)


def events_indicator(request: HttpRequest, indicator: Indicator, context: dict[str, Any]) -> HttpResponse:
    """Estimates of each category in each period."""
    kind = asked_period(request.GET)
    most = max(min(CELLS_SHOWN // len(indicator.categories), PERIODS_SHOWN), LEAST_SHOWN)
    page = _page(known_periods(indicator.study, kind), request, most=most)
    periods = period_reports(indicator, list(page))
    asked = asked_categories(request.GET, n_categories=len(indicator.categories))
    reports = [each.report for each in periods]
    shown = shown_categories(asked, reports=reports, options=DaysOptions(form="lines")) if reports else []
    plan = current_plan(indicator.study)
    spec, certificate = certified(plan)
    context |= {
        "spec": spec,
        "certificate": certificate,
        "answered_words": answered_events_words(spec.max_events) if spec.max_events else "",
        "kind": kind,
        "kept": [("period", kind)],
        "page": page,
        "reports": periods,
        "rows": _rows(periods),
        "switches": _periods(kind, kept=chosen_categories(request.GET)),
        "figure": shares_figure(periods, shown=shown) if periods else None,
        "shown": shown,
        "max_lines": MAX_LINES,
        "shown_names": [indicator.shown_categories[code] for code in shown],
        "formats": list(WRITERS),
        "protection": protection_of(plan, indicator.slug),
        "forecast": _forecast(event_forecast(indicator, kind)),
    }
    return render(request, "events/indicator.html", context)


def _forecast(found: EventForecast) -> dict[str, Any]:
    """Forecast of the next period, in words."""
    return {
        "found": found,
        "is_offered": has_days_forecast(found.row.study),
        "is_on_its_way": found.row.pk is not None and found.row.is_on_its_way,
        "least_days": WEEKDAY_DAYS,
        "year_days": YEAR_DAYS,
        "method": forecast_texts.method_words(found.method) if found.rows else "",
        "judged": _judged_words(found.judged),
        "formats": list(FORECAST_WRITERS),
        "has_seasons": found.method == "level, weekday and year",
        "rows": [
            (
                each.shown_name or gettext("All events"),
                forecast_texts.expected_text(Expected(value=each.expected.value, ends=(None,))),
                *(forecast_texts.range_text(ends) for ends in each.expected.ends),
                formats.number(max(each.weekday_mean, 0.0)),
                forecast_texts.NONE if each.before is None else formats.number(max(each.before, 0.0)),
            )
            for each in found.rows
        ],
    }


def _judged_words(judged: Judged | None) -> str:
    """Say how far forecasts of the next day were off; empty without a backtest."""
    if judged is None:
        return ""
    model, last, _week = (formats.number(each or 0.0) for each in judged.mae)
    return ngettext(
        "In a backtest of the next day on %(n)d past day, the number of all events differed from the "
        "forecast by %(model)s, and from the day before by %(last)s.",
        "In a backtest of the next day on %(n)d past days, the number of all events differed from the "
        "forecast by %(model)s on average, and from the day before by %(last)s.",
        judged.days,
    ) % {"n": judged.days, "model": model, "last": last}


def _page(periods: Sequence[Shown], request: HttpRequest, *, most: int) -> Page[Shown]:
    """Return some of the periods in their order: the last ones, and on further pages earlier ones."""
    page = Paginator(periods[::-1], most).get_page(request.GET.get("page"))
    page.object_list = page.object_list[::-1]
    return page


def _periods(kind: PeriodKind, *, kept: str) -> list[Switch]:
    """Return links to each kind of period; every address keeps `kept`."""
    links = tuple(
        (period_label(each), "&".join(filter(None, (f"period={each}", kept))), each == kind)
        for each in PERIODS
    )
    return [Switch(title=gettext("Period"), links=links)]


def _rows(periods: Sequence[PeriodReport]) -> list[tuple[Any, ...]]:
    """Return estimates of each category over the periods, the largest category of the last one first."""
    if not periods:
        return []
    order = [each.category for each in ordered(periods[-1].report, options=ReportOptions())]
    of_category = {
        estimates[0].category: estimates
        for estimates in zip(*(each.report.estimates for each in periods), strict=True)
    }
    return [of_category[category] for category in order]
