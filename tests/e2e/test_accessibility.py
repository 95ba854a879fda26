"""Every page as each role sees it: barriers, mixed languages, width, weight, and the way through by keyboard.

A page is looked at twice, in opposite settings: once in English and once in French, once wide and once
narrow, once light and once dark. Which of them go together changes from page to page, so that all pairs of
(page, language, width, scheme) are seen, and not their whole product. Both languages are measured narrow.
Each text of a page is checked once, for the first role that reads it.
"""

import itertools
import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.demo_study import STUDY_FILE
from tests.e2e.conftest import ROLES
from tests.e2e.every_page import pages_of, unreachable

pytestmark = pytest.mark.e2e

AXE = (Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js").read_text("utf-8")
SIZES = {"wide": {"width": 1440, "height": 900}, "narrow": {"width": 390, "height": 844}}
SCHEMES = ("light", "dark")
LOOKS = list(itertools.product(SIZES, SCHEMES))  # the first and the last are opposite, and the two between
GRAVE = ("serious", "critical")
MAX_PAGE_BYTES = 500_000  # as it is sent, without the library of charts
# Words of English that no French page may show; data of the study (its categories) is not translated.
ENGLISH = re.compile(r"\b(the|of|and|this|which|with|from|days|visitors|there|not|each|share)\b")
# The whole report of axe is long; this says what to mend and where.
RUN_AXE = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.map(({ id, impact, help, nodes }) => ({
    id, impact, help, nodes: nodes.map((node) => `${node.target.join(" ")} | ${node.failureSummary}`),
  }));
}"""
# Menus are closed when another one of their name opens: here all are open.
UNFOLD = """() => document.querySelectorAll("details").forEach((part) => {
  part.removeAttribute("name");
  part.open = true;
})"""
BYTES = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .filter(({ name }) => !name.includes("/plotly"))
  .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)"""
TEXT = """() => {
  const copy = document.body.cloneNode(true);
  copy.querySelectorAll("code, pre, script, svg, textarea, option, [lang=en], [translate=no]")
    .forEach((node) => node.remove());
  document.body.append(copy);
  const text = copy.innerText;
  copy.remove();
  return text;
}"""


@pytest.fixture(scope="module")
def seen():
    return set()


@pytest.mark.parametrize("role", [*ROLES, "nobody"])
def test_no_page_has_a_barrier_or_mixes_languages_or_is_too_wide_or_heavy(
    site, report_study, sign_in, watched, seen, role
):
    pages = {}
    for locale in ("en-GB", "fr-FR"):
        pages[locale] = watched(locale=locale) if role == "nobody" else sign_in(role, locale=locale)
    stops = pages_of(pages["en-GB"], site.address, study=report_study, role=role)
    new = {stop.says: stop for stop in stops if stop.says not in seen}
    seen |= new.keys()
    assert new
    found = []
    for number, stop in enumerate(new.values()):
        looks = LOOKS[number % 4], LOOKS[3 - number % 4]
        for (locale, page), (size, scheme) in zip(pages.items(), looks, strict=True):
            page.set_viewport_size(SIZES[size])
            page.emulate_media(color_scheme=scheme)
            open_page(page, site.address + stop.address)
            wrong = shortcomings(page, is_wide=size == "wide", is_french=locale == "fr-FR", slug=report_study)
            found += [f"{stop.name}, {locale}, {size}, {scheme}: {line}" for line in wrong]
    assert found == []


def shortcomings(page, *, is_wide, is_french, slug):
    weight = page.evaluate(BYTES)
    found = [f"{weight} bytes"] if weight > MAX_PAGE_BYTES else []
    found += barriers(page)
    found += unreachable(page) if is_wide else []
    for size in ("wide", "narrow") if is_wide else ("narrow",):
        page.set_viewport_size(SIZES[size])
        if is_wider_than_the_screen(page):
            found.append(f"the page scrolls sideways when it is {size}")
    if is_french:  # look into menus and folded parts
        page.set_viewport_size(SIZES["wide" if is_wide else "narrow"])
        page.evaluate(UNFOLD)
        found += [f"unfolded: {line}" for line in barriers(page)] + english_lines(page, slug=slug)
    return found


def test_the_checks_see_what_is_wrong(site, watched):
    page = watched()
    page.goto(f"{site.address}/sign-in/")
    page.evaluate("document.querySelectorAll('label').forEach((label) => label.remove())")
    assert any(line.startswith("label (critical)") for line in barriers(page))
    assert english_lines(page, slug="")
    assert page.evaluate(BYTES) > 10_000
    page.evaluate("document.querySelector('main').style.width = '3000px'")
    assert is_wider_than_the_screen(page)
    page.reload()
    button = "document.querySelector('main button')"
    page.evaluate(f"{button}.addEventListener('focus', (event) => event.target.blur())")
    assert any("not reached" in line for line in unreachable(page))
    page.reload()
    page.evaluate(f"{button}.style.setProperty('outline', 'none', 'important')")
    assert any("not seen" in line for line in unreachable(page))


def open_page(page, address):
    page.goto(address)
    page.wait_for_function(
        "() => [...document.querySelectorAll('[data-figure]')].every((chart) => chart.querySelector('svg'))"
    )


def barriers(page):
    """Return findings that axe-core calls serious or critical, with the element and the fix."""
    if page.evaluate("typeof axe === 'undefined'"):
        # By the debugger: the content policy of the page stays as it is.
        page.evaluate(AXE)
    violations = page.evaluate(RUN_AXE)
    return [
        f"{each['id']} ({each['impact']}): {each['help']}: {node}"
        for each in violations
        if each["impact"] in GRAVE
        for node in each["nodes"]
    ]


def is_wider_than_the_screen(page):
    """Return whether it stays so: charts follow a change of the screen's width after a moment."""
    for _ in range(40):
        if not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            return False
        page.wait_for_timeout(100)
    return True


def english_lines(page, *, slug):
    """Lines of a page in English that do not say so (`lang`), and are neither code nor names of the study."""
    text = page.evaluate(TEXT)
    for name in (slug, *names_of_the_study()):
        text = text.replace(name, "")
    return [line for line in text.split("\n") if ENGLISH.search(line)]


def names_of_the_study():
    """Return texts of the study's author, the same in every language, the longest first."""
    indicators = tomllib.loads(STUDY_FILE.read_text())["indicator"]
    zones = json.loads((STUDY_FILE.parent / "zones.geojson").read_text())["features"]
    names = [each["name"] for each in indicators]
    names += [category for each in indicators for category in each.get("categories", [])]
    names += [each["properties"]["zone"] for each in zones]
    return sorted(set(names), key=len, reverse=True)
