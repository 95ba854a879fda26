"""A whole installation in its own folder, as `make run` starts it, and a browser in front of it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

from mobility.demo.extract import write_extract
from tests.demo_study import slots_text, write_study
from tests.e2e.several import put_databases, texts, values
from tests.mobility.data_folder import without_addresses

ROOT = Path(__file__).parents[2]
CHROMIUM = {
    "executable_path": os.environ.get("CHROMIUM", "/usr/bin/chromium"),
    "args": [
        "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update"
    ]
}  # fmt: skip
HERE = Path(__file__).parent
ROLES = ("operator", "analyst", "administrator", "privacy_officer")
GRANTED = {"operator": ["--all-studies"], "analyst": ["--all-studies"]}  # the others need no grant


@pytest.hookimpl(tryfirst=True)  # before the others look for marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole installations take long: `make test-long` runs all that is here."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.long)


@dataclass(frozen=True)
class Installation:
    data_dir: Path
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        # The run on PostgreSQL is for the tests of services; here everything is embedded.
        return without_addresses({"MOBILITY_DATA_DIR": str(self.data_dir), **self.extra})

    def values(self, *commands: tuple[str, ...]) -> list[Any]:
        return values(commands, self.environment)

    def value(self, *words: str) -> Any:
        (printed,) = self.values(words)
        return printed

    def create_accounts(self, *roles: str) -> dict[str, str]:
        """An account per role, under the name of the role; their passwords."""
        words = {role: ("create_account", role, "--role", role, *GRANTED.get(role, ())) for role in roles}
        made = self.values(*words.values())
        return {role: each["password"] for role, each in zip(roles, made, strict=True)}

    @contextmanager
    def served(self, *, port: int = 0) -> Iterator[str]:
        """The address at which it is served inside this block."""
        server = subprocess.Popen(
            [sys.executable, "manage.py", "run", "--port", str(port)],
            cwd=ROOT, env=self.environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )  # fmt: skip
        try:
            line = server.stdout.readline()
            if not line:
                pytest.fail(f"the server did not start\n{server.communicate()[1]}")
            yield json.loads(line)["address"].rstrip("/")
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=60)


@dataclass(frozen=True)
class Site(Installation):
    """An installation that is being served; `sessions` are cookies of those who have signed in already."""

    address: str = ""
    accounts: dict[str, str] = field(default_factory=dict)
    sessions: dict[str, Any] = field(default_factory=dict)


@pytest.fixture(scope="session")
def extract(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("extract")
    write_extract(folder, seed=11, n_subscribers=3_000)
    return sorted(folder.glob("*.csv"))


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with both embedded databases, as a first command leaves them."""
    made = Installation(tmp_path_factory.mktemp("migrated"))
    texts([("shell", "--no-imports", "--command", "pass")], made.environment)
    return made.data_dir


@pytest.fixture(scope="session")
def site(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    bare = Installation(put_databases(migrated, tmp_path_factory.mktemp("site")))
    bare.value("create_study", str(write_study(tmp_path_factory.mktemp("study"))))
    accounts = bare.create_accounts(*ROLES)
    with bare.served() as address:
        yield Site(data_dir=bare.data_dir, address=address, accounts=accounts)


@pytest.fixture(scope="session")
def report_study(site: Site, extract: list[Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Slug of a second study of the site, with slots, and three published days of seven."""
    slug = "with-reports"
    file = write_study(tmp_path_factory.mktemp("study"), slug=slug, more=slots_text())
    days = [("ingest", slug, str(path)) for path in extract[:3]]
    site.values(("create_study", str(file)), *days, ("close_slots", slug, "--through", "2017-06-02"))
    site.value("forecast", slug)  # unless a worker was faster
    return slug


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for the session: it keeps an event loop in this thread, in which Django refuses its database."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(**CHROMIUM)
        yield chromium
        chromium.close()


@dataclass
class Watch:
    """Forbidden on a page: breaking its own content policy, failing in a script, or asking another host."""

    host: str
    complaints: list[str] = field(default_factory=list)

    def on(self, page: Page) -> None:
        def note(is_bad: bool, text: str) -> None:
            if is_bad:
                self.complaints.append(f"{page.url}: {text}")

        page.on("console", lambda message: note(self._is_bad(page, message), message.text))
        page.on("pageerror", lambda error: note(True, str(error)))
        page.on("request", lambda request: note(self._is_elsewhere(request), f"asked {request.url}"))

    def _is_bad(self, page: Page, message: ConsoleMessage) -> bool:
        is_its_status = message.text.startswith("Failed to load") and message.location["url"] == page.url
        return message.type == "error" and not is_its_status

    def _is_elsewhere(self, request: Request) -> bool:
        parts = urlsplit(request.url)
        return parts.scheme in ("http", "https", "ws") and parts.netloc != self.host


@pytest.fixture
def watched(site: Site, browser: Browser) -> Iterator[Callable[..., Page]]:
    """A page of no one, watched until the end of the test: `watched(color_scheme="dark")`."""
    contexts: list[BrowserContext] = []
    watch = Watch(host=urlsplit(site.address).netloc)

    def new_page(**options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        watch.on(page)
        return page

    yield new_page
    for context in contexts:
        context.close()
    assert watch.complaints == []


@pytest.fixture
def sign_in(site: Site, watched: Callable[..., Page]) -> Callable[..., Page]:
    """A page of a person with a role, watched: `sign_in("analyst")`; they sign in once for all tests."""

    def open_as(role: str, **options: Any) -> Page:
        page = watched(storage_state=site.sessions.get(role), **options)
        if role not in site.sessions:
            page.goto(f"{site.address}/sign-in/")
            fill_in(page, role, site.accounts[role])
            page.wait_for_url(f"{site.address}/")
            site.sessions[role] = page.context.storage_state()
        return page

    return open_as


def fill_in(page: Page, username: str, password: str) -> None:
    page.fill("input[name=username]", username)
    page.fill("input[name=password]", password)
    page.press("input[name=password]", "Enter")
