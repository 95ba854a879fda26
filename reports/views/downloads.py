"""What a page shows, as a file."""

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest, JsonResponse
from django.views.decorators.http import require_safe

from reports.days_shown import asked_categories
from reports.exports.bundle import bundle_of
from reports.exports.errors import ExportError
from reports.exports.formats import FORMATS, Format
from reports.exports.selection import (
    Scope,
    Selection,
    select_days,
    select_study,
    select_summary,
    select_window,
)
from reports.models import Indicator
from reports.options import DaysOptions, ReportOptions
from reports.picker import requested_window
from reports.selectors import WindowError, visitor_unions
from reports.statement import privacy_statement
from reports.views.access import indicator_or_404, readers_only, study_or_404


@require_safe
@readers_only
def download_study(_request: HttpRequest, slug: str, file_format: str) -> HttpResponse:
    """All indicators: in all windows as data, over all days for reading."""
    study, found = study_or_404(slug), _format(file_format, Scope.STUDY)
    return _file(select_summary(study) if found.is_drawn else select_study(study), found)


@require_safe
@readers_only
def download_window(request: HttpRequest, slug: str, indicator_slug: str, file_format: str) -> HttpResponse:
    """One indicator in the window that the address names."""
    indicator, found = _indicator(slug, indicator_slug), _format(file_format, Scope.WINDOW)
    options = ReportOptions.from_query(request.GET) if found.is_drawn else ReportOptions()
    try:
        window = requested_window(request.GET, indicator=indicator, visitors=visitor_unions(indicator.study))
        selection = select_window(indicator, window, options=options)
    except WindowError as error:
        return _refused(error)
    return _file(selection, found)


@require_safe
@readers_only
def download_days(request: HttpRequest, slug: str, indicator_slug: str, file_format: str) -> HttpResponse:
    """One indicator on each day; what is drawn as the page shows it."""
    indicator, found = _indicator(slug, indicator_slug), _format(file_format, Scope.DAYS)
    if not found.is_drawn:
        return _file(select_days(indicator), found)
    options = DaysOptions.from_query(request.GET)
    categories = asked_categories(request.GET, n_categories=len(indicator.categories))
    return _file(select_days(indicator, options=options, categories=categories), found)


@require_safe
@readers_only
def download_bundle(_request: HttpRequest, slug: str) -> HttpResponse:
    """All that somebody else needs to recompute every number of a study."""
    study = study_or_404(slug)
    try:
        content = bundle_of(study)
    except ExportError as error:
        return _refused(error)
    return _attachment(content, content_type="application/zip", name=f"{study.slug}_bundle.zip")


@require_safe
@readers_only
def download_statement(_request: HttpRequest, slug: str) -> HttpResponse:
    """The privacy statement as JSON."""
    study = study_or_404(slug)
    response = JsonResponse(privacy_statement(study), json_dumps_params={"indent": 1, "ensure_ascii": False})
    response["Content-Disposition"] = f'attachment; filename="{study.slug}_statement.json"'
    return response


def _indicator(slug: str, indicator_slug: str) -> Indicator:
    return indicator_or_404(indicator_slug, among=list(study_or_404(slug).indicators.all()))


def _format(ending: str, scope: Scope) -> Format:
    """A format that makes sense for a scope, else 404."""
    found = FORMATS.get(ending)
    if found is None or scope not in found.scopes:
        raise Http404
    return found


def _file(selection: Selection, found: Format) -> HttpResponse:
    try:
        content = found.write(selection)
    except ExportError as error:
        return _refused(error)
    return _attachment(content, content_type=found.content_type, name=f"{selection.name}.{found.ending}")


def _attachment(content: bytes, *, content_type: str, name: str) -> HttpResponse:
    return HttpResponse(
        content,
        content_type=content_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _refused(error: ValueError) -> HttpResponse:
    return HttpResponseBadRequest(str(error), content_type="text/plain; charset=utf-8")
