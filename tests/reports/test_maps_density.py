"""Pages of reported places: two maps with one scale, counts by zone, and what is said of them."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from reports import locations, maps_density, tasks, wording
from reports import maps_density_words as words
from reports.maps_scale import NOT_ASKED
from reports.models import DayNote, DensityMap, Study
from reports.options import ReportOptions
from reports.selectors import Window, window_report
from reports.services import densities
from tests.reports import map_factory
from tests.reports import report_factory as factory
from tests.reports.map_factory import GRID, HOME, ZONES
from tests.reports.test_indicator_page import Markup, text_of

pytestmark = pytest.mark.django_db
ESTIMATE, UNCERTAINTY = ReportOptions(), ReportOptions(layer="uncertainty")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Maps that workers were asked for."""
    found: list[int] = []
    monkeypatch.setattr(tasks.compute_density, "delay_on_commit", found.append)
    return found


@pytest.fixture
def located(sent: list[int]) -> Study:
    return map_factory.create_located()


def get(client: Client, name: str = "maps", **query: str) -> Any:
    return client.get(reverse(f"reports:{name}", args=["fair-2024"]), query)


def post(client: Client, data: dict[str, str] | None = None, **headers: Any) -> Any:
    address = reverse("reports:maps_compute", args=["fair-2024"]) + "?from=2024-05-30&to=2024-06-02"
    return client.post(address, data or {}, **headers)


def panels_of(page: str) -> list[dict[str, Any]]:
    found = json.loads(re.search(r'<script id="map-data"[^>]*>(.*?)</script>', page).group(1))
    panels: list[dict[str, Any]] = found["frame"]["panels"]
    return panels


def compute(client: Client, sent: list[int]) -> DensityMap:
    post(client)
    tasks.compute_density(sent[-1])
    return DensityMap.objects.get(pk=sent[-1])


def scale_of(study: Study, options: ReportOptions = ESTIMATE) -> Any:
    windows = [Window(day, day) for day in range(1, 5)] + [Window(1, 4)]
    return maps_density.density_scale(locations.location_windows(study, windows), options=options)


def test_before_a_map_is_computed_the_noisy_one_is_shown(reader: Client, located: Study) -> None:
    page = get(reader).content.decode()
    noisy, density = panels_of(page)
    (found,) = locations.location_windows(located, [Window(1, 4)])
    counts = found.counts.ravel()
    assert noisy["numbers"][0] == counts.tolist()
    scale = scale_of(located)
    seen = counts > scale.breaks[0] / 10
    assert seen.any()
    expected = np.where(seen, scale.classes(counts.astype(float)), NOT_ASKED)
    assert noisy["classes"] == expected.tolist()
    assert set(density["classes"]) == {NOT_ASKED}
    assert density["blank"] == "not computed yet"
    assert 'hx-trigger="load, submit"' in page  # the page asks for it by itself
    assert "Counts by zone come with the deconvolved map." in page
    assert Markup(page).refused == []
    assert not DensityMap.objects.exists()  # reading changes nothing


def test_asking_shows_progress_until_the_page_is_loaded_again(
    reader: Client, located: Study, sent: list[int]
) -> None:
    fragment = post(reader, headers={"HX-Request": "true"}).content.decode()
    assert 'hx-trigger="every 2s"' in fragment
    assert "Waiting for a worker." in fragment
    DensityMap.objects.update(state="running", stage=2)
    query = {"from": "2024-05-30", "to": "2024-06-02"}
    answer = get(reader, "maps_state", **query)
    assert "Checking how well" in answer.content.decode()
    assert 'value="2"' in answer.content.decode()
    assert "HX-Refresh" not in answer.headers
    tasks.compute_density(sent[0])
    assert get(reader, "maps_state", **query).headers["HX-Refresh"] == "true"
    assert post(reader, headers={"HX-Request": "true"}).headers["HX-Refresh"] == "true"  # a fast worker


def test_whoever_waits_for_a_map_does_not_have_the_tally_read_every_two_seconds(
    reader: Client, located: Study
) -> None:
    post(reader)
    with CaptureQueriesContext(connection) as queries:
        answer = get(reader, "maps_state", **{"from": "2024-05-30", "to": "2024-06-02"})
    assert "Waiting for a worker." in answer.content.decode()
    assert not [query for query in queries if "locationtally" in query["sql"]]  # tens of megabytes


def test_a_failure_is_said_and_can_be_tried_again(reader: Client, located: Study, sent: list[int]) -> None:
    post(reader)
    DensityMap.objects.update(state="failed")
    answer = get(reader, "maps_state", **{"from": "2024-05-30", "to": "2024-06-02"})
    assert "could not be computed" in answer.content.decode()
    assert "HX-Refresh" not in answer.headers
    page = get(reader).content.decode()
    assert "could not be computed" in page
    assert 'hx-trigger="load' not in page  # by hand only: it may fail again
    post(reader)
    assert len(sent) == 2


