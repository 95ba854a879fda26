"""Drawings: PNG, SVG and PDF, their content and metadata, equal on each run."""

import html
import io
import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import geopandas
import numpy as np
import pyarrow.parquet as pq
import pypdf
import pytest
from defusedxml import ElementTree as ET
from django.urls import reverse
from django.utils import translation
from PIL import Image

from reports.base import formats
from reports.base.status import Status
from reports.base.version import software
from reports.estimates import texts as estimates_texts
from reports.estimates.options import DaysOptions, ReportOptions, ordered, shown_value
from reports.estimates.queries import Window, indicator_reports
from reports.exports.drawing import canvas, letters
from reports.exports.drawing import maps as map_drawing
from reports.exports.drawing import pages as drawing
from reports.exports.drawing.bars import window_chart
from reports.exports.drawing.letters import REPLACEMENT, legible, letters_note
from reports.exports.facts import as_mapping
from reports.exports.selection import select_days, select_study, select_summary, select_window
from reports.maps import zones
from reports.models import Area, DayNote, Study
from tests.reports import report_factory as factory
from tests.reports.map_factory import ZONES
from tests.reports.page_texts import pdf_text, spaced
from tests.reports.report_factory import render_file

pytestmark = pytest.mark.django_db
STYLES = Path(__file__).parents[3] / "static/css"
SVG = "{http://www.w3.org/2000/svg}"
WHOLE = Window(1, 4)
WAYS = [  # each two choices together
    ReportOptions(order="natural", measure="frequency", values="unbiased"),
    ReportOptions(order="natural", measure="visitors", values="consistent"),
    ReportOptions(order="sorted", measure="frequency", values="consistent"),
    ReportOptions(order="sorted", measure="visitors", values="unbiased"),
]
KEPT: dict[str, bytes] = {}
AS_MAP = ReportOptions(view="map")
TOWN, HARBOUR = "\u6f22\u5b57", "\u6e2f\u53e3"


def svg_of(selection):
    return render_file(selection, ending="svg")


def texts(svg):
    return [html.unescape(text) for text in re.findall(r"<!-- (.*?) -->", svg.decode(), re.DOTALL)]


def bar_widths(svg):
    colour = canvas.COLOURS["--chart-1"]
    shapes = re.findall(rf'd="M ([\d.]+) [\d.]+ \nL ([\d.]+) [^"]*" [^>]*fill: {colour}', svg.decode())
    return [float(right) - float(left) for left, right in shapes]


@pytest.fixture
def uneven():
    changes = {"epsilon": "0.4", "market_share": Decimal("0.5"), "slug": "uneven-2024"}
    study = factory.create(factory.indicator("zone", *"ABCDEF"), **changes)
    people = factory.crowd(study)
    people.static["zone"][:] = np.array([4, 1, 1, 4, 4, 2, 4])[np.arange(people.bitmaps.size) % 7]
    factory.publish(study, people)
    return study.indicators.get()


def selected(study, options=AS_MAP, *, slug="home", day=0):
    window = Window(day, day) if day else Window(1, 4)
    return select_window(study.indicators.get(slug=slug), window, options=options)


def zone_paths(svg):
    found = svg.decode()
    return [re.search(rf'<g id="zone-{place}">(.*?)</g>', found, re.DOTALL)[1] for place in range(4)]


def opened(selection):
    return pypdf.PdfReader(io.BytesIO(render_file(selection, ending="pdf")))


def pdf_of(selection):
    return pdf_text(render_file(selection, ending="pdf"))


def shown_share(estimate):
    return f"{formats.percent(estimate.frequency)} {estimates_texts.share_range(estimate)}"


def shown_visitors(estimate):
    return f"{formats.number(estimate.visitors)} {estimates_texts.visitors_range(estimate)}"


@pytest.fixture
def age(fair):
    return select_window(fair.indicators.get(slug="age"), WHOLE)


