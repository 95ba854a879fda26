"""Every page of a site that a role can reach by links, one address for each view; and the Tab key there."""

import re
from collections import deque
from dataclasses import dataclass, field
from html import unescape
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import pytest
from django.conf import settings
from django.urls import Resolver404, resolve
from playwright.sync_api import Page

MOST_STEPS = 600
# Some forms have the cursor in their first field: the way through a page begins above it.
TO_THE_TOP = """() => {
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute('tabindex');
}"""
# Controls for a person. Of a group of radio buttons, and of a grid, one member is in the order of tabs.
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
LINK = re.compile(r'<a\b(?![^>]*\bdownload\b)[^>]*\bhref="([^"]+)"')
# Parts that change at the next visit: tokens of forms, addresses of shares and batches, times of day.
PASSING = re.compile(r'value="\w{64}"|/shared/[\w-]+|[0-9a-f]{8}-[0-9a-f-]{27}|\b\d\d:\d\d\b')


class Stop(NamedTuple):
    """A page to look at: its name, its address, and what it says, anyone who reads it."""

    name: str
    address: str
    says: str


def pages_of(page: Page, site: str, *, study: str, role: str) -> list[Stop]:
    walk = Walk(page, site, study)
    found = {}
    if role == "nobody":
        found = {"sign-in": "/sign-in/", "nothing": "/nothing-here/"}
    if role == "administrator":
        _draft(page, site, study)
        found |= states_of_simulator(study)
    if role == "analyst":  # others see the same states of these views, and its lists
        # Before the walk: it fills the lists that the walk finds.
        found |= states_of_reports(study) | opened_to_others(page, site, study)
        found |= board_of(page, site, study)
    found = walk.pages() | found
    if role == "privacy_officer":  # its reports are those of an administrator, without downloads
        found = {name: address for name, address in found.items() if not name.startswith("reports:")}
    return [Stop(name, address, walk.says(address)) for name, address in found.items()]


def _draft(page: Page, site: str, study: str) -> None:
    page.goto(f"{site}/administrator/{study}/")
    if page.locator("form.copy").count():
        page.fill("form.copy [name=copy_to]", f"{study}-again")
        with page.expect_navigation():
            page.click("form.copy button")


def opened_to_others(page: Page, site: str, study: str) -> dict[str, str]:
    page.goto(f"{site}/studies/{study}/gender/?from=2017-05-31")
    _send(page, "form[action='/access/saved/']", name="Vendredi, à revoir")
    page.goto(f"{site}/access/tokens/")
    _send(page, "main form:has(input[name=days])", name="tableau")
    shown = {"shared report": {}, "shared report with a password": {"password": "sésame, ouvre-toi"}}
    addresses = {}
    for name, given in shown.items():
        page.goto(f"{site}/access/shares/new/{study}/gender/?from=2017-05-31")
        _send(page, "main form:has(input[name=days])", note="Mairie", **given)
        addresses[name] = page.locator("pre.token").inner_text().removeprefix(site)
    return addresses | {"shared report that has ended": "/shared/ended/"}


def board_of(page: Page, site: str, study: str) -> dict[str, str]:
    """Make a board with all figures of a study: the walk finds its page, and here it is being arranged."""
    page.goto(f"{site}/studies/{study}/boards/")
    if not page.locator("main .link-list a").count():
        page.select_option("[name=start]", "all")
        _send(page, "main form", name="Semaine")
    else:
        page.locator("main .link-list a").first.click()
    address = urlsplit(page.url).path
    return {"board, arranged": f"{address}?arrange=on", "board of one day": f"{address}?from=2017-06-01"}


def _send(page: Page, form: str, **values: str) -> None:
    for name, value in values.items():
        page.fill(f"{form} [name={name}]", value)
    with page.expect_navigation():
        page.click(f"{form} button[type=submit]")


