"""Reference of the settings, from .env.example: a test compares that with mobility/settings.py."""

import re
from dataclasses import dataclass, field
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parent.parent / ".env.example"
HEAD = """\
# Settings

Written by `make docs` from `.env.example`. All settings are environment variables. None is required: without
any, the embedded default runs. Secrets may come from files: `SECRET_KEY_FILE=/run/secrets/secret_key`.
"""


@dataclass(kw_only=True)
class Group:
    """Variables that one text explains."""

    text: str
    variables: list[tuple[str, str]] = field(default_factory=list)


def page() -> str:
    """The page, in Markdown."""
    lines = [HEAD]
    for title, groups in sections(EXAMPLE.read_text()):
        lines += [f"\n## {title[:1].upper()}{title[1:]}"]
        for group in groups:
            # A heading for each: links and the search find it.
            for name, value in group.variables:
                lines += ["", f"### {name}"]
                if value and (len(group.variables) > 1 or "Default:" not in group.text):
                    lines += ["", f"Default: `{value}`."]
            lines += ["", _escaped(group.text)]
    return "\n".join(lines) + "\n"


def sections(text: str) -> list[tuple[str, list[Group]]]:
    """Return the titles of the file with their groups, in order; text before the first title is left out."""
    found: list[tuple[str, list[Group]]] = []
    comment: list[str] = []
    for line in text.splitlines():
        if title := re.fullmatch(r"# --- (.*)", line):
            name, _, pages = title[1].partition(" (")
            found.append((name, [Group(text=f"See {pages.removesuffix(')')}.")] if pages else []))
            comment = []
        elif line.startswith("#"):
            comment.append(line.removeprefix("#").strip())
        elif found and (variable := re.fullmatch(r"([A-Z][A-Z0-9_]*)=(.*)", line)):
            groups = found[-1][1]
            if comment:
                groups.append(Group(text=" ".join(comment)))
                comment = []
            groups[-1].variables.append((variable[1], variable[2]))
    return found


def _escaped(text: str) -> str:
    """Escape as plain text of Markdown; names of variables and files in the type of code."""
    escaped = text.replace("<", "&lt;").replace("*", "\\*")
    escaped = re.sub(r"\(docs/(\w+)\.md\)", r"([\1](../\1.md))", escaped)
    escaped = re.sub(r"(?<![(/\w])docs/([\w-]+)\.md", r"[\1](../\1.md)", escaped)
    return re.sub(r"(?<![\w`/])([A-Z][A-Z0-9]*_[A-Z0-9_]+(?:=\S*[^\s.,:;])?)", r"`\1`", escaped)