@pytest.fixture
def content(age):
    if not KEPT:
        KEPT["pdf"] = render_file(age, ending="pdf")
    return KEPT["pdf"]


@pytest.fixture
def window():
    study = factory.published(factory.indicator("place", "Belfort", TOWN, HARBOUR), name=f"Fair of {TOWN}")
    DayNote.objects.create(study=study, day=2, kind="event", text=f"parade in {TOWN}", by="adam")
    return select_window(study.indicators.get(), Window(1, 4))


def test_colours_are_those_of_the_pages():
    def of_page(name):
        light = (STYLES / name).read_text().split("@media (prefers-color-scheme: dark)", 1)[0]
        return dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", light))

    assert of_page("app.css") | canvas.COLOURS == of_page("app.css")
    on_maps = {name: colour for name, colour in of_page("map.css").items() if name.startswith("--map-")}
    assert on_maps == map_drawing.MAP_COLOURS


class TestCharts:
    def test_pictures_explain_themselves_the_same_way_every_time(self, fair):
        selection = select_days(fair.indicators.get(slug="age"))
        content = render_file(selection, ending="png")
        assert content == render_file(selection, ending="png")
        picture = Image.open(io.BytesIO(content))
        picture.load()
        assert (picture.width, picture.info["Title"]) == (1520, "Age · The fair")
        assert "plan_version: 1; mechanism: smp-grr" in picture.info["Description"]
        assert len(picture.convert("RGB").getcolors(2**24)) > 50, "something is drawn"
        selection = select_window(fair.indicators.get(slug="age"), WHOLE)
        svg = svg_of(selection)
        assert svg == svg_of(selection)
        root = ET.fromstring(svg)
        assert root.find(f"{SVG}title").text == "Age · The fair"
        # No address of another host, no picture in it, no program.
        attributes = [attribute for node in root.iter() for attribute in node.attrib.items()]
        links = [value for name, value in attributes if name.endswith("href")]
        assert links and all(link.startswith("#") for link in links)
        assert not list(root.iter(f"{SVG}image")) and not list(root.iter(f"{SVG}script"))

    def test_what_is_not_reliable_has_a_word_and_no_bar(self, fair):
        selection = select_window(fair.indicators.get(slug="age"), WHOLE)
        (report,) = selection.reports
        first, *others = report.estimates
        assert (len(bar_widths(svg_of(selection))), b"not reliable" in svg_of(selection)) == (3, False)
        blank = replace(report, estimates=(first._replace(status=Status.NOT_RELIABLE), *others))
        svg = svg_of(replace(selection, reports=(blank,)))
        assert (len(bar_widths(svg)), b"not reliable" in svg) == (2, True)

    def test_odd_names_are_drawn_as_they_are_and_empty_windows_and_days_with_their_word(self):
        odd = factory.indicator("odd", "$x^2$", "<b>&</b>", "\N{GREEK SMALL LETTER EPSILON}")
        selection = select_window(factory.published(odd).indicators.get(), WHOLE)
        ET.fromstring(svg_of(selection))
        assert render_file(selection, ending="png")
        age = factory.create(slug="empty").indicators.get(slug="age")
        for empty in (select_window(age, WHOLE), select_days(age, options=DaysOptions(form="lines"))):
            assert b"not collected" in svg_of(empty)

    def test_window_is_drawn_as_the_page_shows_it(self, uneven):
        for options in WAYS:
            selection = select_window(uneven, WHOLE, options=options)
            (report,) = selection.reports
            estimates = ordered(report, options=options)
            assert {estimate.status for estimate in estimates} == {"ok"}
            assert min(estimate.frequency for estimate in estimates) < 0
            values = [shown_value(report, estimate, options=options).value or 0.0 for estimate in estimates]
            svg = svg_of(selection)
            names = [text for text in texts(svg) if text in set("ABCDEF")]
            assert names == [estimate.category for estimate in estimates]
            word = formats.percent if options.measure == "frequency" else formats.number
            wanted = [word(value) for value in values]
            assert [text for text in texts(svg) if text in wanted][-6:] == wanted
            longest = max(bar_widths(svg))
            assert bar_widths(svg) == pytest.approx([v / max(values) * longest for v in values], abs=0.01)
            said = " ".join(texts(svg))
            assert ("Share of visitors." in said) == (options.measure == "frequency")
            assert ("market share of 50" in said) == (options.measure == "visitors")
            assert ("for which no separate error is given" in said) == (options.values == "consistent")

    @pytest.mark.parametrize(("form", "measure"), [("lines", "visitors"), ("multiples", "frequency")])
    def test_days_have_the_chosen_categories_in_the_chosen_form(self, uneven, form, measure):
        options = DaysOptions(form=form, measure=measure)
        svg = svg_of(select_days(uneven, options=options, categories=[0, 2, 4]))
        assert [text for text in texts(svg) if text in set("ABCDEF")] == ["A", "C", "E"]
        assert len(set(re.findall(r'id="(axes_\d+)"', svg.decode()))) == (3 if form == "multiples" else 1)
        title = "Share of each day's visitors" if measure == "frequency" else "Visitors on each day"
        assert f"{title}. Points" in " ".join(texts(svg))
        assert any(re.fullmatch(r"[\d.]+%", text) for text in texts(svg)) == (measure == "frequency")

    def test_more_categories_than_a_picture_bears_are_cut_in_words(self):
        study = factory.published(factory.indicator("many", *(f"number {n}" for n in range(141))))
        options = ReportOptions(order="natural")
        said = texts(svg_of(select_window(study.indicators.get(), WHOLE, options=options)))
        names = [text for text in said if re.fullmatch(r"number \d+", text)]
        assert names == [f"number {n}" for n in range(drawing.MAX_CATEGORIES)]
        assert "the first 140 of 141 categories are shown." in " ".join(said)


