"""Reported places of a window as a file."""

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase

from reports.estimates.options import ReportOptions
from reports.estimates.queries import WindowError
from reports.exports.file_views import file_of_study, file_response, format_or_404, refused
from reports.exports.formats.choosing import HEXAGONS, PLACES
from reports.exports.recipes import Recipe
from reports.maps.density_views import located_or_404, window_of


@file_of_study
def download_places(request: HttpRequest, slug: str, content: str, file_format: str) -> HttpResponseBase:
    """Zones, squares or both maps of the window of the address; what is not computed yet is missing."""
    study, spec = located_or_404(request, slug)
    if content not in PLACES or (content == HEXAGONS and study.area.h3_resolution is None):
        raise Http404
    found = format_or_404(content, file_format)
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
