"""PNG and SVG: what they show, what they say of themselves, and that they say it again."""

import html
import io
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from defusedxml import ElementTree as ET
from PIL import Image

from reports import wording
from reports.exports import canvas, drawing
from reports.exports.formats import render_file
from reports.exports.selection import Selection, select_days, select_window
from reports.models import Study
from reports.options import DaysOptions, ReportOptions, ordered, shown_value
from reports.selectors import Window
from reports.status import Status
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db
STYLES = (Path(__file__).parents[3] / "static/css/app.css").read_text()
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(params=["window", "days"])
def drawn(request: pytest.FixtureRequest, fair: Study) -> Selection:
    age = fair.indicators.get(slug="age")
    return select_days(age) if request.param == "days" else select_window(age, Window(1, 4))


def texts(svg: bytes) -> list[str]:
    """What is written in a chart, in the order of drawing: before its outlines, each text is a comment."""
    return [html.unescape(text) for text in re.findall(r"<!-- (.*?) -->", svg.decode(), re.DOTALL)]


def bar_widths(svg: bytes) -> list[float]:
    shapes = re.findall(
        rf'd="M ([\d.]+) [\d.]+ \nL ([\d.]+) [^"]*" [^>]*fill: {canvas.COLOURS["--chart-1"]}', svg.decode()
    )
    return [float(right) - float(left) for left, right in shapes]


def filled(svg: bytes, colour: str) -> int:
    """Shapes of a colour."""
    return len(re.findall(rf"fill: {colour}", svg.decode()))


def test_colours_are_those_of_the_pages() -> None:
    light = STYLES.split("@media (prefers-color-scheme: dark)", 1)[0]
    on_pages = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", light))
    assert {name: on_pages[name] for name in canvas.COLOURS} == canvas.COLOURS


def test_png_is_a_picture_that_explains_itself(drawn: Selection) -> None:
    content = render_file(drawn, ending="png")
    picture = Image.open(io.BytesIO(content))
    picture.load()
    assert picture.width == 1520
    assert picture.info["Title"] == "Age · The fair"
    assert "plan_version: 1; mechanism: smp-grr" in picture.info["Description"]
    colours = picture.convert("RGB").getcolors(2**24)
    assert colours is not None and len(colours) > 50, "something is drawn"


def test_svg_has_a_title_and_no_address_of_another_host(drawn: Selection) -> None:
    root = ET.fromstring(render_file(drawn, ending="svg"))
    title = root.find(f"{SVG}title")
    assert title is not None and title.text == "Age · The fair"
    links = [value for node in root.iter() for name, value in node.attrib.items() if name.endswith("href")]
    assert links and all(link.startswith("#") for link in links)
    assert not list(root.iter(f"{SVG}image")) and not list(root.iter(f"{SVG}script"))


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_same_data_give_the_same_bytes(drawn: Selection, ending: str) -> None:
    assert render_file(drawn, ending=ending) == render_file(drawn, ending=ending)


def test_every_category_has_a_bar_of_its_length(fair: Study) -> None:
    selection = select_window(fair.indicators.get(slug="age"), Window(1, 4))
    widths = bar_widths(render_file(selection, ending="svg"))
    shares = [estimate.frequency or 0.0 for estimate in selection.reports[0].estimates]
    assert len(widths) == 3
    assert [width / widths[0] for width in widths] == pytest.approx([s / shares[0] for s in shares], abs=1e-3)


def test_what_is_not_to_be_read_has_a_word_and_no_bar(fair: Study) -> None:
    selection = select_window(fair.indicators.get(slug="age"), Window(1, 4))
    (report,) = selection.reports
    first, *others = report.estimates
    blank = replace(report, estimates=(replace(first, status=Status.NOT_RELIABLE), *others))
    svg = render_file(replace(selection, reports=(blank,)), ending="svg")
    assert filled(svg, canvas.COLOURS["--chart-1"]) == 2
    assert b"not reliable" in svg, "letters are outlines, but each text stands in a comment"
    assert b"not reliable" not in render_file(selection, ending="svg")


def test_names_with_dollars_and_angles_are_drawn_as_they_are() -> None:
    study = factory.create(factory.indicator("odd", "$x^2$", "<b>&</b>", "\N{GREEK SMALL LETTER EPSILON}"))
    factory.publish(study, factory.crowd(study))
    selection = select_window(study.indicators.get(), Window(1, 4))
    ET.fromstring(render_file(selection, ending="svg"))
    assert render_file(selection, ending="png")


