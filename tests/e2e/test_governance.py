"""A privacy officer's walk: from a draft of a plan to the certificate of its study's end, all in the browser.

With SCREENS=folder in the environment, each page is kept there as a picture.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import ROOT, STUDY_FILE, Site
from tests.e2e.test_upload_to_report import upload

pytestmark = pytest.mark.e2e
SLUG = "walk-2017"
SEEN: list[str] = []


def keep(page: Page, name: str) -> None:
    """A picture of what stands there now, if somebody wants them."""
    folder = os.environ.get("SCREENS")
    if folder:
        SEEN.append(name)
        page.screenshot(path=f"{folder}/{len(SEEN):02d}-{name}.png", full_page=True)


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    """The demo's study under another name, with half of its epsilon."""
    text = STUDY_FILE.read_text()
    assert "epsilon = 1.0" in text
    changed = text.replace('slug = "fimu-2017"', f'slug = "{SLUG}"').replace("epsilon = 1.0", "epsilon = 0.5")
    path = tmp_path / "study.toml"
    path.write_text(changed)
    return path


def test_from_the_draft_of_a_plan_to_the_certificate_of_its_end(
    site: Site, extract: list[Path], study_file: Path, tmp_path: Path, sign_in: Callable[..., Page]
) -> None:
    administrator, officer = sign_in("administrator"), sign_in("privacy_officer")
    drafted = draft(administrator, site, study_file)
    simulate(administrator, drafted)

    administrator.goto(drafted)
    expect(administrator.get_by_role("button", name="Publish")).to_have_count(0)
    administrator.get_by_role("button", name="Ask for a review").click()
    approve(officer, site)

    administrator.goto(drafted)
    keep(administrator, "approved")
    administrator.get_by_role("button", name="Publish: create the study").click()
    administrator.wait_for_url(f"**/administrator/{SLUG}/")

    operator = sign_in("operator")
    upload(operator, site, extract[0], study=SLUG)
    expect(operator.locator("main")).to_contain_text("Done", timeout=60_000)

    read_statement(officer, site, tmp_path)
    ledger(officer, site, "batch", "officer")
    close(administrator, site)
    officer.goto(f"{site.address}/administrator/{SLUG}/")
    expect(officer.locator("main")).to_contain_text("certificate", ignore_case=True)
    keep(officer, "certificate")
    ledger(officer, site, "key")
    assert site.value("verify_ledger")["ok"] is True


def draft(page: Page, site: Site, study_file: Path) -> str:
    """Make a draft of a study file; returns the address of its page."""
    page.goto(f"{site.address}/administrator/create/")
    page.set_input_files("#study-file", study_file)
    page.set_input_files("#cells-file", STUDY_FILE.parent / "cells.csv")
    page.set_input_files("#zones-file", STUDY_FILE.parent / "zones.geojson")
    page.get_by_role("button", name="Check and draft").click()
    page.wait_for_url(re.compile(r"/administrator/drafts/\d+/$"))
    expect(page.locator("main")).to_contain_text("A second person has to approve it")
    keep(page, "draft")
    return page.url


def simulate(page: Page, drafted: str) -> None:
    """From the draft to the simulator, which starts from its plan, and says what it reveals."""
    page.goto(drafted)
    page.get_by_role("link", name="Try other settings").click()
    page.wait_for_url("**/administrator/simulator/**")
    expect(page.locator("main")).to_contain_text(re.compile(r"changes? (their|her|his) odds|odds .* at most"))
    keep(page, "simulator")


def approve(page: Page, site: Site) -> None:
    """A privacy officer finds what waits for a review without knowing its address, and approves it."""
    page.goto(f"{site.address}/administrator/drafts/")
    keep(page, "drafts")
    page.get_by_role("link", name=re.compile("FIMU")).first.click()
    keep(page, "review")
    page.get_by_role("button", name="Approve it as it stands").click()
    expect(page.locator("main")).to_contain_text("You approved the draft as it stands")


def read_statement(page: Page, site: Site, folder: Path) -> None:
    """The statement names who looked at the plan, and a script that shares no code recomputes its file."""
    page.goto(f"{site.address}/studies/{SLUG}/statement/")
    expect(page.locator("main")).to_contain_text("privacy_officer")
    keep(page, "statement")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as JSON").click()
    file = folder / "statement.json"
    download.value.save_as(file)
    script = [sys.executable, str(ROOT / "scripts" / "check_statement.py"), str(file)]
    checked = subprocess.run(script, capture_output=True, text=True, check=False, timeout=120)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    page.goto(f"{site.address}/studies/{SLUG}/dpia/")
    expect(page.locator("main")).to_contain_text("To complete:")
    keep(page, "dpia")


def ledger(page: Page, site: Site, *words: str) -> None:
    """The ledger has the entries of the study, and is whole."""
    page.goto(f"{site.address}/ledger/?study={SLUG}")
    page.get_by_role("button", name="Check it now").click()
    expect(page.locator("main")).to_contain_text("Whole")
    page.goto(f"{site.address}/ledger/?study={SLUG}")
    for word in words:
        expect(page.locator("table")).to_contain_text(word, ignore_case=True)
    keep(page, "ledger")


def close(page: Page, site: Site) -> None:
    """Close the study for ever; one day was published, so nothing is in the way."""
    page.goto(f"{site.address}/administrator/{SLUG}/close/")
    page.fill("input[name=slug]", SLUG)
    keep(page, "close")
    page.get_by_role("button", name="Close the study for ever").click()
    page.wait_for_url(f"**/administrator/{SLUG}/")
    expect(page.locator("main")).to_contain_text("closed", ignore_case=True)
