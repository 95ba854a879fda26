"""The pack as a document to print and to sign: PDF/A, in the look of reports."""

from django.utils.translation import gettext

from reports.base import formats
from reports.base.version import software
from reports.dpia.parts import Pack, Section, Table
from reports.exports.pdf.document import Document
from reports.privacy.statement.document import study_facts

_WIDTH_MM = 170.0


def to_pdf(pack: Pack) -> bytes:
    """The whole pack; open points have room to write."""
    study = pack.study
    made_by = f"{software()['name']} {software()['version']}"
    document = Document(
        title=pack.title,
        footer_words=f"{study.slug} · {made_by}",
        facts={"study": study.slug, "software": made_by, "timezone": study_facts(study)["timezone"]},
        last_date=study.last_day,
    )
    document.cover(
        kicker=gettext("Data protection"),
        title=study.shown_name,
        subtitles=(
            gettext("Processing record and impact assessment"),
            formats.window_title(study.first_day, study.last_day),
        ),
    )
    document.lead([pack.introduction])
    for number, section in enumerate(pack.sections, start=1):
        _add(document, section, number=number)
    return document.finished()


def _add(document: Document, section: Section, *, number: int) -> None:
    document.heading(f"{number}. {section.title}")
    document.paragraph(gettext("Article %(article)s GDPR") % {"article": section.article}, muted=True)
    for text in section.paragraphs:
        document.paragraph(text)
    if section.points:
        document.bullets(section.points)
    if section.table is not None:
        document.grid(section.table.head, section.table.rows, widths=_widths(section.table), texts=9)
    for text in section.to_fill:
        document.paragraph(gettext("Still to be completed: %(what)s") % {"what": text} + " " + "." * 60)


def _widths(table: Table) -> list[float]:
    """The first column is the widest."""
    others = len(table.head) - 1
    first = 0.5 if others > 1 else 0.7
    return [_WIDTH_MM * first, *[_WIDTH_MM * (1 - first) / others] * others]
