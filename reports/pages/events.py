"""Pages of a study of events: figures by period, each a sum of the counts of its days."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render

from ldp.estimation.series.levels import YEAR_DAYS
from reports.accounts.access import account
from reports.base import formats
from reports.boards.queries import boards_of
from reports.estimates.options import (
    MAX_LINES,
    DaysOptions,
    ReportOptions,
    asked_categories,
    ordered,
    shown_categories,
)
from reports.events.charts import counts_figure, shares_figure
from reports.events.periods import Period, PeriodKind
from reports.events.queries import (
    PERIODS_SHOWN,
    PeriodCount,
    PeriodReport,
    asked_period,
    known_periods,
    period_counts,
    period_reports,
)
from reports.events.texts import period_switches, shares_words
from reports.exports.events import WRITERS
from reports.exports.forecasts import WRITERS as FORECAST_WRITERS
from reports.forecasts import texts as forecast_texts
from reports.forecasts.queries import EventForecast, event_forecast
from reports.pages.days import chosen_categories
from reports.privacy.statement.document import certified, protection_of
from reports.studies.models import Area, Indicator, Study
from reports.studies.queries import current_plan
from reports.studies.texts import answered_events_words, crumbs_to

CELLS_SHOWN: Final = 1500  # of a table
LEAST_SHOWN: Final = 7
Shown = TypeVar("Shown", PeriodCount, Period)


def events_study(request: HttpRequest, study: Study) -> HttpResponse:
    """Number of events in each period, the indicators, and the protection of answers."""
    indicators = list(study.indicators.all())
    kind = asked_period(request.GET)
    page = _page(period_counts(study, kind), request.GET, most=PERIODS_SHOWN)
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
        "switches": period_switches(kind),
        "kind": kind,
        "boards": boards_of(study, reader=account(request)),
        "crumbs": crumbs_to(),
    }
    return render(request, "events/study.html", context)


def events_indicator(request: HttpRequest, indicator: Indicator, context: dict[str, Any]) -> HttpResponse:
    """Estimates of each category in each period."""
    return render(request, "events/indicator.html", context | indicator_context(indicator, request.GET))


def indicator_context(indicator: Indicator, query: QueryDict) -> dict[str, Any]:
    """Return the contents of the page of an indicator and its share links: periods, forecast, protection."""
    kind = asked_period(query)
    most = max(min(CELLS_SHOWN // len(indicator.categories), PERIODS_SHOWN), LEAST_SHOWN)
    page = _page(known_periods(indicator.study, kind), query, most=most)
    periods = period_reports(indicator, list(page))
    asked = asked_categories(query, n_categories=len(indicator.categories))
    reports = [each.report for each in periods]
    shown = shown_categories(asked, reports=reports, options=DaysOptions(form="lines")) if reports else []
    plan = current_plan(indicator.study)
    spec, certificate = certified(plan)
    return {
        "study": indicator.study,
        "spec": spec,
        "certificate": certificate,
        "protection": protection_of(plan, indicator.slug),
        "answered_words": answered_events_words(spec.max_events) if spec.max_events else "",
        "indicator": indicator,
        "kind": kind,
        "kept": [("period", kind)],
        "share_query": shared_query(query),
        "page": page,
        "reports": periods,
        "rows": _rows(periods),
        "switches": period_switches(kind, kept=chosen_categories(query)),
        "figure": shares_figure(periods, shown=shown) if periods else None,
        "shown": shown,
        "shares_words": shares_words(),
        "max_lines": MAX_LINES,
        "shown_names": [indicator.shown_categories[code] for code in shown],
        "formats": list(WRITERS),
        "forecast": _forecast(event_forecast(indicator, kind), kind=kind),
    }


def shared_query(query: QueryDict) -> str:
    """Part of an address that a share link keeps: kind of period, and the categories that were chosen."""
    return "&".join(filter(None, (f"period={asked_period(query)}", chosen_categories(query))))


def _forecast(found: EventForecast, *, kind: PeriodKind) -> dict[str, Any]:
    """Forecast of the next period, in words."""
    return {
        "found": found,
        "is_on_its_way": found.row.pk is not None and found.row.is_on_its_way,
        "words": forecast_texts.event_forecast_words(found),
        "why_not": forecast_texts.no_event_forecast(found),
        "year_days": YEAR_DAYS,
        "method": forecast_texts.method_words(found.method) if found.rows else "",
        "judged": forecast_texts.event_backtest_words(found, kind=kind),
        "formats": list(FORECAST_WRITERS),
        "has_seasons": found.method == "level, weekday and year",
        "rows": [
            (
                *forecast_texts.event_cells(each),
                formats.number(max(each.weekday_mean, 0.0)),
                forecast_texts.NONE if each.before is None else formats.number(max(each.before, 0.0)),
            )
            for each in found.rows
        ],
    }


def _page(periods: Sequence[Shown], query: QueryDict, *, most: int) -> Page[Shown]:
    """Return some of the periods in their order: the last ones, and on further pages earlier ones."""
    page = Paginator(periods[::-1], most).get_page(query.get("page"))
    page.object_list = page.object_list[::-1]
    return page


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
