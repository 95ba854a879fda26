"""Report pages in Chromium under the real content policy: drawn, by keyboard, on paper; nothing refused."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

from reports import tasks
from reports.base import formats
from reports.estimates import queries
from reports.estimates.options import ReportOptions
from reports.estimates.queries import Window, WindowReport
from reports.exports import actions as files
from reports.exports import file_views
from reports.maps import zones
from reports.models import DayNote, ExportFile, Indicator, Study
from tests.e2e.test_accessibility import SIZES, barriers, is_wider_than_the_screen
from tests.reports import map_factory
from tests.reports import report_factory as factory
from tests.reports.map_factory import ZONES

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
FLAGS = "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync"
WATCH = "addEventListener('securitypolicyviolation', e => console.error('refused', e.violatedDirective))"
REFUSED = "document.head.append(Object.assign(document.createElement('style'), {textContent: 'p{}'}))"
LONG = factory.indicator("home", "comfortable family pavilion", "rural <b>&</b> growing peri-urban", "NR")
GENDER = "/studies/fair-2024/gender/"
MAP = "/studies/fair-2024/home/?view=map"
SCREEN = {"width": 1000, "height": 900}
DRAWN = ".chart .main-svg, .map__plot .shapelayer path, .map__plot .scatterlayer path"


@dataclass
class Watched:
    page: Page
    base: str
    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def on_request(self, request: Request) -> None:
        if not request.url.startswith((self.base, "data:")):
            self.foreign.append(request.url)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    with pytest.MonkeyPatch.context() as environment, sync_playwright() as playwright:
        # Playwright keeps an event loop in this thread, which Django takes for asynchronous code.
        environment.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        launched = playwright.chromium.launch(executable_path=executable, args=FLAGS.split())
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def contexts(browser) -> Callable[..., BrowserContext]:
    """Contexts by their options: each fetches and compiles the scripts once."""
    return cache(browser.new_context)


@pytest.fixture
def signed_in(contexts, analyst, live_server) -> Iterator[Callable[..., Watched]]:
    """Pages of an analyst; in the end nothing may have been refused, or fetched from elsewhere."""
    seen: list[Watched] = []
    client = Client()
    client.force_login(analyst)
    cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}

    def sign_in(*, viewport=None, color_scheme=None, reduced_motion=None, **context) -> Watched:
        place = contexts(**context)
        place.add_cookies([cookie])
        place.set_default_timeout(15_000)
        watched = Watched(page=place.new_page(), base=live_server.url)
        if viewport:
            watched.page.set_viewport_size(viewport)
        watched.page.emulate_media(color_scheme=color_scheme, reduced_motion=reduced_motion)
        watched.page.add_init_script(WATCH)
        watched.page.on("console", watched.on_console)
        watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
        watched.page.on("request", watched.on_request)
        seen.append(watched)
        return watched

    yield sign_in
    for watched in seen:
        assert (watched.complaints, watched.foreign) == ([], [])
        watched.page.evaluate("localStorage.clear()")
        watched.page.context.clear_cookies()
        watched.page.close()


@pytest.fixture
def opened(signed_in) -> Callable[..., Page]:
    def open_page(path: str, *, page: Page | None = None, **context) -> Page:
        watched = signed_in(**context) if page is None else None
        found = page or watched.page
        found.goto((watched.base if watched else found.url.split("/studies/")[0]) + path)
        found.wait_for_selector(DRAWN)
        return found

    return open_page


@pytest.fixture
def fair(transactional_db) -> Study:
    return factory.published(LONG, factory.GENDER, factory.STAY)


def fill(page: Page, selector: str) -> str:
    # In one step: between two a chart may be redrawn, and what was found is gone.
    return str(page.evaluate("found => getComputedStyle(document.querySelector(found)).fill", selector))


def test_charts_are_drawn_and_nothing_is_refused_or_fetched(fair, signed_in, opened) -> None:
    page = None
    for path in ("", "home/", "home/days/", "stay/"):
        page = opened(f"/studies/fair-2024/{path}", page=page)
        page.locator(".chart .point").first.hover(force=True)
        page.wait_for_selector(".chart .hoverlayer .hovertext")
        position = page.eval_on_selector(".chart .main-svg", "svg => getComputedStyle(svg).position")
        assert position == "absolute"
    watched = signed_in()
    watched.page.goto(page.url)
    watched.page.evaluate(REFUSED)
    watched.page.wait_for_timeout(100)
    assert any("refused style-src" in text for text in watched.complaints)  # the watch sees it
    watched.complaints.clear()


def test_charts_keep_their_height_when_the_window_changes(fair, opened) -> None:
    page = opened("/studies/fair-2024/home/", viewport=SIZES["narrow"])
    heights = []
    for size in ("narrow", "wide", "narrow"):
        page.set_viewport_size(SIZES[size])
        page.wait_for_timeout(500)
        heights.append(page.eval_on_selector(".chart .main-svg", "svg => svg.getBoundingClientRect().height"))
    assert heights == heights[:1] * 3


def test_chart_shows_the_numbers_of_the_table_and_follows_light_and_dark(fair, opened) -> None:
    page = opened("/studies/fair-2024/home/", color_scheme="light")
    report = queries.window_report(fair.indicators.get(slug="home"), Window(1, 4))
    drawn = "".join(page.locator(".chart .main-svg").all_text_contents())
    for estimate in report.estimates:
        assert formats.percent(estimate.frequency) in drawn
    assert "rural <b>&</b>" in "".join(page.locator(".chart .ytick text").all_text_contents())
    assert page.locator(".chart .barlayer .point").count() == 3
    assert page.locator(".chart[role=img]").get_attribute("aria-label").startswith("Of 4")
    bar, text = ".chart .barlayer .point path", ".chart .ytick text"
    light = fill(page, bar), fill(page, text)
    for scheme, comparison in (("dark", "!=="), ("light", "===")):
        page.emulate_media(color_scheme=scheme)
        script = f"([path, old]) => getComputedStyle(document.querySelector(path)).fill {comparison} old"
        page.wait_for_function(script, arg=[text, light[1]])
        assert (fill(page, bar) == light[0]) == (scheme == "light")


def test_targets_are_large_enough_to_touch(fair, opened) -> None:
    page = opened(GENDER, viewport=SIZES["narrow"])
    small = page.evaluate(
        """[...document.querySelectorAll('a, button, select, summary')]
            .map(e => [e.textContent.trim(), e.getBoundingClientRect()])
            .filter(([_, box]) => box.height > 0 && (box.height < 24 || box.width < 24))
            .map(([text, box]) => text + ' ' + box.width + 'x' + box.height)"""
    )
    # links inside running text are exempt (WCAG 2.5.8)
    assert [text for text in small if not text.startswith(("Full privacy statement", "Skip"))] == []


LANGUAGES = pytest.mark.parametrize("locale", ["en-GB", "fr-FR"])
LONG_ZONES = ("Comfortable family pavilion north", "rural and growing peri-urban south", "South west")
PART = factory.indicator("place", *LONG_ZONES, "NR")


@pytest.fixture
def long_names(transactional_db) -> Study:
    """Indicators with long sentences, of zones too, one of them of two parts."""
    home = factory.indicator("home", *map_factory.ZONES[:3], "NR")
    parts = home, replace(factory.GENDER, name="Socio-demographic groups of visitors"), PART, factory.STAY
    return map_factory.create(*parts, factory.joint("gender_place", factory.GENDER, PART))


@LANGUAGES
def test_charts_and_maps_start_high_below_one_row_of_menus(locale, long_names, opened) -> None:
    page, low = None, []
    views = [f"{each.slug}/" for each in long_names.indicators.all()]
    views += ["home/?view=map", "gender/days/", "gender_place/days/"]
    for size in ({"width": 1440, "height": 900}, {"width": 390, "height": 844}):
        for view in views:
            page = opened(f"/studies/fair-2024/{view}", page=page, locale=locale)
            page.set_viewport_size(size)
            top = page.locator(".chart, .map__frame").first.bounding_box()["y"]
            rows = {box["y"] // 20 for box in boxes(page, ".toolbar > *")}
            if top > 320 or len(rows) > 1:
                low.append((size["width"], view, top, rows))
    assert low == []


def boxes(page: Page, selector: str) -> list[dict[str, float]]:
    return [box for each in page.locator(selector).all() if (box := each.bounding_box())]


@LANGUAGES
def test_tabs_never_move_and_the_row_says_that_it_goes_on(locale, fair, opened) -> None:
    page = opened(GENDER, locale=locale)
    address = page.url
    for width, height in ((1440, 900), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        tops = set()
        for path in ("days/", "compare/", "movement/", "scenario/", ""):
            page.goto(address + path)
            tops.add(page.locator("nav.pages").bounding_box()["y"])
            box, own = (page.locator(each).bounding_box() for each in ("nav.pages", ".pages [aria-current]"))
            assert own["x"] + own["width"] <= box["x"] + box["width"] + 1
        assert len(tops) == 1, tops
    shades = page.eval_on_selector("nav.pages", "nav => getComputedStyle(nav).backgroundAttachment")
    assert shades == "local, local, scroll, scroll"


@LANGUAGES
def test_a_study_starts_high_on_a_phone(locale, fair, opened) -> None:
    Study.objects.update(is_demo=True)  # its page says so
    page = opened("/studies/fair-2024/", locale=locale, viewport=SIZES["narrow"])
    tops = {page.locator(".toolbar > *").nth(place).bounding_box()["y"] // 20 for place in range(5)}
    assert len(tops) <= 2, tops
    assert page.locator("#visitors-title").bounding_box()["y"] <= 320
    chart = page.locator(".chart").first.bounding_box()["y"]
    assert chart <= 400 and chart < page.locator("#figures-title").bounding_box()["y"]


def test_window_is_chosen_without_javascript(fair, signed_in) -> None:
    watched = signed_in(java_script_enabled=False)
    page = watched.page
    page.goto(watched.base + GENDER)
    page.click(".toolbar summary")
    for field_, day in (("#from", "2024-05-31"), ("#to", "2024-06-01")):
        page.select_option(field_, day)
    page.click("text=Show")
    assert page.url.endswith("?from=2024-05-31&to=2024-06-01")
    title = page.locator(".toolbar summary .only-wide").inner_text()
    assert title == "Fri 31 May 2024 to Sat 1 Jun 2024 (2 days)"
    assert page.locator("table.table tbody tr").count() == 3
    assert page.locator("noscript").is_visible()


def test_w_leads_to_the_triangle_arrow_keys_move_in_it_and_enter_chooses(fair, opened) -> None:
    page = opened(GENDER + "?order=natural")
    page.wait_for_selector("[data-keys]:not([hidden])", state="attached")
    stops = page.locator("table[role=grid] a[tabindex='0']")
    assert stops.count() == 1  # the grid is one stop of the Tab key
    for key, window in (
        ("w", "Thu 30 May 2024 to Sun 2 Jun 2024"),
        ("ArrowDown", "Fri 31 May 2024 to Sun 2 Jun 2024"),
        ("ArrowLeft", "Fri 31 May 2024 to Sat 1 Jun 2024"),
        ("Home", "Fri 31 May 2024:"),
        ("ArrowLeft", "Fri 31 May 2024:"),  # no window ends before it starts
        ("End", "Fri 31 May 2024 to Sun 2 Jun 2024"),
        ("ArrowLeft", "Fri 31 May 2024 to Sat 1 Jun 2024"),
    ):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.title").startswith(window), key
    assert stops.count() == 1
    page.keyboard.press("Enter")
    page.wait_for_url("**from=2024-05-31&to=2024-06-01&order=natural")


def test_question_mark_or_a_button_open_the_list_and_its_keys_work_until_turned_off(fair, opened) -> None:
    page = opened(GENDER)
    dialog = page.locator("#shortcuts")
    page.locator(".toolbar summary").first.click()
    page.locator("select#from").focus()
    page.keyboard.press("t")  # letters in a field are no shortcuts
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    assert dialog.is_visible()
    assert page.evaluate("document.activeElement.closest('dialog') !== null")
    page.keyboard.press("t")  # keys of the page do nothing behind the list
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    page.wait_for_timeout(200)
    assert page.url.endswith(GENDER)
    page.keyboard.press("?")
    # A key that is pressed before the closed list has lost the focus counts.
    page.evaluate("""() => {
      document.getElementById("shortcuts-off").focus();
      document.getElementById("shortcuts").close();
      const key = new KeyboardEvent("keydown", { key: "m", bubbles: true });
      document.getElementById("shortcuts-off").dispatchEvent(key);
    }""")
    assert page.evaluate("document.activeElement.id") == "method"
    page.keyboard.press("t")
    page.wait_for_url("**view=table")
    assert page.locator(".chart").count() == 0
    opened(GENDER, page=page).locator("[data-opens=shortcuts]").click()
    page.locator("#shortcuts-off").check()
    for key in ("Escape", "t", "?"):
        page.keyboard.press(key)
    page.wait_for_timeout(200)
    assert not page.locator("#shortcuts").is_visible()
    page.reload()
    page.keyboard.press("t")
    page.wait_for_timeout(200)
    assert page.url.endswith(GENDER)


def test_paper_has_the_numbers_in_ink_and_the_address_and_no_navigation(fair, opened) -> None:
    page = opened(GENDER, color_scheme="dark")
    light, ink = "rgb(229, 234, 239)", "rgb(26, 36, 46)"
    page.wait_for_selector(".chart .ytick text")
    for event, colour in (("nothing", light), ("beforeprint", ink), ("afterprint", light)):
        page.evaluate(f"dispatchEvent(new Event('{event}'))")
        assert fill(page, ".chart .ytick text") == colour
    page.emulate_media(media="print", color_scheme="dark")
    for selector in (".header", ".pages", "#windows", ".switches", ".window-form"):
        assert not page.locator(selector).first.is_visible(), selector
    for selector in (".chart .main-svg", ".table", ".print-only"):
        assert page.locator(selector).first.is_visible(), selector
    assert page.url in page.locator("p.print-only").last.inner_text()
    body = page.evaluate("(s => [s.backgroundColor, s.color])(getComputedStyle(document.body))")
    assert body == ["rgb(255, 255, 255)", ink]


def test_wide_charts_fit_on_paper_and_are_wide_again_after_it(fair, opened) -> None:
    page = opened(GENDER + "days/?form=lines", viewport={"width": 1440, "height": 900})
    width = "parseFloat(document.querySelector('.chart .main-svg').getAttribute('width'))"
    wide = page.evaluate(width)
    assert wide > 1000
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(width) <= 660
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.wait_for_timeout(500)
    assert page.evaluate(width) == wide


def place_of(page: Page, column: float, row: float) -> tuple[float, float]:
    """Pixels of a place of the whole area, counted in squares from its lower left corner."""
    page.locator(".map__frame").scroll_into_view_if_needed()
    box = page.locator(".map__plot").bounding_box()
    height_px = box["height"] / 1.06 / 2  # of a square: the area is higher than wide and fills the height
    width_px = height_px * 750 / 1112
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    return middle[0] + (column - 1) * width_px, middle[1] - (row - 1) * height_px


def point_at(page: Page, column: float, row: float) -> str:
    page.mouse.move(*place_of(page, column, row))
    hover = page.locator(".map__hover")
    return hover.inner_text() if hover.is_visible() else ""


def fills(page: Page) -> set[str]:
    paths = page.locator(".map__plot .shapelayer path, .map__plot path.js-fill").all()
    return {str(path.evaluate("path => getComputedStyle(path).fill")) for path in paths}


def resolved(page: Page, name: str) -> str:
    script = "name => { const e = document.createElement('i'); document.body.append(e); "
    script += "e.style.color = `var(${name})`; const c = getComputedStyle(e).color; e.remove(); return c; }"
    return str(page.evaluate(script, name))


def panel_of(home: Indicator, reports: Sequence[WindowReport] = ()) -> dict[str, Any]:
    options, report = ReportOptions(view="map"), queries.window_report(home, Window(1, 4))
    scale = zones.map_scale(reports or [report], options=options)
    return zones.map_frame(report, names=ZONES, scale=scale, options=options)["panels"][0]


def title_becomes(page: Page, text: str) -> None:
    page.wait_for_function("t => document.querySelector('[data-title]').textContent === t", arg=text)


def test_zones_have_the_colours_of_their_classes_in_light_and_dark(mapped, opened) -> None:
    page = opened(MAP, color_scheme="light")
    home = mapped.indicators.get(slug="home")
    panel = panel_of(home, queries.indicator_reports(home, zones.windows_of_scale(home)))
    names = {f"--map-{found + 1}" if found >= 0 else "--surface-2" for found in panel["classes"]}
    light = {resolved(page, name) for name in names}
    assert fills(page) == light
    page.emulate_media(color_scheme="dark")
    dark = {resolved(page, name) for name in names}
    page.wait_for_timeout(300)
    assert dark != light
    assert fills(page) == dark


def test_names_of_zones_are_dark_on_light_grounds_and_light_on_dark_ones(mapped, opened) -> None:
    page = opened(MAP + "&classes=quantile", color_scheme="light")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(300)
        looks = page.eval_on_selector_all(
            ".map__plot .textpoint text", "all => all.map(getComputedStyle).map(e => [e.fill, e.textShadow])"
        )
        found = [re.findall(r"rgb\(.*?\)", f"{ink} {shadow}")[:2] for ink, shadow in looks]
        # A name that reaches beyond its zone has the ground of the page around it.
        grounds, bare = {ground for _, ground in found}, {resolved(page, "--bg")}
        assert grounds <= fills(page) | bare and len(grounds - bare) > 1
        for both in found:
            light = [sum(map(int, re.findall(r"\d+", each))) for each in both]
            assert abs(light[0] - light[1]) > 250, (scheme, both)


def test_pointing_says_the_numbers_of_a_zone_and_keys_and_drags_move_the_map(mapped, opened) -> None:
    page = opened(MAP, viewport=SCREEN)
    texts = panel_of(mapped.indicators.get(slug="home"))["texts"]
    inside = ((0.5, 0.5, texts[2]), (1.5, 1.5, texts[1]), (1.95, 0.05, texts[3]), (0.1, 1.9, texts[0]))
    for column, row, text in (*inside, (0.5, 1.5, ""), (2.05, 0.5, "")):  # the hole, and outside the area
        assert point_at(page, column, row) == text, (column, row)
    before = page.locator(".map__scale").inner_text()
    page.locator(".map__frame").focus()
    page.keyboard.press("+")
    page.keyboard.press("+")
    page.wait_for_function("t => document.querySelector('.map__scale').textContent !== t", arg=before)
    assert point_at(page, 1.2, 0.8) == texts[3]  # four times as large
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    assert point_at(page, 1.2, 0.8) == ""
    page.get_by_role("button", name="Whole area").click()
    page.wait_for_function("t => document.querySelector('.map__scale').textContent === t", arg=before)
    assert point_at(page, 1.5, 1.5) == texts[1]
    page.mouse.down()
    page.mouse.move(*place_of(page, 2.5, 1.5), steps=5)
    page.mouse.up()
    page.wait_for_timeout(200)
    assert point_at(page, 2.5, 1.5) == texts[1]
    assert point_at(page, 1.5, 0.5) != texts[1]


def test_days_are_stepped_and_opened_and_playing_goes_to_the_last_one_and_stops(mapped, opened) -> None:
    DayNote.objects.create(study=mapped, day=2, kind="outage", text="mast down", by="adam")
    page = opened(MAP)
    (after := page.get_by_role("button", name="Next day")).click()
    title_becomes(page, "Thu 30 May 2024")
    assert page.locator(".map__rest").is_hidden()  # these are the numbers of the window of the page
    after.click()
    page.locator(".map__blank").wait_for(state="visible")
    assert page.locator(".map__blank").inner_text() == "\u00d7 outage"
    assert any("url(" in fill for fill in fills(page))  # hatched
    page.get_by_role("link", name="Open the figures for this day").click()
    page.wait_for_url("**/home/?from=2024-05-31&to=2024-05-31&view=map")
    opened(MAP + "&from=2024-06-01", page=page).get_by_role("button", name="Play day by day").click()
    page.get_by_role("button", name="Pause").wait_for()
    title_becomes(page, "Sun 2 Jun 2024")
    page.get_by_role("button", name="Play day by day").wait_for()
    page.get_by_role("button", name="Previous day").click()
    title_becomes(page, "Sat 1 Jun 2024")


def test_without_motion_days_are_stepped_by_hand_and_what_cannot_be_loaded_is_said(mapped, opened) -> None:
    page = opened(MAP, reduced_motion="reduce")
    assert page.get_by_role("button", name="Play day by day").is_hidden()
    page.route("**/map.json*", lambda route: route.fulfill(body="<html>signed out</html>"))
    page.get_by_role("button", name="Next day").click()
    page.get_by_text("The days could not be loaded.").wait_for()


@pytest.fixture
def located(transactional_db, monkeypatch) -> Study:
    """A study with reported places; what a worker is asked for is computed at once."""
    monkeypatch.setattr("reports.maps.actions.send_on_commit", lambda _task, pk: tasks.compute_density(pk))
    return map_factory.create_located(n=2000)


def test_the_deconvolved_map_comes_by_itself_and_both_move_together(located, opened) -> None:
    page = opened("/studies/fair-2024/maps/", viewport={"width": 1300, "height": 1100})
    page.get_by_text("The density fits the reports").wait_for()
    assert page.locator(".map__plot image").count() == 2
    assert page.eval_on_selector(".map__plot image", "e => getComputedStyle(e).imageRendering") == "pixelated"
    frames = page.locator(".map__frame")
    box = frames.nth(1).bounding_box()
    # The square where most people are: column 6 of 16 and row 10 of 20, in a map that fills its height.
    side = box["height"] / 1.06 / 20
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(middle[0] + (6.5 - 8) * side, middle[1] - (10.5 - 10) * side)
    text = frames.nth(1).locator(".map__hover").inner_text()
    assert ("about" in text, "subscribers" in text) == (True, True)
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_timeout(300)
    ranges = page.eval_on_selector_all(".map__plot", "plots => plots.map(p => p.layout.xaxis.range)")
    assert ranges[0] == pytest.approx(ranges[1])
    page.get_by_role("button", name="Next day").click()
    frames.nth(1).get_by_text("not computed yet").wait_for()
    assert frames.nth(0).locator(".map__blank").is_hidden()


def test_a_study_with_places_and_no_zones_shows_their_maps_when_they_are_reached(
    transactional_db, opened
) -> None:
    study = map_factory.create_located(factory.GENDER, n=2000)
    page = opened("/studies/fair-2024/", viewport=SCREEN)
    page.locator("#study-places-title").scroll_into_view_if_needed()
    page.locator(".map__plot image").first.wait_for()
    assert page.locator(".map__frame").count() == 2
    assert page.locator("[data-map] .map__title").is_visible()
    Study.objects.filter(pk=study.pk).update(small_cell=100_000)
    page.reload()
    page.locator("#study-places-title").scroll_into_view_if_needed()
    page.locator("#map-reason").wait_for()


def test_a_page_shows_how_far_a_file_is_and_fetches_it_when_it_is_ready(fair, opened, monkeypatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(files, "_send", lambda row: sent.append(row.pk))
    monkeypatch.setattr(file_views, "WAIT_S", {"browser": 0.0})
    page = opened(GENDER, viewport=SCREEN)
    page.locator(".downloads summary").click()
    page.locator(".downloads").get_by_role("link", name="PDF", exact=True).click()
    page.get_by_text("The file is waiting for a worker.").wait_for()
    ExportFile.objects.update(state="running", stage=42)
    page.get_by_text("Creating the file: 42% done.").wait_for()
    ExportFile.objects.update(state="waiting")
    with page.expect_download() as waiting:
        tasks.make_export(sent[0])
    assert waiting.value.suggested_filename.endswith(".pdf")
    page.get_by_text("is ready").wait_for()
    assert page.get_by_role("link", name="Download", exact=True).is_visible()


def test_maps_of_places_have_no_serious_barrier(located, opened) -> None:
    """Other maps: tests/e2e/test_accessibility.py."""
    page, found = opened("/studies/fair-2024/maps/"), []
    page.get_by_text("The density fits the reports").wait_for()
    for size, scheme in (("wide", "light"), ("narrow", "dark")):
        page.set_viewport_size(SIZES[size])
        page.emulate_media(color_scheme=scheme)
        found += [f"{size}, {scheme}: {line}" for line in barriers(page)]
        if is_wider_than_the_screen(page):
            found.append(f"{size}: the page scrolls sideways")
    assert found == []
