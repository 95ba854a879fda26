"""Code blocks of the documentation, and who runs their commands; CONTRIBUTING.md has the convention."""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHELLS = ("console", "sh", "bash", "shell")
COMMANDS = (
    r"sudo|docker|systemctl|curl|psql|createdb|openssl|apt(-get)?|make|(\S*/)?python3?|(\S*/)?manage\.py"
)
LOOKS_LIKE_A_COMMAND = re.compile(rf"\s*(\$|{COMMANDS}) \S")
START = re.compile(
    r"(?P<indent> *)(?P<fence>`{3,})(?P<language>\w*) *(title=\"(?P<title>[^\"]+)\")?(?P<rest>.*)"
)
MARK = re.compile(r"\s*<!-- (.*) -->\s*")


@dataclass(frozen=True, kw_only=True)
class Command:
    """Text after `$ `, and the lines below it: its required output, "..." for anything."""

    line: str
    expected: str = ""

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(re.escape(self.expected).replace(re.escape("..."), ".*?"), flags=re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block. `line`: number of its first line; `marks`: the comments right above it."""

    page: Path
    line: int
    language: str
    title: str
    text: str
    marks: tuple[str, ...] = field(default=())

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def mark(self, start: str) -> str | None:
        return next((mark.removeprefix(start).strip() for mark in self.marks if mark.startswith(start)), None)

    @property
    def run_by(self) -> tuple[str, list[str]]:
        test, _, machines = (self.mark("run by") or "").partition(" on ")
        return test, machines.split()

    @property
    def is_run_here(self) -> bool:
        return self.language == "console" and self.mark("not run:") is None and self.mark("run by") is None

    @property
    def commands(self) -> list[Command]:
        found: list[tuple[str, list[str]]] = []
        is_open = False
        for line in self.text.splitlines():
            if is_open:
                found[-1] = (f"{found[-1][0]}\n{line}", [])
            elif line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                assert found, f"{self.where}: output before the first command"
                found[-1][1].append(line)
                continue
            is_open = line.endswith("\\")
        return [Command(line=line, expected="\n".join(output).strip()) for line, output in found]


def pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    lines, number = page.read_text().splitlines(), 0
    while number < len(lines):
        if start := START.fullmatch(lines[number]):
            indent, closing = start["indent"], start["indent"] + start["fence"]
            end = next(n for n in range(number + 1, len(lines)) if lines[n].rstrip() == closing)
            text = "\n".join(line.removeprefix(indent) for line in lines[number + 1 : end]) + "\n"
            told = {"language": start["language"], "title": start["title"] or "", "text": text}
            found.append(Block(page=page, line=number + 1, marks=_marks_above(lines, number), **told))
            number = end
        number += 1
    return found


def _marks_above(lines: list[str], number: int) -> tuple[str, ...]:
    marks: list[str] = []
    while number > 0 and (mark := MARK.fullmatch(lines[number - 1])):
        marks.insert(0, mark[1])
        number -= 1
    return tuple(marks)
