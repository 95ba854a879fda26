"""Signs of translated English are found where people read them, and the allowance only falls."""

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from scripts import plain_english
from scripts.docs import REFERENCE, generated
from scripts.plain_english import GENERATED, Text, complaints, hits, of_module, prose, signs

SIGNS = signs(tomllib.loads(plain_english.CONFIGURATION.read_text("utf-8")))


def found(*texts: Text) -> list[str]:
    return [hit.found for hit in hits(iter(texts), SIGNS)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Nobody is told.", ["Nobody", "is told"]),
        ("No one is notified.", []),
        ("What is kept, and until when", ["What is kept, and until when"]),
        ("What is kept?", []),
        ("How to close a day", []),
        ("How a day is closed", ["How a day is closed"]),
        ("The day has a note of its own.", ["of its own"]),
        ("An interval of 95 % of 22 000 visitors", ["5 %", "22 000"]),
        ("An interval of 95% of 22,000 visitors", []),
        ("%(share)s %% of all", [")s %%"]),
        ("%(share)s%% of all", []),
        ("A letter stands for its other case", []),
    ],
)  # fmt: skip
def test_signs_of_translation_are_found_and_plain_words_are_not(text: str, expected: list[str]) -> None:
    assert found(Text("user", "x.py", 1, text)) == expected


def test_a_page_is_read_without_blocks_of_code_and_a_sentence_across_lines() -> None:
    page = """# Who checks
A worker looks
whether it runs. `nobody` is a name.

```toml
name = "whoever"
```
<!-- not run: nobody has it -->
- it goes
  on
"""
    read = list(prose("docs/x.md", page))
    assert [text.line for text in read] == [1, 2, 9]
    assert found(*read) == ["# Who checks", "looks whether", "goes on"]


def test_docstrings_and_comments_are_code_and_literals_of_the_product_are_read_by_people() -> None:
    source = 'def f():\n    """What it is."""\n    # anew\n    return "nobody", "nobody is there"\n'
    places = {(text.area, text.line) for text in of_module("ldp/x.py", source)}
    assert places == {("code", 2), ("code", 3), ("user", 4)}
    assert found(*of_module("ldp/x.py", source)) == ["What it is.", "nobody", "anew"]
    assert "user" not in {text.area for text in of_module("tests/x.py", source)}


def test_an_area_above_its_allowance_is_a_complaint() -> None:
    counted = Counter(user=3, docs=2, code=0)
    assert complaints(counted, {"user": 3, "docs": 2, "code": 5}) == []
    (line,) = complaints(counted, {"user": 2, "docs": 2, "code": 5})
    assert line.startswith("user: 3 signs of translated English, 2 allowed")


def test_the_texts_of_pages_come_from_the_catalogue_and_generated_pages_are_left_out(tmp_path: Path) -> None:
    catalogue = tmp_path / plain_english.CATALOGUE
    catalogue.parent.mkdir(parents=True)
    catalogue.write_text('#: a.html\nmsgid "Nobody"\nmsgid_plural "Nobody at all"\nmsgstr[0] ""\n', "utf-8")
    folder = tmp_path / "docs" / "reference"
    folder.mkdir(parents=True)
    for name in (*GENERATED, "study-file.md"):
        (folder / name).write_text("Nobody\n", "utf-8")
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "a.py").write_text('"""Nobody."""\nA = _("Nobody at all")\n', "utf-8")
    read = Counter((text.area, text.path) for text in plain_english.texts(tmp_path))
    assert read == {
        ("user", "a.html"): 2, ("docs", "docs/reference/study-file.md"): 1, ("code", "reports/a.py"): 1,
    }  # fmt: skip


def test_the_names_of_generated_pages_are_those_that_are_generated() -> None:
    assert {REFERENCE / name for name in GENERATED} == {REFERENCE / name for name in generated()}
