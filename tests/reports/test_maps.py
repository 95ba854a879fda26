"""Maps of zones: shapes, classes and texts of each window, and what pages say beside them."""

import json
import re
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from reports import maps, selectors, wording
from reports.maps_scale import NOT_ASKED, NOT_READ
from reports.maps_shapes import area_shapes, wound
from reports.models import DayNote, Study
from reports.options import ReportOptions
from reports.selectors import Window, WindowReport
from reports.services import access
from tests.reports import map_factory
from tests.reports import report_factory as factory
from tests.reports.map_factory import HOME, ZONES
from tests.reports.test_indicator_page import Markup, text_of

OPTIONS = ReportOptions(view="map")


@pytest.fixture
def mapped(db: None) -> Study:
    return map_factory.create()


def get(client: Client, slug: str = "home", **query: str) -> Any:
    return client.get(reverse("reports:indicator", args=["fair-2024", slug]), query)


def document_of(page: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(re.search(r'<script id="map-data"[^>]*>(.*?)</script>', page).group(1))
    return found


def reports_of(study: Study) -> list[WindowReport]:
    home = study.indicators.get(slug="home")
    return selectors.indicator_reports(home, maps.windows_of_scale(home))


# --- shapes -----------------------------------------------------------------------------------


def signed_area(ring: Any) -> float:
    x, y = ring[:, 0], ring[:, 1]
    return float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])) / 2


def test_shapes_are_in_metres_and_a_hole_turns_the_other_way(mapped: Study) -> None:
    shapes = area_shapes(mapped.area)
    assert shapes.names == list(ZONES)
    outer, hole = shapes.zones[0].rings
    # A hundredth of a degree: 1,112 m to the north, and 750 m to the east in Belfort.
    assert signed_area(outer) == pytest.approx(1112 * 750, rel=0.01)
    assert signed_area(hole) == pytest.approx(-signed_area(outer) / 4, rel=0.01)
    west, south, east, north = shapes.bounds
    assert (east - west, north - south) == (pytest.approx(1500, rel=0.01), pytest.approx(2224, rel=0.01))
    flat = shapes.to_json()["zones"][0]["rings"][0]
    assert flat == shapes.zones[0].rings[0].ravel().tolist()


def ring_of(x: float, side: float) -> Any:
    return np.array([(x, x), (x + side, x), (x + side, x + side), (x, x + side), (x, x)], np.float64)


@pytest.mark.parametrize("is_flipped", [False, True])
def test_rings_are_wound_by_how_they_are_nested(is_flipped: bool) -> None:
    island, lake, islet, apart = ring_of(0, 10), ring_of(2, 6), ring_of(4, 2), ring_of(20, 3)
    rings = [np.flip(ring, axis=0) if is_flipped else ring for ring in (lake, island, apart, islet)]
    assert [signed_area(ring) for ring in wound(rings)] == [-36, 100, 9, 4]


# --- which indicators have a map ---------------------------------------------------------------


def test_an_indicator_of_zones_has_a_map_and_others_have_none(mapped: Study) -> None:
    assert maps.zones_of(mapped.indicators.get(slug="home")) == list(ZONES[:3])
    assert maps.zones_of(mapped.indicators.get(slug="gender")) == []


@pytest.mark.django_db
@pytest.mark.parametrize("categories", [(*ZONES[:2], "a", "b"), (ZONES[0], "a")])
def test_mostly_other_categories_are_no_map(categories: tuple[str, ...]) -> None:
    study = factory.create(factory.indicator("home", *categories), area=map_factory.area())
    assert maps.zones_of(study.indicators.get()) == []


@pytest.mark.django_db
def test_a_study_without_shapes_has_no_map(reader: Client) -> None:
    study = factory.create(HOME)
    factory.publish(study, factory.crowd(study))
    assert maps.zones_of(study.indicators.get()) == []
    page = get(reader, view="map").content.decode()
    assert 'data-figure="figure"' in page  # the chart takes its place
    assert ">Map</a>" not in page


# --- frames -----------------------------------------------------------------------------------


def test_a_frame_has_the_class_and_the_numbers_of_each_zone(mapped: Study) -> None:
    reports = reports_of(mapped)
    scale = maps.map_scale(reports, options=OPTIONS)
    for report in reports:
        (panel,) = maps.map_frame(report, names=ZONES, scale=scale, options=OPTIONS)["panels"]
        for place, estimate in enumerate(report.estimates[:3]):
            assert panel["classes"][place] == scale.class_of(100 * estimate.frequency)
            share, interval = wording.percent(estimate.frequency), wording.share_range(estimate)
            assert panel["texts"][place] == f"{ZONES[place]}\n{share} ({interval})"
        assert panel["classes"][3] == NOT_ASKED
        assert panel["texts"][3] == f"{ZONES[3]}\nnot a category of this indicator"


def test_one_scale_holds_all_days_and_the_whole(mapped: Study) -> None:
    reports = reports_of(mapped)
    assert [(report.window.first_day, report.window.last_day) for report in reports] == [
        (1, 1), (2, 2), (3, 3), (4, 4), (1, 4),
    ]  # fmt: skip
    for measure, factor in (("frequency", 100), ("visitors", 1)):
        scale = maps.map_scale(reports, options=ReportOptions(measure=measure))
        values = [factor * getattr(each, measure) for report in reports for each in report.estimates]
        assert (scale.low, scale.high) == (pytest.approx(min(values)), pytest.approx(max(values)))


