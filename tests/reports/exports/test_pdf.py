"""The PDF report, read back: its words and numbers, its fonts, language and bookmarks, and its bytes."""

import io
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pypdf
import pytest
from django.utils import translation

from reports import wording
from reports.exports.formats import render_file
from reports.exports.pdf.results import Extent
from reports.exports.selection import Selection, select_days, select_study, select_summary, select_window
from reports.models import DayNote, Study
from reports.options import DaysOptions, ReportOptions, ordered
from reports.selectors import Window
from reports.status import Status
from reports.version import software
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db


def opened(selection: Selection) -> pypdf.PdfReader:
    return pypdf.PdfReader(io.BytesIO(render_file(selection, ending="pdf")))


def text_of(book: pypdf.PdfReader) -> str:
    return " ".join(" ".join(page.extract_text() for page in book.pages).split())


def spaced(text: str) -> str:
    """Text as it is found: any space as one."""
    return " ".join(text.split())


@pytest.fixture
def age(fair: Study) -> Selection:
    return select_window(fair.indicators.get(slug="age"), Window(1, 4))


def test_window_report_has_every_number_of_its_page(age: Selection) -> None:
    text = text_of(opened(age))
    (report,) = age.reports
    for estimate in report.estimates:
        row = (
            estimate.category,
            wording.percent(estimate.frequency),
            wording.share_range(estimate),
            wording.number(estimate.visitors),
            wording.visitors_range(estimate),
            wording.percent(estimate.consistent),
        )
        assert spaced(" ".join(row)) in text
    assert spaced(wording.number(report.n_visitors)) in text
    assert spaced(wording.number(report.n_reports)) in text
    assert spaced(wording.report_summary(report)) in text


def test_row_says_once_that_it_is_not_reliable_so_that_it_fits_on_a_line(age: Selection) -> None:
    (report,) = age.reports
    blank = tuple(replace(estimate, status=Status.NOT_RELIABLE) for estimate in report.estimates)
    text = text_of(opened(replace(age, reports=(replace(report, estimates=blank),))))
    for estimate in blank:
        row = (
            estimate.category,
            "? not reliable",
            wording.share_range(estimate),
            "?",
            wording.visitors_range(estimate),
            "?",
        )
        assert spaced(" ".join(row)) in text


def test_says_who_counts_how_it_was_made_and_what_is_not_protected(age: Selection) -> None:
    text = text_of(opened(age))
    for words in (
        "MOBILITY REPORT",
        "The fair",
        "at least 60 minutes between the first and the last event",
        "Every answer was randomised before it was counted (epsilon 1 for one answer)",
        "Whoever sees one answer of a person can change the odds",
        "Presence: visitor totals are exact counts",
        "pseudonymous, not anonymous",
        f"plan version 1 (smp-grr) · {software()['name']} {software()['version']}",
        age.reports[0].plan.spec_hash,
    ):
        assert words in text
    assert "The whole privacy statement" not in text, "a link that leads nowhere on paper"


def test_days_report_has_every_interval(fair: Study) -> None:
    selection = select_days(fair.indicators.get(slug="stay"))
    text = text_of(opened(selection))
    for report in selection.reports:
        assert spaced(wording.number(report.n_visitors)) in text
        for estimate in report.estimates:
            assert spaced(wording.percent(estimate.frequency)) in text
            assert spaced(wording.share_range(estimate)) in text


def test_study_report_has_all_indicators_with_a_bookmark_each(fair: Study) -> None:
    book = opened(select_study(fair))
    titles = [entry.title for entry in book.outline if not isinstance(entry, list)]
    assert titles[:3] == ["Gender", "Age", "Stay"]
    assert "Method" in titles and "Privacy" in titles
    text = text_of(book)
    for slug in ("gender", "age", "stay"):
        (report,) = select_window(fair.indicators.get(slug=slug), Window(1, 4)).reports
        assert all(spaced(wording.share_range(estimate)) in text for estimate in report.estimates)


def test_is_archivable_and_can_be_read_aloud(age: Selection) -> None:
    content = render_file(age, ending="pdf")
    book = pypdf.PdfReader(io.BytesIO(content))
    root: Any = book.trailer["/Root"]
    assert root["/Lang"] == "en"
    assert root["/MarkInfo"]["/Marked"]
    xmp = book.xmp_metadata
    assert xmp is not None
    assert (xmp.pdfaid_part, xmp.pdfaid_conformance) == ("2", "U")
    title = "Age · The fair, Thu 30 May 2024 to Sun 2 Jun 2024 (4 days)"
    assert xmp.dc_title == {"x-default": title}
    assert "plan_version: 1; mechanism: smp-grr" in xmp.dc_description["x-default"]
    fonts = [font.get_object() for page in book.pages for font in page["/Resources"]["/Font"].values()]
    descriptors = [font["/DescendantFonts"][0]["/FontDescriptor"] for font in fonts]
    assert fonts and all("/FontFile2" in descriptor for descriptor in descriptors)
    (spoken,) = re.findall(rb"/Alt <([0-9a-f]+)>", content)
    assert "largest category" in bytes.fromhex(spoken.decode()).decode("utf-16")


def test_charts_are_vectors_with_words_that_can_be_found(age: Selection) -> None:
    book = opened(age)
    assert not [image for page in book.pages for image in page.images]
    page = book.pages[1].extract_text()
    assert page.count("25 & older") == 2, "in the chart and in the table"


