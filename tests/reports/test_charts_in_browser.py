"""Charts in Chromium under the real content policy: drawn in both schemes, nothing refused or fetched."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

from reports import selectors, wording
from tests.reports import report_factory as factory

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WATCH_POLICY = (
    "addEventListener('securitypolicyviolation', e => console.error('refused', e.violatedDirective))"
)
LONG = factory.indicator("home", "comfortable family pavilion", "rural <b>&</b> growing peri-urban", "NR")


@dataclass
class Watched:
    """A page, and what must not happen on it."""

    page: Page
    base: str
    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        self.page.goto(self.base + path)
        self.page.wait_for_selector(".chart .main-svg")
        return self.page

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
        launched = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield launched
        launched.close()


def sign_in(browser: Browser, base: str, user: User, **context: Any) -> Watched:
    client = Client()
    client.force_login(user)
    place = browser.new_context(**context)
    place.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": base}])
    place.set_default_timeout(15_000)
    watched = Watched(page=place.new_page(), base=base)
    watched.page.add_init_script(WATCH_POLICY)
    watched.page.on("console", watched.on_console)
    watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    watched.page.on("request", watched.on_request)
    return watched


@pytest.fixture
def study(transactional_db: None) -> factory.Study:
    made = factory.create(LONG, factory.GENDER, factory.STAY)
    factory.publish(made, factory.crowd(made))
    return made


def colour(page: Page, selector: str) -> str:
    return str(page.eval_on_selector(selector, "element => getComputedStyle(element).fill"))


@pytest.mark.parametrize("path", ["", "home/", "home/days/", "stay/"])
def test_chart_is_drawn_and_nothing_is_refused_or_fetched(
    study: factory.Study, browser: Browser, analyst: User, live_server: Any, path: str
) -> None:
    watched = sign_in(browser, live_server.url, analyst)
    page = watched.open(f"/studies/fair-2024/{path}")
    page.locator(".chart .point").first.hover(force=True)
    page.wait_for_selector(".chart .hoverlayer .hovertext")
    assert page.eval_on_selector(".chart .main-svg", "svg => getComputedStyle(svg).position") == "absolute"
    assert (watched.complaints, watched.foreign) == ([], [])


def test_the_watch_sees_a_refused_style(
    study: factory.Study, browser: Browser, analyst: User, live_server: Any
) -> None:
    watched = sign_in(browser, live_server.url, analyst)
    page = watched.open("/studies/fair-2024/")
    page.evaluate(
        "document.head.append(Object.assign(document.createElement('style'), {textContent: 'p{}'}))"
    )
    page.wait_for_timeout(100)
    assert any("refused style-src" in text for text in watched.complaints)


def test_chart_shows_the_numbers_and_names_of_the_table(
    study: factory.Study, browser: Browser, analyst: User, live_server: Any
) -> None:
    report = selectors.window_report(study.indicators.get(slug="home"), selectors.Window(1, 4))
    page = sign_in(browser, live_server.url, analyst).open("/studies/fair-2024/home/")
    drawn = "".join(page.locator(".chart .main-svg").all_text_contents())
    for estimate in report.estimates:
        assert wording.percent(estimate.frequency) in drawn
    names = "".join(page.locator(".chart .ytick text").all_text_contents())
    assert "rural <b>&</b>" in names
    assert page.locator(".chart .barlayer .point").count() == 3
    assert page.locator(".chart[role=img]").get_attribute("aria-label").startswith("Of 4")


def test_chart_follows_light_and_dark_also_on_change(
    study: factory.Study, browser: Browser, analyst: User, live_server: Any
) -> None:
    page = sign_in(browser, live_server.url, analyst, color_scheme="light").open("/studies/fair-2024/gender/")
    bar, text = ".chart .barlayer .point path", ".chart .ytick text"
    light = colour(page, bar), colour(page, text)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        "([selector, old]) => getComputedStyle(document.querySelector(selector)).fill !== old",
        arg=[text, light[1]],
    )
    assert colour(page, bar) != light[0]
    page.emulate_media(color_scheme="light")
    page.wait_for_function(
        "([selector, old]) => getComputedStyle(document.querySelector(selector)).fill === old",
        arg=[text, light[1]],
    )
    assert (colour(page, bar), colour(page, text)) == light


@pytest.mark.parametrize("width", [390, 768, 1440, 1920])
def test_pages_never_scroll_sideways(
    study: factory.Study, browser: Browser, analyst: User, live_server: Any, width: int
) -> None:
    watched = sign_in(browser, live_server.url, analyst, viewport={"width": width, "height": 844})
    for path in ("", "home/", "home/days/"):
        page = watched.open(f"/studies/fair-2024/{path}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        box = page.locator(".chart .main-svg").first.bounding_box()
        assert box is not None
        assert 0 < box["x"] + box["width"] <= width


def test_window_is_chosen_without_javascript(
    study: factory.Study, browser: Browser, analyst: User, live_server: Any
) -> None:
    page = sign_in(browser, live_server.url, analyst, java_script_enabled=False).page
    page.goto(live_server.url + "/studies/fair-2024/gender/")
    page.select_option("#from", "2024-05-31")
    page.select_option("#to", "2024-06-01")
    page.click("text=Show")
    assert page.url.endswith("?from=2024-05-31&to=2024-06-01")
    assert page.locator("h1 + .lead").inner_text() == "Fri 31 May 2024 to Sat 1 Jun 2024 (2 days)"
    assert page.locator("table.table tbody tr").count() == 3
    assert page.locator("noscript").is_visible()


def test_targets_are_large_enough_to_touch(
    study: factory.Study, browser: Browser, analyst: User, live_server: Any
) -> None:
    watched = sign_in(browser, live_server.url, analyst, viewport={"width": 390, "height": 844})
    page = watched.open("/studies/fair-2024/gender/")
    small = page.evaluate(
        """[...document.querySelectorAll('a, button, select, summary')]
            .map(e => [e.textContent.trim(), e.getBoundingClientRect()])
            .filter(([_, box]) => box.height > 0 && (box.height < 24 || box.width < 24))
            .map(([text, box]) => text + ' ' + box.width + 'x' + box.height)"""
    )
    # links inside running text are exempt (WCAG 2.5.8)
    assert [text for text in small if not text.startswith(("The whole privacy statement", "Skip"))] == []
