"""Pages of boards: the list of a study, one board, and the form that arranges it."""

from collections.abc import Iterable
from enum import StrEnum
from itertools import count
from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from reports.accounts.access import account, any_study_or_404, readers_only
from reports.boards import actions
from reports.boards.contents import board_context
from reports.boards.events import events_board_context
from reports.boards.models import Board
from reports.boards.offers import Offer, offers_of, proposed, tiles_of, titles
from reports.boards.queries import board_or_404, boards_of
from reports.boards.tiles import MAX_TEXT, MAX_TILES, MAX_TITLE, Kind, Tile, read_tiles
from reports.estimates.options import ReportOptions
from reports.estimates.page import weekdays, widest_indicator, window_page
from reports.estimates.picker import kept_days, requested_window
from reports.estimates.queries import Window, WindowError, visitor_unions
from reports.events.queries import asked_period
from reports.events.texts import period_switches
from reports.studies.models import Study
from reports.studies.policies import may_open
from reports.studies.texts import crumbs_to, with_query

ARRANGE: Final = "arrange"


class Start(StrEnum):
    """Tiles of a new board; the value of any other choice is the key of the board to copy."""

    CHOSEN = "chosen"
    ALL = "all"
    NONE = "none"


class BoardForm(forms.Form):
    """Form of a new board: its name, and the figures or the board that it begins with."""

    name = forms.CharField(label=_("Name of the board"), max_length=actions.MAX_NAME)
    start = forms.ChoiceField(label=_("Start with"))  # choices are set for each reader and study
    figures = forms.MultipleChoiceField(required=False)

    def __init__(self, data: object = None, *, study: Study, reader: Any) -> None:
        self.offers = {each.value: each for each in offers_of(study) if each.kind != Kind.TEXT}
        self.boards = {str(each.pk): each for each in boards_of(study, reader=reader)}
        initial = {
            "name": _free_name(self.boards.values(), reader=reader),
            "start": Start.CHOSEN,
            "figures": [each.value for each in proposed(study)],
        }
        super().__init__(data, initial=initial)  # type: ignore[arg-type]
        start: Any = self.fields["start"]
        start.choices = [
            (Start.CHOSEN, gettext("Selected figures")),
            (Start.ALL, gettext("All figures for this study")),
            (Start.NONE, gettext("No figures (an empty board)")),
            *(
                [(gettext("A copy of"), [(key, each.name) for key, each in self.boards.items()])]
                if self.boards
                else []
            ),
        ]
        figures: Any = self.fields["figures"]
        figures.choices = [(value, "") for value in self.offers]

    def clean(self) -> None:
        super().clean()
        is_chosen = self.cleaned_data.get("start") == Start.CHOSEN
        if is_chosen and len(self.cleaned_data.get("figures", ())) > MAX_TILES:
            text = gettext("A board has at most %(n)d tiles. Select fewer figures.")
            self.add_error("figures", text % {"n": MAX_TILES})

    def tiles(self) -> list[Tile] | None:
        """Tiles that were asked for; None: all figures."""
        start = self.cleaned_data["start"]
        if start in self.boards:
            return read_tiles(self.boards[start].tiles)
        if start == Start.ALL:
            return None
        chosen = self.cleaned_data["figures"] if start == Start.CHOSEN else ()
        return tiles_of([offer for value, offer in self.offers.items() if value in chosen])


@require_http_methods(["GET", "POST"])
@readers_only
def boards(request: HttpRequest, slug: str) -> HttpResponse:
    """List the boards of a study, and make one."""
    study, reader = any_study_or_404(request, slug), account(request)
    form = BoardForm(request.POST or None, study=study, reader=reader)
    if request.method == "POST" and form.is_valid():
        try:
            name = form.cleaned_data["name"]
            board = actions.create_board(study, name=name, by=reader, tiles=form.tiles())
        except actions.BoardError as error:
            form.add_error("name", str(error))
        else:
            arranged = {} if board.tiles else {ARRANGE: "on"}
            query = urlencode(_days(request) | arranged)
            return redirect(f"{board_address(board)}{'?' if query else ''}{query}")
    context = {
        "study": study,
        "boards": form.boards.values(),
        "form": form,
        "figures": _grouped(form.offers.values()),
        "query": urlencode(_days(request)),
        "crumbs": crumbs_to(study, kept_days(request.GET, study)),
    }
    return render(request, "boards/boards.html", context, status=400 if form.errors else 200)


