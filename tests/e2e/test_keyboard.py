"""Everything is reached and seen by keyboard alone: skip link, order, visible focus, no trap."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import ROLES, Site
from tests.e2e.every_page import pages_of
from tests.e2e.test_accessibility import open_page

pytestmark = pytest.mark.e2e

MOST_STEPS = 600
# Some forms have the cursor in their first field: the way through a page begins above it.
TO_THE_TOP = """() => {
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute('tabindex');
}"""
# What a person can act on. Of a group of radio buttons, and of a grid, one member is in the order of tabs.
REACHABLE = """() => {
  const shown = (node) => node.checkVisibility({ visibilityProperty: true }) && !node.closest("[inert]");
  const nodes = document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]");
  const acted = [...nodes].filter((node) =>
    shown(node) && !node.disabled && node.type !== "hidden" && node.tabIndex >= 0
    && !(node.type === "radio" && !node.checked));
  acted.forEach((node, place) => { node.dataset.place = place; });
  return acted.map((node) => `${node.tagName} ${node.innerText || node.name || node.className}`.slice(0, 60));
}"""
# Where the focus is, and whether it can be seen: an outline, within the screen, not below anything else.
FOCUS = """() => {
  const node = document.activeElement;
  if (!node || node === document.body) return null;
  const style = getComputedStyle(node);
  const box = node.getBoundingClientRect();
  const outline = parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== "none";
  const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return { place: node.dataset.place ?? null, text: node.outerHTML.slice(0, 120), seen: outline && inside };
}"""


@pytest.mark.parametrize("role", ROLES)
def test_every_control_of_every_page_is_reached_and_seen(
    site: Site, report_study: str, sign_in: Callable[..., Page], role: str
) -> None:
    page = sign_in(role)
    found = []
    for name, address in pages_of(page, site.address, study=report_study, role=role).items():
        open_page(page, site.address + address)
        found += [f"{name}: {line}" for line in unreachable(page)]
    assert found == []


def test_the_skip_link_comes_first_and_skips(site: Site, sign_in: Callable[..., Page]) -> None:
    page = sign_in("analyst")
    page.goto(f"{site.address}/studies/")
    page.keyboard.press("Tab")
    link = page.get_by_role("link", name="Skip to content")
    expect(link).to_be_focused()
    expect(link).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_a_person_signs_in_and_changes_the_language_by_keyboard(
    site: Site, watched: Callable[..., Page]
) -> None:
    page = watched()
    page.goto(f"{site.address}/sign-in/")
    tab_to(page, "input[name=username]")
    page.keyboard.type("analyst")
    page.keyboard.press("Tab")
    page.keyboard.type(site.accounts["analyst"])
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site.address}/")
    tab_to(page, "button[name=language]")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("lang", "fr")


def test_the_check_sees_what_is_not_reached(site: Site, watched: Callable[..., Page]) -> None:
    page = watched()
    page.goto(f"{site.address}/sign-in/")
    page.evaluate(
        "document.querySelector('main button').addEventListener('focus', (event) => event.target.blur())"
    )
    assert any("not reached" in line for line in unreachable(page))
    page.reload()
    page.evaluate("document.querySelector('main button').style.setProperty('outline', 'none', 'important')")
    assert any("not seen" in line for line in unreachable(page))


def unreachable(page: Page) -> list[str]:
    """Controls that the Tab key does not reach, or on which the focus does not show."""
    wanted: list[str] = page.evaluate(REACHABLE)
    page.evaluate(TO_THE_TOP)
    reached: set[int] = set()
    unseen, last = [], None
    for _ in range(MOST_STEPS):
        page.keyboard.press("Tab")
        focus: dict[str, Any] | None = page.evaluate(FOCUS)
        if focus is None:
            break
        if focus["place"] is not None:
            # A date has a stop for its day, month and year: the same control again is no second round.
            if int(focus["place"]) in reached and focus["place"] != last:
                break
            last = focus["place"]
            reached.add(int(last))
        if not focus["seen"]:
            unseen.append(f"focus is not seen on {focus['text']}")
    missed = [f"not reached: {text}" for place, text in enumerate(wanted) if place not in reached]
    return missed + unseen


def tab_to(page: Page, selector: str) -> None:
    for _ in range(MOST_STEPS):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    pytest.fail(f"Tab never reaches {selector}")
