"""The documentation is complete, current, and asks no other host for anything."""

import ast
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from scripts import docs
from tests.docs_pages import ROOT

# Elements that a browser loads, and the attribute with their address.
LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src", "object": "data"}


class Page(HTMLParser):
    def __init__(self, file):
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if found.get("id"):
            self.anchors.add(str(found["id"]))
        if tag in LOADED and (address := found.get(LOADED[tag])) and found.get("rel") != "canonical":
            self.loaded.append(address)
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("docs") / "site"
    assert docs.build(made) == 0
    return made


@pytest.fixture(scope="module")
def site(folder):
    return {file: Page(file) for file in folder.rglob("*.html")}


def test_generated_pages_are_what_the_code_says_and_the_study_file_page_names_every_key():
    assert docs.outdated() == []
    calls = {"text", "slug", "day", "integer", "decimal", "choice", "clock", "table", "raw"}
    keys = {
        str(call.args[0].value)
        for file in (ROOT / "reports" / "studies" / "studyfile").glob("*.py")
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in calls
        and ast.unparse(call.func.value) in ("table", "root", "self")
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }
    assert len(keys) > 40
    text = (ROOT / "docs" / "reference" / "study-file.md").read_text()
    assert {key for key in keys if not re.search(rf"[`.\[]{key}[`\]]", text)} == set()


def test_nothing_is_loaded_from_another_host_search_needs_no_server_and_links_lead_somewhere(folder, site):
    """The index is a script, and the theme loads what stands for workers where there are none."""
    loaded = {address for page in site.values() for address in page.loaded}
    assert loaded
    assert {address for address in loaded if urlsplit(address).scheme or urlsplit(address).netloc} == set()
    styles = [file.read_text() for file in folder.rglob("*.css")]
    assert styles
    assert not [found for text in styles for found in re.findall(r"url\(['\"]?(?:https?:)?//[^)]*", text)]
    assert (folder / "search" / "search_index.js").read_text().startswith("var __index = ")
    assert "vendor/iframe-worker/iframe-worker.js" in site[folder / "index.html"].loaded
    wrong = []
    for file, page in site.items():
        for address in page.links:
            parts = urlsplit(address)
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            is_there = target.is_file() and (
                not parts.fragment or target not in site or unquote(parts.fragment) in site[target].anchors
            )
            # The page for wrong addresses is served at any of them, and has links from the root.
            if not parts.scheme and file.name != "404.html" and not is_there:
                wrong.append(f"{file.name}: {address}")
    assert wrong == []
