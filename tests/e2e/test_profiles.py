"""A profile made in the browser from a file of another kind, and a whole file checked with it."""

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import STUDY, STUDY_FILE, Site

pytestmark = pytest.mark.e2e
HEADER = "ServedMSISDN;IMEI;recordOpeningTime;CellIdentifier;Sexe;Année de naissance;Code postal"
N_PEOPLE, N_ROWS = 40, 400


@pytest.fixture(scope="module")
def operators_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CDRs as 3GPP names them: semicolons, Latin-1, days first, a year of birth and a postcode."""
    with (STUDY_FILE.parent / "cells.csv").open(encoding="utf-8") as file:
        cells = [row["cell_id"] for row in csv.DictReader(file)]
    rows = [HEADER]
    for i in range(N_ROWS):
        who = i % N_PEOPLE
        time = f"{1 + i % 4:02d}/06/2017 {8 + i % 12:02d}:15:00"
        person = "HF"[who % 2], str(1940 + who), ("25000", "75011", "")[who % 3]
        fields = f"336{who * 7919:08d}", f"35{who * 104_729:013d}", time, cells[i % len(cells)], *person
        rows.append(";".join(fields))
    path = tmp_path_factory.mktemp("operator") / "cdr.csv"
    path.write_bytes("\r\n".join([*rows, ""]).encode("latin-1"))
    return path


def start(page: Page, site: Site, file: Path) -> None:
    page.goto(f"{site.address}/operator/{STUDY}/")
    page.get_by_role("link", name="What these read").click()
    page.get_by_role("link", name="New profile").click()
    page.wait_for_load_state()  # the script listens to the field from then on
    page.set_input_files("#profile-file", file)
    # The first file of a server loads what reads it.
    expect(page.get_by_role("heading", name="How its first rows are read")).to_be_visible(timeout=30_000)


def test_a_profile_is_proposed_corrected_saved_and_a_file_checked_with_it(
    site: Site, operators_file: Path, sign_in: Callable[..., Page]
) -> None:
    page = sign_in("operator")
    start(page, site, operators_file)
    assert_proposed(page)
    assert_masked(page, operators_file)

    page.get_by_role("button", name="Save the profile").click()
    expect(page.locator("#profile-problems")).to_contain_text("3 problems are marked below")
    expect(page.locator("#profile-problems")).to_be_focused()
    expect(page.locator(".field", has=page.get_by_label("Name of the profile"))).to_contain_text("is missing")

    # Days 1 to 4 could as well be months: somebody has to say.
    page.get_by_label("Times are written as").select_option("%d/%m/%Y %H:%M:%S")
    expect(page.locator(".preview tbody")).to_contain_text("→ Thu 1 Jun 2017, 08:15")
    region = page.get_by_role("group", name="Region of residence")
    region.get_by_label(re.compile("^25 ")).select_option("Franche-Comté")
    expect(page.locator(".preview tbody")).to_contain_text("→ Franche-Comté")
    region.get_by_label("Any other text").select_option("no answer")
    expect(page.locator(".preview tbody")).to_contain_text("→ no answer")
    expect(region.get_by_label(re.compile("^25 "))).to_have_value("=Franche-Comté")
    page.get_by_label("Name of the profile").fill("operator-x")
    page.get_by_role("button", name="Save the profile").click()
    page.wait_for_url("**/profiles/operator-x/")
    expect(page.locator("main")).to_contain_text("25 → Franche-Comté")

    page.get_by_role("link", name="Check a whole file with it").click()
    expect(page.get_by_label(re.compile("^Profile"))).to_have_value("operator-x")
    expect(page.get_by_label("Only check the file")).to_be_checked()
    page.set_input_files("#upload-file", operators_file)
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url("**/operator/batches/**")
    expect(page.locator("main")).to_contain_text("nothing of it was kept", timeout=60_000)
    expect(page.locator("main")).to_contain_text(f"of {N_ROWS}")
    expect(page.locator("main")).not_to_contain_text("Value outside")


def assert_proposed(page: Page) -> None:
    chosen = {
        "Subscriber": "ServedMSISDN", "Time of the event": "recordOpeningTime", "Cell": "CellIdentifier",
        "Times are written as": "", "Columns are separated by": "semicolon",
    }  # fmt: skip
    for label, value in chosen.items():
        expect(page.get_by_label(label, exact=True)).to_have_value(value)
    expect(page.get_by_role("group", name="Age").get_by_label("It holds")).to_have_value("birth_year")
    expect(page.get_by_role("group", name="Region of residence").get_by_label("It holds")).to_have_value(
        "prefix"
    )
    expect(page.get_by_role("group", name="Gender").get_by_label(re.compile("^H "))).to_have_value("=M")


def assert_masked(page: Page, file: Path) -> None:
    """No identifier of the file is anywhere in the page, not even in its source."""
    source = page.content()
    lines = file.read_text("latin-1").splitlines()[1:]
    assert "••••" in source
    for line in lines:
        msisdn, imei = line.split(";")[:2]
        assert msisdn not in source
        assert imei not in source