class TestMaps:
    def test_base_layers_have_the_colours_of_the_page_and_names_in_the_legend(self, mapped):
        ring = [[-500, -500], [500, -500], [500, 500], [-500, 500], [-500, -500]]
        Area.objects.update(
            layers=[
                {"name": "water", "kind": "polygons", "paths": [ring]},
                {"name": "roads", "kind": "lines", "paths": [ring[:2]]},
                {"name": "Savoureuse", "kind": "lines", "paths": [ring[1:3]]},
            ]
        )
        svg = svg_of(selected(mapped, ReportOptions(view="map"))).decode()
        for colour, n in (("fill: #d7e8e5", 2), ("stroke: #9c7b4e", 2), ("stroke: #1b6f73", 2)):
            assert svg.count(colour) == n, colour  # on the map and in the legend
        assert {"Water", "Roads", "Savoureuse"} <= set(texts(svg.encode()))

    def test_a_map_of_the_demo_says_that_its_places_are_invented(self, mapped):
        invented = "the geography on this map is invented"
        assert invented not in " ".join(texts(svg_of(selected(mapped))))
        Study.objects.update(is_demo=True)
        mapped.refresh_from_db()
        assert invented in " ".join(texts(svg_of(selected(mapped))))

    @pytest.mark.parametrize(
        ("layer", "classes"), [("estimate", "round"), ("uncertainty", "equal"), ("estimate", "quantile")]
    )
    def test_svg_has_each_zone_in_its_class_and_the_legend(self, mapped, layer, classes):
        options = ReportOptions(view="map", layer=layer, classes=classes)
        selection = selected(mapped, options)
        svg = svg_of(selection)
        (report,) = selection.reports
        home = mapped.indicators.get(slug="home")
        scale = zones.map_scale(indicator_reports(home, zones.windows_of_scale(home)), options=options)
        (panel,) = zones.map_frame(report, names=ZONES, scale=scale, options=options)["panels"]
        for drawn, found in zip(zone_paths(svg), panel["classes"], strict=True):
            expected = map_drawing.MAP_COLOURS[f"--map-{found + 1}"] if found >= 0 else "#eef2f5"
            assert f"fill: {expected}" in drawn
        for row in zones.legend(scale, mapped, options=options):
            assert row.text in texts(svg)
        assert "not a category of this indicator" in texts(svg)
        assert set(ZONES) <= set(texts(svg))
        assert zones.classes_words(options) in " ".join(texts(svg))
        assert zone_paths(svg)[0].count("M ") == 2  # a ring, and its hole
        assert zone_paths(svg)[1].count("M ") == 1
        if layer == "estimate":
            rest = formats.percent(report.estimates[3].frequency)
            assert f"Not on the map: NR {rest}." in " ".join(texts(svg))

    def test_a_window_that_is_not_to_be_read_is_hatched(self, mapped):
        assert Image.open(io.BytesIO(render_file(selected(mapped), ending="png"))).width == 1520
        DayNote.objects.create(study=mapped, day=2, kind="outage", text="mast down", by="adam")
        svg = svg_of(selected(mapped, day=2))
        assert all("fill: url(#" in path for path in zone_paths(svg)[:3])
        assert "fill: url(#" not in zone_paths(svg)[3] and "no reliable value" in texts(svg)


