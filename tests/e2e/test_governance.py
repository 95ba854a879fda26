"""A privacy officer's walk in the browser: from a draft of a plan to the certificate of its study's end."""

import re
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tests.demo_study import STUDY_FILE, study_text
from tests.e2e.conftest import ROOT
from tests.e2e.test_uploads import upload

pytestmark = pytest.mark.e2e
SLUG = "walk-2017"


@pytest.fixture
def study_file(tmp_path):
    """The demo's study under another name, with half of its epsilon."""
    text = study_text()
    assert "epsilon = 1.0" in text
    changed = text.replace('slug = "fimu-2017"', f'slug = "{SLUG}"').replace("epsilon = 1.0", "epsilon = 0.5")
    path = tmp_path / "study.toml"
    path.write_text(changed)
    return path


def test_from_the_draft_of_a_plan_to_the_certificate_of_its_end(site, extract, study_file, tmp_path, sign_in):
    administrator, officer = sign_in("administrator"), sign_in("privacy_officer")
    drafted = draft(administrator, site, study_file)
    # The simulator starts from the plan of the draft, and says what it reveals.
    administrator.goto(drafted)
    administrator.get_by_role("link", name="Try other settings").click()
    administrator.wait_for_url("**/administrator/simulator/**")
    says = re.compile(r"changes? (their|her|his) odds|odds .* at most")
    expect(administrator.locator("main")).to_contain_text(says)

    administrator.goto(drafted)
    expect(administrator.get_by_role("button", name="Publish")).to_have_count(0)
    administrator.get_by_role("button", name="Request review").click()
    approve(officer, site)

    administrator.goto(drafted)
    administrator.get_by_role("button", name="Publish and create the study").click()
    administrator.wait_for_url(f"**/administrator/{SLUG}/")

    operator = sign_in("operator")
    upload(operator, site, extract[0], study=SLUG)
    expect(operator.locator("main")).to_contain_text("Done", timeout=60_000)

    read_statement(officer, site, tmp_path)
    ledger(officer, site, "batch", "officer")
    close(administrator, site)
    officer.goto(f"{site.address}/administrator/{SLUG}/")
    expect(officer.locator("main")).to_contain_text("certificate", ignore_case=True)
    ledger(officer, site, "key")
    assert site.value("verify_ledger")["ok"] is True


def draft(page, site, study_file):
    page.goto(f"{site.address}/administrator/create/")
    page.set_input_files("#study-file", study_file)
    page.set_input_files("#cells-file", STUDY_FILE.parent / "cells.csv")
    page.set_input_files("#zones-file", STUDY_FILE.parent / "zones.geojson")
    page.get_by_role("button", name="Check and create draft").click()
    page.wait_for_url(re.compile(r"/administrator/drafts/\d+/$"))
    expect(page.locator("main")).to_contain_text("A second person must approve this draft because")
    return page.url


def approve(page, site):
    """A privacy officer finds what waits for a review without knowing its address, and approves it."""
    page.goto(f"{site.address}/administrator/drafts/")
    page.get_by_role("link", name=re.compile("FIMU")).first.click()
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("main")).to_contain_text("You approved the draft in its current form")


def read_statement(page, site, folder):
    """The statement names who looked at the plan, and a script that shares no code recomputes its file."""
    page.goto(f"{site.address}/studies/{SLUG}/statement/")
    expect(page.locator("main")).to_contain_text("privacy_officer")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as JSON").click()
    file = folder / "statement.json"
    download.value.save_as(file)
    script = [sys.executable, str(ROOT / "scripts" / "check_statement.py"), str(file)]
    checked = subprocess.run(script, capture_output=True, text=True, check=False, timeout=120)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    page.goto(f"{site.address}/studies/{SLUG}/dpia/")
    expect(page.locator("main")).to_contain_text("To complete:")


def ledger(page, site, *words):
    page.goto(f"{site.address}/ledger/?study={SLUG}")
    page.get_by_role("button", name="Check now").click()
    expect(page.locator("main")).to_contain_text("Verified")
    page.goto(f"{site.address}/ledger/?study={SLUG}")
    for word in words:
        expect(page.locator("table")).to_contain_text(word, ignore_case=True)


def close(page, site):
    """Close the study permanently; one day was published, so nothing is in the way."""
    page.goto(f"{site.address}/administrator/{SLUG}/close/")
    page.fill("input[name=slug]", SLUG)
    page.get_by_role("button", name="Permanently close the study").click()
    page.wait_for_url(f"**/administrator/{SLUG}/")
    expect(page.locator("main")).to_contain_text("closed", ignore_case=True)
