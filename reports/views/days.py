"""All days of an indicator: how its categories move over the study."""

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from reports import charts
from reports.selectors import WindowReport, indicator_reports, single_days_of
from reports.statement import protections
from reports.views.access import indicator_or_404, readers_only, study_or_404
from reports.views.indicator import page_context


@require_GET
@readers_only
def days(request: HttpRequest, slug: str, indicator_slug: str) -> HttpResponse:
    """Lines with bands, and the same numbers as a table."""
    study = study_or_404(slug)
    indicators = list(study.indicators.all())
    found = indicator_or_404(indicator_slug, among=indicators)
    reports = indicator_reports(found, single_days_of(study))
    shown = shown_categories(request.GET, reports=reports)
    context = page_context(study, indicators=indicators, indicator=found)
    context["crumbs"].append((found.name, reverse("reports:indicator", args=[study.slug, found.slug])))
    context |= {
        "reports": reports,
        "has_data": any(report.n_reports for report in reports),
        "rows": list(zip(*(report.estimates for report in reports), strict=True)),
        "figure": charts.days_figure(reports, shown=shown),
        "shown": shown,
        "max_lines": charts.MAX_LINES,
        "protection": protections(reports[0].plan)[found.slug],
    }
    return render(request, "reports/days.html", context)


def shown_categories(query: QueryDict, *, reports: list[WindowReport]) -> list[int]:
    """Codes of the categories to draw: those asked for, else the largest."""
    n_categories = len(reports[0].estimates)
    asked = {int(text) for text in query.getlist("category") if text.isdecimal() and len(text) <= 5}
    chosen = sorted(code for code in asked if code < n_categories)
    return chosen[: charts.MAX_LINES] or charts.largest_categories(reports)