class TestZones:
    def test_geojson_has_every_category_with_its_numbers(self, mapped):
        selection = selected(mapped)
        content = render_file(selection, ending="geojson")
        found = json.loads(content)
        assert found["provenance"] == dict(as_mapping(selection))
        (record,) = json.loads(render_file(selection, ending="json"))
        for feature, estimate in zip(found["features"], record["estimates"], strict=True):
            row = {**record, **estimate}
            assert {name: row[name] for name in feature["properties"]} == feature["properties"]
        assert [feature["geometry"] is None for feature in found["features"]] == [False, False, False, True]
        frame = geopandas.read_file(io.BytesIO(content)).iloc[:3]
        assert frame.crs.to_epsg() == 4326
        metres = frame.geometry.to_crs(frame.estimate_utm_crs())
        assert metres.area.tolist() == pytest.approx([0.75 * 835_000, 835_000, 835_000], rel=0.01)

    def test_geoparquet_has_types_shapes_and_provenance(self, mapped):
        selection = select_days(mapped.indicators.get(slug="home"))
        content = render_file(selection, ending="geoparquet")
        frame = geopandas.read_parquet(io.BytesIO(content))
        assert (len(frame), frame.geometry.isna().sum()) == (4 * 4, 4)
        assert frame.geometry.iloc[0].contains(frame.geometry.iloc[0].representative_point())
        schema = pq.read_schema(io.BytesIO(content))
        assert json.loads(schema.metadata[b"mobility_reports"]) == dict(as_mapping(selection))
        types = {name: str(schema.field(name).type) for name in ("first_day", "reports", "frequency")}
        assert types == {"first_day": "date32[day]", "reports": "int64", "frequency": "double"}
        estimates = [each for report in selection.reports for each in report.estimates]
        assert frame["frequency"].tolist() == pytest.approx([each.frequency for each in estimates])
        assert frame["status"].tolist() == ["ok"] * 16
        assert content == render_file(selection, ending="geoparquet")

    def test_menus_offer_them_where_there_is_a_map(self, reader, mapped):
        for slug, is_offered in (("home", True), ("gender", False)):
            address = reverse("reports:indicator", args=["fair-2024", slug])
            page = reader.get(address, {"view": "map", "layer": "uncertainty"}).content.decode()
            assert ("export.geojson?" in page, "export.geoparquet?" in page) == (is_offered, is_offered)
            if is_offered:  # links of pictures carry the map
                assert re.search(r'export\.svg\?[^"]*view=map&amp;layer=uncertainty"', page)
        address = reverse("reports:indicator_file", args=["fair-2024", "home", "geojson"])
        assert reader.get(address).headers["Content-Type"] == "application/geo+json"
        assert reader.get(address.replace("home", "gender")).status_code == 400


