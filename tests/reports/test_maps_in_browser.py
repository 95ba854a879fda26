"""Maps in Chromium under the real content policy: drawn, pointed at, played, moved; nothing refused."""

import itertools
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page

from reports import maps, selectors, tasks
from reports.models import DayNote, Study
from reports.options import ReportOptions
from reports.selectors import Window
from tests.e2e.test_accessibility import SCHEMES, SIZES, barriers, is_wider_than_the_screen
from tests.reports import map_factory
from tests.reports.map_factory import ZONES
from tests.reports.test_charts_in_browser import Watched, browser, sign_in  # noqa: F401 - a fixture

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
PATH = "/studies/fair-2024/home/?view=map"


@pytest.fixture
def mapped(transactional_db: None) -> Study:
    return map_factory.create()


@pytest.fixture
def opened(browser: Browser, mapped: Study, analyst: User, live_server: Any) -> Any:  # noqa: F811
    """Open the map; in the end nothing may have been refused or fetched from elsewhere."""
    seen: list[Watched] = []

    def open_map(path: str = PATH, **context: Any) -> Page:
        watched = sign_in(browser, live_server.url, analyst, **context)
        seen.append(watched)
        watched.page.goto(watched.base + path)
        watched.page.wait_for_selector(".map__plot .shapelayer path, .map__plot .scatterlayer path")
        return watched.page

    yield open_map
    for watched in seen:
        assert (watched.complaints, watched.foreign) == ([], [])
        watched.page.context.close()


def place_of(page: Page, column: float, row: float) -> tuple[float, float]:
    """Pixels of a place of the whole area, counted in squares from its lower left corner."""
    page.locator(".map__frame").scroll_into_view_if_needed()
    box = page.locator(".map__plot").bounding_box()
    assert box is not None
    height_px = box["height"] / 1.06 / 2  # of a square: the area is higher than wide and fills the height
    width_px = height_px * 750 / 1112
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    return middle[0] + (column - 1) * width_px, middle[1] - (row - 1) * height_px


def point_at(page: Page, column: float, row: float) -> str:
    """What is said of a place of the whole area."""
    page.mouse.move(*place_of(page, column, row))
    hover = page.locator(".map__hover")
    return hover.inner_text() if hover.is_visible() else ""


def fills(page: Page) -> list[str]:
    """What the polygons are filled with, one text a class."""
    paths = page.locator(".map__plot .shapelayer path, .map__plot path.js-fill").all()
    return [str(path.evaluate("path => getComputedStyle(path).fill")) for path in paths]


def resolved(page: Page, name: str) -> str:
    """A colour of the style sheet as browsers write it."""
    script = "name => { const e = document.createElement('i'); document.body.append(e); "
    script += "e.style.color = `var(${name})`; const c = getComputedStyle(e).color; e.remove(); return c; }"
    return str(page.evaluate(script, name))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_zones_have_the_colours_of_their_classes(opened: Any, mapped: Study, scheme: str) -> None:
    page = opened(color_scheme=scheme)
    options = ReportOptions(view="map")
    home = mapped.indicators.get(slug="home")
    scale = maps.map_scale(selectors.indicator_reports(home, maps.windows_of_scale(home)), options=options)
    report = selectors.window_report(home, Window(1, 4))
    (panel,) = maps.map_frame(report, names=ZONES, scale=scale, options=options)["panels"]
    names = {f"--map-{found + 1}" if found >= 0 else "--surface-2" for found in panel["classes"]}
    assert set(fills(page)) == {resolved(page, name) for name in names}


def test_pointing_at_a_zone_says_its_numbers_and_a_hole_is_no_zone(opened: Any, mapped: Study) -> None:
    page = opened(viewport={"width": 1000, "height": 900})
    report = selectors.window_report(mapped.indicators.get(slug="home"), Window(1, 4))
    options = ReportOptions(view="map")
    frame = maps.map_frame(
        report, names=ZONES, scale=maps.map_scale([report], options=options), options=options
    )
    texts = frame["panels"][0]["texts"]
    assert point_at(page, 0.5, 0.5) == texts[2]
    assert point_at(page, 1.5, 1.5) == texts[1]
    assert point_at(page, 1.95, 0.05) == texts[3]
    assert point_at(page, 0.1, 1.9) == texts[0]
    assert point_at(page, 0.5, 1.5) == ""  # the hole
    assert point_at(page, 2.05, 0.5) == ""


def test_days_are_stepped_and_opened(opened: Any, mapped: Study) -> None:
    DayNote.objects.create(study=mapped, day=2, kind="outage", text="mast down", by="adam")
    page = opened()
    title = page.locator("[data-title]")
    whole = title.inner_text()
    page.get_by_role("button", name="Day after").click()
    page.wait_for_function("t => document.querySelector('[data-title]').textContent !== t", arg=whole)
    assert title.inner_text() == "Thu 30 May 2024"
    assert page.locator(".map__rest").is_hidden()  # these are the numbers of the window of the page
    page.get_by_role("button", name="Day after").click()
    page.locator(".map__blank").wait_for(state="visible")
    assert page.locator(".map__blank").inner_text() == "\u00d7 outage"
    assert any("url(" in fill for fill in fills(page))  # hatched
    page.get_by_role("link", name="Open the numbers of this day").click()
    page.wait_for_url("**/home/?from=2024-05-31&to=2024-05-31&view=map")


