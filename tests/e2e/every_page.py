"""Every page of a site that a role can reach by links, one address for each view."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

from django.conf import settings
from django.urls import Resolver404, resolve
from playwright.sync_api import Page


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "a" and values.get("href") and "download" not in values:
            self.found.append(values["href"] or "")


def pages_of(page: Page, site: str, *, study: str, role: str) -> dict[str, str]:
    """Addresses of what a role can open by links, and of the states of report pages, by a name for each."""
    if role == "operator":
        return Walk(page, site, study).pages()
    if role == "administrator":
        _draft(page, site, study)
    simulated = states_of_simulator(study) if role == "administrator" else {}
    # First: it fills the lists that the walk finds. A privacy officer reads, and opens nothing to others.
    opened = {} if role == "privacy_officer" else opened_to_others(page, site, study)
    return Walk(page, site, study).pages() | states_of_reports(study) | simulated | opened


def _draft(page: Page, site: str, study: str) -> None:
    """Start a draft: its pages are found from the list of drafts."""
    page.goto(f"{site}/administrator/{study}/")
    if page.locator("form.copy").count():
        page.fill("form.copy [name=copy_to]", f"{study}-again")
        with page.expect_navigation():
            page.click("form.copy button")


def opened_to_others(page: Page, site: str, study: str) -> dict[str, str]:
    """Keep a view, make a token and share a report; the addresses of what others see."""
    gender = f"{site}/studies/{study}/gender/?from=2017-05-31"
    page.goto(gender)
    _send(page, "form[action='/access/saved/']", name="Vendredi, à revoir")
    page.goto(f"{site}/access/tokens/")
    _send(page, "main form:has(input[name=days])", name="tableau")
    shown = {"shared report": {}, "shared report behind a password": {"password": "sésame, ouvre-toi"}}
    addresses = {}
    for name, given in shown.items():
        page.goto(f"{site}/access/shares/new/{study}/gender/?from=2017-05-31")
        _send(page, "main form:has(input[name=days])", note="Mairie", **given)
        addresses[name] = page.locator("pre.token").inner_text().removeprefix(site)
    return addresses | {"shared report that has ended": "/shared/ended/"}


def _send(page: Page, form: str, **values: str) -> None:
    for name, value in values.items():
        page.fill(f"{form} [name={name}]", value)
    with page.expect_navigation():
        page.click(f"{form} button[type=submit]")


def states_of_reports(study: str) -> dict[str, str]:
    """Pages that look quite different by what their address asks for."""
    gender = f"/studies/{study}/gender/"
    first, second = "from=2017-05-31&to=2017-05-31", "with_from=2017-06-01&with_to=2017-06-02"
    queries = {
        "report of days outside the study": "?from=2030-01-01",
        "report of no date": "?from=soon",
        "report of a day without data": "?from=2017-06-05",
        "report as a table of visitors": "?view=table&measure=visitors&order=sorted&values=consistent",
        "days, small charts of cumulated visitors": "days/?show=cumulative&form=multiples&measure=visitors",
        "movements of one day's visitors": "movement/?show=there_again",
        "movements of a window": "movement/?show=window",
        "movements of no figure": "movement/?show=nothing",
        "windows compared": f"compare/?kind=windows&{first}&{second}",
        "categories compared": f"compare/?kind=categories&{first}&category=0&reference=1",
        "a day compared with the others": f"compare/?kind=baseline&{first}",
    }
    maps = {
        "zones on a map": "?view=map",
        "uncertainty of a day on a map": "?view=map&layer=uncertainty&from=2017-06-01",
    }
    sleeping = f"/studies/{study}/sleeping_area/"
    on_maps = {name: sleeping + query for name, query in maps.items()}
    return {name: gender + query for name, query in queries.items()} | on_maps


def states_of_simulator(study: str) -> dict[str, str]:
    """What the simulator says of settings that are quite different."""
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

    def pages(self) -> dict[str, str]:
        """Addresses by the name of their view, in the order of discovery."""
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
            self.found[name] = address
            for link in self._links(answer.text(), at=answer.url):
                if self.preferred and self.preferred in link:
                    waiting.appendleft(link)
                else:
                    waiting.append(link)
        return self.found

    def _links(self, source: str, *, at: str) -> Iterator[str]:
        links = _Links()
        links.feed(source)
        for link in links.found:
            parts = urlsplit(urljoin(at, link))
            if f"{parts.scheme}://{parts.netloc}" == self.site:
                yield parts.path + (f"?{parts.query}" if parts.query else "")


def view_name(address: str) -> str | None:
    """Name of the view behind an address; None where there is none."""
    try:
        return resolve(urlsplit(address).path, urlconf=settings.ROOT_URLCONF).view_name
    except Resolver404:
        return None