class TestReport:
    def test_window_report_has_every_number_of_its_page_and_the_same_bytes(self, age, content):
        assert render_file(age, ending="pdf") == content
        text, book = pdf_text(content), pypdf.PdfReader(io.BytesIO(content))
        (report,) = age.reports
        for estimate in report.estimates:
            share, visitors = shown_share(estimate), shown_visitors(estimate)
            row = (estimate.category, share, visitors, formats.percent(estimate.consistent))
            assert spaced(" ".join(row)) in text
        for number in (report.n_visitors, report.n_reports):
            assert spaced(formats.number(number)) in text
        assert spaced(estimates_texts.report_summary(report)) in text
        # Charts are vectors with words that can be found.
        assert not [image for page in book.pages for image in page.images]
        assert book.pages[1].extract_text().count("25 & older") == 2, "in the chart and in the table"

    def test_row_says_once_that_it_is_not_reliable_so_that_it_fits_on_a_line(self, age):
        (report,) = age.reports
        blank = tuple(estimate._replace(status=Status.NOT_RELIABLE) for estimate in report.estimates)
        text = pdf_of(replace(age, reports=(replace(report, estimates=blank),)))
        for each in blank:
            ranges = f"{estimates_texts.share_range(each)} ? {estimates_texts.visitors_range(each)} ?"
            assert spaced(f"{each.category} ? not reliable {ranges}") in text

    def test_says_who_counts_how_it_was_made_and_what_is_not_protected(self, age, content):
        text, plan = pdf_text(content), age.reports[0].plan
        method = f"plan version 1 (smp-grr) · {software()['name']} {software()['version']}"
        said = ("if at least 60 minutes pass between", method, plan.spec_hash, "pseudonymous, not anonymous")
        assert [words for words in said if words not in text] == []
        assert "Full privacy statement" not in text, "a link that leads nowhere on paper"

    def test_is_archivable_can_be_read_aloud_and_has_no_date_but_that_of_the_data(self, content):
        book = pypdf.PdfReader(io.BytesIO(content))
        root, xmp = book.trailer["/Root"], book.xmp_metadata
        assert root["/Lang"] == "en" and root["/MarkInfo"]["/Marked"]
        assert (xmp.pdfaid_part, xmp.pdfaid_conformance) == ("2", "U")
        assert xmp.dc_title == {"x-default": "Age · The fair, Thu 30 May 2024 to Sun 2 Jun 2024 (4 days)"}
        assert "plan_version: 1; mechanism: smp-grr" in xmp.dc_description["x-default"]
        fonts = [font.get_object() for page in book.pages for font in page["/Resources"]["/Font"].values()]
        descriptors = [font["/DescendantFonts"][0]["/FontDescriptor"] for font in fonts]
        assert fonts and all("/FontFile2" in descriptor for descriptor in descriptors)
        (spoken,) = re.findall(rb"/Alt \(((?:\\.|[^\\)])*)\)", content)
        assert b"largest category" in spoken
        assert set(re.findall(rb"<xmp:[A-Za-z]*Date>([^<]*)<", content)) == {b"2024-06-02T00:00:00Z"}
        assert not re.findall(rb"D:20\d{6}", content.replace(b"D:20240602", b""))

    @pytest.mark.parametrize(("measure", "shown"), [("frequency", shown_share), ("visitors", shown_visitors)])
    def test_days_report_has_every_interval_of_all_categories(self, fair, measure, shown):
        options = DaysOptions(measure=measure)
        selection = select_days(fair.indicators.get(slug="age"), options=options, categories=[0])
        text = pdf_of(selection)
        for report in selection.reports:
            assert spaced(formats.number(report.n_visitors)) in text
            assert all(spaced(shown(estimate)) in text for estimate in report.estimates)
        assert ("Visitors on each day. Points" in text) == (measure == "visitors")
        assert "The tables list the" not in text

    def test_study_report_has_all_indicators_with_a_bookmark_each(self, fair):
        content = render_file(select_study(fair), ending="pdf")
        book = pypdf.PdfReader(io.BytesIO(content))
        titles = [entry.title for entry in book.outline if not isinstance(entry, list)]
        assert titles[:3] == ["Gender", "Age", "Stay"] and "Method" in titles and "Privacy" in titles
        text, summary = pdf_text(content), select_summary(fair)
        assert [report.window for report in summary.reports] == [WHOLE] * 3
        for report in summary.reports:
            assert all(spaced(estimates_texts.share_range(estimate)) in text for estimate in report.estimates)
        assert render_file(summary, ending="pdf") == content
        # Days where there are no unions.
        half = factory.published(factory.GENDER, factory.HALF_STAY, slug="half")
        windows = [report.window for report in select_summary(half).reports]
        assert windows == [WHOLE, *(Window(day, day) for day in range(1, 5))]


