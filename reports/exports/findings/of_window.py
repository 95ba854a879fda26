"""A file of the window that the page of an indicator shows."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from reports.accounts.access import indicator_or_404, study_or_404
from reports.base.attachments import attachment
from reports.estimates.picker import requested_window
from reports.estimates.queries import Window, WindowError, visitor_unions
from reports.exports.errors import ExportError
from reports.exports.file_views import format_or_404, refused
from reports.exports.findings.tables import Findings
from reports.exports.formats.choosing import NUMBERS
from reports.studies.models import Indicator


def window_file(
    request: HttpRequest,
    slug: str,
    indicator_slug: str,
    file_format: str,
    *,
    make: Callable[[Indicator, Window], Findings],
    refusal: type[ValueError],
) -> HttpResponse:
    """The file that `make` makes, or why there is none: an ExportError of it, or its `refusal`."""
    study, found = study_or_404(request, slug), format_or_404(NUMBERS, file_format)
    indicator = indicator_or_404(indicator_slug, among=list(study.indicators.all()))
    try:
        window = requested_window(request.GET, indicator=indicator, visitors=visitor_unions(study))
        findings = make(indicator, window)
    except (WindowError, ExportError, refusal) as error:
        return refused(error)
    return attachment(
        found.write(findings), content_type=found.content_type, name=f"{findings.name}.{found.ending}"
    )
