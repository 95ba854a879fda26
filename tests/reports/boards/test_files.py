"""Boards as PDF and PNG: every shown tile, the map included, drawn on the server."""

import io
from datetime import date
from itertools import pairwise

import pypdf
import pytest
from PIL import Image

from reports.boards import actions
from reports.boards.contents import Shown
from reports.boards.tiles import Kind, Tile, read_tiles
from reports.estimates.queries import Window, window_report
from reports.estimates.texts import KeyFact
from reports.exports.boards.blocks import Block, _content
from reports.exports.boards.document import _next
from reports.exports.boards.drawing import Row, rows_of
from reports.exports.boards.selection import select_board
from reports.exports.drawing.canvas import new_figure
from reports.exports.pdf.document import Document
from reports.models import ExportFile, LedgerEntry, Study
from reports.studies.policies import Role
from tests.reports.page_texts import signed_in, spaced, words

pytestmark = pytest.mark.django_db
ONE_DAY = "from=2024-05-31&to=2024-05-31"
DAY = Window(2, 2)


def ask(client, board, ending, query=ONE_DAY):
    return client.get(f"/studies/fair-2024/boards/{board.pk}/board.{ending}?{query}")


def pages_of(answer):
    return pypdf.PdfReader(io.BytesIO(answer.getvalue())).pages


def text_of(answer):
    return spaced(" ".join(page.extract_text() for page in pages_of(answer)))


def height_of(answer):
    return Image.open(io.BytesIO(answer.getvalue())).size[1]


def test_the_pdf_has_the_tiles_in_letters_and_maps_as_pictures(reader, board, rich):
    tile = actions.add_tile(board, "text:")
    actions.write_text(board, key=tile.key, title="Read this", text="Ask \u6f22\u5b57.")
    actions.change_tile(board, "hide", key=4)
    answer = ask(reader, board, "pdf")
    assert answer["Content-Type"] == "application/pdf"
    text = text_of(answer)
    report = window_report(rich.indicators.get(slug="gender"), DAY)
    shares = [f"{each.consistent:.1%}" for each in report.estimates]
    for found in (
        "For the mayor", "Fri 31 May 2024", "Gender", *shares, "Mean", "Unique visitors", "Read this",
        "Ask \ufffd\ufffd.", "can be distinguished from zero", "Home: map", "Not on the map: NR",
        "Definition of a visitor",
        "The privacy loss (epsilon) of one person's answers",
        "plan version 1 (smp-grr)", "not scaled to the population", "of 100 answers on",
        "Not protected: who was present and on which days",
    ):  # fmt: skip
        assert found in text, found
    assert "Region" not in text
    # Each map is a picture upon its row, and pages are read aloud.
    assert sum(len(page.images) for page in pages_of(answer)) == 2
    assert b"/Alt" in answer.getvalue()


def test_the_png_grows_with_the_tiles_and_is_kept_until_they_change(reader, board):
    whole = ask(reader, board, "png")
    assert whole["Content-Type"] == "image/png"
    assert whole["Content-Disposition"].endswith(f'fair-2024_board_{board.pk}_2024-05-31_2024-05-31.png"')
    picture = Image.open(io.BytesIO(whole.getvalue()))
    assert picture.size[0] == 1400 and "plan_sha256: " in picture.text["Description"]
    made = ExportFile.objects.get().changed_at
    assert ask(reader, board, "png").getvalue() == whole.getvalue()
    assert ExportFile.objects.get().changed_at == made
    actions.change_tile(board, "hide", key=9)
    actions.change_tile(board, "hide", key=10)
    assert height_of(ask(reader, board, "png")) < height_of(whole) - 500
    assert ExportFile.objects.get().changed_at > made


def test_key_figures_are_written_in_full_however_narrow_their_tile_is():
    more = "between a third and three quarters of all visitors; the exact number is not known"
    (block,) = _content(Shown(tile=Tile(key=1, kind=Kind.FIGURES), title="", facts=(
        KeyFact(label="Present on more than one day of the study", value="1 to 2", more=more),
    )), width=1.5)  # fmt: skip
    figure = new_figure(width_in=1.5, height_in=block.height)
    block.draw(figure, 0.0, 0.0)
    written = spaced(" ".join(text.get_text() for text in figure.texts))
    assert written == f"Present on more than one day of the study 1 to 2 {more}"
    renderer = figure.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in figure.texts]
    assert all(box.x1 <= figure.bbox.x1 and box.y0 >= 0 for box in boxes)
    assert all(above.y0 >= below.y1 for above, below in pairwise(boxes))


