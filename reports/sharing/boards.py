"""Boards behind share links: the query of the link names the board. Their removal ends it."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from reports.accounts.access import account, any_study_or_404, readers_only
from reports.accounts.access_models import ShareLink
from reports.boards.actions import remove_board
from reports.boards.contents import board_context
from reports.boards.events import events_board_context
from reports.boards.models import Board
from reports.boards.queries import board_or_404, boards_of
from reports.estimates.page import missing_days, widest_indicator
from reports.estimates.picker import requested_window, window_query, window_title
from reports.estimates.queries import Window, WindowError, visitor_unions
from reports.events.queries import asked_period
from reports.privacy.plain_texts import plain_privacy
from reports.sharing.revoking import revoke
from reports.studies.models import Indicator, Study
from reports.studies.queries import current_plan

BOARD = ShareLink.BOARD


def is_board(query: QueryDict) -> bool:
    """Return whether a query names a board instead of a report."""
    return BOARD in query


def asked_board(query: QueryDict, indicator: Indicator, *, board: Board | None) -> tuple[Window, str]:
    """Days of the board that a query asks for, and the query of its link; WindowError if there is none."""
    if board is None:
        raise WindowError(gettext("This study has no such board."))
    study = indicator.study
    if study.of_events:
        return Window(1, study.days), f"{BOARD}={board.pk}&period={asked_period(query)}"
    widest = widest_indicator(list(study.indicators.all()))
    window = requested_window(query, indicator=widest, visitors=visitor_unions(study))
    return window, f"{BOARD}={board.pk}&{window_query(study, window)}"


def board_in(query: QueryDict, study: Study, *, reader: Any) -> Board | None:
    """The board of a query, if this reader of the study may open it."""
    key = query.get(BOARD, "")
    is_number = key.isascii() and key.isdecimal() and len(key) <= 18
    board = boards_of(study, reader=reader).filter(pk=int(key)).first() if is_number else None
    if board is not None:
        board.study = study
    return board


def board_of(link: ShareLink) -> Board | None:
    """The board of a link; None if it is gone, or its maker may no longer open it."""
    return board_in(QueryDict(link.query), link.indicator.study, reader=link.created_by)


def address_of_board(query: QueryDict, study: Study) -> str:
    """Address of the page that a link with this query shows, for readers of the study."""
    asked = query.copy()
    key = asked.pop(BOARD)[0]
    return f"{reverse('reports:board', args=[study.slug, int(key)])}?{asked.urlencode()}"


def shared_board(link: ShareLink) -> dict[str, Any]:
    """Return the context of a shared board, which `link_of` has found."""
    board, study = board_of(link), link.indicator.study
    if board is None:
        raise Http404
    window = Window(study.day_of(link.first_day), study.day_of(link.last_day))
    contents = _periods_shown if study.of_events else _days_shown
    context = contents(link, board, window)
    return {
        **context,
        **plain_privacy(current_plan(study), {each.tile.of for each in context["tiles"]}),
        "window_title": window_title(study, window),
        "link": link,
        "is_shared": True,
    }


def _days_shown(link: ShareLink, board: Board, window: Window) -> dict[str, Any]:
    study = link.indicator.study
    visitors = visitor_unions(study)
    context = board_context(board, list(study.indicators.all()), window, visitors=visitors)
    return context | {"missing": missing_days(study, window, visitors=visitors)}


def _periods_shown(link: ShareLink, board: Board, _window: Window) -> dict[str, Any]:
    """Periods of all days of the study."""
    indicators = list(link.indicator.study.indicators.all())
    return events_board_context(board, indicators, asked_period(QueryDict(link.query)))


@require_POST
@readers_only
def remove(request: HttpRequest, slug: str, board_id: int) -> HttpResponse:
    """Remove one's own board, and end the links to it."""
    owner = account(request)
    found = board_or_404(any_study_or_404(request, slug), board_id, reader=owner)
    if found.owner_id != owner.pk:
        raise Http404
    name = found.name
    links = ShareLink.objects.filter(query__startswith=f"{BOARD}={found.pk}&", indicator__study=found.study)
    for link in links.filter(revoked_at=None).select_related("indicator__study"):
        revoke(link, actor=owner.get_username())
    remove_board(found, by=owner)
    messages.success(request, gettext("The board “%(name)s” was removed.") % {"name": name})
    return redirect("reports:boards", slug)
