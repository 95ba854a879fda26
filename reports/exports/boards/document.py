"""A board as a PDF: its rows of tiles, how to read them, and how answers are protected."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Final, cast

from django.utils.translation import gettext

from reports.boards.tiles import Kind
from reports.exports.boards.drawing import PAGE_IN, Row, draw_row, rows_of
from reports.exports.boards.selection import BoardFile
from reports.exports.drawing.canvas import ONE_AT_A_TIME, letters_stay, new_figure, plain_svg
from reports.exports.drawing.letters import legible_visual
from reports.exports.pdf.document import Document

_MM_AN_INCH: Final = 25.4


def to_pdf(found: BoardFile) -> bytes:
    """All tiles, without a cover; in their order, but for tiles and explanations that fill a page."""
    document = Document(
        title=f"{found.board.name}, {found.days_title}",
        footer_words=legible_visual(found.source_words),
        facts=found.facts,
        last_date=found.last_date,
        has_cover=False,
    )
    document.cover(
        kicker=gettext("Board"),
        title=legible_visual(found.board.name),
        subtitles=[legible_visual(found.study.shown_name), found.days_title],
    )
    with ONE_AT_A_TIME, letters_stay():
        waiting, is_explained = rows_of(found.tiles), False
        while waiting:
            row = _next(waiting, document)
            # Explanations fill a page that has no room for the next row: then they need no further page.
            if not is_explained and not _fits(row, document) and _has_room_to_explain(document, found):
                _explain(document, found)
                is_explained = True
            waiting.remove(row)
            figure = new_figure(width_in=PAGE_IN, height_in=row.height)
            pictures = draw_row(figure, row, left=0.0, top=row.height, are_pictures_apart=True)
            document.drawing(plain_svg(figure), words=row.words, pictures=pictures)
    if not is_explained:
        _explain(document, found)
    return document.finished()


def _explain(document: Document, found: BoardFile) -> None:
    document.heading(gettext("How to read the figures"))
    document.bullets(found.reading_words)


def _has_room_to_explain(document: Document, found: BoardFile) -> bool:
    """Write it and take it back: only the document knows its lines."""
    page = document.page_no()
    with document.offset_rendering() as tried:
        _explain(cast(Document, tried), found)
        return bool(tried.page_no() == page and not tried.page_break_triggered)


def _fits(row: Row, document: Document) -> bool:
    return document.has_room(row.height * _MM_AN_INCH)


def _next(waiting: Sequence[Row], document: Document) -> Row:
    """The first row that the page has room for, so that none stays half empty; no row passes a text tile."""
    free = takewhile(lambda row: all(tile.tile.kind != Kind.TEXT for tile in row.tiles), waiting[1:])
    fitting = (row for row in (waiting[0], *free) if _fits(row, document))
    return next(fitting, waiting[0])