def test_small_tiles_stand_side_by_side_as_on_the_page(board, rich):
    actions.change_tile(board, "wide", key=4)
    rows = rows_of(select_board(rich, DAY, options=f"board={board.pk}").tiles)
    assert [[tile.tile.key for tile in row.tiles] for row in rows] == [
        [1], [2, 3], [4], [5, 6], [7, 8], [9, 10], [11],
    ]  # fmt: skip
    assert "Gender. Of" in rows[1].words and "Region A: " in rows[2].words


def test_a_file_says_that_places_are_invented_and_what_nr_means(reader, board):
    invented, not_recorded = "the geography on this map is invented", "NR means \u201cnot recorded\u201d"
    text = text_of(ask(reader, board, "pdf"))
    assert invented not in text and text.count(not_recorded) == 1
    Study.objects.update(is_demo=True)
    assert text_of(ask(reader, board, "pdf")).count(invented) == 1


def row_of(key: int, *, height: float, kind: Kind = Kind.INDICATOR) -> Row:
    block = Block(height=height, draw=lambda *_: None)
    tile = Shown(tile=Tile(key=key, kind=kind), title="")
    return Row(tiles=(tile,), width=6.7, blocks=((block,),))


def test_a_low_row_fills_a_page_that_a_high_one_would_leave_half_empty_but_passes_no_text():
    document = Document(
        title="", footer_words="", facts={"software": ""}, last_date=date(2024, 5, 31), has_cover=False
    )
    document.add_page()
    document.set_y(200)
    high, low = row_of(1, height=6), row_of(2, height=1)
    assert _next([low, high], document) is low
    assert _next([high, low], document) is low
    assert _next([high, row_of(3, height=1, kind=Kind.TEXT), low], document) is high
    document.add_page()
    assert _next([high, low], document) is high


def test_suppressed_figures_are_in_no_file(reader, board):
    Study.objects.update(small_cell=10_000_000)
    text = text_of(ask(reader, board, "pdf"))
    assert "This study suppresses date ranges with fewer than" in text
    assert "Unique visitors" not in text and "F 5" not in text


def test_only_those_who_may_take_figures_have_files_of_boards_that_they_see(
    reader, board, viewer, person, administrator
):
    assert ask(signed_in(person("otto", Role.ANALYST)), board, "pdf").status_code == 404
    assert ask(signed_in(viewer), board, "pdf").status_code == 404
    assert ask(reader, board, "csv").status_code == 404
    wrong = ask(reader, board, "png", query="from=2030-01-01")
    assert wrong.status_code == 400 and "date range must lie between" in words(wrong)
    assert not LedgerEntry.objects.filter(kind="export.made").exists()
    board.tiles = board.tiles[:1]
    board.save()
    ask(reader, board, "png")
    entry = LedgerEntry.objects.get(kind="export.made")
    assert entry.actor == "anna" and entry.facts == {
        "way": "page", "file": f"fair-2024_board_{board.pk}_2024-05-31_2024-05-31.png",
        "from": "2024-05-31", "to": "2024-05-31",
    }  # fmt: skip


def test_explanations_fill_the_room_that_no_row_fits(reader, board, rich):
    for tile in read_tiles(board.tiles):
        if tile.kind != Kind.FIGURES:
            actions.change_tile(board, "hide", key=tile.key)
    actions.write_text(
        board, key=actions.add_tile(board, "text:").key, title="Long", text="\n".join(["A line."] * 30)
    )
    pages = [spaced(each.extract_text()) for each in pages_of(ask(reader, board, "pdf"))]
    (place,) = [number for number, text in enumerate(pages) if "How to read the figures" in text]
    assert len(pages) == 2 and place == 0
    assert "Not protected: who was present" in pages[0] and "Key figures" in pages[0]