class TestExtremes:
    def test_blanks_have_their_word_and_their_reason(self):
        study = factory.create(factory.GENDER)
        assert "not collected" in pdf_of(select_study(study))
        factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
        DayNote.objects.create(study=study, day=4, kind="outage", text="mast down at noon", by="adam")
        text = pdf_of(select_days(study.indicators.get()))
        assert "not collected" in text and "outage" in text.lower() and "mast down at noon" in text
        assert "The figures are unknown, not zero." in text
        Study.objects.update(small_cell=10**6)
        text = pdf_of(select_study(Study.objects.get()))
        assert "suppressed" in text and "a policy of the study" in text

    def test_many_days_of_many_categories_have_tables_of_the_chart(self):
        study = factory.published(factory.indicator("many", *(f"Place {n}." for n in range(100))), days=62)
        selection = select_days(study.indicators.get(), categories=[3, 99])
        content = render_file(selection, ending="pdf")
        assert "the 2 categories shown in the chart" in (text := pdf_text(content))
        assert {int(n) for n in re.findall(r"Place (\d+)\.", text)} == {3, 99}
        assert len(pypdf.PdfReader(io.BytesIO(content)).pages) <= 12, "six thousand cells were 100 pages"

    def test_table_and_chart_are_in_the_order_of_the_page(self, uneven):
        options = ReportOptions(measure="visitors", values="unbiased")
        selection = select_window(uneven, WHOLE, options=options)
        text, (report,) = pdf_of(selection), selection.reports
        rows = [f"{each.category} {shown_share(each)}" for each in ordered(report, options=options)]
        places = [text.index(spaced(row)) for row in rows]
        assert places == sorted(places) and rows[0][0] != "A"
        assert "Visitors. Bars show estimates" in text


def test_drawn_files_have_french_names_and_data_files_those_of_every_language():
    zone = factory.indicator("zone", "A", "B", name_fr="Secteur", categories_fr=("Alpha", TOWN))
    selection = select_window(factory.published(zone, name_fr="La foire").indicators.get(), WHOLE)
    own, french = {"Zone", "A", "B"}, {"Secteur", "Alpha", f"{REPLACEMENT * 2} (2)"}
    for language, expected, foreign in (("en", own, french), ("fr", french, own)):
        with translation.override(language):
            drawn, content = set(texts(svg_of(selection))), render_file(selection, ending="pdf")
            data = [render_file(selection, ending=each) for each in ("csv", "json", "sdmx.csv", "parquet")]
        assert (expected - drawn, foreign & drawn) == (set(), set())
        assert ("La foire" if language == "fr" else "The fair") in pdf_text(content)
        assert pypdf.PdfReader(io.BytesIO(content)).trailer["/Root"]["/Lang"] == language
        assert ("Alpha" in pdf_text(content)) == (language == "fr")
        assert not [file for file in data for name in (b"Secteur", b"Alpha", b"La foire") if name in file]
        assert all(b"The fair" in file or b"zone" in file for file in data)


