"""Forecasts of slots and of days: what is expected, how sure, and how such forecasts did on past days."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from reports.accounts.access import readers_only, study_or_404
from reports.base import formats
from reports.estimates.page import indicator_page
from reports.estimates.picker import kept_days
from reports.exports.forecasts import WRITERS
from reports.exports.formats.choosing import format_name
from reports.forecasts import texts
from reports.forecasts.actions import LEAST_DAYS, ask_for_forecasts, has_days_forecast
from reports.forecasts.charts import Fan, fan_figure
from reports.forecasts.crowds import crowded
from reports.forecasts.models import CrowdLimit, KeptForecast
from reports.forecasts.queries import (
    DayForecast,
    DaySeries,
    Expected,
    Judged,
    SlotForecast,
    day_forecast,
    slot_forecast,
)
from reports.forecasts.texts import NONE
from reports.slots.queries import NoSlotsError, SlotZone
from reports.studies.models import Indicator, Study
from reports.studies.texts import crumbs_to

SHOWN_DAYS: Final = 2  # of published slots before the forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A time and what is expected then, in words."""

    time: str
    value: str
    inner: str
    outer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRow:
    """A row of the backtest in words; errors are of the forecast, the last value, and the week before."""

    ahead: str
    rmse: tuple[str, ...]
    mae: tuple[str, ...]
    coverage: tuple[str, ...]


@require_safe
@readers_only
def slots(request: HttpRequest, slug: str) -> HttpResponse:
    """The next slots of one zone."""
    study = study_or_404(request, slug)
    try:
        context = slots_context(study, request.GET.get("zone", ""))
    except NoSlotsError:
        raise Http404 from None
    context["files"] = _files("presence_forecast_file", slug)
    return render(request, "forecasts/forecast.html", context)


def slots_context(study: Study, zone_name: str) -> dict[str, Any]:
    """Context of the page of slots; NoSlotsError if the study has none."""
    found = slot_forecast(study, days=SHOWN_DAYS)
    zone = _zone(found, zone_name)
    context = _frame(study, found.row, is_current=found.is_current) | {
        "is_slots": True,
        "zones": found.found.zones,
        "zone": zone,
        "crowded": [texts.crowd_sentence(each) for each in crowded([study])],
        "is_scaled": study.market_share != 1,
    }
    if found.targets and zone is not None:
        context |= _slots(found, zone)
    return context


@require_safe
@readers_only
def days(request: HttpRequest, slug: str, indicator_slug: str = "") -> HttpResponse:
    """The next days of all visitors, or of the shares of an indicator's categories."""
    indicator: Indicator | None = None
    if indicator_slug:
        indicator, more = indicator_page(request, slug, indicator_slug, is_below=True)
        study = indicator.study
    else:
        study = study_or_404(request, slug)
        days = kept_days(request.GET, study)
        more = {
            "kept_days": days,
            "crumbs": crumbs_to(study, days),
            "indicators": list(study.indicators.all()),
        }
    context = days_context(study, indicator, request.GET.get("category", "")) | more
    context["files"] = (
        _files("forecast_indicator_file", slug, indicator_slug)
        if indicator
        else _files("forecast_file", slug)
    )
    return render(request, "forecasts/forecast.html", context)


def days_context(study: Study, indicator: Indicator | None, category: str) -> dict[str, Any]:
    """Context of the page of days."""
    found = day_forecast(study, indicator)
    context = _frame(study, found.row, is_current=found.is_current)
    context |= {"is_offered": has_days_forecast(study), "least_days": LEAST_DAYS, "series": found.series}
    context["indicator"] = indicator
    if found.series:
        context |= _days(found, _series(found.series, category))
    return context


def _files(page: str, *args: str) -> list[tuple[str, str]]:
    """Names and addresses of the files of a page."""
    return [(format_name(each), reverse(f"reports:{page}", args=[*args, each])) for each in WRITERS]


