"""Maps and files of an analyst: computed by the worker, fetched in Chromium, with the numbers of the command.

That other libraries read each kind of file: tests/reports/exports.
"""

import csv
import io
import json

import pytest
from playwright.sync_api import expect

from tests.demo_study import STUDY, write_study

pytestmark = pytest.mark.e2e
WINDOW = "from=2017-05-31&to=2017-06-01"
BEGINNINGS = {
    "xlsx": b"PK\3\4", "parquet": b"PAR1", "png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF-", "json": b"[",
    "csv": b"study,", "sdmx.csv": b"STRUCTURE,",
}  # fmt: skip
LOCATION = """
[location]
level = "ln 4"
radius_m = 400
grid_m = 1000
"""
RIVER = {"type": "LineString", "coordinates": [[6.86, 47.72], [6.87, 47.65], [6.84, 47.55]]}


@pytest.fixture(scope="module")
def two_days(site, extract):
    exported = ("export_report", STUDY, "--indicator", "gender", "--from", "2017-05-31", "--to", "2017-06-01")
    *_, reports = site.values(*(("ingest", STUDY, str(path)) for path in extract[:2]), exported)
    return reports[0]["estimates"]


@pytest.fixture(scope="module")
def place_study(site, extract, tmp_path_factory):
    slug, folder = "places-2017", tmp_path_factory.mktemp("places")
    river = {"type": "Feature", "properties": {}, "geometry": RIVER}
    (folder / "Savoureuse.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [river]}))
    file = write_study(folder, slug=slug, more=f'layers = ["Savoureuse.geojson"]\n{LOCATION}')
    created = "create_study", str(file)
    site.values(created, *(("ingest", slug, str(path)) for path in extract[:2]))
    return slug


def fetched(page, label):
    """Name and content of a file of the menu; one that takes longer comes from its own page."""
    address = page.url
    with page.expect_download() as waiting:
        page.locator(".downloads").get_by_role("link", name=label, exact=True).click()
    if page.url != address:
        page.goto(address)
        page.locator(".downloads summary").click()
    return waiting.value.suggested_filename, waiting.value.path().read_bytes()


def test_each_file_of_a_window_is_fetched_by_keyboard_and_has_its_numbers(site, two_days, sign_in):
    page = sign_in("analyst")
    page.goto(f"{site.address}/studies/{STUDY}/gender/?{WINDOW}")
    page.locator(".downloads summary").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".downloads").get_by_role("link", name="PDF", exact=True)).to_be_visible()
    contents = {}
    for label in page.locator(".downloads a").all_inner_texts():
        name, content = fetched(page, label)
        stem, _, ending = name.partition(".")
        assert stem == f"{STUDY}_gender_2017-05-31_2017-06-01"
        contents[ending] = content
    assert {ending: contents[ending][: len(BEGINNINGS[ending])] for ending in contents} == BEGINNINGS
    shares = [estimate["frequency"] for estimate in two_days]
    rows = list(csv.DictReader(io.StringIO(contents["csv"].decode())))
    assert [float(row["frequency"]) for row in rows] == pytest.approx(shares, rel=1e-15, abs=0)
    assert [each["frequency"] for each in json.loads(contents["json"])[0]["estimates"]] == shares


def test_reported_places_become_a_density(site, place_study, sign_in):
    page = sign_in("analyst")
    page.goto(f"{site.address}/studies/{place_study}/")
    page.get_by_role("link", name="Maps of places").click()
    page.goto(f"{page.url}?{WINDOW}")
    expect(page.get_by_text("the density best predicted the reports that had been set aside")).to_be_visible(
        timeout=120_000
    )
    expect(page.locator(".map__plot image")).to_have_count(2)
    expect(page.get_by_text("Savoureuse")).to_be_visible()
    row = page.get_by_role("row", name="City of Belfort")
    # Most of the demo's people are in the city, and noise takes some of them out of it.
    subscribers, noisy = (
        int("".join(c for c in row.locator("td").nth(place).inner_text().split("\n")[0] if c.isdigit()))
        for place in (0, 1)
    )
    assert subscribers > noisy > 0
    expect(page.get_by_text("reported places are more accurate")).to_be_visible()
