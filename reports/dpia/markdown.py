"""The pack as Markdown: to be completed in any editor."""

from collections.abc import Sequence

from django.utils.translation import gettext

from reports.dpia.parts import Pack, Section, Table


def to_markdown(pack: Pack) -> str:
    """The whole pack; each open point is a line that begins with an empty box."""
    parts = [f"# {_plain(pack.title)}", _plain(pack.introduction)]
    for number, section in enumerate(pack.sections, start=1):
        parts += _section(section, number=number)
    return "\n\n".join(parts) + "\n"


def _section(section: Section, *, number: int) -> list[str]:
    article = gettext("Article %(article)s GDPR") % {"article": section.article}
    parts = [f"## {number}. {_plain(section.title)}", f"*{article}*"]
    parts += [_plain(text) for text in section.paragraphs]
    if section.points:
        parts.append("\n".join(f"- {_plain(text)}" for text in section.points))
    if section.table is not None:
        parts.append(_table(section.table))
    if section.to_fill:
        parts.append("\n".join(f"- [ ] **{_plain(text)}:** …" for text in section.to_fill))
    return parts


def _table(table: Table) -> str:
    return "\n".join(map(_row, (table.head, ("---",) * len(table.head), *table.rows)))


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_plain(cell).replace("|", "\\|") for cell in cells) + " |"


def _plain(text: str) -> str:
    """One line in which nothing is markup: names of a study are typed by people."""
    words = " ".join(text.split())
    for sign in "\\`*_[]<>#":
        words = words.replace(sign, f"\\{sign}")
    return words
