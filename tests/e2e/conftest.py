"""A whole installation in a folder of its own, as `make run` starts it, and a browser in front of it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

from mobility.demo.extract import write_extract

ROOT = Path(__file__).parents[2]
STUDY_FILE = ROOT / "mobility" / "demo" / "study.toml"
STUDY = "fimu-2017"
CHROMIUM = {
    "executable_path": os.environ.get("CHROMIUM", "/usr/bin/chromium"),
    "args": [
        "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update",
    ],
}  # fmt: skip
HERE = Path(__file__).parent
ROLES = ("operator", "analyst", "administrator", "privacy_officer")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole installations take long: `make test-long` runs all that is here."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.long)


@dataclass(frozen=True)
class Installation:
    """A data folder and the commands that work on it."""

    data_dir: Path
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        own = {"MOBILITY_DATA_DIR": str(self.data_dir), "DJANGO_SETTINGS_MODULE": "mobility.settings"}
        inherited = {
            name: value
            for name, value in os.environ.items()
            # The run on PostgreSQL is for the tests of services; here everything is embedded.
            if name not in ("DATABASE_URL", "VAULT_DATABASE_URL", "REDIS_URL")
        }
        return inherited | own | self.extra

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "manage.py", *words],
            cwd=ROOT, env=self.environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT, env=self.environment, text=True, capture_output=True, check=False, timeout=300,
        )  # fmt: skip

    def value(self, *words: str) -> Any:
        """The JSON value that a command prints; the command must succeed."""
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@dataclass(frozen=True)
class Site(Installation):
    """An installation that is being served."""

    address: str = ""
    accounts: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="session")
def extract(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Seven daily files of 3,000 people."""
    folder = tmp_path_factory.mktemp("extract")
    write_extract(folder, seed=11, n_subscribers=3_000)
    return sorted(folder.glob("*.csv"))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A served installation with the demo's study, still empty, and an account per role."""
    bare = Installation(tmp_path_factory.mktemp("site"))
    bare.value("create_study", str(STUDY_FILE))
    accounts = {}
    for role in ROLES:
        granted = [] if role in ("administrator", "privacy_officer") else ["--all-studies"]
        accounts[role] = bare.value("create_account", role, "--role", role, *granted)["password"]
    server = bare.start("run", "--port", "8100")
    assert server.stdout is not None
    line = server.stdout.readline()
    if not line:
        _, errors = server.communicate()
        pytest.fail(f"the server did not start\n{errors}")
    try:
        yield Site(data_dir=bare.data_dir, address=json.loads(line)["address"].rstrip("/"), accounts=accounts)
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)


@pytest.fixture(scope="session")
def report_study(site: Site, extract: list[Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Slug of a second study of the site, with three published days of seven."""
    folder = tmp_path_factory.mktemp("study")
    for name in ("cells.csv", "zones.geojson"):
        shutil.copy(STUDY_FILE.parent / name, folder)
    text = STUDY_FILE.read_text().replace(f'slug = "{STUDY}"', 'slug = "with-reports"')
    (folder / "study.toml").write_text(text)
    site.value("create_study", str(folder / "study.toml"))
    for path in extract[:3]:
        site.value("ingest", "with-reports", str(path))
    return "with-reports"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for the session: it keeps an event loop in this thread, in which Django refuses its database."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(**CHROMIUM)
        yield chromium
        chromium.close()


@dataclass
class Watch:
    """What a page must never do: break its own content policy, fail in a script, or ask another host."""

    host: str
    complaints: list[str] = field(default_factory=list)

    def on(self, page: Page) -> None:
        page.on("console", lambda message: self._note(self._is_bad(page, message), message.text))
        page.on("pageerror", lambda error: self._note(True, str(error)))
        page.on("request", self._check_host)

    def _is_bad(self, page: Page, message: ConsoleMessage) -> bool:
        """Whether it is an error; that the page itself answers with 404 is for its test to judge."""
        is_its_status = message.text.startswith("Failed to load") and message.location["url"] == page.url
        return message.type == "error" and not is_its_status

    def _check_host(self, request: Request) -> None:
        parts = urlsplit(request.url)
        self._note(
            parts.scheme in ("http", "https", "ws") and parts.netloc != self.host, f"asked {request.url}"
        )

    def _note(self, is_bad: bool, text: str) -> None:
        if is_bad:
            self.complaints.append(text)


@pytest.fixture
def watched(site: Site, browser: Browser) -> Iterator[Callable[..., Page]]:
    """A page of nobody, watched until the end of the test: `watched(color_scheme="dark")`."""
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
    """Open the site as a person with a role: `sign_in("analyst")`; the page is watched."""

    def open_as(role: str, **options: Any) -> Page:
        page = watched(**options)
        page.goto(f"{site.address}/sign-in/")
        page.fill("input[name=username]", role)
        page.fill("input[name=password]", site.accounts[role])
        page.click("main button[type=submit]")
        page.wait_for_url(f"{site.address}/")
        return page

    return open_as
