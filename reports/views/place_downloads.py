"""Reported places of a window as a file."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from reports.exports.places import select_places
from reports.exports.places_formats import HEXAGONS, PLACES_FORMATS
from reports.options import ReportOptions
from reports.selectors import WindowError
from reports.views.access import exporters_only
from reports.views.density import located_or_404, window_of
from reports.views.downloads import attachment, refused
from reports.views.handed_out import handed_out


@require_safe
@exporters_only
@handed_out
def download_places(request: HttpRequest, slug: str, content: str, file_format: str) -> HttpResponse:
    """Zones, squares or both maps of the window of the address; what is not computed yet is missing."""
    study, spec = located_or_404(request, slug)
    found = PLACES_FORMATS.get((content, file_format))
    if found is None or (content == HEXAGONS and study.area.h3_resolution is None):
        raise Http404
    try:
        window = window_of(request.GET, study, spec)
    except WindowError as error:
        return refused(error)
    places = select_places(study, window)
    written = found.write(places, ReportOptions.from_query(request.GET))
    name = f"{places.file_name(content)}.{found.ending}"
    return attachment(written, content_type=found.content_type, name=name)
