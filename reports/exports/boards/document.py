"""A board as a PDF: its rows of tiles, how to read them, and how answers are protected."""

from django.utils.translation import gettext

from reports.exports.boards.drawing import PAGE_IN, draw_row, rows_of
from reports.exports.boards.selection import BoardFile
from reports.exports.drawing.canvas import ONE_AT_A_TIME, letters_stay, new_figure, plain_svg
from reports.exports.drawing.letters import legible_visual
from reports.exports.pdf.document import Document


def to_pdf(found: BoardFile) -> bytes:
    """All tiles in their order, without a cover."""
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
        for row in rows_of(found.tiles):
            figure = new_figure(width_in=PAGE_IN, height_in=row.height)
            pictures = draw_row(figure, row, left=0.0, top=row.height, are_pictures_apart=True)
            document.drawing(plain_svg(figure), words=row.words, pictures=pictures)
    document.heading(gettext("How to read the figures"))
    document.bullets(found.reading_words)
    return document.finished()
