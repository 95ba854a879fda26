"""Count signs of translated English, and fail where an area has more than its allowance.

    python -m scripts.plain_english           counts per area and per sign
    python -m scripts.plain_english --list    every hit with its place (ARGS: areas, parts of paths)

Areas: `user` (what people read on pages, in commands and in errors), `docs` (Markdown, without code blocks),
`code` (docstrings and comments). Words and allowances: scripts/plain_english.toml; reasons: docs/style.md.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from babel.messages.pofile import read_po

from scripts.docs import GENERATED

ROOT: Final = Path(__file__).resolve().parents[1]
CONFIGURATION: Final = ROOT / "scripts" / "plain_english.toml"
AREAS: Final = ("user", "docs", "code")
PRODUCT: Final = ("ldp", "reports", "mobility", "scripts")  # their strings are read by people
CODE: Final = (*PRODUCT, "benchmarks", "tests")
CATALOGUE: Final = "locale/fr/LC_MESSAGES/django.po"  # its msgids are the texts of templates and `texts.py`
_STARTS_A_TEXT: Final = re.compile(r"\s*($|#|\||[-*] |\d+\. )")
WORDS_OF_A_TEXT: Final = 3  # shorter literals are names and keys


class Text(NamedTuple):
    """A text of an area. `line`: 0 where unknown."""

    area: str
    path: str
    line: int
    text: str


class Hit(NamedTuple):
    """A sign of translation found in a text."""

    text: Text
    found: str
    instead: str


@dataclass(frozen=True, kw_only=True)
class Sign:
    """A pattern that marks translated English, and the areas in which it counts."""

    pattern: re.Pattern[str]
    instead: str
    where: tuple[str, ...] = AREAS
    first_sentence: bool = False

    def find(self, text: Text) -> Iterator[Hit]:
        """Yield each match outside of code, in the first sentence only if the sign says so."""
        words = re.sub(r"`[^`]*`", "`...`", " ".join(text.text.split()))
        if self.first_sentence:
            words = re.split(r"(?<=[.:!?])\s", words, maxsplit=1)[0] if _starts(text) else ""
        if text.area in self.where:
            for match in self.pattern.finditer(words):
                yield Hit(text, match[0] if len(match[0]) < 60 else f"{match[0][:57]}...", self.instead)


def signs(configuration: dict[str, Any]) -> list[Sign]:
    """Return the signs of the configuration; re.error for a pattern that cannot be compiled."""
    return [
        Sign(
            pattern=re.compile(row["pattern"], re.IGNORECASE),
            instead=row["instead"],
            where=tuple(row.get("where", AREAS)),
            first_sentence=row.get("first_sentence", False),
        )
        for row in configuration["sign"]
    ]


def texts(root: Path) -> Iterator[Text]:
    """Yield every text of the tracked files below `root`; a text of the catalogue only once."""
    known: set[str] = set()
    for text in _messages(root):
        known.add(text.text)
        yield text
    for path in _tracked(root, "*.md"):
        if path.parts[0] in ("docs", path.name) and path.name not in GENERATED and "vendor" not in path.parts:
            yield from prose(path.as_posix(), (root / path).read_text(encoding="utf-8"))
    for path in _tracked(root, "*.py"):
        if path.parts[0] in CODE and "migrations" not in path.parts:
            for text in of_module(path.as_posix(), (root / path).read_text(encoding="utf-8")):
                if text.area == "code" or text.text not in known:
                    yield text


def prose(path: str, markdown: str) -> Iterator[Text]:
    """Yield headings, rows of tables, items of lists and paragraphs, without blocks of code."""
    is_block, begun = False, Text("docs", path, 0, "")
    for number, line in enumerate([*markdown.splitlines(), ""], start=1):
        is_fence = line.lstrip().startswith("```")
        is_block = is_block != is_fence
        is_left_out = is_block or is_fence or line.startswith("<!--")
        if begun.text and (is_left_out or begun.text.startswith("#") or _STARTS_A_TEXT.match(line)):
            yield begun
            begun = begun._replace(text="")
        if not is_left_out:
            words = re.sub(r"`[^`]*`", "`...`", line)
            begun = begun._replace(
                line=begun.line if begun.text else number, text=f"{begun.text} {words}".strip()
            )


def of_module(path: str, source: str) -> Iterator[Text]:
    """Yield docstrings and comments of a module, and the string literals that people read."""
    tree = ast.parse(source)
    docstrings = {id(node) for node in _docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in docstrings:
                yield Text("code", path, node.lineno, node.value)
            elif path.partition("/")[0] in PRODUCT and len(node.value.split()) >= WORDS_OF_A_TEXT:
                yield Text("user", path, node.lineno, node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text("code", path, token.start[0], token.string)


def hits(found: Iterator[Text], wanted: list[Sign]) -> list[Hit]:
    """Return the hits of all signs in the texts."""
    return [hit for text in found for sign in wanted for hit in sign.find(text)]


def complaints(counted: Counter[str], allowance: dict[str, int]) -> list[str]:
    """Return a line for each area that exceeds its allowance."""
    return [
        f"{area}: {counted[area]} signs of translated English, {allowance[area]} allowed;"
        f" see docs/style.md and python -m scripts.plain_english --list {area}"
        for area in AREAS
        if counted[area] > allowance[area]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--list", nargs="*", metavar="PART", help="print hits; only of areas or paths with PART"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout to count")
    options = parser.parse_args()
    configuration = tomllib.loads(CONFIGURATION.read_text(encoding="utf-8"))
    found = hits(texts(options.root.resolve()), signs(configuration))
    counted = Counter(hit.text.area for hit in found)
    if options.list is not None:
        _print_hits(found, options.list)
    allowance = configuration["allowance"]
    for area in AREAS:
        lower = f"; lower the allowance to {counted[area]}" if counted[area] < allowance[area] else ""
        print(f"{area}: {counted[area]} of {allowance[area]} allowed{lower}")  # noqa: T201
    wrong = complaints(counted, allowance)
    sys.stderr.writelines(f"plain_english: {line}\n" for line in wrong)
    return 1 if wrong else 0


def _print_hits(found: list[Hit], parts: list[str]) -> None:
    for hit in found:
        place = f"{hit.text.path}:{hit.text.line}"
        if not parts or any(part in (hit.text.area, place) or part in hit.text.path for part in parts):
            print(f"{hit.text.area} {place}: {hit.found!r}: {hit.instead}")  # noqa: T201


def _starts(text: Text) -> bool:
    """Return whether the text's first words are those of a text, and not of a line within a paragraph."""
    if text.area == "docs":
        return text.text.startswith("#")
    return not text.text.startswith("#") and (text.area == "code" or text.text[:1].isupper())


def _docstrings(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value


def _messages(root: Path) -> Iterator[Text]:
    with (root / CATALOGUE).open("rb") as file:
        for message in read_po(file, locale="fr", charset="utf-8"):
            if message.id:
                for text in message.id if isinstance(message.id, tuple | list) else (message.id,):
                    yield Text("user", message.locations[0][0] if message.locations else CATALOGUE, 0, text)


def _tracked(root: Path, pattern: str) -> list[Path]:
    # A tree that was unpacked elsewhere has no index: all of its files.
    if not (root / ".git").exists():
        return sorted(path.relative_to(root) for path in root.rglob(pattern))
    listed = subprocess.run(
        ["git", "ls-files", pattern], cwd=root, check=True, capture_output=True, text=True
    )
    return [Path(line) for line in listed.stdout.splitlines()]


if __name__ == "__main__":
    sys.exit(main())
