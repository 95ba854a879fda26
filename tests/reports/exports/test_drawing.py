"""PNG and SVG: what they show, what they say of themselves, and that they say it again."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from defusedxml import ElementTree as ET
from PIL import Image

from reports.exports import drawing
from reports.exports.formats import render_file
from reports.exports.selection import Selection, select_days, select_window
from reports.models import Study
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


def filled(svg: bytes, colour: str) -> int:
    """Shapes of a colour."""
    return len(re.findall(rf"fill: {colour}", svg.decode()))


def test_colours_are_those_of_the_pages() -> None:
    light = STYLES.split("@media (prefers-color-scheme: dark)", 1)[0]
    on_pages = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", light))
    assert {name: on_pages[name] for name in drawing.COLOURS} == drawing.COLOURS


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
    svg = render_file(selection, ending="svg").decode()
    shapes = re.findall(
        rf'd="M ([\d.]+) [\d.]+ \nL ([\d.]+) [^"]*" [^>]*fill: {drawing.COLOURS["--chart-1"]}', svg
    )
    widths = [float(right) - float(left) for left, right in shapes]
    shares = [estimate.frequency or 0.0 for estimate in selection.reports[0].estimates]
    assert len(widths) == 3
    assert [width / widths[0] for width in widths] == pytest.approx([s / shares[0] for s in shares], abs=1e-3)


def test_what_is_not_to_be_read_has_a_word_and_no_bar(fair: Study) -> None:
    selection = select_window(fair.indicators.get(slug="age"), Window(1, 4))
    (report,) = selection.reports
    first, *others = report.estimates
    blank = replace(report, estimates=(replace(first, status=Status.NOT_RELIABLE), *others))
    svg = render_file(replace(selection, reports=(blank,)), ending="svg")
    assert filled(svg, drawing.COLOURS["--chart-1"]) == 2
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
