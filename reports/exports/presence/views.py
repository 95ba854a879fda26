"""Presence by slot as a file."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from reports.accounts.access import study_or_404
from reports.estimates.queries import WindowError
from reports.exports.file_views import file_of_study, file_response, format_or_404, refused
from reports.exports.formats.choosing import PRESENCE
from reports.exports.presence.selection import asked_days, options_of, select_presence
from reports.exports.recipes import Recipe


@file_of_study
def download_presence(request: HttpRequest, slug: str, file_format: str) -> HttpResponseBase:
    """Slots from one day to another as data, or the chart of the view that the address names."""
    study, found = study_or_404(request, slug), format_or_404(PRESENCE, file_format)
    query = request.GET
    try:
        first, last = asked_days(study, query.get("from", ""), query.get("to", ""))
        options = options_of(query, is_drawn=found.is_drawn)
        select_presence(study, first_day=first, last_day=last, options=options, is_drawn=found.is_drawn)
    except WindowError as error:
        return refused(error)
    recipe = Recipe(
        scope=PRESENCE,
        ending=found.ending,
        first_day=0 if found.is_drawn else first,
        last_day=0 if found.is_drawn else last,
        options=options,
    )
    return file_response(request, study, recipe)
