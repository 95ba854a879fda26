"""Making, arranging, sharing and removing boards. The ledger records all but the arranging."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext

from reports.boards.models import Board, BoardDigest, BoardUse
from reports.boards.offers import all_figures, offers_of, tiles_of
from reports.boards.tiles import (
    MAX_TEXT,
    MAX_TILES,
    MAX_TITLE,
    Tile,
    changed,
    moved,
    read_tiles,
    with_tile,
    without,
    write_tiles,
)
from reports.estimates.options import CHOICES
from reports.ledger.actions import record
from reports.ledger.chain import Json
from reports.ledger.models import LedgerKind
from reports.studies.models import Study
from reports.studies.policies import may_open
from reports.studies.studyfile.table import is_one_line

MAX_NAME: Final = 80
MAX_BOARDS: Final = 50  # of an account in a study
USE_NOTED_EVERY: Final = timedelta(minutes=1)  # a write for every answer would slow all readers
Change = Callable[[list[Tile], int], list[Tile]]


def _with_classes(tiles: list[Tile], key: int, *, classes: str) -> list[Tile]:
    return changed(tiles, key, classes=classes)


# Changes by the value of a button.
CHANGES: Final[Mapping[str, Change]] = {
    "up": lambda tiles, key: moved(tiles, key, step=-1),
    "down": lambda tiles, key: moved(tiles, key, step=1),
    "wide": lambda tiles, key: changed(tiles, key, is_wide=True),
    "small": lambda tiles, key: changed(tiles, key, is_wide=False),
    "hide": lambda tiles, key: changed(tiles, key, is_hidden=True),
    "show": lambda tiles, key: changed(tiles, key, is_hidden=False),
    "frequency": lambda tiles, key: changed(tiles, key, measure="frequency"),
    "visitors": lambda tiles, key: changed(tiles, key, measure="visitors"),
    **{name: partial(_with_classes, classes=name) for name in CHOICES["classes"]},
    "remove": without,
}


class BoardError(ValueError):
    """A board cannot be like that; the text is for the person who asked."""


@transaction.atomic
def create_board(study: Study, *, name: str, by: User, tiles: Sequence[Tile] | None = None) -> Board:
    """Make a board of one's own with these tiles, at most MAX_TILES; None: with all figures of the study.

    BoardError if the name is taken or out of range, or there are too many boards.
    """
    if Board.objects.filter(study=study, owner=by).count() >= MAX_BOARDS:
        text = gettext(
            "You already have %(n)d boards for this study. Remove a board that you no longer need."
        )
        raise BoardError(text % {"n": MAX_BOARDS})
    found = tiles_of(all_figures(study)[:MAX_TILES]) if tiles is None else tiles
    board = Board(study=study, owner=by, name=_checked_name(name), tiles=write_tiles(found))
    _save(board)
    _record(board, "created", by=by)
    return board


@transaction.atomic
def rename_board(board: Board, *, name: str, is_shared: bool, by: User) -> None:
    """Change name and readers of a board; BoardError if the name is taken, or `by` may not share."""
    if is_shared and not board.is_shared and not may_open(by):
        raise BoardError(gettext("Only analysts and administrators can share a board."))
    was_shared = board.is_shared
    board.name, board.is_shared = _checked_name(name), is_shared
    _save(board)
    if is_shared != was_shared:
        _record(board, "shared" if is_shared else "unshared", by=by)


@transaction.atomic
def remove_board(board: Board, *, by: User) -> None:
    """Remove a board; links to it lead nowhere from now on."""
    for digest in board.digests.all():
        record_digest(digest, "ended", actor=by.get_username())
    _record(board, "removed", by=by)
    board.delete()


def record_digest(
    digest: BoardDigest, change: str, *, actor: str, facts: Mapping[str, Json] | None = None
) -> None:
    """Enter a change of a digest in the ledger, without the addresses: they are of people."""
    said: dict[str, Json] = {"digest": str(digest.pk), "board": str(digest.board_id), "change": change}
    record(LedgerKind.DIGEST, actor=actor, study=digest.board.study.slug, facts=said | dict(facts or {}))


def change_tile(board: Board, change: str, *, key: int) -> None:
    """Do what a button of a tile says, one of CHANGES; nothing happens when the tile is gone."""
    _arrange(board, lambda tiles: CHANGES[change](tiles, key), key=key)


def write_text(board: Board, *, key: int, title: str, text: str) -> None:
    """Replace the words of a text tile; BoardError if they are too long."""
    title, text = title.strip(), text.replace("\r\n", "\n").strip()
    if len(title) > MAX_TITLE or not is_one_line(title):
        raise BoardError(
            gettext("The title must be a single line of at most %(n)d characters.") % {"n": MAX_TITLE}
        )
    if len(text) > MAX_TEXT or not is_one_line(text.replace("\n", "")):
        raise BoardError(
            gettext("The text must have at most %(n)d characters, all of them printable.") % {"n": MAX_TEXT}
        )
    _arrange(board, lambda tiles: changed(tiles, key, title=title, text=text), key=key)


def add_tile(board: Board, value: str) -> Tile:
    """Add a tile that the study offers (`Offer.value`) at the end; BoardError if there is no room for it."""
    offer = next((each for each in offers_of(board.study) if each.value == value), None)
    if offer is None:
        raise BoardError(gettext("Choose a tile from the list."))
    found: list[Tile] = []

    def added(tiles: list[Tile]) -> list[Tile]:
        if len(tiles) >= MAX_TILES:
            text = gettext("A board has at most %(n)d tiles. Remove a tile that you no longer need.")
            raise BoardError(text % {"n": MAX_TILES})
        more = with_tile(tiles, offer.kind, of=offer.of)
        found.append(more[-1])
        return more

    _arrange(board, added)
    return found[0]


def note_use(board: Board, *, by: User) -> None:
    """Keep when an account opened a board, to the minute."""
    now = timezone.now()
    use, is_new = BoardUse.objects.get_or_create(board=board, account=by, defaults={"at": now})
    if not is_new and now - use.at > USE_NOTED_EVERY:
        BoardUse.objects.filter(pk=use.pk).update(at=now)


@transaction.atomic
def _arrange(board: Board, change: Callable[[list[Tile]], list[Tile]], *, key: int | None = None) -> None:
    """Change the tiles of a board as they are now, which another window may have changed."""
    locked = Board.objects.select_for_update().get(pk=board.pk)
    tiles = read_tiles(locked.tiles)
    if key is None or any(tile.key == key for tile in tiles):
        locked.tiles = write_tiles(change(tiles))
        locked.save(update_fields=["tiles"])


def _save(board: Board) -> None:
    """Save a board; BoardError if its owner has another one of that name."""
    try:
        with transaction.atomic():
            board.save()
    except IntegrityError as error:
        text = gettext("You already have a board named “%(name)s” for this study.")
        raise BoardError(text % {"name": board.name}) from error


def _checked_name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME or not is_one_line(name):
        raise BoardError(gettext("A name must have 1 to %(n)d printable characters.") % {"n": MAX_NAME})
    return name


def _record(board: Board, change: str, *, by: User) -> None:
    facts = {"board": str(board.pk), "change": change}
    record(LedgerKind.BOARD_CHANGED, actor=by.get_username(), study=board.study.slug, facts=facts)
