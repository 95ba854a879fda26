"""Vendored files are the ones that VENDOR.md describes."""

import hashlib
import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "static/vendor"
LISTED = re.findall(
    r"^\| (\S+) \| (\S+) \| .+ \| (\S+) \| ([0-9a-f]{64}) \|$",
    (FOLDER / "VENDOR.md").read_text(),
    re.MULTILINE,
)


def test_every_vendored_file_is_listed_with_its_checksum() -> None:
    files = {
        str(path.relative_to(FOLDER)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in FOLDER.rglob("*")
        if path.is_file() and path.name != "VENDOR.md"
    }
    assert files == {name: digest for name, _, _, digest in LISTED}


def test_plotly_is_of_the_version_that_is_listed() -> None:
    versions = {name: version for name, version, _, _ in LISTED}
    head = (FOLDER / "plotly/plotly-basic.min.js").read_text()[:200]
    assert f"v{versions['plotly/plotly-basic.min.js']}\n" in head
