"""Reported places of a window as a file."""

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from reports.accounts.access import exporters_only
from reports.estimates.options import ReportOptions
from reports.estimates.queries import WindowError
from reports.exports.file_views import file_response, refused
from reports.exports.places.formats import HEXAGONS, PLACES_FORMATS
from reports.exports.recipes import Recipe
from reports.ledger.handed_out import handed_out
from reports.maps.density_views import located_or_404, window_of


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
