"""Files that arrive in pieces: cut off, paused, or in chunks; they bring what one command brings."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Page, expect

from mobility.demo.extract import write_extract
from tests.e2e.conftest import STUDY, Site
from tests.e2e.cutting_proxy import CuttingProxy, cutting_proxy

pytestmark = pytest.mark.e2e
FRAME_BYTES = 4 << 20


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of several frames: a day's rows, and the same ones again (they count as duplicates)."""
    folder = tmp_path_factory.mktemp("large")
    write_extract(folder, seed=3, n_subscribers=3_000)
    day = sorted(folder.glob("*.csv"))[0]
    header, rows = day.read_bytes().split(b"\n", 1)
    file = folder / "large.csv"
    file.write_bytes(header + b"\n" + rows * (3 * FRAME_BYTES // len(rows) + 1))
    assert file.stat().st_size > 3 * FRAME_BYTES
    return file


@pytest.fixture(scope="module")
def expected(site: Site, large: Path) -> dict[str, Any]:
    """What the command says of the file."""
    return counts(site.value("ingest", STUDY, str(large), "--validate-only"))


@pytest.fixture(scope="module")
def token(site: Site) -> str:
    return str(site.value("create_feed_token", STUDY, "nightly", "--days", "1")["token"])


@pytest.fixture
def line(site: Site) -> Iterator[CuttingProxy]:
    """A line to the site that breaks twice, after a frame and a half each."""
    with cutting_proxy(int(site.address.rsplit(":", 1)[1]), cut_after=FRAME_BYTES * 3 // 2, cuts=2) as proxy:
        yield proxy


@pytest.fixture
def page(browser: Browser, site: Site, line: CuttingProxy) -> Iterator[Page]:
    """An operator's upload form, behind the line."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{line.address}/sign-in/")
    page.fill("input[name=username]", "operator")
    page.fill("input[name=password]", site.accounts["operator"])
    page.click("main button[type=submit]")
    page.goto(f"{line.address}/operator/{STUDY}/")
    page.get_by_label("Only check the file").check()
    yield page
    context.close()


def counts(summary: dict[str, Any]) -> dict[str, Any]:
    kept = ("rows_read", "rows_accepted", "rows_ignored", "rows_rejected", "subscriber_days")
    return {name: summary[name] for name in kept}


def of_page(page: Page, site: Site, token: str) -> dict[str, Any]:
    """The batch whose page is shown, once it is done."""
    page.wait_for_url("**/operator/batches/**", timeout=60_000)
    batch = page.url.rstrip("/").split("/")[-1]
    expect(page.locator("main")).to_contain_text("Done", timeout=60_000)
    url = f"{site.address}/api/v1/batches/{batch}"
    request = Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - our own server
    with urlopen(request) as response:  # noqa: S310
        found: dict[str, Any] = json.load(response)
        return found


def send(page: Page) -> None:
    page.get_by_role("button", name="Upload", exact=True).click()


def test_an_upload_that_is_cut_off_goes_on(
    site: Site, large: Path, expected: dict[str, Any], token: str, line: CuttingProxy, page: Page
) -> None:
    page.set_input_files("input[type=file]", large)
    send(page)
    batch = of_page(page, site, token)
    assert line.cuts_left == 0
    assert counts(batch) == expected
    assert page.evaluate("localStorage.length") == 0


def cut_off_for_good(page: Page, line: CuttingProxy, file: Path) -> None:
    """Send until a frame has arrived, and let nothing more through."""
    line.cuts_left = 1
    page.set_input_files("input[type=file]", file)
    send(page)
    expect(page.locator("#upload-note")).to_contain_text("Trying again", timeout=30_000)


@pytest.fixture
def dead_line(line: CuttingProxy, page: Page) -> CuttingProxy:
    """A line whose first upload brings one frame, and the others nothing; pages come through."""

    def after_the_first() -> None:
        line.cut_after, line.cuts_left = 100_000, 1000

    line.on_cut = after_the_first
    return line


def test_an_upload_goes_on_after_the_page_was_loaded_again(
    site: Site, large: Path, expected: dict[str, Any], token: str, dead_line: CuttingProxy, page: Page
) -> None:
    cut_off_for_good(page, dead_line, large)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#upload-note")).to_contain_text("Paused")
    kept = page.evaluate("Object.entries(localStorage)")
    assert len(kept) == 1
    assert kept[0][1].isdigit()
    assert large.name not in kept[0][0]

    dead_line.repair()
    page.on("dialog", lambda dialog: dialog.accept())  # leaving during an upload is asked about
    for _ in range(20):  # until the server has noticed
        page.goto(f"{dead_line.address}/operator/{STUDY}/")
        if f"{large.name}: 4.2 of" in page.inner_text("main"):
            break
        page.wait_for_timeout(500)
    page.set_input_files("input[type=file]", large)
    expect(page.locator("#upload-note")).to_contain_text("4.2 of 12.")
    send(page)
    assert counts(of_page(page, site, token)) == expected


def test_a_cancelled_upload_leaves_nothing(
    site: Site, large: Path, dead_line: CuttingProxy, page: Page
) -> None:
    cut_off_for_good(page, dead_line, large)
    dead_line.repair()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#upload-note")).to_contain_text("Nothing of the file was kept")
    page.reload()
    expect(page.locator("main")).not_to_contain_text("Uploads that rest")
    assert list((site.data_dir / "staging").glob("*")) == []


@pytest.mark.parametrize("in_chunks", [False, True])
def test_a_program_sends_the_file_with_its_token(
    site: Site, large: Path, expected: dict[str, Any], token: str, in_chunks: bool,
    sign_in: Callable[..., Page],
) -> None:  # fmt: skip
    url = f"{site.address}/api/v1/studies/{STUDY}/extracts/large.csv?validate_only=1"
    extra = ["-H", "Transfer-Encoding: chunked"] if in_chunks else []
    done = subprocess.run(
        ["curl", "-sS", "--fail-with-body", "-T", str(large), "-H", f"Authorization: Bearer {token}",
         *extra, url],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    page = sign_in("operator")
    page.goto(f"{site.address}/operator/batches/{json.loads(done.stdout)['batch']}/")
    assert counts(of_page(page, site, token)) == expected
