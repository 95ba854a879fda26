"""Reported places of a window as a file."""

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from reports.exports.places_formats import HEXAGONS, PLACES_FORMATS
from reports.exports.recipes import Recipe
from reports.options import ReportOptions
from reports.selectors import WindowError
from reports.views.access import exporters_only
from reports.views.density import located_or_404, window_of
from reports.views.files import file_response, refused
from reports.views.handed_out import handed_out


@require_safe
@exporters_only
@handed_out
def download_places(request: HttpRequest, slug: str, content: str, file_format: str) -> HttpResponseBase:
    """Zones, squares or both maps of the window of the address; what is not computed yet is missing."""
    study, spec = located_or_404(request, slug)
    found = PLACES_FORMATS.get((content, file_format))
    if found is None or (content == HEXAGONS and study.area.h3_resolution is None):
        raise Http404
    try:
        window = window_of(request.GET, study, spec)
    except WindowError as error:
        return refused(error)
    recipe = Recipe(
        scope=content,
        ending=found.ending,
        first_day=window.first_day,
        last_day=window.last_day,
        options=ReportOptions.from_query(request.GET).query("") if found.is_drawn else "",
    )
    return file_response(request, study, recipe)