def test_empty_window_and_empty_days_are_drawn_with_their_word() -> None:
    study = factory.create()
    age = study.indicators.get(slug="age")
    assert b"not collected" in render_file(select_window(age, Window(1, 4)), ending="svg")
    assert b"not collected" in render_file(select_days(age), ending="svg")


WAYS = [
    ReportOptions(order=order, measure=measure, values=values)
    for order in ("natural", "sorted")
    for measure in ("frequency", "visitors")
    for values in ("unbiased", "consistent")
]


@pytest.fixture
def uneven() -> Study:
    """A study with shares of all sizes, not in their order, and a negative estimate."""
    study = factory.create(
        factory.indicator("zone", *"ABCDEF"), epsilon="0.4", market_share=Decimal("0.5"), slug="uneven-2024"
    )
    people = factory.crowd(study)
    people.static["zone"][:] = np.array([4, 1, 1, 4, 4, 2, 4])[np.arange(people.bitmaps.size) % 7]
    factory.publish(study, people)
    return study


@pytest.mark.parametrize("options", WAYS, ids=lambda way: f"{way.order}-{way.measure}-{way.values}")
def test_window_is_drawn_as_the_page_shows_it(uneven: Study, options: ReportOptions) -> None:
    selection = select_window(uneven.indicators.get(), Window(1, 4), options=options)
    (report,) = selection.reports
    estimates = ordered(report, options=options)
    assert {estimate.status for estimate in estimates} == {"ok"}
    values = [shown_value(report, estimate, options=options).value or 0.0 for estimate in estimates]
    assert min(value for value in (e.frequency or 0.0 for e in estimates)) < 0
    svg = render_file(selection, ending="svg")
    names = [text for text in texts(svg) if text in set("ABCDEF")]
    assert names == [estimate.category for estimate in estimates]
    word = wording.percent if options.measure == "frequency" else wording.number
    assert [text for text in texts(svg) if text in map(word, values)][-6:] == [word(v) for v in values]
    assert bar_widths(svg) == pytest.approx(
        [value / max(values) * max(bar_widths(svg)) for value in values], abs=0.01
    )
    said = " ".join(texts(svg))
    assert ("Share of visitors." in said) == (options.measure == "frequency")
    assert ("market share is 50" in said) == (options.measure == "visitors")
    assert ("which have no error of their own" in said) == (options.values == "consistent")


@pytest.mark.parametrize("form", ["lines", "multiples"])
@pytest.mark.parametrize("measure", ["frequency", "visitors"])
def test_days_have_the_chosen_categories_in_the_chosen_form(uneven: Study, form: str, measure: str) -> None:
    options = DaysOptions(form=form, measure=measure)
    selection = select_days(uneven.indicators.get(), options=options, categories=[0, 2, 4])
    svg = render_file(selection, ending="svg")
    assert [text for text in texts(svg) if text in set("ABCDEF")] == ["A", "C", "E"]
    assert len(set(re.findall(r'id="(axes_\d+)"', svg.decode()))) == (3 if form == "multiples" else 1)
    title = "Share of each day's visitors" if measure == "frequency" else "Visitors of each day"
    assert f"{title}. Points" in " ".join(texts(svg))
    is_share = any(re.fullmatch(r"[\d.]+\s%", text) for text in texts(svg))
    assert is_share == (measure == "frequency")


def test_cumulated_days_are_unions(fair: Study) -> None:
    age = fair.indicators.get(slug="age")
    selection = select_days(age, options=DaysOptions(show="cumulative"))
    assert [report.window for report in selection.reports] == [Window(1, day) for day in range(1, 5)]
    assert selection.name == "fair-2024_age_cumulative"
    said = " ".join(texts(render_file(selection, ending="svg")))
    assert "From the first day up to each day: Thu 30 May" in said
    assert "Share of the visitors from the first day up to each day. Points" in said


def test_small_plots_of_days_without_answers_are_empty() -> None:
    age = factory.create().indicators.get(slug="age")
    svg = render_file(select_days(age, options=DaysOptions(form="multiples")), ending="svg")
    assert "25 & older" in texts(svg)


def test_more_categories_than_a_picture_bears_are_cut_in_words() -> None:
    study = factory.create(factory.indicator("many", *(f"number {n}" for n in range(150))))
    factory.publish(study, factory.crowd(study))
    svg = render_file(select_window(study.indicators.get(), Window(1, 4)), ending="svg")
    names = [text for text in texts(svg) if re.fullmatch(r"number \d+", text)]
    assert names == [f"number {n}" for n in range(drawing.MAX_CATEGORIES)]
    assert "The first 140 of 150 categories; the data files (CSV, XLSX, JSON) have all." in " ".join(
        texts(svg)
    )
