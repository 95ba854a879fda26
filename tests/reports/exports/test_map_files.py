"""The map of a window as a picture, and its zones as GeoJSON and GeoParquet, read back by other libraries."""

import html
import io
import json
import re
from pathlib import Path
from typing import Any

import geopandas
import pyarrow.parquet as pq
import pytest
from django.test import Client
from django.urls import reverse
from PIL import Image

from reports import maps, wording
from reports.exports import map_drawing
from reports.exports.errors import ExportError
from reports.exports.facts import as_mapping
from reports.exports.formats import render_file
from reports.exports.selection import Selection, select_days, select_window
from reports.models import DayNote, Study
from reports.options import ReportOptions
from reports.selectors import Window, indicator_reports
from tests.reports import map_factory
from tests.reports import report_factory as factory
from tests.reports.map_factory import ZONES

pytestmark = pytest.mark.django_db
STYLES = (Path(__file__).parents[3] / "static/css/map.css").read_text()
AS_MAP = ReportOptions(view="map")


@pytest.fixture
def mapped() -> Study:
    return map_factory.create()


def selected(study: Study, options: ReportOptions = AS_MAP, *, slug: str = "home", day: int = 0) -> Selection:
    window = Window(day, day) if day else Window(1, 4)
    return select_window(study.indicators.get(slug=slug), window, options=options)


def texts(svg: bytes) -> list[str]:
    return [html.unescape(text) for text in re.findall(r"<!-- (.*?) -->", svg.decode(), re.DOTALL)]


def zone_paths(svg: bytes) -> list[str]:
    """Drawing instructions and look of each zone, in the order of the area."""
    found = svg.decode()
    return [re.search(rf'<g id="zone-{place}">(.*?)</g>', found, re.DOTALL).group(1) for place in range(4)]


def test_colours_are_those_of_the_pages() -> None:
    light = STYLES.split("@media (prefers-color-scheme: dark)", 1)[0]
    assert dict(re.findall(r"(--map-[\w-]+): (#[0-9a-f]{6});", light)) == map_drawing.MAP_COLOURS


@pytest.mark.parametrize("layer", ["estimate", "uncertainty"])
def test_svg_has_each_zone_in_its_class_and_the_legend(mapped: Study, layer: str) -> None:
    options = ReportOptions(view="map", layer=layer)
    selection = selected(mapped, options)
    svg = render_file(selection, ending="svg")
    home = mapped.indicators.get(slug="home")
    scale = maps.map_scale(indicator_reports(home, maps.windows_of_scale(home)), options=options)
    (panel,) = maps.map_frame(selection.reports[0], names=ZONES, scale=scale, options=options)["panels"]
    for drawn, found in zip(zone_paths(svg), panel["classes"], strict=True):
        expected = map_drawing.MAP_COLOURS[f"--map-{found + 1}"] if found >= 0 else "#eef2f5"
        assert f"fill: {expected}" in drawn
    written = texts(svg)
    for row in maps.legend(scale, options=options):
        assert row.text in written
    assert "not a category of this indicator" in written
    assert zone_paths(svg)[0].count("M ") == 2  # a ring, and its hole
    assert zone_paths(svg)[1].count("M ") == 1


def test_what_is_no_zone_stands_in_the_small_print(mapped: Study) -> None:
    selection = selected(mapped)
    rest = selection.reports[0].estimates[3]
    words = " ".join(texts(render_file(selection, ending="svg")))
    assert f"Not on the map: NR {wording.percent(rest.frequency)}." in words


def test_a_window_that_is_not_to_be_read_is_hatched(mapped: Study) -> None:
    DayNote.objects.create(study=mapped, day=2, kind="outage", text="mast down", by="adam")
    svg = render_file(selected(mapped, day=2), ending="svg")
    assert all("fill: url(#" in path for path in zone_paths(svg)[:3])
    assert "fill: url(#" not in zone_paths(svg)[3]
    assert "not to be read" in texts(svg)


def test_png_is_a_picture_and_the_same_every_time(mapped: Study) -> None:
    content = render_file(selected(mapped), ending="png")
    picture = Image.open(io.BytesIO(content))
    assert picture.width == 1520
    assert content == render_file(selected(mapped), ending="png")
    assert content != render_file(selected(mapped, ReportOptions()), ending="png")