def test_a_map_whose_worker_is_gone_is_asked_for_again(
    reader: Client, located: Study, sent: list[int]
) -> None:
    """Else the page would wait for it for ever."""
    post(reader)
    for state in ("waiting", "running"):
        DensityMap.objects.update(state=state)
        assert 'role="status"' in get(reader).content.decode()
    DensityMap.objects.update(changed_at=timezone.now() - densities.PATIENCE - timedelta(seconds=1))
    page = get(reader).content.decode()
    assert 'role="status"' not in page
    assert 'hx-trigger="load, submit"' in page
    post(reader)
    assert len(sent) == 2
    assert 'role="status"' in get(reader).content.decode()


def test_without_scripts_the_form_leads_back_to_the_page(reader: Client, located: Study) -> None:
    answer = post(reader)
    assert answer.status_code == 302
    assert answer.url == reverse("reports:maps", args=["fair-2024"]) + "?from=2024-05-30&to=2024-06-02"
    assert "It appears here by itself".lower() in get(reader).content.decode().lower()


def test_a_computed_map_is_shown_beside_the_noisy_one_with_the_same_scale(
    reader: Client, located: Study, sent: list[int]
) -> None:
    kept = compute(reader, sent)
    page = get(reader).content.decode()
    _, density = panels_of(page)
    values, _, low, high = kept.get_layers(GRID.shape).reshape(4, -1).astype(float)
    scale = scale_of(located)
    expected = np.where(values > scale.breaks[0] / 10, scale.classes(values), NOT_ASKED)
    assert density["classes"] == expected.tolist()
    assert density["numbers"][0] == pytest.approx(values, abs=0.5)
    assert density["numbers"][2] == pytest.approx(high, abs=0.5)
    uncertain = panels_of(get(reader, layer="uncertainty").content.decode())[1]
    scale = scale_of(located, UNCERTAINTY)
    half = (high - low) / 2
    expected = np.where(half > scale.breaks[0] / 10, scale.classes(half), NOT_ASKED)
    assert uncertain["classes"] == expected.tolist()
    text = text_of(page)
    assert words.goodness_words(kept) in text
    for name, row in zip(ZONES, kept.figures["zones"], strict=True):
        shown = f"{wording.number(row['count'])} {wording.number_range(row['ci_low'], row['ci_high'])}"
        assert (
            f"{name} {shown} {wording.number(row['noisy'])}".replace("<", "&lt;").replace(">", "&gt;") in text
        )


def test_land_has_no_colour_where_nobody_can_be(reader: Client, located: Study, sent: list[int]) -> None:
    kept = compute(reader, sent)
    (found,) = locations.location_windows(located, [Window(1, 4)])
    grid_map = located.area.grid_map
    water = replace(grid_map, land=np.zeros(GRID.shape, np.bool_))
    frame = maps_density.density_frame(found, kept, grid_map=water, scale=scale_of(located), options=ESTIMATE)
    assert set(frame["panels"][1]["classes"]) == {NOT_ASKED}
    assert set(frame["panels"][0]["classes"]) != {NOT_ASKED}  # noise goes anywhere


def test_days_have_the_maps_that_are_there(reader: Client, located: Study, sent: list[int]) -> None:
    DayNote.objects.create(study=located, day=3, kind="outage", text="mast down", by="adam")
    post(reader, {"days": "all"})
    assert len(sent) == 3  # nothing is computed of an outage
    tasks.compute_density(sent[0])
    answer = get(reader, "maps_days")
    frames = answer.json()["frames"]
    assert [frame["query"].split("&")[0] for frame in frames] == [
        f"from={day}" for day in ("2024-05-30", "2024-05-31", "2024-06-01", "2024-06-02")
    ]
    blanks = [[panel["blank"] for panel in frame["panels"]] for frame in frames]
    assert blanks == [["", ""], ["", "not computed yet"], ["\u00d7 outage"] * 2, ["", "not computed yet"]]
    assert set(frames[2]["panels"][0]["classes"]) == {NOT_ASKED}  # what there is of it is not to be read
    page = get(reader, **{"from": "2024-05-30"}).content.decode()
    assert panels_of(page) == frames[0]["panels"]


