"""Two windows are compared in the browser, by keyboard alone, and the verdict is that of the table."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Site

pytestmark = pytest.mark.e2e

MAX_TABS = 60


def test_two_windows_are_compared_by_keyboard_alone(
    site: Site, report_study: str, sign_in: Callable[..., Page]
) -> None:
    page = sign_in("analyst")
    page.goto(f"{site.address}/studies/{report_study}/gender/?from=2017-06-01&to=2017-06-01")
    press_on(page, "a", "Compare")
    expect(page).to_have_url(re.compile(r"/gender/compare/\?from=2017-06-01&to=2017-06-01$"))
    tab_to(page, "#with_from")
    page.keyboard.type("Wed 31 May")
    tab_to(page, "#with_to")
    page.keyboard.type("Wed 31 May")
    tab_to(page, "#measure")
    page.keyboard.press("ArrowDown")
    press_on(page, "button", "Compare")
    page.wait_for_url("**with_from=2017-05-31**")
    assert "with_to=2017-05-31" in page.url
    assert "measure=visitors" in page.url

    expect(page.locator(".chart .main-svg").first).to_be_visible()
    expect(page.locator("main")).to_contain_text("Thu 1 Jun 2017, compared with: Wed 31 May 2017")
    rows = page.locator("tbody tr")
    verdicts = {row.locator("th").inner_text(): verdict_of(row.inner_text()) for row in rows.all()}
    assert page.locator(".chart .scatterlayer .point").count() == len(verdicts) > 0
    sentence = page.locator("#verdict").inner_text()
    if any(verdicts.values()):
        assert re.search(r"^(More|Fewer) (\w+) than on Wed 31 May 2017|by itself|by themselves", sentence)
    else:
        assert re.match("No difference|Not reliable", sentence)  # it is random which: the keys are


def verdict_of(row: str) -> bool:
    """Whether the interval of a row, its second line of numbers, leaves out 0; and the words say so."""
    low, high = (
        int(re.sub(r"[^\d-]", "", bound.replace("\u2212", "-")))
        for bound in re.search(r"([+\u2212]?[\d\u202f]+) to ([+\u2212]?[\d\u202f]+)", row).groups()
    )
    says_so = "higher" in row or "lower" in row
    if 0 not in (low, high):  # the page rounds to whole visitors
        assert says_so == (not low <= 0 <= high)
    return says_so


def press_on(page: Page, tag: str, text: str) -> None:
    """Go to a link or button by the Tab key and press Enter."""
    tab_to(page, f"main {tag}:text-is('{text}')")
    page.keyboard.press("Enter")


def tab_to(page: Page, selector: str) -> None:
    target = page.locator(selector).first
    for _ in range(MAX_TABS):
        page.keyboard.press("Tab")
        if target.evaluate("element => element === document.activeElement"):
            outline = target.evaluate("element => getComputedStyle(element).outlineStyle")
            assert outline != "none", selector
            return
    pytest.fail(f"{selector} is not reached by the Tab key")


def test_all_kinds_can_be_reached_and_asked_without_javascript(
    site: Site, report_study: str, sign_in: Callable[..., Page]
) -> None:
    page = sign_in("analyst", java_script_enabled=False, viewport={"width": 390, "height": 844})
    page.goto(f"{site.address}/studies/{report_study}/gender/compare/")
    for kind in ("Two categories", "A day and a baseline", "Two studies", "Two windows"):
        page.get_by_role("link", name=kind).click()
        page.get_by_role("button", name="Compare").click()
        # The other study of this site may have no data yet.
        expect(page.locator("main")).to_contain_text(re.compile("What differs|nothing to compare"))