def test_playing_goes_to_the_last_day_and_stops(opened: Any) -> None:
    page = opened(PATH + "&from=2024-06-01")
    page.get_by_role("button", name="Play the days").click()
    page.get_by_role("button", name="Pause").wait_for()
    page.wait_for_function("() => document.querySelector('[data-title]').textContent === 'Sun 2 Jun 2024'")
    page.get_by_role("button", name="Play the days").wait_for()
    page.get_by_role("button", name="Day before").click()
    page.wait_for_function("() => document.querySelector('[data-title]').textContent === 'Sat 1 Jun 2024'")


def test_whoever_wants_no_motion_steps_by_hand(opened: Any) -> None:
    page = opened(reduced_motion="reduce")
    assert page.get_by_role("button", name="Day after").is_visible()
    assert page.get_by_role("button", name="Play the days").is_hidden()


def test_days_that_cannot_be_loaded_say_so(opened: Any) -> None:
    page = opened()
    page.route("**/map.json*", lambda route: route.fulfill(body="<html>signed out</html>"))
    page.get_by_role("button", name="Day after").click()
    page.get_by_text("The days could not be loaded.").wait_for()


def test_keys_and_buttons_move_the_map(opened: Any) -> None:
    page = opened(viewport={"width": 1000, "height": 900})
    scale = page.locator(".map__scale")
    before = scale.inner_text()
    page.locator(".map__frame").focus()
    page.keyboard.press("+")
    page.keyboard.press("+")
    page.wait_for_function("t => document.querySelector('.map__scale').textContent !== t", arg=before)
    assert point_at(page, 1.95, 0.05) == point_at(page, 1.2, 0.8)  # four times as large
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    assert point_at(page, 1.2, 0.8) == ""
    page.get_by_role("button", name="Whole area").click()
    page.wait_for_function("t => document.querySelector('.map__scale').textContent === t", arg=before)
    assert point_at(page, 1.95, 0.05) != ""


def test_a_drag_moves_the_map_under_the_pointer(opened: Any) -> None:
    page = opened(viewport={"width": 1000, "height": 900})
    text = point_at(page, 1.5, 1.5)
    page.mouse.down()
    page.mouse.move(*place_of(page, 2.5, 1.5), steps=5)
    page.mouse.up()
    page.wait_for_timeout(200)
    assert point_at(page, 2.5, 1.5) == text
    assert point_at(page, 1.5, 0.5) != text


@pytest.fixture
def located(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study with reported places; what a worker is asked for is computed at once."""
    monkeypatch.setattr(tasks.compute_density, "delay_on_commit", tasks.compute_density)
    return map_factory.create_located(n=2000)


def test_the_deconvolved_map_comes_by_itself_and_both_move_together(
    browser: Browser,  # noqa: F811
    located: Study,
    analyst: User,
    live_server: Any,
) -> None:
    watched = sign_in(browser, live_server.url, analyst, viewport={"width": 1300, "height": 1100})
    page = watched.page
    page.goto(watched.base + "/studies/fair-2024/maps/")
    page.get_by_text("The density explains the reports").wait_for()
    assert page.locator(".map__plot image").count() == 2
    assert page.eval_on_selector(".map__plot image", "e => getComputedStyle(e).imageRendering") == "pixelated"
    frames = page.locator(".map__frame")
    box = frames.nth(1).bounding_box()
    assert box is not None
    # The square where most people are: column 6 of 16 and row 10 of 20, in a map that fills its height.
    side = box["height"] / 1.06 / 20
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(middle[0] + (6.5 - 8) * side, middle[1] - (10.5 - 10) * side)
    text = frames.nth(1).locator(".map__hover").inner_text()
    assert "about" in text
    assert "subscribers" in text
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_timeout(300)
    ranges = page.eval_on_selector_all(".map__plot", "plots => plots.map(p => p.layout.xaxis.range)")
    assert ranges[0] == pytest.approx(ranges[1])
    page.get_by_role("button", name="Day after").click()
    frames.nth(1).get_by_text("not computed yet").wait_for()
    assert frames.nth(0).locator(".map__blank").is_hidden()
    assert (watched.complaints, watched.foreign) == ([], [])


@pytest.mark.parametrize(
    "path", [PATH, PATH + "&layer=uncertainty&from=2024-05-31", "/studies/fair-2024/maps/"]
)
def test_no_map_has_a_serious_barrier(
    browser: Browser,  # noqa: F811
    located: Study,
    analyst: User,
    live_server: Any,
    path: str,
) -> None:
    watched = sign_in(browser, live_server.url, analyst)
    watched.page.goto(watched.base + path)
    watched.page.wait_for_selector(".map__plot .shapelayer path")
    if path.endswith("/maps/"):
        watched.page.get_by_text("The density explains the reports").wait_for()
    found = []
    for size, scheme in itertools.product(SIZES, SCHEMES):
        watched.page.set_viewport_size(SIZES[size])
        watched.page.emulate_media(color_scheme=scheme)
        found += [f"{size}, {scheme}: {line}" for line in barriers(watched.page)]
        if is_wider_than_the_screen(watched.page):
            found.append(f"{size}: the page scrolls sideways")
    assert found == []