def test_same_data_give_the_same_bytes(age: Selection) -> None:
    assert render_file(age, ending="pdf") == render_file(age, ending="pdf")


def test_only_date_inside_is_the_last_day_of_the_data(age: Selection) -> None:
    content = render_file(age, ending="pdf")
    assert set(re.findall(rb"<xmp:[A-Za-z]*Date>([^<]*)<", content)) == {b"2024-06-02T00:00:00Z"}
    assert not re.findall(rb"D:20\d{6}", content.replace(b"D:20240602", b""))


def test_language_is_that_of_the_reader(age: Selection) -> None:
    with translation.override("fr"):
        book = opened(age)
        assert "RAPPORT DE MOBILITÉ" in text_of(book)
        root: Any = book.trailer["/Root"]
        assert root["/Lang"] == "fr"


def test_blanks_have_their_word_and_their_reason() -> None:
    study = factory.create(factory.GENDER)
    factory.publish(study, factory.absent_on(factory.crowd(study, n=4000), day=3))
    DayNote.objects.create(study=study, day=4, kind="outage", text="mast down at noon", by="adam")
    text = text_of(opened(select_days(study.indicators.get())))
    assert "not collected" in text and "outage" in text.lower()
    assert "mast down at noon" in text
    assert "There is no data of these days, or no answer: this is not zero." in text


def test_nothing_yet_and_suppressed_windows_are_reports_too(fair: Study) -> None:
    Study.objects.update(small_cell=10**6)
    hidden = Study.objects.get()
    text = text_of(opened(select_study(hidden)))
    assert "suppressed" in text and "a policy of the study" in text
    empty = factory.create(slug="empty-2024")
    assert "not collected" in text_of(opened(select_study(empty)))


def test_many_categories_and_long_names_fill_pages_not_margins() -> None:
    names = [f"A category with quite a long name, number {number}" for number in range(60)]
    study = factory.create(factory.indicator("many", *names))
    factory.publish(study, factory.crowd(study))
    book = opened(select_window(study.indicators.get(), Window(1, 4)))
    text = text_of(book)
    assert all(text.count(f"number {number} ") >= 1 for number in range(60))
    assert 6 <= len(book.pages) <= 12


def test_table_and_chart_are_in_the_order_of_the_page() -> None:
    study = factory.create(factory.indicator("size", "small", "medium", "large"))
    people = factory.crowd(study)
    people.static["size"][:] = np.array([2, 2, 2, 1, 1, 0])[np.arange(people.bitmaps.size) % 6]
    factory.publish(study, people)
    options = ReportOptions(order="sorted", measure="visitors")
    selection = select_window(study.indicators.get(), Window(1, 4), options=options)
    text = text_of(opened(selection))
    (report,) = selection.reports
    rows = [
        spaced(f"{estimate.category} {wording.percent(estimate.frequency)} {wording.share_range(estimate)}")
        for estimate in ordered(report, options=options)
    ]
    assert [row.split()[0] for row in rows] == ["large", "medium", "small"]
    places = [text.index(row) for row in rows]
    assert places == sorted(places)
    assert "Visitors. Bars: estimates." in text
    natural = select_window(selection.reports[0].indicator, Window(1, 4))
    assert render_file(natural, ending="pdf") != render_file(selection, ending="pdf")


def test_days_report_has_visitors_where_the_page_has(fair: Study) -> None:
    selection = select_days(fair.indicators.get(slug="age"), options=DaysOptions(measure="visitors"))
    text = text_of(opened(selection))
    for report in selection.reports:
        for estimate in report.estimates:
            assert spaced(f"{wording.number(estimate.visitors)} {wording.visitors_range(estimate)}") in text
    assert "Visitors of each day. Points" in text


def test_many_days_of_many_categories_have_tables_of_the_chart() -> None:
    study = factory.create(factory.indicator("many", *(f"Place {n}." for n in range(100))), days=62)
    factory.publish(study, factory.crowd(study))
    selection = select_days(study.indicators.get(), categories=[3, 99])
    book = opened(selection)
    text = text_of(book)
    assert (
        "The tables have the 2 categories of the chart; the data files (CSV, XLSX, JSON) have all 100."
        in text
    )
    assert {int(n) for n in re.findall(r"Place (\d+)\.", text)} == {3, 99}
    assert len(book.pages) <= 12, "six thousand cells were 100 pages"
    assert "Place 57." in render_file(selection, ending="csv").decode()


def test_few_cells_are_all_there(fair: Study) -> None:
    text = text_of(opened(select_days(fair.indicators.get(slug="age"), categories=[0])))
    assert "The tables have the" not in text
    assert text.count("25 & older") >= 1


def test_extent_of_a_document_is_shared_by_its_indicators() -> None:
    shared = [(extent.categories, extent.cells) for extent in map(Extent.of, (1, 2, 7, 100))]
    assert shared == [(140, 1500), (140, 750), (40, 214), (8, 15)]


def test_summary_of_a_study_reads_the_same_as_all_its_windows(fair: Study) -> None:
    summary = select_summary(fair)
    assert [report.window for report in summary.reports] == [Window(1, 4)] * 3
    assert render_file(summary, ending="pdf") == render_file(select_study(fair), ending="pdf")


def test_summary_has_days_where_there_are_no_unions() -> None:
    study = factory.create(factory.GENDER, replace(factory.STAY, max_values=2))
    factory.publish(study, factory.crowd(study))
    windows = [report.window for report in select_summary(study).reports]
    assert windows == [Window(1, 4), *(Window(day, day) for day in range(1, 5))]
