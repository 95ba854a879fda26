"""Boards that an account may open, and those that it opened last."""

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import Http404

from reports.boards.models import Board, BoardUse
from reports.studies.models import Study


def boards_of(study: Study, *, reader: User) -> QuerySet[Board]:
    """Boards of a study that a reader of the study may open: the own ones and shared ones, by name."""
    return Board.objects.filter(study=study).filter(_visible_to(reader)).select_related("owner")


def board_or_404(study: Study, board_id: int, *, reader: User) -> Board:
    """A board that a reader of the study may open."""
    board = boards_of(study, reader=reader).filter(pk=board_id).first()
    if board is None:
        raise Http404
    board.study = study
    return board


def boards_last_used(reader: User, *, among: QuerySet[Study], at_most: int) -> list[Board]:
    """Boards of some studies that a reader opened last, the latest first."""
    uses = BoardUse.objects.filter(account=reader, board__study__in=among)
    visible = Board.objects.filter(_visible_to(reader))
    latest = uses.filter(board__in=visible).select_related("board__study").order_by("-at", "-pk")
    latest = latest.prefetch_related("board__study__indicators")
    return [use.board for use in latest[:at_most]]


def _visible_to(reader: User) -> Q:
    return Q(owner=reader) | Q(is_shared=True)
