"""Every file of the downloads menu, fetched in Chromium and read back with another library."""

import csv
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import polars
import pypdf
import pytest
from defusedxml import ElementTree
from PIL import Image
from playwright.sync_api import Page, expect

from tests.e2e.conftest import STUDY, Site

pytestmark = pytest.mark.e2e
WINDOW = "from=2017-05-31&to=2017-06-01"


@pytest.fixture(scope="module")
def two_days(site: Site, extract: list[Path]) -> list[dict[str, Any]]:
    """What the command line says of gender in the first two days."""
    for path in extract[:2]:
        site.value("ingest", STUDY, str(path))
    window = ("--from", "2017-05-31", "--to", "2017-06-01")
    exported = site.value("export_report", STUDY, "--indicator", "gender", *window)
    return list(exported[0]["estimates"])


def fetched(page: Page, label: str) -> tuple[str, bytes]:
    """Name and content of a file of the menu."""
    with page.expect_download() as waiting:
        page.locator(".downloads").get_by_role("link", name=label, exact=True).click()
    return waiting.value.suggested_filename, waiting.value.path().read_bytes()


def frequencies(ending: str, content: bytes) -> list[float]:
    """Shares of a table, read by a library that did not write it."""
    if ending == "json":
        return [estimate["frequency"] for estimate in json.loads(content)[0]["estimates"]]
    if ending == "parquet":
        return polars.read_parquet(io.BytesIO(content))["frequency"].to_list()
    if ending == "xlsx":
        head, *rows = openpyxl.load_workbook(io.BytesIO(content))["gender"].iter_rows(values_only=True)
        return [float(str(row[head.index("frequency")])) for row in rows]
    column = "OBS_VALUE" if ending == "sdmx.csv" else "frequency"
    return [float(row[column]) for row in csv.DictReader(io.StringIO(content.decode()))]


def test_each_file_of_a_window_has_its_numbers(
    site: Site, two_days: list[dict[str, Any]], sign_in: Callable[..., Page]
) -> None:
    page = sign_in("analyst")
    page.goto(f"{site.address}/studies/{STUDY}/gender/?{WINDOW}")
    menu = page.locator(".downloads summary")
    menu.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".downloads").get_by_role("link", name="PDF", exact=True)).to_be_visible()
    shares = [estimate["frequency"] for estimate in two_days]
    tables = {"CSV": "csv", "XLSX": "xlsx", "JSON": "json", "Parquet": "parquet", "SDMX-CSV": "sdmx.csv"}
    for label, ending in tables.items():
        name, content = fetched(page, label)
        assert name == f"{STUDY}_gender_2017-05-31_2017-06-01.{ending}"
        assert frequencies(ending, content) == pytest.approx(shares, rel=1e-15, abs=0)
    _, picture = fetched(page, "PNG")
    assert Image.open(io.BytesIO(picture)).width == 1520
    _, drawing = fetched(page, "SVG")
    assert ElementTree.fromstring(drawing).tag.endswith("svg")
    _, report = fetched(page, "PDF")
    text = "".join(sheet.extract_text() for sheet in pypdf.PdfReader(io.BytesIO(report)).pages)
    assert f"{shares[0]:.1%}".rstrip("%") in text


def test_files_of_the_days_and_of_the_study(
    site: Site, two_days: list[dict[str, Any]], sign_in: Callable[..., Page]
) -> None:
    page = sign_in("analyst")
    for path, n_windows in ((f"/studies/{STUDY}/gender/days/", 7), (f"/studies/{STUDY}/", 7 * 28)):
        page.goto(site.address + path)
        page.locator(".downloads summary").click()
        for label in page.locator(".downloads a").all_inner_texts():
            name, content = fetched(page, label)
            assert content, name
            if label == "JSON":
                assert len(json.loads(content)) == n_windows


def test_bundle_recomputes_what_the_command_exports(
    site: Site, two_days: list[dict[str, Any]], sign_in: Callable[..., Page], tmp_path: Path
) -> None:
    page = sign_in("analyst")
    page.goto(f"{site.address}/studies/{STUDY}/")
    page.locator(".downloads summary").click()
    name, content = fetched(page, "Report bundle")
    assert name == f"{STUDY}_bundle.zip"
    zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path / "bundle")
    done = subprocess.run(
        [sys.executable, "recompute.py", "--out", str(tmp_path / "computed.json")],
        cwd=tmp_path / "bundle", env={}, text=True, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "computed.json").read_text()) == site.value("export_report", STUDY)
