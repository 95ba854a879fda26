"""All days of an indicator: how its categories move over the study, day by day or cumulated."""

from datetime import date
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.translation import gettext, pgettext
from django.views.decorators.http import require_safe

from ldp.estimation.series.smoothing import FALSE_ALARMS
from reports.accounts.access import readers_only
from reports.base import formats
from reports.base.status import Status
from reports.estimates import charts
from reports.estimates.fingerprints import kept
from reports.estimates.options import (
    DAYS_CHOICES,
    DaysOptions,
    ReportOptions,
    Switch,
    asked_categories,
    largest_first,
    max_shown,
    reports_of,
    shown_categories,
    shown_value,
    switches,
    windows_shown,
)
from reports.estimates.page import indicator_page
from reports.estimates.picker import asked_days
from reports.estimates.queries import Estimate, WindowReport, indicator_reports
from reports.estimates.texts import values_names
from reports.forecasts.charts import add_smoothed
from reports.forecasts.smoothing import SmoothedCategory, smoothed_categories, visitor_days_of
from reports.pages.number import means_of
from reports.privacy.statement.document import protection_of
from reports.studies.models import Indicator
from reports.studies.policies import EXPORTERS, roles_of
from reports.studies.queries import current_plan, has_unions

CELLS_SHOWN = 1200  # of the table: with 62 days and 100 categories all of them weigh half a megabyte
LEAST_ROWS = 10
Row = tuple[tuple[str, Estimate, float | None], ...]  # of a category: head of the column, what it shows


@require_safe
@readers_only
def days(request: HttpRequest, slug: str, indicator_slug: str) -> HttpResponse:
    """Lines or small charts with bands, and the same numbers as a table."""
    found, context = indicator_page(request, slug, indicator_slug, is_below=True)
    options = DaysOptions.from_query(request.GET)
    study, chosen = found.study, asked_days(request.GET, found.study)
    kept_choices = "&".join(part for part in (context["kept_days"], chosen_categories(request.GET)) if part)
    context |= {
        "picker": {"days": [study.date_of(day) for day in range(1, study.days + 1)], "unions": True},
        "first": study.date_of(chosen.first_day) if chosen else study.first_day,
        "last": study.date_of(chosen.last_day) if chosen else study.last_day,
        "chosen": chosen,
        "every_day": options.query(chosen_categories(request.GET)),
        "options": options,
        "kept": options.query(context["kept_days"]),
        "kept_with_categories": options.query(kept_choices),
        "switches": days_switches(options, kept=kept_choices),
        "protection": protection_of(current_plan(study), found.slug),
        "may_export": bool(roles_of(request.user) & EXPORTERS),
    }
    asked = ("days", found.pk, request.GET.urlencode(), context["may_export"])
    context["figures"] = kept(study, *asked, make=lambda: _figures(found, request.GET, context))
    return render(request, "estimates/days.html", context)


def _figures(indicator: Indicator, query: QueryDict, page: dict[str, Any]) -> str:
    """Chart and table, the same for all readers who may export, or may not; "" if there is no data."""
    options: DaysOptions = page["options"]
    of_all_days = indicator_reports(indicator, windows_shown(indicator, options=options))
    reports = reports_of(page["chosen"], of_all_days)
    if all(report.status == Status.NOT_COLLECTED for report in reports):
        return ""
    asked = asked_categories(query, n_categories=len(indicator.categories))
    shown = shown_categories(asked, reports=reports, options=options)
    smoothed = [each.of_days(reports) for each in smoothed_categories(of_all_days)]
    n_summed, summed = visitor_days_of(reports)
    context = page | {
        "reports": reports,
        "is_cumulative": reports[-1].window.days > 1,
        "has_unions": has_unions(indicator),
        "no_unions": options.show == "cumulative" and not has_unions(indicator),
        "rows": shown_rows(reports, options=options, page=query.get("page")),
        "notes": [note for report in reports if report.window.days == 1 for note in report.notes]
        or list(reports[-1].notes),
        "shown": shown,
        "shown_names": [indicator.shown_categories[code] for code in shown],
        "max_lines": max_shown(options),
        "means": means_of(indicator, reports) if reports[0].cuts is not None else [],
        "smoothed": smoothed,
        "smoothed_rows": [each for each in smoothed if each.code in shown],
        "false_alarms": FALSE_ALARMS,
        "changes": _changes(smoothed),
        "n_summed": n_summed,
        "summed": summed,
        **_charts(reports, shown, options, smoothed),
    }
    return render_to_string("estimates/_days_figures.html", context)


