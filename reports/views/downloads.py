"""What a page shows, as a file."""

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest, JsonResponse
from django.views.decorators.http import require_safe

from reports.exports.bundle import bundle_of
from reports.exports.errors import ExportError
from reports.exports.formats import FORMATS, render_file
from reports.exports.selection import Selection, select_days, select_study, select_window
from reports.picker import requested_window
from reports.selectors import WindowError, visitor_unions
from reports.statement import privacy_statement
from reports.views.access import indicator_or_404, readers_only, study_or_404


@require_safe
@readers_only
def download_study(_request: HttpRequest, slug: str, file_format: str) -> HttpResponse:
    """All indicators in all windows."""
    return _file(select_study(study_or_404(slug)), file_format=file_format)


@require_safe
@readers_only
def download_window(request: HttpRequest, slug: str, indicator_slug: str, file_format: str) -> HttpResponse:
    """One indicator in the window that the address names."""
    study = study_or_404(slug)
    indicator = indicator_or_404(indicator_slug, among=list(study.indicators.all()))
    try:
        window = requested_window(request.GET, indicator=indicator, visitors=visitor_unions(study))
        selection = select_window(indicator, window)
    except WindowError as error:
        return _refused(error)
    return _file(selection, file_format=file_format)


@require_safe
@readers_only
def download_days(_request: HttpRequest, slug: str, indicator_slug: str, file_format: str) -> HttpResponse:
    """One indicator on each day."""
    study = study_or_404(slug)
    indicator = indicator_or_404(indicator_slug, among=list(study.indicators.all()))
    return _file(select_days(indicator), file_format=file_format)


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


def _file(selection: Selection, *, file_format: str) -> HttpResponse:
    found = FORMATS.get(file_format)
    if found is None or selection.scope not in found.scopes:
        raise Http404
    try:
        content = render_file(selection, ending=file_format)
    except ExportError as error:
        return _refused(error)
    return _attachment(content, content_type=found.content_type, name=f"{selection.name}.{file_format}")


def _attachment(content: bytes, *, content_type: str, name: str) -> HttpResponse:
    return HttpResponse(
        content,
        content_type=content_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _refused(error: ValueError) -> HttpResponse:
    return HttpResponseBadRequest(str(error), content_type="text/plain; charset=utf-8")
