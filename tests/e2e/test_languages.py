"""French as people meet it: the switch, numbers and dates, charts, and the page stays where it was."""

import json
import re
import tomllib
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import ROLES, STUDY_FILE, Site
from tests.e2e.every_page import pages_of
from tests.e2e.test_accessibility import is_wider_than_the_screen, open_page

pytestmark = pytest.mark.e2e

NARROW_SPACE = "\u202f"
# Words of English that no French page may show; data of the study (its categories) is not translated.
ENGLISH = re.compile(r"\b(the|of|and|this|which|with|from|days|visitors|there|not|each|share)\b")
WINDOW = "gender/?from=2017-05-31&to=2017-06-02"


def switch(page: Page, language: str) -> None:
    page.get_by_role("button", name=language, exact=True).click()


def test_a_reader_switches_to_french_and_reads_a_number(
    site: Site, report_study: str, sign_in: Callable[..., Page]
) -> None:
    page = sign_in("analyst")
    open_page(page, f"{site.address}/studies/{report_study}/{WINDOW}")
    address = page.url
    english = numbers(page)
    assert page.locator("html").get_attribute("lang") == "en"
    assert any(re.search(r"\d\.\d", text) for text in english)

    switch(page, "Français")
    expect(page).to_have_url(address)  # the page stays the same
    assert page.locator("html").get_attribute("lang") == "fr"
    expect(page.locator("main")).to_contain_text("mer 31 mai 2017 au ven 2 juin 2017 (3 jours)")
    french = numbers(page)
    assert [text.replace(",", ".").replace(" à ", " to ") for text in french] == english
    assert any(re.search(rf"\d,\d{NARROW_SPACE}%", text) for text in french)

    page.goto(f"{site.address}/studies/")  # and the choice lasts
    expect(page.locator("h1")).to_have_text("Études")
    switch(page, "English")
    expect(page.locator("h1")).to_have_text("Studies")


def test_a_chart_speaks_french(site: Site, report_study: str, sign_in: Callable[..., Page]) -> None:
    page = sign_in("analyst", locale="fr-FR")
    open_page(page, f"{site.address}/studies/{report_study}/{WINDOW}")
    chart = page.locator("[data-figure]").first
    shown = chart.locator("svg").first.text_content() or ""
    assert re.search(rf"\d,\d{NARROW_SPACE}%", shown)
    assert not re.search(r"\d\.\d", shown)
    assert "intervalle de confiance à 95" in (chart.get_attribute("aria-label") or "")


def test_the_browser_asks_for_french_before_anybody_chose(site: Site, watched: Callable[..., Page]) -> None:
    page = watched(locale="fr-FR")
    page.goto(f"{site.address}/sign-in/")
    expect(page.locator("h1")).to_have_text("Se connecter")
    page.fill("input[name=username]", "nobody")
    page.fill("input[name=password]", "wrong")
    page.click("main button[type=submit]")
    expect(page.get_by_role("alert")).to_contain_text("Ce nom et ce mot de passe ne vont pas ensemble")


def test_the_switch_works_without_scripts(site: Site, watched: Callable[..., Page]) -> None:
    page = watched(java_script_enabled=False)
    page.goto(f"{site.address}/sign-in/?next=/studies/")
    switch(page, "Français")
    expect(page).to_have_url(f"{site.address}/sign-in/?next=/studies/")
    expect(page.locator("h1")).to_have_text("Se connecter")


@pytest.mark.parametrize("role", ROLES)
def test_no_page_mixes_languages(
    site: Site, report_study: str, sign_in: Callable[..., Page], role: str
) -> None:
    page = sign_in(role, locale="fr-FR", viewport={"width": 390, "height": 844})
    found = []
    for name, address in pages_of(page, site.address, study=report_study, role=role).items():
        open_page(page, site.address + address)
        found += [f"{name}: {line}" for line in english_lines(page, slug=report_study)]
        if is_wider_than_the_screen(page):
            found.append(f"{name}: the page scrolls sideways")
    assert found == []


def numbers(page: Page) -> list[str]:
    """Cells of the table of estimates."""
    return page.locator("main .table tbody td").all_inner_texts()


def english_lines(page: Page, *, slug: str) -> list[str]:
    """Lines of a page in English that do not say so (`lang`), and are neither code nor names of the study."""
    text = page.evaluate(
        """() => {
          const copy = document.body.cloneNode(true);
          copy.querySelectorAll("code, pre, script, svg, textarea, option, [lang=en], [translate=no]")
            .forEach((node) => node.remove());
          document.body.append(copy);
          const text = copy.innerText;
          copy.remove();
          return text;
        }"""
    )
    for name in (slug, *names_of_the_study()):
        text = text.replace(name, "")
    return [line for line in text.split("\n") if ENGLISH.search(line)]


def names_of_the_study() -> list[str]:
    """What the study's author wrote: the same in every language. The longest first, as some hold others."""
    indicators = tomllib.loads(STUDY_FILE.read_text())["indicator"]
    zones = json.loads((STUDY_FILE.parent / "zones.geojson").read_text())["features"]
    names = [each["name"] for each in indicators]
    names += [category for each in indicators for category in each.get("categories", [])]
    names += [each["properties"]["zone"] for each in zones]
    return sorted(set(names), key=len, reverse=True)
