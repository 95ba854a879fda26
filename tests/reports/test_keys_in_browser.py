"""Report pages by keyboard alone, the list of shortcuts, and the page on paper, in Chromium."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page

from reports.models import Study
from tests.reports import report_factory as factory
from tests.reports import test_charts_in_browser as browsing

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

browser = browsing.browser
REPORT = "/studies/fair-2024/gender/"


@pytest.fixture
def fair(transactional_db: None) -> Study:
    study = factory.create()
    factory.publish(study, factory.crowd(study))
    return study


@pytest.fixture
def watched(fair: Study, browser: Browser, analyst: User, live_server: Any) -> Iterator[browsing.Watched]:
    found = browsing.sign_in(browser, live_server.url, analyst)
    yield found
    assert (found.complaints, found.foreign) == ([], [])


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.title"))


def test_arrow_keys_move_in_the_triangle_and_enter_chooses(watched: browsing.Watched) -> None:
    page = watched.open(REPORT + "?order=sorted")
    page.wait_for_selector("[data-keys]:not([hidden])")
    stops = page.locator("table[role=grid] a[tabindex='0']")
    assert stops.count() == 1  # the grid is one stop of the Tab key
    stops.focus()
    assert focused(page).startswith("Thu 30 May 2024 to Sun 2 Jun 2024")
    page.keyboard.press("ArrowDown")
    assert focused(page).startswith("Fri 31 May 2024 to Sun 2 Jun 2024")
    page.keyboard.press("ArrowLeft")
    assert focused(page).startswith("Fri 31 May 2024 to Sat 1 Jun 2024")
    page.keyboard.press("Home")
    assert focused(page).startswith("Fri 31 May 2024:")
    page.keyboard.press("ArrowLeft")  # no window ends before it starts
    assert focused(page).startswith("Fri 31 May 2024:")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    assert stops.count() == 1
    page.keyboard.press("Enter")
    page.wait_for_url("**from=2024-05-31&to=2024-06-01&order=sorted")


def test_question_mark_opens_the_list_and_its_keys_work(watched: browsing.Watched) -> None:
    page = watched.open(REPORT)
    dialog = page.locator("#shortcuts")
    page.keyboard.press("?")
    assert dialog.is_visible()
    assert page.evaluate("document.activeElement.closest('dialog') !== null")
    page.keyboard.press("t")  # keys of the page do nothing behind the list
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert page.url.endswith(REPORT)
    page.keyboard.press("m")
    assert page.evaluate("document.activeElement.id") == "method"
    page.keyboard.press("t")
    page.wait_for_url("**view=table")
    assert page.locator(".chart").count() == 0


def test_a_key_pressed_before_the_closed_list_has_lost_the_focus_counts(watched: browsing.Watched) -> None:
    page = watched.open(REPORT)
    page.keyboard.press("?")
    page.evaluate("""() => {
      document.getElementById("shortcuts-off").focus();
      document.getElementById("shortcuts").close();
      const key = new KeyboardEvent("keydown", { key: "m", bubbles: true });
      document.getElementById("shortcuts-off").dispatchEvent(key);
    }""")
    assert page.evaluate("document.activeElement.id") == "method"


def test_w_leads_to_the_cell_of_the_window(watched: browsing.Watched) -> None:
    page = watched.open(REPORT)
    page.wait_for_selector("[data-keys]:not([hidden])")
    page.keyboard.press("w")
    assert focused(page).startswith("Thu 30 May 2024 to Sun 2 Jun 2024")
    page.keyboard.press("ArrowDown")
    assert focused(page).startswith("Fri 31 May 2024 to Sun 2 Jun 2024")


def test_button_opens_the_list_and_shortcuts_can_be_turned_off(watched: browsing.Watched) -> None:
    page = watched.open(REPORT)
    page.locator("[data-opens=shortcuts]").click()
    page.locator("#shortcuts-off").check()
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    page.keyboard.press("?")
    page.wait_for_timeout(200)
    assert not page.locator("#shortcuts").is_visible()
    assert page.url.endswith(REPORT)
    page.reload()
    page.keyboard.press("t")
    page.wait_for_timeout(200)
    assert page.url.endswith(REPORT)


def test_letters_in_a_field_are_no_shortcuts(watched: browsing.Watched) -> None:
    page = watched.open(REPORT)
    page.locator("select#from").focus()
    page.keyboard.press("t")
    page.wait_for_timeout(200)
    assert page.url.endswith(REPORT)


def test_paper_has_the_numbers_and_the_address_and_no_navigation(watched: browsing.Watched) -> None:
    page = watched.open(REPORT)
    page.emulate_media(media="print", color_scheme="dark")
    for selector in (".header", ".tabs", "#windows", ".switches", ".window-form"):
        assert not page.locator(selector).first.is_visible(), selector
    assert page.locator(".chart .main-svg").first.is_visible()
    assert page.locator(".table").first.is_visible()
    printed = page.locator(".print-only")
    assert printed.is_visible()
    assert watched.base + REPORT in printed.inner_text()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(26, 36, 46)"


def test_wide_charts_fit_on_paper_and_are_wide_again_after_it(watched: browsing.Watched) -> None:
    watched.page.set_viewport_size({"width": 1440, "height": 900})
    page = watched.open(REPORT + "days/")
    page.wait_for_selector(".chart .main-svg")
    width = "parseFloat(document.querySelector('.chart .main-svg').getAttribute('width'))"
    wide = page.evaluate(width)
    assert wide > 1000
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(width) <= 660
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.wait_for_timeout(500)
    assert page.evaluate(width) == wide


def test_charts_of_the_dark_scheme_are_drawn_in_ink_for_paper(watched: browsing.Watched) -> None:
    watched.page.emulate_media(color_scheme="dark")
    page = watched.open(REPORT)
    text = ".chart .ytick text"
    assert browsing.colour(page, text) == "rgb(229, 234, 239)"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert browsing.colour(page, text) == "rgb(26, 36, 46)"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert browsing.colour(page, text) == "rgb(229, 234, 239)"
