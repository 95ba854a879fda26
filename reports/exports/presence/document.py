"""A day of presence by slot as a PDF report: what its page shows, with every slot in a table."""

from collections.abc import Sequence
from typing import Final

from django.utils.translation import gettext

from reports.base import formats
from reports.exports.drawing.letters import legible
from reports.exports.facts import software_words
from reports.exports.pdf.document import Document
from reports.exports.presence.drawing import bare_svg
from reports.exports.presence.tables import SlotTable, facts_of
from reports.slots import texts
from reports.slots.queries import SlotStatus, SlotZone
from reports.slots.query import View, default_view, time_text
from reports.studies.queries import current_plan

_ZONES_PER_TABLE: Final = 4


def to_pdf(table: SlotTable) -> bytes:
    """Report of the view of a table, or of its first one."""
    view = table.view or default_view(table.found)
    study, title = view.found.study, gettext("Presence by time")
    day = formats.day_title(view.date)
    footer = gettext("%(study)s · plan version %(version)d · %(software)s") % {
        "study": legible(study.shown_name),
        "version": current_plan(study).version,
        "software": software_words(),
    }
    document = Document(
        title=f"{title}, {study.shown_name}, {day}",
        footer_words=footer,
        facts={fact.name: fact.value for fact in facts_of(table)},
        last_date=view.date,
    )
    document.cover(kicker=gettext("Mobility report"), title=title, subtitles=[legible(study.shown_name), day])
    document.lead([legible(each) for each in (texts.sentence(view), *texts.fact_sentences(view))])
    document.imprint(footer)
    document.add_page()
    if view.zones:
        document.heading(gettext("People by time slot"))
        document.drawing(bare_svg(view), words=texts.sentence(view))
        if bands := texts.bands_words(view.found):
            document.paragraph(bands, muted=True)
        for start in range(0, len(view.zones), _ZONES_PER_TABLE):
            _add_table(document, view, view.zones[start : start + _ZONES_PER_TABLE])
    document.heading(gettext("Privacy"))
    document.bullets(texts.privacy_sentences(view.found))
    document.heading(gettext("Method"))
    document.bullets(texts.counting_sentences(view.found))
    return document.finished()


def _add_table(document: Document, view: View, zones: Sequence[SlotZone]) -> None:
    """A row for each slot of the day; a slot without figures says why."""
    found = view.found
    rows = []
    for slot in view.day_slots:
        status = found.status(slot)
        if status == SlotStatus.OK:
            cells = texts.figure_texts(found, slot, zones)
        else:
            cells = [texts.status_word(status)] * len(zones)
        rows.append([time_text(found, slot), *cells])
    head = [gettext("Time"), *(legible(zone.shown_name) for zone in zones)]
    document.grid(head, rows, widths=(18, *([152 / len(zones)] * len(zones))))
