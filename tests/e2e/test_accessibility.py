"""Every page in both themes, wide and narrow: no serious barrier, nothing too wide, nothing heavy."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, Response, ViewportSize

from tests.e2e.conftest import ROLES, Site
from tests.e2e.every_page import pages_of

pytestmark = pytest.mark.e2e

AXE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
SIZES: dict[str, ViewportSize] = {
    "wide": {"width": 1440, "height": 900},
    "narrow": {"width": 390, "height": 844},
}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
GRAVE = ("serious", "critical")
MAX_PAGE_BYTES = 500_000  # as it is sent, without the library of charts
# The whole report of axe is long; this says what to mend and where.
RUN_AXE = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.map(({ id, impact, help, nodes }) => ({
    id, impact, help, nodes: nodes.map((node) => `${node.target.join(" ")} | ${node.failureSummary}`),
  }));
}"""


@pytest.mark.parametrize("role", ROLES)
def test_no_page_has_a_serious_barrier_or_is_heavy(
    site: Site, report_study: str, sign_in: Callable[..., Page], role: str
) -> None:
    page = sign_in(role)
    found = []
    for name, address in pages_of(page, site.address, study=report_study, role=role).items():
        weight = weight_of(page, site.address + address)
        if weight > MAX_PAGE_BYTES:
            found.append(f"{name}: {weight} bytes")
        for size, scheme in itertools.product(SIZES, SCHEMES):
            page.set_viewport_size(SIZES[size])
            page.emulate_media(color_scheme=scheme)
            found += [f"{name}, {size}, {scheme}: {line}" for line in barriers(page)]
            if is_wider_than_the_screen(page):
                found.append(f"{name}, {size}: the page scrolls sideways")
    assert found == []


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("address", ["/", "/sign-in/", "/nothing-here/"])
def test_pages_before_signing_in_have_no_serious_barrier(
    site: Site, watched: Callable[..., Page], address: str, scheme: str
) -> None:
    page = watched(color_scheme=scheme, viewport=SIZES["narrow"])
    page.goto(site.address + address)
    assert barriers(page) == []


def test_the_check_sees_barriers(site: Site, watched: Callable[..., Page]) -> None:
    page = watched()
    page.goto(f"{site.address}/sign-in/")
    page.evaluate("document.querySelectorAll('label').forEach((label) => label.remove())")
    assert any(line.startswith("label (critical)") for line in barriers(page))


def weight_of(page: Page, address: str) -> int:
    """Open a page; bytes that this visit fetches, as sent, without the library of charts."""
    answers: list[Response] = []

    def note(answer: Response) -> None:  # a bound method of a list is no listener to Playwright
        answers.append(answer)

    page.on("response", note)
    open_page(page, address)
    page.wait_for_load_state("networkidle")
    page.remove_listener("response", note)
    return sum(
        answer.request.sizes()["responseBodySize"] for answer in answers if "/plotly" not in answer.url
    )


def open_page(page: Page, address: str) -> None:
    """Load a page, and wait for its charts."""
    page.goto(address)
    page.wait_for_function(
        "() => [...document.querySelectorAll('[data-figure]')].every((chart) => chart.querySelector('svg'))"
    )


def barriers(page: Page) -> list[str]:
    """What axe-core calls serious or critical, with the element and what to do."""
    if page.evaluate("typeof axe === 'undefined'"):
        # By the debugger: the content policy of the page stays as it is.
        page.evaluate(AXE.read_text("utf-8"))
    violations: list[dict[str, Any]] = page.evaluate(RUN_AXE)
    return [
        f"{each['id']} ({each['impact']}): {each['help']}: {node}"
        for each in violations
        if each["impact"] in GRAVE
        for node in each["nodes"]
    ]


def is_wider_than_the_screen(page: Page) -> bool:
    """Whether it stays so: charts follow a change of the screen's width after a moment."""
    for _ in range(40):
        if not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            return False
        page.wait_for_timeout(100)
    return True
