"""What is read out of a page, and that a command which does not do what its page says is noticed."""

from pathlib import Path

import pytest

from tests.docs_pages import Block, Command, blocks
from tests.test_docs_commands import Clone, is_explained

PAGE = """\
Text.

```toml title="var/study.toml"
[study]
```

<!-- exits with 1 -->
```console
$ first --option \\
  more
$ second
[
...
]
```

- In a list:

  <!-- not run: needs a container engine -->
  ```sh
  docker compose up
  ```

````markdown
```console
$ never
```
````
"""


@pytest.fixture
def found(tmp_path: Path) -> list[Block]:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    return blocks(page)


def test_blocks_have_their_language_their_marks_and_their_text(found: list[Block]) -> None:
    assert [block.language for block in found] == ["toml", "console", "sh", "markdown"]
    assert [block.is_run_here for block in found] == [False, True, False, False]
    file, run, containers, _ = found
    assert (file.title, file.text) == ("var/study.toml", "[study]\n")
    assert run.mark("exits with") == "1"
    assert (containers.text, containers.mark("not run:")) == (
        "docker compose up\n",
        "needs a container engine",
    )


def test_commands_have_their_further_lines_and_what_they_must_print(found: list[Block]) -> None:
    assert found[1].commands == [
        Command(line="first --option \\\n  more"),
        Command(line="second", expected="[\n...\n]"),
    ]


@pytest.mark.parametrize(
    ("mark", "is_enough"),
    [
        ("not run: needs a container engine", True),
        ("not run:", False),
        ("run by tests/test_docs_pages.py", True),  # it names page.md
        ("run by tests/test_environment.py", False),
        ("run by tests/test_nowhere.py", False),
    ],
)
def test_a_mark_must_give_a_reason_or_a_test_that_knows_the_page(
    tmp_path: Path, mark: str, is_enough: bool
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"<!-- {mark} -->\n```sh\ndocker compose up\n```\n")
    (block,) = blocks(page)
    assert is_explained(block) == is_enough


@pytest.mark.parametrize(
    ("line", "expected", "is_right"),
    [
        ("echo a b", "a b", True),
        ("echo a b; echo c", "a ...", True),
        ("echo a b", "a", False),
        ("echo a; exit 3", "a", False),
        ("false | cat", "", False),
    ],
)
def test_a_command_must_exit_and_print_as_its_page_says(
    tmp_path: Path, line: str, expected: str, is_right: bool
) -> None:
    clone = Clone(tmp_path / "clone")
    command = Command(line=line, expected=expected)
    if is_right:
        clone.run(command)
    else:
        with pytest.raises(AssertionError):
            clone.run(command)


def test_a_command_that_may_fail_must(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "clone")
    clone.run(Command(line="exit 1"), exit_code=1)
    with pytest.raises(AssertionError):
        clone.run(Command(line="exit 0"), exit_code=1)