@pytest.mark.parametrize(
    "address", ["maps/", "maps/days.json", "home/?view=map"], ids=["places", "days", "zones"]
)
def test_maps_are_sent_compressed(reader: Client, located: Study, address: str) -> None:
    answer = reader.get(f"/studies/fair-2024/{address}", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["Content-Encoding"] == "gzip"


def test_the_better_view_is_the_one_with_shorter_intervals(
    reader: Client, located: Study, sent: list[int]
) -> None:
    kept = compute(reader, sent)
    *rows, outside = maps_density.zone_rows(list(ZONES), kept)
    assert outside.name == "In no zone"
    assert sum(row.noisy for row in [*rows, outside]) == kept.figures["n_reports"]
    report = window_report(located.indicators.get(slug="home"), Window(1, 4))
    by_places = maps_density.mean_half_width(rows)
    by_zones = maps_density.half_width_of_report(report, zones=ZONES)
    halves = [(row["ci_high"] - row["ci_low"]) / 2 for row in kept.figures["zones"]]
    assert by_places == pytest.approx(sum(halves) / 4)
    shares = [(each.ci_high - each.ci_low) / 2 for each in report.estimates[:3]]
    assert by_zones == pytest.approx(3000 * sum(shares) / 3)
    text = words.better_view_words(rows, [report], zones=ZONES)
    better = "reported places are" if by_places <= by_zones else "the indicator “Home” is"
    assert better in text
    assert f"± {wording.number(by_places)}" in text
    assert f"± {wording.number(by_zones)}" in text
    assert text_of(get(reader).content.decode()).count(text.split(":")[0]) == 1
    sharp = [
        replace(row, estimate=replace(row.estimate, visitors_ci_low=row.estimate.visitors,
                                      visitors_ci_high=row.estimate.visitors + 1))
        for row in rows
    ]  # fmt: skip
    assert "reported places are" in words.better_view_words(sharp, [report], zones=ZONES)
    wide = [
        replace(row, estimate=replace(row.estimate, visitors_ci_low=0.0, visitors_ci_high=3000.0))
        for row in rows
    ]
    assert "the indicator “Home” is" in words.better_view_words(wide, [report], zones=ZONES)
    assert "has numbers of this window to compare them with" in words.better_view_words(rows, [], zones=ZONES)


def test_goodness_says_so_when_the_density_does_not_fit() -> None:
    figures = {"chi_square": 1.2, "chi_square_low": 0.8, "chi_square_high": 1.3, "n_blocks": 9, "steps": 7}
    assert "as well as chance allows" in words.goodness_words(DensityMap(figures=figures))
    assert "after 7 steps" in words.goodness_words(DensityMap(figures=figures))
    bad = words.goodness_words(DensityMap(figures=figures | {"chi_square": 1.31}))
    assert "does not explain the reports" in bad
    few = words.goodness_words(DensityMap(figures=figures | {"n_blocks": 4}))
    assert "too few reports" in few
    assert "explains the reports as well" not in few


def test_an_indicator_that_is_not_reliable_is_compared_too(reader: Client, sent: list[int]) -> None:
    map_factory.create_located(epsilon="0.2", n=500)
    compute(reader, sent)
    page = text_of(get(reader).content.decode())
    assert "reported places are the better view here" in page
    assert "of “Home”" in page


def test_what_is_hidden_or_missing_says_why(reader: Client, located: Study) -> None:
    Study.objects.update(small_cell=100_000)
    page = get(reader).content.decode()
    assert "suppressed" in page
    assert "map-data" not in page
    answer = get(reader, **{"from": "2030-01-01"})
    assert answer.status_code == 400
    assert "These days are not in the study" in answer.content.decode()
    assert post(reader).status_code == 302
    assert get(reader, "maps_state", **{"from": "nonsense"}).status_code == 404


def test_a_capped_study_offers_single_days(reader: Client, sent: list[int]) -> None:
    map_factory.create_located(location=replace(map_factory.LOCATION, max_values=2))
    assert get(reader).context["window_title"] == "Thu 30 May 2024"
    answer = get(reader, **{"from": "2024-05-30", "to": "2024-05-31"})
    assert answer.status_code == 400
    assert "on 2 days only" in answer.content.decode()


@pytest.mark.parametrize("name", ["maps", "maps_days", "maps_state"])
def test_a_study_without_places_has_no_such_pages(reader: Client, name: str) -> None:
    factory.create(HOME)
    assert get(reader, name).status_code == 404


def test_strangers_neither_see_nor_ask(client: Client, located: Study, sent: list[int]) -> None:
    for name in ("maps", "maps_days", "maps_state"):
        assert get(client, name).status_code == 302
    assert post(client).status_code == 302
    assert sent == []


def test_the_page_of_the_study_leads_to_the_maps(reader: Client, located: Study) -> None:
    page = reader.get(reverse("reports:study", args=["fair-2024"])).content.decode()
    assert reverse("reports:maps", args=["fair-2024"]) in Markup(page).links
