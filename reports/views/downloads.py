"""What a page shows, as a file."""

from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, JsonResponse
from django.views.decorators.http import require_GET

from reports.exports.records import CONTENT_TYPES, render
from reports.picker import requested_window
from reports.selectors import (
    WindowError,
    WindowReport,
    indicator_reports,
    single_days_of,
    study_reports,
    visitor_unions,
    window_report,
)
from reports.statement import privacy_statement
from reports.views.access import indicator_or_404, readers_only, study_or_404


@require_GET
@readers_only
def download_study(_request: HttpRequest, slug: str, file_format: str) -> HttpResponse:
    """All indicators in all windows."""
    study = study_or_404(slug)
    reports = study_reports(list(study.indicators.all()), None)
    return _file(reports, name=study.slug, file_format=file_format)


@require_GET
@readers_only
def download_window(request: HttpRequest, slug: str, indicator_slug: str, file_format: str) -> HttpResponse:
    """One indicator in the window that the address names."""
    study = study_or_404(slug)
    indicator = indicator_or_404(indicator_slug, among=list(study.indicators.all()))
    try:
        window = requested_window(request.GET, indicator=indicator, visitors=visitor_unions(study))
        report = window_report(indicator, window)
    except WindowError as error:
        return HttpResponseBadRequest(str(error), content_type="text/plain; charset=utf-8")
    name = f"{study.slug}_{indicator.slug}_{report.first_date}_{report.last_date}"
    return _file([report], name=name, file_format=file_format)


@require_GET
@readers_only
def download_days(_request: HttpRequest, slug: str, indicator_slug: str, file_format: str) -> HttpResponse:
    """One indicator on each day."""
    study = study_or_404(slug)
    indicator = indicator_or_404(indicator_slug, among=list(study.indicators.all()))
    reports = indicator_reports(indicator, single_days_of(study))
    return _file(reports, name=f"{study.slug}_{indicator.slug}_days", file_format=file_format)


@require_GET
@readers_only
def download_statement(_request: HttpRequest, slug: str) -> HttpResponse:
    """The privacy statement as JSON."""
    study = study_or_404(slug)
    response = JsonResponse(privacy_statement(study), json_dumps_params={"indent": 1, "ensure_ascii": False})
    response["Content-Disposition"] = f'attachment; filename="{study.slug}_statement.json"'
    return response


def _file(reports: Iterable[WindowReport], *, name: str, file_format: str) -> HttpResponse:
    return HttpResponse(
        render(reports, file_format=file_format),
        content_type=CONTENT_TYPES[file_format],
        headers={"Content-Disposition": f'attachment; filename="{name}.{file_format}"'},
    )
