"""What a page shows, as a file."""

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest, JsonResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from reports import wording_compare
from reports.compare import Kind, NotComparableError, comparable_indicators
from reports.compare_query import (
    AddressError,
    address_error,
    asked_of,
    compared,
    is_complete,
    kind_of,
    measure_of,
)
from reports.days_shown import asked_categories
from reports.exports.bundle import bundle_of
from reports.exports.comparisons import comparison_findings
from reports.exports.errors import ExportError
from reports.exports.findings import WRITERS, Findings
from reports.exports.formats import FORMATS, Format
from reports.exports.movements import movement_findings
from reports.exports.selection import (
    Scope,
    Selection,
    select_days,
    select_study,
    select_summary,
    select_window,
)
from reports.models import Indicator
from reports.movement import movement
from reports.options import DaysOptions, ReportOptions
from reports.picker import requested_window
from reports.selectors import UnionNotAvailableError, WindowError, visitor_unions
from reports.statement import privacy_statement
from reports.views.access import exporters_only, indicator_or_404, readable, sees_all, study_or_404
from reports.views.handed_out import handed_out
from reports.views.movement import asked_of as movement_asked


@require_safe
@exporters_only
@handed_out
def download_study(request: HttpRequest, slug: str, file_format: str) -> HttpResponse:
    """All indicators: in all windows as data, over all days for reading."""
    study, found = study_or_404(request, slug), _format(file_format, Scope.STUDY)
    return _file(select_summary(study) if found.is_drawn else select_study(study), found)


@require_safe
@exporters_only
@handed_out
def download_window(request: HttpRequest, slug: str, indicator_slug: str, file_format: str) -> HttpResponse:
    """One indicator in the window that the address names."""
    indicator, found = _indicator(request, slug, indicator_slug), _format(file_format, Scope.WINDOW)
    options = ReportOptions.from_query(request.GET) if found.is_drawn else ReportOptions()
    try:
        window = requested_window(request.GET, indicator=indicator, visitors=visitor_unions(indicator.study))
        selection = select_window(indicator, window, options=options)
    except WindowError as error:
        return refused(error)
    return _file(selection, found)


@require_safe
@exporters_only
@handed_out
def download_days(request: HttpRequest, slug: str, indicator_slug: str, file_format: str) -> HttpResponse:
    """One indicator on each day; what is drawn as the page shows it."""
    indicator, found = _indicator(request, slug, indicator_slug), _format(file_format, Scope.DAYS)
    if not found.is_drawn:
        return _file(select_days(indicator), found)
    options = DaysOptions.from_query(request.GET)
    categories = asked_categories(request.GET, n_categories=len(indicator.categories))
    return _file(select_days(indicator, options=options, categories=categories), found)


@require_safe
@exporters_only
@handed_out
def download_comparison(
    request: HttpRequest, slug: str, indicator_slug: str, file_format: str
) -> HttpResponse:
    """The comparison that the address names, as its page names it."""
    indicator, query = _indicator(request, slug, indicator_slug), request.GET
    kind = kind_of(query)
    others = comparable_indicators(indicator, among=readable(request)) if kind == Kind.STUDIES else []
    if not is_complete(query, kind):
        return refused(ExportError(gettext("The address must name both sides of the comparison.")))
    try:
        asked = asked_of(query, kind, indicator=indicator, others=others)
        found = compared(kind, indicator, asked, of=measure_of(query))
    except NotComparableError as error:
        return refused(ExportError(wording_compare.not_comparable(error)))
    except UnionNotAvailableError as error:
        return refused(error)
    except (AddressError, WindowError) as error:
        return refused(ExportError(address_error(error, indicator)))
    return _findings(comparison_findings(found), ending=file_format)


@require_safe
@exporters_only
@handed_out
def download_movement(request: HttpRequest, slug: str, indicator_slug: str, file_format: str) -> HttpResponse:
    """Totals and the figure that the address names, as its page names it, of all categories."""
    indicator = _indicator(request, slug, indicator_slug)
    try:
        found = movement(indicator, **movement_asked(request.GET, indicator=indicator))
    except WindowError as error:  # that totals are noisy is one
        return refused(error)
    return _findings(movement_findings(found), ending=file_format)


@require_safe
@exporters_only
@handed_out
def download_bundle(request: HttpRequest, slug: str) -> HttpResponse:
    """All that somebody else needs to recompute every number of a study."""
    study = study_or_404(request, slug)
    try:
        content = bundle_of(study)
    except ExportError as error:
        return refused(error)
    return attachment(content, content_type="application/zip", name=f"{study.slug}_bundle.zip")


@require_safe
@exporters_only
@handed_out
def download_statement(request: HttpRequest, slug: str) -> HttpResponse:
    """The privacy statement as JSON."""
    study = study_or_404(request, slug)
    found = privacy_statement(study, with_names=sees_all(request.user))
    response = JsonResponse(found, json_dumps_params={"indent": 1, "ensure_ascii": False})
    response["Content-Disposition"] = f'attachment; filename="{study.slug}_statement.json"'
    return response


def _indicator(request: HttpRequest, slug: str, indicator_slug: str) -> Indicator:
    return indicator_or_404(indicator_slug, among=list(study_or_404(request, slug).indicators.all()))


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
        return refused(error)
    return attachment(content, content_type=found.content_type, name=f"{selection.name}.{found.ending}")


def _findings(findings: Findings, *, ending: str) -> HttpResponse:
    if ending not in WRITERS:
        raise Http404
    try:
        content = WRITERS[ending](findings)
    except ExportError as error:
        return refused(error)
    content_type = FORMATS[ending].content_type
    return attachment(content, content_type=content_type, name=f"{findings.name}.{ending}")


def attachment(content: bytes, *, content_type: str, name: str) -> HttpResponse:
    """A file that a browser saves under this name."""
    return HttpResponse(
        content,
        content_type=content_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def refused(error: ValueError) -> HttpResponse:
    """Why there is no such file, in words."""
    return HttpResponseBadRequest(str(error), content_type="text/plain; charset=utf-8")