def test_an_indicator_without_zones_has_bars(mapped: Study) -> None:
    assert not map_drawing.shows_map(selected(mapped, slug="gender"))
    assert "Bars" in " ".join(texts(render_file(selected(mapped, slug="gender"), ending="svg")))


def rows_of(selection: Selection) -> list[dict[str, Any]]:
    (record,) = json.loads(render_file(selection, ending="json"))
    return [{**record, **estimate} for estimate in record["estimates"]]


def test_geojson_has_every_category_with_its_numbers(mapped: Study) -> None:
    selection = selected(mapped)
    content = render_file(selection, ending="geojson")
    found = json.loads(content)
    assert found["provenance"] == dict(as_mapping(selection))
    for feature, row in zip(found["features"], rows_of(selection), strict=True):
        assert {name: row[name] for name in feature["properties"]} == feature["properties"]
    assert [feature["geometry"] is None for feature in found["features"]] == [False, False, False, True]
    frame = geopandas.read_file(io.BytesIO(content)).iloc[:3]
    assert frame.crs.to_epsg() == 4326
    metres = frame.geometry.to_crs(frame.estimate_utm_crs())
    assert metres.area.tolist() == pytest.approx([0.75 * 835_000, 835_000, 835_000], rel=0.01)


def test_geoparquet_has_types_shapes_and_provenance(mapped: Study) -> None:
    selection = select_days(mapped.indicators.get(slug="home"))
    content = render_file(selection, ending="geoparquet")
    frame = geopandas.read_parquet(io.BytesIO(content))
    assert len(frame) == 4 * 4
    assert frame.geometry.isna().sum() == 4
    assert frame.geometry.iloc[0].contains(frame.geometry.iloc[0].representative_point())
    schema = pq.read_schema(io.BytesIO(content))
    assert json.loads(schema.metadata[b"mobility_reports"]) == dict(as_mapping(selection))
    assert {name: str(schema.field(name).type) for name in ("first_day", "reports", "frequency")} == {
        "first_day": "date32[day]",
        "reports": "int64",
        "frequency": "double",
    }
    estimates = [each for report in selection.reports for each in report.estimates]
    assert frame["frequency"].tolist() == pytest.approx([each.frequency for each in estimates])
    assert frame["status"].tolist() == ["ok"] * 16
    assert content == render_file(selection, ending="geoparquet")


@pytest.mark.parametrize("ending", ["geojson", "geoparquet"])
def test_without_zones_there_is_no_such_file(mapped: Study, ending: str) -> None:
    with pytest.raises(ExportError, match="categories of gender are no zones"):
        render_file(selected(mapped, slug="gender"), ending=ending)


def test_menus_offer_them_where_there_is_a_map(reader: Client, mapped: Study) -> None:
    for slug, is_offered in (("home", True), ("gender", False)):
        page = reader.get(reverse("reports:indicator", args=["fair-2024", slug])).content.decode()
        assert ("export.geojson?" in page) == is_offered
        assert ("export.geoparquet?" in page) == is_offered
    address = reverse("reports:indicator_file", args=["fair-2024", "home", "geojson"])
    answer = reader.get(address, {"from": "2024-05-30"})
    assert answer.headers["Content-Type"] == "application/geo+json"
    assert json.loads(answer.content)["features"][0]["properties"]["first_day"] == "2024-05-30"
    assert reader.get(address.replace("home", "gender")).status_code == 400


def test_links_of_pictures_carry_the_map(reader: Client, mapped: Study) -> None:
    page = reader.get(
        reverse("reports:indicator", args=["fair-2024", "home"]), {"view": "map", "layer": "uncertainty"}
    ).content.decode()
    assert re.search(r'export\.svg\?[^"]*view=map&amp;layer=uncertainty"', page)


def test_a_study_without_area_has_no_map_file() -> None:
    study = factory.create(map_factory.HOME)
    assert not map_drawing.shows_map(selected_of(study))


def selected_of(study: Study) -> Selection:
    return select_window(study.indicators.get(slug="home"), Window(1, 4), options=AS_MAP)
