"""Names in letters that the font of drawn files lacks: replaced visibly, told apart, complete elsewhere."""

import io

import pypdf
import pytest
from PIL import Image

from reports.exports.formats import render_file
from reports.exports.letters import (
    REPLACEMENT,
    legible,
    legible_selection,
    legible_visual,
    letters_note,
    visual,
)
from reports.exports.selection import Selection, select_study, select_window
from reports.models import DayNote, Study
from reports.selectors import Window
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db
TOWN, HARBOUR = "\u6f22\u5b57", "\u6e2f\u53e3"


@pytest.fixture
def far() -> Study:
    study = factory.create(factory.indicator("place", "Belfort", TOWN, HARBOUR), name=f"Fair of {TOWN}")
    factory.publish(study, factory.crowd(study))
    DayNote.objects.create(study=study, day=2, kind="event", text=f"parade in {TOWN}", by="adam")
    return study


@pytest.fixture
def window(far: Study) -> Selection:
    return select_window(far.indicators.get(), Window(1, 4))


def test_known_letters_stay() -> None:
    for text in ("Évry\u202f%", "Ελλάδα", "Київ", "\u0645\u0631\u062d\u0628\u0627", "a\nb\tc", ""):
        assert legible(text) == text
    assert legible(f"x{TOWN}y") == f"x{REPLACEMENT * 2}y"


def test_names_from_right_to_left_are_in_the_order_that_is_seen() -> None:
    peace = "\u05e9\u05dc\u05d5\u05dd"
    assert visual(peace) == peace[::-1]
    assert visual(f"{peace} 2024") == f"2024 {peace[::-1]}"
    assert visual(f"Fair {peace}") == f"Fair {peace[::-1]}"
    for text in ("Évry", "", TOWN):
        assert visual(text) == text
    assert legible_visual(f"{peace}{TOWN[0]}") == f"{REPLACEMENT}{peace[::-1]}"
    study = factory.create(factory.indicator("word", peace, "peace"), name=peace)
    factory.publish(study, factory.crowd(study))
    selection = select_window(study.indicators.get(), Window(1, 4))
    assert letters_note(selection) == ""
    book = pypdf.PdfReader(io.BytesIO(render_file(selection, ending="pdf")))
    # The reader takes letters as they stand from right to left, as people do.
    assert all(peace in page.extract_text() for page in book.pages[:2])


def test_two_names_remain_two(window: Selection) -> None:
    (report,) = legible_selection(window).reports
    names = ["Belfort", f"{REPLACEMENT * 2} (2)", f"{REPLACEMENT * 2} (3)"]
    assert [estimate.category for estimate in report.estimates] == names
    assert list(report.indicator.categories) == names
    assert report.study.name == report.indicator.study.name == f"Fair of {REPLACEMENT * 2}"
    assert [note.text for note in report.notes] == [f"parade in {REPLACEMENT * 2}"]


def test_what_was_selected_stays_as_it_is(window: Selection, far: Study) -> None:
    legible_selection(window)
    (report,) = window.reports
    assert [estimate.category for estimate in report.estimates] == ["Belfort", TOWN, HARBOUR]
    assert list(report.indicator.categories) == ["Belfort", TOWN, HARBOUR]
    assert (window.study.name, report.notes[0].text) == (f"Fair of {TOWN}", f"parade in {TOWN}")


def test_names_that_can_be_drawn_need_no_note(fair: Study) -> None:
    selection = select_study(fair)
    assert legible_selection(selection) is selection
    assert letters_note(selection) == ""


def test_pdf_says_on_its_cover_what_the_sign_means(window: Selection) -> None:
    book = pypdf.PdfReader(io.BytesIO(render_file(window, ending="pdf")))
    cover = " ".join(book.pages[0].extract_text().split())
    assert letters_note(window) in cover
    assert f"Fair of {REPLACEMENT * 2}" in cover
    whole = " ".join(page.extract_text() for page in book.pages)
    assert f"{REPLACEMENT * 2} (3)" in whole and TOWN[0] not in whole
    assert book.xmp_metadata is not None and TOWN in book.xmp_metadata.dc_title["x-default"]


def test_pictures_say_it_too_and_their_metadata_are_complete(window: Selection) -> None:
    svg = render_file(window, ending="svg").decode()
    assert f"<!-- {REPLACEMENT * 2} (2) -->" in svg and f"<!-- {TOWN} -->" not in svg
    assert "a letter that the font of this file lacks" in svg
    picture = Image.open(io.BytesIO(render_file(window, ending="png")))
    assert TOWN in picture.info["Title"]


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_data_files_have_the_names_complete(window: Selection, ending: str) -> None:
    content = render_file(window, ending=ending).decode()
    assert TOWN in content and HARBOUR in content and REPLACEMENT not in content