def test_uncertainty_is_half_of_the_interval(mapped: Study) -> None:
    options = ReportOptions(view="map", layer="uncertainty")
    reports = reports_of(mapped)
    scale = maps.map_scale(reports, options=options)
    report = reports[0]
    (panel,) = maps.map_frame(report, names=ZONES, scale=scale, options=options)["panels"]
    estimate = report.estimates[0]
    half = (estimate.ci_high - estimate.ci_low) / 2
    assert panel["classes"][0] == scale.class_of(100 * half)
    assert panel["texts"][0].endswith(f"\n± {wording.points(half)}")
    halves = [(e.ci_high - e.ci_low) * 50 for report in reports for e in report.estimates]
    assert (scale.low, scale.high) == (pytest.approx(min(halves)), pytest.approx(max(halves)))


def test_a_day_that_is_not_to_be_read_is_hatched_and_says_why(mapped: Study) -> None:
    DayNote.objects.create(study=mapped, day=2, kind="outage", text="mast down", by="adam")
    reports = reports_of(mapped)
    scale = maps.map_scale(reports, options=OPTIONS)
    frame = maps.map_frame(reports[1], names=ZONES, scale=scale, options=OPTIONS)
    assert frame["panels"][0]["blank"] == "\u00d7 outage"
    assert frame["panels"][0]["classes"] == [NOT_READ] * 3 + [NOT_ASKED]
    assert "\u00d7 outage" in frame["panels"][0]["texts"][0]
    without = maps.map_scale([reports[0], *reports[2:]], options=OPTIONS)
    assert scale == without  # what is not to be read sets no bounds


# --- pages ------------------------------------------------------------------------------------


def test_page_has_map_table_legend_and_what_is_no_zone(reader: Client, mapped: Study) -> None:
    page = get(reader, view="map").content.decode()
    document = document_of(page)
    report = selectors.window_report(mapped.indicators.get(slug="home"), Window(1, 4))
    scale = maps.map_scale(reports_of(mapped), options=OPTIONS)
    assert document["frame"] == maps.map_frame(report, names=ZONES, scale=scale, options=OPTIONS)
    assert document["shapes"] == area_shapes(mapped.area).to_json()
    text = text_of(page)
    for row in maps.legend(scale, options=OPTIONS):
        assert row.text in text
    rest = report.estimates[3]
    assert f"Not on the map NR: {wording.percent(rest.frequency)} {wording.share_range(rest)}" in text
    assert "The same numbers" in text
    assert "the values go from " + maps.bounds_words(scale, options=OPTIONS) in text
    assert Markup(page).refused == []
    assert "chart.js" not in page


def test_page_offers_the_map_and_colours_of_the_uncertainty(reader: Client, mapped: Study) -> None:
    links = Markup(get(reader).content.decode()).links
    assert any("view=map" in link for link in links)
    assert not any("layer=uncertainty" in link for link in links)
    links = Markup(get(reader, view="map").content.decode()).links
    assert any("layer=uncertainty" in link for link in links)
    assert not any(
        "view=map" in link for link in Markup(get(reader, "gender").content.decode()).links if "?" in link[:1]
    )


def test_days_are_those_of_the_page_and_in_order(reader: Client, mapped: Study) -> None:
    address = reverse("reports:map_days", args=["fair-2024", "home"])
    page = get(reader, view="map", measure="visitors").content.decode()
    assert f'data-days="{address}?view=map&amp;measure=visitors"' in page
    frames = reader.get(address, {"view": "map", "measure": "visitors"}).json()["frames"]
    days = [frame["query"] for frame in frames]
    assert days == [
        f"from={day}&to={day}&view=map&measure=visitors"
        for day in ("2024-05-30", "2024-05-31", "2024-06-01", "2024-06-02")
    ]
    of_day = get(reader, **dict(part.split("=") for part in days[2].split("&"))).content.decode()
    assert document_of(of_day)["frame"] == frames[2]


@pytest.mark.parametrize("slug", ["gender", "nothing"])
def test_days_of_an_indicator_without_a_map_are_not_found(reader: Client, mapped: Study, slug: str) -> None:
    assert reader.get(reverse("reports:map_days", args=["fair-2024", slug])).status_code == 404


def test_strangers_see_no_days(client: Client, mapped: Study) -> None:
    answer = client.get(reverse("reports:map_days", args=["fair-2024", "home"]))
    assert answer.status_code == 302


def test_a_shared_map_is_of_its_window_alone(client: Client, mapped: Study, analyst: User) -> None:
    home = mapped.indicators.get(slug="home")
    query = "from=2024-05-31&to=2024-06-01&view=map"
    _, text = access.create_link(home, Window(2, 3), query=query, days=30, note="", password="", by=analyst)
    page = client.get(f"/shared/{text}/").content.decode()
    report = selectors.window_report(home, Window(2, 3))
    scale = maps.map_scale(reports_of(mapped), options=OPTIONS)
    frame = maps.map_frame(report, names=ZONES, scale=scale, options=OPTIONS)
    assert document_of(page)["frame"] == frame
    assert "js/map.js" in page
    assert "data-days" not in page  # other days are not shared
    assert "data-zoom" in page
