"""An analyst without a mouse, without scripts and in French; every page so: test_accessibility.py."""

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.every_page import press_on, tab_to
from tests.e2e.test_accessibility import open_page

pytestmark = pytest.mark.e2e
PERCENT = re.compile(r"\d,\d\u202f%")  # as French writes it


def test_the_skip_link_comes_first_and_skips(site, sign_in):
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


def test_two_windows_are_compared_and_the_verdict_is_that_of_the_table(site, report_study, sign_in):
    page = sign_in("analyst")
    page.goto(f"{site.address}/studies/{report_study}/gender/?from=2017-06-01&to=2017-06-01")
    press_on(page, "a", "Compare")
    expect(page).to_have_url(re.compile(r"/gender/compare/\?from=2017-06-01&to=2017-06-01$"))
    press_on(page, "summary", "Change what is compared")
    tab_to(page, "#more-title")
    page.keyboard.press("Enter")
    tab_to(page, "#with_from")
    page.keyboard.type("Wed 31 May")
    tab_to(page, "#with_to")
    page.keyboard.type("Wed 31 May")
    tab_to(page, "#measure")
    page.keyboard.press("ArrowDown")
    press_on(page, "button", "Compare")
    page.wait_for_url("**with_from=2017-05-31**")
    assert not [text for text in ("with_to=2017-05-31", "measure=visitors") if text not in page.url]

    expect(page.locator("main")).to_contain_text("Thu 1 Jun 2017 compared with Wed 31 May 2017")
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    rows = page.locator("tbody tr")
    drawn = page.locator(".chart .scatterlayer .point").count()
    assert drawn == rows.count() > 0
    sentence = page.locator("#verdict").inner_text()
    adjusted = page.locator("tbody tr td:last-child").all_inner_texts()
    if any(re.search("higher|lower", text) for text in adjusted):  # it is random which: the keys are
        assert re.match(r"\d of \d categories differs?", sentence)
    else:
        assert re.match("No difference|No conclusion|The shares differ", sentence)


def switch(page, language):
    if (menu := page.locator(".header__toggle")).is_visible():
        menu.click()
    page.get_by_role("button", name=language, exact=True).click()


def test_a_reader_switches_to_french_and_reads_numbers_and_charts(site, report_study, sign_in):
    page = sign_in("analyst")
    address = f"{site.address}/studies/{report_study}/gender/?from=2017-05-31&to=2017-06-02"
    open_page(page, address)
    numbers = page.locator("main .table tbody td")
    english = numbers.all_inner_texts()
    assert page.locator("html").get_attribute("lang") == "en"
    assert any(re.search(r"\d\.\d", text) for text in english)

    switch(page, "Français")
    expect(page).to_have_url(address)  # the page stays the same
    assert page.locator("html").get_attribute("lang") == "fr"
    expect(page.locator("main")).to_contain_text("mer 31 mai 2017 au ven 2 juin 2017 (3 jours)")
    french = numbers.all_inner_texts()
    assert [
        text.replace(",", ".").replace("\u202f%", "%").replace("\u202f", ",").replace(" à ", " to ")
        for text in french
    ] == english
    assert any(PERCENT.search(text) for text in french)
    chart = page.locator("[data-figure]").first
    shown = chart.locator("svg").first.text_content()
    assert PERCENT.search(shown) and not re.search(r"\d\.\d", shown)
    assert "intervalle de confiance à 95" in chart.get_attribute("aria-label")

    page.goto(f"{site.address}/studies/")  # and the choice lasts
    expect(page.locator("h1")).to_have_text("Études")
    switch(page, "English")
    expect(page.locator("h1")).to_have_text("Studies")
