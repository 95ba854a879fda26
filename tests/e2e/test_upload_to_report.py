"""The main job as people do it: an operator uploads in the browser, an analyst reads the report."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import STUDY, STUDY_FILE, Site
from tests.reference import read_extract, read_study

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def later_days(site: Site, extract: list[Path]) -> list[dict[str, Any]]:
    """What the command line says of days 2 and 3."""
    return [site.value("ingest", STUDY, str(path)) for path in extract[1:3]]


def test_upload_in_the_browser_ends_in_a_report(
    site: Site, extract: list[Path], later_days: list[dict[str, Any]], sign_in: Callable[..., Page]
) -> None:
    truth = read_extract(extract[:3], read_study(STUDY_FILE))["presence"]
    operator = sign_in("operator")
    upload(operator, site, extract[0])
    expect(operator.locator("main")).to_contain_text("Done", timeout=60_000)

    visitors = sum(map(bool, truth.values()))
    analyst = sign_in("analyst")
    analyst.goto(f"{site.address}/studies/{STUDY}/gender/?from=2017-05-31&to=2017-06-02")
    expect(analyst.locator("main")).to_contain_text(f"{visitors:,}".replace(",", "\u202f"))
    exported = site.value(
        "export_report", STUDY, "--indicator", "gender", "--from", "2017-05-31", "--to", "2017-06-02"
    )
    (report,) = exported
    assert report["n_visitors"] == visitors
    shown = page_numbers(analyst)
    assert list(shown) == [estimate["category"] for estimate in report["estimates"]]
    for estimate, (share, low, high, people, reports) in zip(
        report["estimates"], shown.values(), strict=True
    ):
        # What is shown is rounded: shares to a tenth of a percent, people to whole ones.
        assert share == pytest.approx(100 * estimate["frequency"], abs=0.0501)
        assert low == pytest.approx(100 * estimate["ci_low"], abs=0.0501)
        assert high == pytest.approx(100 * estimate["ci_high"], abs=0.0501)
        assert people == pytest.approx(estimate["visitors"], abs=0.501)
        assert reports == estimate["reports"]


def upload(page: Page, site: Site, path: Path, *, study: str = STUDY) -> None:
    page.goto(f"{site.address}/operator/{study}/")
    page.set_input_files("input[type=file]", path)
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url("**/operator/batches/**")


def page_numbers(page: Page) -> dict[str, list[float]]:
    """Per category: share, its interval, visitors, reports, as the table shows them."""
    found = {}
    for row in page.get_by_role("table").filter(has_text="Consistent share").locator("tbody tr").all():
        name = row.locator("th").inner_text().strip()
        share, people, _, reports = (numbers_in(cell.inner_text()) for cell in row.locator("td").all())
        found[name] = [*share, people[0], reports[0]]
    return found


def numbers_in(text: str) -> list[float]:
    plain = text.replace("\u202f", "").replace("\u2212", "-")
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", plain)]


def test_same_file_again_says_that_nothing_changes(
    site: Site, extract: list[Path], later_days: list[dict[str, Any]], sign_in: Callable[..., Page]
) -> None:
    operator = sign_in("operator")
    upload(operator, site, extract[1])
    expect(operator.locator("main")).to_contain_text("nothing", timeout=60_000)


def test_file_that_is_no_extract_fails_with_its_reason(
    site: Site, tmp_path: Path, sign_in: Callable[..., Page]
) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("a,b\n1,2\n")
    operator = sign_in("operator")
    upload(operator, site, wrong)
    expect(operator.locator("main")).to_contain_text("no column 'msisdn'", timeout=60_000)


def test_export_covers_all_windows_and_categories(site: Site, later_days: list[dict[str, Any]]) -> None:
    exported = site.value("export_report", STUDY)
    assert len(exported) == 7 * 28
    assert json.dumps(exported) == json.dumps(site.value("export_report", STUDY))
