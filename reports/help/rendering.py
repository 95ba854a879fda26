"""Chapters of the documentation as HTML. Addresses are those of the files, so links work as they are."""

import re
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import markdown
from django.conf import settings
from django.utils.safestring import SafeString, mark_safe

START = "index.md"
# Chapters and folders in the order in which a newcomer reads them; the others come before the runbooks.
ORDER = (
    START, "tutorial.md", "how-to/analyst.md", "how-to/operator.md", "how-to/administrator.md",
    "how-to/privacy-officer.md", "how-to/ops.md", "boards.md", "exports.md", "compare.md", "maps.md",
    "statement.md", "simulator.md", "plans.md", "profiles.md", "accounts.md", "sign_in.md", "dpia.md",
    "ledger.md", "glossary.md", "api.md", "reference", "explanation", "deployment.md", "zones.md",
    "status.md", "alerts.md", "metrics.md", "backup.md", "upgrading.md", "doctor.md", "retention.md",
    "scaling.md", "runbook", "adr",
)  # fmt: skip
EXTENSIONS = ("tables", "fenced_code", "attr_list", "admonition", "toc")
SCROLLING = re.compile(r"<(pre|table)>")
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
# A block of code between fences: how far it is indented, its opening line, its title, its lines.
FENCED = re.compile(r'^( *)(```\w*)(?: title="([^"\n]*)")?\n(.*?)^\1```$', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """A rendered file of docs/. `contents`: its second and third headings as a list of links."""

    title: str
    body: SafeString
    contents: SafeString


@cache
def chapters() -> dict[str, str]:
    """Title of each chapter by its path below docs/, in the order of `ORDER`."""
    found_paths = (path.relative_to(_root()) for path in _root().rglob("*.md"))
    paths = sorted(found_paths, key=lambda path: (_place(path), len(path.parts), path))
    return {str(path): _title(str(path)) for path in paths if path.name not in {"README.md", "VENDOR.md"}}


def _place(path: Path) -> int:
    named = [name for name in (str(path), path.parts[0]) if name in ORDER]
    return ORDER.index(named[0] if named else "runbook")


@cache
def chapter(path: str) -> Chapter:
    """Render a path of `chapters`."""
    reader = markdown.Markdown(
        extensions=EXTENSIONS, extension_configs={"toc": {"toc_depth": "2-3"}}, output_format="html"
    )
    # Wide blocks scroll sideways, so they take the focus of the keyboard.
    body = SCROLLING.sub(r'<\1 tabindex="0">', reader.convert(FENCED.sub(_plain_block, _text(path))))
    # The text is the product's own, as its templates are.
    return Chapter(title=_title(path), body=mark_safe(body), contents=mark_safe(reader.toc))  # noqa: S308


def _plain_block(found: re.Match[str]) -> str:
    """Write a block as the reader knows it: the title above it, and no fences inside lists and boxes."""
    indent, opening, title, lines = found.groups()
    heading = f"{indent}`{title}`\n\n" if title else ""
    if not indent:
        return f"{heading}{opening}\n{lines}```"
    return heading + "\n" + textwrap.indent(lines, " " * 4)


def _root() -> Path:
    return Path(settings.BASE_DIR) / "docs"


def _text(path: str) -> str:
    return (_root() / path).read_text(encoding="utf-8")


def _title(path: str) -> str:
    found = TITLE.search(_text(path))
    return found[1].replace("`", "") if found else path
