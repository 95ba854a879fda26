"""Everything that can be found has a page that says what to do, and alerts name it."""

import re
from pathlib import Path

import pytest
from django.conf import settings

from mobility.operations.alerts_telling import runbook_of
from mobility.operations.findings import CODES

FOLDER: Path = settings.BASE_DIR / "docs" / "runbook"
HEADINGS = [
    "What it means", "How bad it is", "What is at risk", "How to look", "What to do", "When it is over",
    "How to prevent it",
]  # fmt: skip


@pytest.mark.parametrize("code", CODES)
def test_page_of_each_code_answers_every_question(code: str) -> None:
    page = settings.BASE_DIR / runbook_of(code)
    title, *sections = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)
    assert title.startswith("# ")
    assert f"`{code}`" in title
    assert [section.partition("\n")[0] for section in sections] == HEADINGS
    for section in sections:
        heading, _, body = section.partition("\n")
        assert len(body.split()) >= 3, heading
    steps = sections[HEADINGS.index("What to do")]
    assert re.search(r"^1\. ", steps, flags=re.MULTILINE), "steps have numbers"


def test_there_is_no_page_of_a_code_that_there_is_not() -> None:
    pages = {page.stem.replace("-", "_") for page in FOLDER.glob("*.md")} - {"index"}
    assert pages == set(CODES)


def test_index_leads_to_every_page_once() -> None:
    led_to = re.findall(
        r"^\| \[[\w-]+\]\(([\w-]+)\.md\)", (FOLDER / "index.md").read_text(), flags=re.MULTILINE
    )
    assert [name.replace("-", "_") for name in led_to] == list(CODES)
