"""The documentation inside the product."""

import re
from urllib.parse import urljoin

import pytest
from django.urls import URLResolver, get_resolver, reverse

from reports.help.chapters import PAGES, ROLES, chapter_of
from reports.help.rendering import START, chapter, chapters
from tests.reports.page_texts import page

pytestmark = pytest.mark.django_db


def view_names(resolver, prefix=""):
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from view_names(pattern, f"{prefix}{pattern.namespace}:" if pattern.namespace else prefix)
        else:
            yield f"{prefix}{pattern.name}"


def test_every_page_has_a_chapter_and_every_named_page_exists() -> None:
    names = set(view_names(get_resolver()))
    assert set(PAGES) <= names
    assert set(ROLES) <= {name.partition(":")[0] for name in names}
    assert {chapter_of(name) for name in names} <= set(chapters())


def test_chapters_for_newcomers_come_first_and_runbooks_last() -> None:
    order = list(chapters())
    assert order[:3] == [START, "tutorial.md", "how-to/analyst.md"]
    places = [
        order.index(path)
        for path in (
            "boards.md",
            "reference/settings.md",
            "runbook/index.md",
            "adr/0001-two-zones-and-one-way-imports.md",
        )
    ]
    assert places == sorted(places)


def test_every_link_inside_the_help_is_answered(reader) -> None:
    targets = {urljoin(reverse("help", args=[path]), link) for path in chapters() for link in links(path)}
    assert len(targets) > len(chapters())
    assert [address for address in sorted(targets) if reader.get(address).status_code != 200] == []


def links(path: str) -> list[str]:
    body = chapter(path).body
    assert not re.search(r"<(?:pre|table)(?! tabindex)", body), f"{path}: keys cannot scroll some parts"
    assert "<h1" in body and "<p>|" not in body and "```" not in body, f"{path} is not rendered"
    return re.findall(r'(?:href|src)="([^"#:]+)(?:#[^"]*)?"', body)


def test_blocks_of_code_have_their_title_above_them() -> None:
    operator, presence = chapter("how-to/operator.md").body, chapter("presence.md").body
    title = "<p><code>var/other/operator-x.toml</code></p>"
    assert f'{title}\n<pre tabindex="0"><code class="language-toml">[profile]' in operator
    assert re.search(r'<li>(?:(?!</li>).)*<pre tabindex="0"><code>\[plan\]', presence, re.DOTALL)


def test_only_the_documentation_is_served(reader, client) -> None:
    elsewhere = ["../README.md", "missing.md", "vendor/VENDOR.md", "../requirements.txt", "assets"]
    for path in (*elsewhere, f"{'a' * 300}.svg"):
        assert reader.get(f"/help/{path}").status_code == 404, path
    assert reader.get("/help/..%2Fpackage.json").status_code == 400
    assert client.get(reverse("help", args=[START])).status_code == 302


def test_a_page_leads_to_its_chapter(reader, fair) -> None:
    html = page(reader, "statement")
    assert f'href="{reverse("help", args=["statement.md"])}"' in html