@require_safe
@readers_only
@gzip_page  # a map of thousands of zones is a megabyte
def board(request: HttpRequest, slug: str, board_id: int) -> HttpResponse:
    """Show one board in the days or periods of the address; its owner can arrange it there."""
    study, reader = any_study_or_404(request, slug), account(request)
    found = board_or_404(study, board_id, reader=reader)
    if request.method == "GET":
        actions.note_use(found, by=reader)
    days = kept_days(request.GET, study)
    is_own = found.owner_id == reader.pk
    is_arranged = is_own and request.GET.get(ARRANGE) == "on"
    contents = _periods_shown if study.of_events else _days_shown
    context, status = contents(request, found, with_hidden=is_arranged)
    context |= {
        "is_own": is_own,
        "is_arranged": is_arranged,
        "may_share": may_open(reader),
        "may_send": may_open(reader) and bool(settings.MOBILITY_DIGEST_DOMAINS),
        "crumbs": [
            *crumbs_to(study, days),
            (gettext("Boards"), with_query(reverse("reports:boards", args=[slug]), days)),
        ],
    }
    if is_arranged:
        context |= {"offers": _grouped(offers_of(study)), "max_title": MAX_TITLE, "max_text": MAX_TEXT}
    return render(request, "boards/board.html", context, status=status)


def _days_shown(request: HttpRequest, board: Board, *, with_hidden: bool) -> tuple[dict[str, Any], int]:
    """Contents in the days of the address, and the status of the answer."""
    study, status = board.study, 200
    visitors, indicators = visitor_unions(study), list(study.indicators.all())
    indicator = widest_indicator(indicators)
    try:
        window = requested_window(request.GET, indicator=indicator, visitors=visitors)
    except WindowError as error:
        window, status = Window(1, study.days), 400
        messages.error(request, str(error))
    context = board_context(board, indicators, window, visitors=visitors, with_hidden=with_hidden)
    context |= window_page(indicator, window, visitors=visitors, options=ReportOptions())
    return context | {"weekdays": weekdays()}, status


def _periods_shown(request: HttpRequest, board: Board, *, with_hidden: bool) -> tuple[dict[str, Any], int]:
    """Contents in periods of the kind in the address."""
    kind = asked_period(request.GET)
    arranged = f"{ARRANGE}=on" if with_hidden else ""
    context = events_board_context(board, list(board.study.indicators.all()), kind, with_hidden=with_hidden)
    return context | {"query": f"period={kind}", "switches": period_switches(kind, kept=arranged)}, 200


@require_POST
@readers_only
def change(request: HttpRequest, slug: str, board_id: int) -> HttpResponse:
    """Do what a button says, and go back to the tile; scripts get no page."""
    found = board_or_404(any_study_or_404(request, slug), board_id, reader=account(request))
    if found.owner_id != account(request).pk:
        raise Http404
    try:
        tile = _changed(request, found)
    except actions.BoardError as error:
        messages.error(request, str(error))
        tile = None
    if request.htmx and tile is not None:  # type: ignore[attr-defined]
        return HttpResponse(status=204)
    if tile is not None:
        messages.success(request, gettext("The board was saved."))
    place = f"#tile-{tile}" if tile else ""
    return redirect(f"{board_address(found)}?{urlencode(_days(request) | {ARRANGE: 'on'})}{place}")


def board_address(board: Board) -> str:
    """Address of the page of a board."""
    return reverse("reports:board", args=[board.study.slug, board.pk])


def _changed(request: HttpRequest, board: Board) -> int | None:
    """Key of the tile that was changed; 0 where the board was, None if nothing is known of that."""
    asked, text = request.POST.get("do", ""), request.POST.get("tile", "")
    key = int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else 0
    if asked in actions.CHANGES:
        actions.change_tile(board, asked, key=key)
        return key
    if asked == "text":
        words = {name: request.POST.get(name, "") for name in ("title", "text")}
        actions.write_text(board, key=key, **words)
        return key
    if asked == "add":
        return actions.add_tile(board, request.POST.get("offer", "")).key
    if asked == "name":
        name, is_shared = request.POST.get("name", ""), "is_shared" in request.POST
        actions.rename_board(board, name=name, is_shared=is_shared, by=account(request))
        return 0
    return None


def _days(request: HttpRequest) -> dict[str, str]:
    """Days or kind of period in the address, for the next one."""
    return {name: request.GET[name] for name in ("from", "to", "period") if name in request.GET}


def _free_name(boards: Iterable[Board], *, reader: Any) -> str:
    """Name for a new board, which its owner can change."""
    taken = {each.name for each in boards if each.owner_id == reader.pk}
    names = (gettext("Board %(n)d") % {"n": n} for n in count(1))
    return next(name for name in names if name not in taken)


def _grouped(offers: Iterable[Offer]) -> list[tuple[str, list[Offer]]]:
    """Offers under the names of their kinds; those without an indicator have no further name."""
    groups = [(title, [each for each in offers if each.kind == kind]) for kind, title in titles().items()]
    return [group for group in groups if group[1]]
