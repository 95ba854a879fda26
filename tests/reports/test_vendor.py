"""Vendored files are the ones that VENDOR.md describes."""

import hashlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "static/vendor"


def listed(folder: Path) -> list[tuple[str, str, str, str]]:
    """Name, version, licence and checksum of the files that a VENDOR.md describes."""
    text = (folder / "VENDOR.md").read_text()
    return re.findall(r"^\| (\S+) \| (\S+) \| .+ \| (\S+) \| ([0-9a-f]{64}) \|$", text, re.MULTILINE)


@pytest.mark.parametrize(
    "folder",
    [FOLDER, ROOT / "tests/e2e/vendor", ROOT / "docs/vendor"],
    ids=["pages", "tests", "documentation"],
)
def test_every_vendored_file_is_listed_with_its_checksum(folder: Path) -> None:
    files = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "VENDOR.md"
    }
    assert files == {name: digest for name, _, _, digest in listed(folder)}


def test_plotly_is_of_the_version_that_is_listed() -> None:
    versions = {name: version for name, version, _, _ in listed(FOLDER)}
    head = (FOLDER / "plotly/plotly-basic.min.js").read_text()[:200]
    assert f"v{versions['plotly/plotly-basic.min.js']}\n" in head