def _changes(smoothed: list[SmoothedCategory]) -> list[tuple[date, str]]:
    """Days on which estimates are unlike the days before, each with the names of the categories."""
    if not smoothed:
        return []
    found = []
    for of_day in zip(*(each.days for each in smoothed), strict=True):
        names = [each.shown_category for each, day in zip(smoothed, of_day, strict=True) if day.is_change]
        if names:
            found.append((of_day[0].date, ", ".join(names)))
    return found


def shown_rows(reports: list[WindowReport], *, options: DaysOptions, page: str | None) -> Page[Row]:
    """Estimates of a category over all days, as many categories as a page bears, the largest first."""
    heads = [_head(report) for report in reports]
    shown = ReportOptions(measure=options.measure, values=options.values)

    def row(code: int) -> Row:
        estimates = [report.estimates[code] for report in reports]
        values = [shown_value(*pair, options=shown).value for pair in zip(reports, estimates, strict=True)]
        return tuple(zip(heads, estimates, values, strict=True))

    rows_a_page = max(CELLS_SHOWN // len(reports), LEAST_ROWS)
    found: Page[Any] = Paginator(largest_first(reports), rows_a_page).get_page(page)
    found.object_list = [row(code) for code in found.object_list]
    return found


def _head(report: WindowReport) -> str:
    """Return the subject of a column, where the table is too wide to have heads: on paper."""
    day = formats.short_day(report.last_date)
    return day if report.window.first_day == report.window.last_day else f"{pgettext('dates', 'to')} {day}"


def chosen_categories(query: QueryDict) -> str:
    """Part of an address that names the categories that were asked for."""
    chosen = QueryDict(mutable=True)
    chosen.setlist("category", query.getlist("category"))
    return chosen.urlencode()


def days_switches(options: DaysOptions, *, kept: str) -> list[Switch]:
    """Links to the other ways to show the days; they keep a part of the address."""
    labels = {
        "daily": gettext("Each day"),
        "cumulative": gettext("Cumulative"),
        "lines": gettext("Lines"),
        "multiples": gettext("Small charts"),
        "frequency": gettext("Shares"),
        "visitors": gettext("Visitors"),
        **values_names(),
    }
    titles = {
        "show": gettext("Days"),
        "form": gettext("Chart"),
        "measure": gettext("Measure"),
        "values": gettext("Values"),
    }
    return switches(options, titles=titles, labels=labels, choices=DAYS_CHOICES, kept=kept)


def _charts(
    reports: list[WindowReport], shown: list[int], options: DaysOptions, smoothed: list[SmoothedCategory]
) -> dict[str, Any]:
    """One figure, or one per category: (name of the data, name of the category, figure)."""
    of_code = {each.code: each for each in smoothed}
    if options.form == "lines":
        figure = charts.days_figure(reports, shown=shown, measure=options.measure, values=options.values)
        for place, code in enumerate(shown):
            add_smoothed(figure, reports, of_code.get(code), place=place, measure=options.measure)
        return {"figure": figure}
    made = charts.small_multiples(reports, shown=shown, measure=options.measure, values=options.values)
    for code, each in zip(shown, made, strict=True):
        add_smoothed(each, reports, of_code.get(code), place=0, measure=options.measure)
    categories = reports[0].indicator.shown_categories
    return {
        "multiples": [
            (f"figure-{code}", categories[code], figure) for code, figure in zip(shown, made, strict=True)
        ]
    }