class TestLetters:
    def test_known_letters_stay_and_need_no_note(self, fair):
        selection = select_study(fair)
        assert letters.legible_selection(selection) is selection
        assert letters_note(selection) == ""
        for text in ("Évry\u202f%", "Ελλάδα", "Київ", "\u0645\u0631\u062d\u0628\u0627", "a\nb\tc", ""):
            assert legible(text) == text
        assert legible(f"x{TOWN}y") == f"x{REPLACEMENT * 2}y"

    def test_names_from_right_to_left_are_in_the_order_that_is_seen(self):
        peace = "\u05e9\u05dc\u05d5\u05dd"
        for text, seen in (
            (peace, peace[::-1]), (f"{peace} 2024", f"2024 {peace[::-1]}"), ("Évry", "Évry"), ("", ""),
            (f"Fair {peace}", f"Fair {peace[::-1]}"), (TOWN, TOWN),
        ):  # fmt: skip
            assert letters.visual(text) == seen
        assert letters.legible_visual(f"{peace}{TOWN[0]}") == f"{REPLACEMENT}{peace[::-1]}"
        study = factory.published(factory.indicator("word", peace, "peace"), name=peace)
        selection = select_window(study.indicators.get(), Window(1, 4))
        assert letters_note(selection) == ""
        # The reader takes letters in their order from right to left, as people do.
        assert all(peace in page.extract_text() for page in opened(selection).pages[:2])

    def test_two_names_remain_two_and_what_was_selected_stays_as_it_is(self, window):
        (shown,), (report,) = letters.legible_selection(window).reports, window.reports
        names = ["Belfort", f"{REPLACEMENT * 2} (2)", f"{REPLACEMENT * 2} (3)"]
        for found, categories, town in (
            (shown, names, REPLACEMENT * 2),
            (report, ["Belfort", TOWN, HARBOUR], TOWN),
        ):
            assert [estimate.category for estimate in found.estimates] == categories
            assert list(found.indicator.categories) == categories
            assert found.study.name == found.indicator.study.name == f"Fair of {town}"
            assert [note.text for note in found.notes] == [f"parade in {town}"]

    def test_files_say_what_the_sign_means_and_data_and_metadata_are_complete(self, window):
        content = render_file(window, ending="pdf")
        book, whole = pypdf.PdfReader(io.BytesIO(content)), pdf_text(content)
        cover = spaced(book.pages[0].extract_text())
        assert letters_note(window) in cover and f"Fair of {REPLACEMENT * 2}" in cover
        assert f"{REPLACEMENT * 2} (3)" in whole and TOWN[0] not in whole
        assert TOWN in book.xmp_metadata.dc_title["x-default"]
        svg = render_file(window, ending="svg").decode()
        assert f"<!-- {REPLACEMENT * 2} (2) -->" in svg and f"<!-- {TOWN} -->" not in svg
        assert "a character that is missing from the font of this file" in svg
        assert TOWN in Image.open(io.BytesIO(render_file(window, ending="png"))).info["Title"]
        for ending in ("csv", "json"):
            content = render_file(window, ending=ending).decode()
            assert TOWN in content and HARBOUR in content and REPLACEMENT not in content


def test_names_of_bars_take_no_more_room_than_they_need(age):
    def left(*names):
        (report,) = age.reports
        named = tuple(report.estimates[0]._replace(category=name) for name in names)
        drawn = window_chart(
            replace(report, estimates=named), options=ReportOptions(), extra_in=(0.0, 0.0)
        )  # fmt: skip
        return drawn.axes[0].get_position().x0

    assert left("F", "M") < left("Comfortable family", "M") / 2
    assert left("a" * 60) == left("a" * 90) < 0.3