def states_of_reports(study: str) -> dict[str, str]:
    first, second = "from=2017-05-31&to=2017-05-31", "with_from=2017-06-01&with_to=2017-06-02"
    queries = {
        "report of days outside the study": "gender/?from=2030-01-01",
        "report of no date": "gender/?from=soon",
        "report of a day without data": "gender/?from=2017-06-05",
        "report as a table of visitors": "gender/?view=table&measure=visitors&order=sorted&values=consistent",
        "days, cumulated": "gender/days/?show=cumulative&form=multiples&measure=visitors",
        "movements of one day's visitors": "gender/movement/?show=there_again",
        "movements of a window": "gender/movement/?show=window",
        "movements of no figure": "gender/movement/?show=nothing",
        "windows compared": f"gender/compare/?kind=windows&{first}&{second}",
        "categories compared": f"gender/compare/?kind=categories&{first}&category=0&reference=1",
        "a day compared with the others": f"gender/compare/?kind=baseline&{first}",
        "zones on a map": "sleeping_area/?view=map",
        "flows of a day with a catchment": f"flows/?{first}&zone=0",
        "share of selected categories": f"crosstab/?indicator=gender&only-gender=0&{first}",
        "uncertainty of a day on a map": "sleeping_area/?view=map&layer=uncertainty&from=2017-06-01",
        "presence compared with another day": "presence/?day=2017-06-02&at=18:00&with=2017-06-01",
        "presence of a slot that is not published": "presence/?day=2017-06-05",
        "presence of no day": "presence/?day=soon",
        "forecast of a zone": "presence/forecast/?zone=Vosges",
    }
    return {name: f"/studies/{study}/{query}" for name, query in queries.items()}


def states_of_simulator(study: str) -> dict[str, str]:
    simulator = "/administrator/simulator/?"
    queries = {
        "simulator of a study, with a wanted error": f"study={study}&visitors=26000&wanted=2",
        "simulator of a hopeless setting": "visitors=1000&categories=22&epsilon=0.5",
        "simulator with presence noise": "mechanism=smp-grr&presence_epsilon=1&daily=1&cap=2",
        "simulator of an impossible plan": "mechanism=smp-oue&presence_epsilon=1",
        "simulator of a wrong number": "epsilon=0",
    }
    return {name: simulator + query for name, query in queries.items()}


@dataclass
class Walk:
    """Follows links from the first page, and keeps one address of each view that answers with a page.

    Links with `preferred` in them come first: of several studies, that is the one to look at.
    """

    page: Page
    site: str
    preferred: str = ""
    found: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    def says(self, address: str) -> str:
        """Return the text of a page below its header, which differs by role, without transient parts."""
        source = self.sources.get(address) or self.page.context.request.get(self.site + address).text()
        return PASSING.sub("", source[source.index("<main") : source.index("</main>")])

    def pages(self) -> dict[str, str]:
        waiting = deque(["/"])
        seen: set[str] = set()
        while waiting:
            address = waiting.popleft()
            name = view_name(address)
            if name is None or name in self.found or address in seen:
                continue
            seen.add(address)
            answer = self.page.context.request.get(self.site + address)
            if not answer.ok or "text/html" not in answer.headers.get("content-type", ""):
                continue
            self.found[name], self.sources[address] = address, answer.text()
            for link in LINK.findall(self.sources[address]):
                at, _, query = urljoin(answer.url, unescape(link)).partition("#")[0].partition("?")
                if at.startswith(f"{self.site}/"):
                    onwards = at.removeprefix(self.site) + (query and f"?{query}")
                    (waiting.appendleft if self.preferred in onwards else waiting.append)(onwards)
        return self.found


def view_name(address: str) -> str | None:
    try:
        return resolve(urlsplit(address).path, urlconf=settings.ROOT_URLCONF).view_name
    except Resolver404:
        return None


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
    return [f"not reached: {text}" for place, text in enumerate(wanted) if place not in reached] + unseen


def tab_to(page: Page, selector: str) -> None:
    target = page.locator(selector).first
    for _ in range(MOST_STEPS):
        page.keyboard.press("Tab")
        if target.evaluate("element => element === document.activeElement"):
            assert target.evaluate("element => getComputedStyle(element).outlineStyle") != "none", selector
            return
    pytest.fail(f"Tab never reaches {selector}")


def press_on(page: Page, tag: str, text: str) -> None:
    tab_to(page, f"main {tag}:text-is('{text}')")
    page.keyboard.press("Enter")
