"""From an extract to maps: zones and reported places, computed by the worker, by keyboard; files of them."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import geopandas
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import STUDY, STUDY_FILE, Site

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LOCATION = """
[location]
level = "ln 4"
radius_m = 400
grid_m = 1000
"""
RIVER = {"type": "LineString", "coordinates": [[6.86, 47.72], [6.87, 47.65], [6.84, 47.55]]}


@pytest.fixture(scope="session")
def place_study(site: Site, extract: list[Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Slug of a study of the site in which everyone reports a place, with two published days of seven."""
    folder = tmp_path_factory.mktemp("places")
    for name in ("cells.csv", "zones.geojson"):
        shutil.copy(STUDY_FILE.parent / name, folder)
    river = {"type": "Feature", "properties": {}, "geometry": RIVER}
    (folder / "Savoureuse.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [river]}))
    text = STUDY_FILE.read_text().replace(f'slug = "{STUDY}"', 'slug = "with-places"')
    (folder / "study.toml").write_text(f'{text}layers = ["Savoureuse.geojson"]\n{LOCATION}')
    site.value("create_study", str(folder / "study.toml"))
    for path in extract[:2]:
        site.value("ingest", "with-places", str(path))
    return "with-places"


def test_reported_places_become_a_density(site: Site, place_study: str, sign_in: Callable[..., Page]) -> None:
    page = sign_in("analyst")
    page.goto(f"{site.address}/studies/{place_study}/")
    page.get_by_role("link", name="Maps of places").click()
    page.goto(f"{page.url}?from=2017-05-31&to=2017-06-01")
    expect(page.get_by_text("where it predicts held-out reports best")).to_be_visible(timeout=120_000)
    expect(page.locator(".map__plot image")).to_have_count(2)
    expect(page.get_by_text("Savoureuse")).to_be_visible()
    row = page.get_by_role("row", name="City of Belfort")
    # Most of the demo's people are in the city, and noise takes some of them out of it.
    subscribers, noisy = (
        int("".join(c for c in row.locator("td").nth(place).inner_text().split("\n")[0] if c.isdigit()))
        for place in (0, 1)
    )
    assert subscribers > noisy > 0
    expect(page.get_by_text("reported places are the better view here")).to_be_visible()
    page.get_by_role("button", name="Compute the maps of all days").press("Enter")
    page.wait_for_url("**/maps/?**")
    page.locator(".map__frame").first.focus()
    page.keyboard.press("+")
    page.get_by_role("button", name="Day after").press("Enter")
    expect(page.locator("[data-title]")).to_have_text("Wed 31 May 2017")


def test_zones_are_downloaded_as_the_map_has_them(
    site: Site, place_study: str, sign_in: Callable[..., Page]
) -> None:
    page = sign_in("analyst")
    page.goto(f"{site.address}/studies/{place_study}/sleeping_area/?from=2017-05-31&to=2017-06-01")
    page.get_by_role("link", name="Map", exact=True).click()
    page.wait_for_selector(".map__plot .shapelayer path, .map__plot .scatterlayer path")
    page.get_by_text("Download these numbers").click()
    with page.expect_download() as started:
        page.get_by_role("link", name="GeoJSON", exact=True).click()
    content = Path(str(started.value.path())).read_bytes()
    frame = geopandas.read_file(io.BytesIO(content))
    assert set(frame["category"]) >= {"City of Belfort", "NR"}
    table = page.locator(".table tbody tr").filter(has_text="City of Belfort")
    reports = int(table.locator("td").last.inner_text().replace("\u202f", ""))
    assert frame.set_index("category").loc["City of Belfort", "reports"] == reports
    with page.expect_download() as started:
        page.get_by_role("link", name="SVG", exact=True).click()
    assert b'id="zone-0"' in Path(str(started.value.path())).read_bytes()
