"""Everything that can be found has a page that says what to do, and alerts name it."""

import re
from pathlib import Path

import pytest
import yaml
from django.conf import settings

from mobility.operations.alerts_telling import runbook_of
from mobility.operations.findings import CODES

FOLDER: Path = settings.BASE_DIR / "docs" / "runbook"
HEADINGS = [
    "What it means", "How bad it is", "What is at risk", "How to look", "What to do", "When it is over",
    "How to prevent it",
]  # fmt: skip


def rules() -> dict[str, str]:
    """Rules of Prometheus by the name of their page, where that is of no code."""
    text = (settings.BASE_DIR / "docker" / "prometheus-rules.yml").read_text()
    found = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    pages = {Path(rule["annotations"]["runbook"]).stem: rule["alert"] for rule in found}
    of_codes = {code.replace("_", "-") for code in CODES}
    return {page: name for page, name in pages.items() if page not in of_codes and "$" not in page}


NAMED = [*((runbook_of(code), code) for code in CODES)]
NAMED += [(f"docs/runbook/{page}.md", name) for page, name in rules().items()]


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_page_of_each_code_and_rule_answers_every_question(path: str, name: str) -> None:
    title, *sections = re.split(r"^## ", (settings.BASE_DIR / path).read_text(), flags=re.MULTILINE)
    assert title.startswith("# ")
    assert f"`{name}`" in title
    assert [section.partition("\n")[0] for section in sections] == HEADINGS
    for section in sections:
        heading, _, body = section.partition("\n")
        assert len(body.split()) >= 3, heading
    steps = sections[HEADINGS.index("What to do")]
    assert re.search(r"^1\. ", steps, flags=re.MULTILINE), "steps have numbers"


def test_there_is_no_page_of_a_code_or_rule_that_there_is_not() -> None:
    pages = {page.stem for page in FOLDER.glob("*.md")} - {"index"}
    assert pages == {Path(path).stem for path, _ in NAMED}
    assert set(rules()) == {"web-gone", "pages-fail", "pages-slow", "tasks-fail"}


def test_index_leads_to_every_page_once() -> None:
    led_to = re.findall(
        r"^\| \[[\w-]+\]\(([\w-]+)\.md\)", (FOLDER / "index.md").read_text(), flags=re.MULTILINE
    )
    assert led_to[: len(CODES)] == [code.replace("_", "-") for code in CODES]
    assert sorted(led_to) == sorted(Path(path).stem for path, _ in NAMED)
