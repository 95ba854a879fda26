"""Boards as files of readers."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from reports.accounts.access import account, study_or_404
from reports.boards.queries import board_or_404
from reports.estimates.page import widest_indicator
from reports.estimates.picker import requested_window
from reports.estimates.queries import WindowError, visitor_unions
from reports.exports.boards.selection import options_of
from reports.exports.file_views import file_of_study, file_response, format_or_404, refused
from reports.exports.formats.choosing import BOARD
from reports.exports.recipes import Recipe


@file_of_study
def download_board(request: HttpRequest, slug: str, board_id: str, file_format: str) -> HttpResponseBase:
    """All tiles of a board that are not hidden, in the window of the address."""
    study = study_or_404(request, slug)
    board = board_or_404(study, int(board_id), reader=account(request))
    found = format_or_404(BOARD, file_format)
    widest = widest_indicator(list(study.indicators.all()))
    try:
        window = requested_window(request.GET, indicator=widest, visitors=visitor_unions(study))
    except WindowError as error:
        return refused(error)
    recipe = Recipe(
        scope=BOARD,
        ending=found.ending,
        first_day=window.first_day,
        last_day=window.last_day,
        options=options_of(board),
    )
    return file_response(request, study, recipe)