@require_POST
@readers_only
def ask(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask a worker for what is out of date; then the page again."""
    study = study_or_404(request, slug)
    ask_for_forecasts(study)
    page = "presence_forecast" if request.POST.get("kind") == KeptForecast.Kind.SLOTS else "forecast"
    return redirect(f"reports:{page}", slug)


def _frame(study: Study, row: KeptForecast, *, is_current: bool) -> dict[str, Any]:
    return {
        "study": study,
        "crumbs": crumbs_to(study),
        "row": row,
        "is_current": is_current,
        "is_on_its_way": row.pk is not None and row.is_on_its_way,
        "is_offered": True,
        "method": texts.method_words(row.result["method"]) if row.result else "",
    }


def _zone(found: SlotForecast, name: str) -> SlotZone | None:
    """The zone of the address, else the one with most people in what is shown."""
    named = [zone for zone in found.found.zones if zone.name == name]
    if named or not found.found.zones:
        return named[0] if named else None
    people = found.found.counts.sum(axis=0)
    return max(found.found.zones, key=lambda zone: int(people[zone.place]))


def _slots(found: SlotForecast, zone: SlotZone) -> dict[str, Any]:
    presence, first = found.found, found.found.first_slot
    known = range(first, found.last_slot + 1)
    shown = [presence.people(zone, day=day) for day in range(presence.first_day, presence.last_day + 1)]
    people = [None if value != value else float(value) for day in shown for value in day]  # noqa: PLR0124
    expected = [found.expected(place, zone) for place in range(len(found.targets))]
    limit = CrowdLimit.objects.filter(slots=presence.slots, zone=zone.place).order_by("ahead").first()
    times = [_slot_time(found, slot) for slot in (*known, *found.targets)]
    fan = Fan(
        times=[time.replace(", ", "<br>") for time in times],
        published=people[: len(known)],
        expected=expected,
        limit=None if limit is None else limit.capacity,
    )
    minutes = presence.spec.minutes
    judged = found.judged(zone)
    return {
        "figure": fan_figure(fan),
        "shared": urlencode({"forecast": "slots", "zone": zone.name}),
        "summary": gettext("Forecast of the number of people in %(zone)s.") % {"zone": zone.shown_name},
        "rows": _rows(times[len(known) :], expected),
        "judged": [_judged(each, ahead=texts.ahead_text(each.ahead * minutes)) for each in judged],
        "judged_days": judged[0].days if judged else 0,
        "title": zone.shown_name,
    }


def _days(found: DayForecast, series: DaySeries) -> dict[str, Any]:
    study, is_share = found.row.study, bool(series.name)
    dates = [study.date_of(day) for day in range(1, found.last_day + 1)]
    dates += [found.date(place) for place in range(len(series.expected))]
    times = [formats.day_title(each) for each in dates]
    fan = Fan(
        times=[formats.short_day(each).replace(" ", "<br>") for each in dates],
        published=series.known,
        expected=series.expected,
        is_share=is_share,
    )
    judged = series.judged
    name = series.shown_name or gettext("All visitors")
    return {
        "figure": fan_figure(fan),
        "summary": gettext("Forecast for the coming days: %(name)s.") % {"name": name},
        "rows": _rows(times[found.last_day :], series.expected, is_share=is_share),
        "judged": [_judged(judged, ahead=gettext("1 day ahead"), is_share=is_share)] if judged else [],
        "judged_days": judged.days if judged else 0,
        "title": name,
        "chosen": series.name,
        "shared": urlencode({"forecast": "category" if is_share else "days", "category": series.name}),
    }


def _series(series: Sequence[DaySeries], name: str) -> DaySeries:
    """The category of the address, else the first."""
    return next((each for each in series if each.name == name), series[0])


def _slot_time(found: SlotForecast, slot: int) -> str:
    start = found.starts_at(slot)
    return f"{formats.short_day(start.date())}, {start:%H:%M}"


def _rows(times: Sequence[str], expected: Sequence[Expected], *, is_share: bool = False) -> list[Row]:
    return [
        Row(
            time=time,
            value=texts.expected_text(Expected(value=each.value, ends=(None,)), is_share=is_share),
            inner=texts.range_text(each.ends[0], is_share=is_share),
            outer=texts.range_text(each.ends[1], is_share=is_share),
        )
        for time, each in zip(times, expected, strict=True)
    ]


def _judged(found: Judged, *, ahead: str, is_share: bool = False) -> JudgedRow:
    def errors(values: Sequence[float | None]) -> tuple[str, ...]:
        if is_share:
            return tuple(formats.points(value) if value is not None else NONE for value in values)
        return tuple(formats.number(value) if value is not None else NONE for value in values)

    coverage = tuple(formats.percent(each) if each is not None else NONE for each in found.coverage)
    return JudgedRow(ahead=ahead, rmse=errors(found.rmse), mae=errors(found.mae), coverage=coverage)
