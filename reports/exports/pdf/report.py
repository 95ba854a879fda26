"""Contents of a PDF report: cover, summary, charts, tables, method, caveats, privacy."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from django.utils.translation import gettext, ngettext

from reports.base import formats
from reports.base.status import Status
from reports.estimates import texts as estimates_texts
from reports.estimates.models import DayNote
from reports.estimates.queries import WindowReport
from reports.exports.drawing.letters import legible_selection, legible_visual, letters_note
from reports.exports.drawing.pages import text_alternative
from reports.exports.facts import as_mapping, software_words
from reports.exports.pdf.document import Document
from reports.exports.pdf.privacy import add_privacy
from reports.exports.pdf.results import Extent, add_results, count_words, visitors_words
from reports.exports.selection import Scope, Selection
from reports.studies import texts as studies_texts
from reports.studies.models import Study


def to_pdf(selection: Selection) -> bytes:
    """Report of a selection in the active language; of a study, each indicator over all its days."""
    drawn = legible_selection(selection, write=legible_visual)
    plan = drawn.reports[0].plan
    document = Document(
        title=f"{selection.title}, {selection.days_title}",
        footer_words=gettext("%(study)s · plan version %(version)d (%(mechanism)s) · %(software)s")
        % {
            "study": drawn.study.shown_name,
            "version": plan.version,
            "mechanism": plan.mechanism,
            "software": software_words(),
        },
        facts=as_mapping(selection),
        last_date=selection.last_date,
    )
    parts = _parts(drawn)
    _add_cover(document, drawn, parts, letters=letters_note(selection))
    if document.page == 1:
        document.add_page()
    for part in parts:
        add_results(document, part, extent=Extent.of(len(parts)))
    _add_caveats(document, parts)
    add_privacy(document, drawn)
    return document.finished()


def _parts(selection: Selection) -> list[Selection]:
    """One selection per indicator: of a study, the union of all days, or the days where there is none."""
    if selection.scope != Scope.STUDY:
        return [selection]
    parts = []
    for _, group in groupby(selection.reports, key=lambda report: report.indicator.position):
        reports = tuple(group)
        whole = [report for report in reports if report.window.days == selection.study.days]
        days = tuple(report for report in reports if report.window.days == 1)
        scope = Scope.WINDOW if whole else Scope.DAYS
        parts.append(replace(selection, scope=scope, reports=tuple(whole) or days))
    return parts


# --- cover ------------------------------------------------------------------------------------


def _add_cover(document: Document, selection: Selection, parts: Sequence[Selection], *, letters: str) -> None:
    indicator, study = selection.indicator, selection.study
    document.cover(
        kicker=gettext("Mobility report"),
        title=indicator.shown_name if indicator else study.shown_name,
        subtitles=[study.shown_name, selection.days_title] if indicator else [selection.days_title],
    )
    document.facts(_key_facts(selection))
    document.lead(_summary(selection, parts))
    document.paragraph(
        gettext("Definition of a visitor: %(rule)s") % {"rule": studies_texts.visitor_rule(study)}
    )
    if study.market_share != 1:
        document.paragraph(_scaling(selection))
    if letters:
        document.paragraph(letters)
    _add_notes(document, selection)
    document.imprint(document.footer_words)


def _add_notes(document: Document, selection: Selection) -> None:
    notes = {(note.day, note.kind): note for report in selection.reports for note in report.notes}
    if notes:
        document.paragraph(gettext("Notes on individual days"))
        document.bullets([_note(selection.study, note) for _, note in sorted(notes.items())])


def _note(study: Study, note: DayNote) -> str:
    day = formats.day_title(study.date_of(note.day))
    return f"{day}{formats.colon()} {note.get_kind_display()}. {note.text}"


def _key_facts(selection: Selection) -> list[tuple[str, str]]:
    report = selection.reports[0]
    epsilon = (gettext("Epsilon per answer"), formats.epsilon(report.epsilon))
    if selection.scope == Scope.WINDOW:
        return [
            (studies_texts.visitors_title(report.study), visitors_words(report)),
            (studies_texts.reports_title(report.study), count_words(report, report.n_reports)),
            epsilon,
        ]
    counted = [report for report in selection.reports if report.n_visitors is not None]
    if selection.scope == Scope.DAYS:
        n_days = (gettext("Days"), formats.number(len(selection.reports)))
        if selection.study.presence is not None:  # of noisy numbers the largest is too large
            return [n_days, epsilon]
        busiest = max(counted, key=lambda report: report.n_visitors or 0, default=None)
        busiest_visitors = formats.number(busiest.n_visitors if busiest else None)
        return [n_days, (gettext("Visitors on the busiest day (exact)"), busiest_visitors), epsilon]
    whole = next((r for r in selection.reports if r.window.days == selection.study.days), report)
    n_indicators = len({report.indicator.pk for report in selection.reports})
    return [
        (studies_texts.visitors_title(whole.study), visitors_words(whole)),
        (gettext("Days"), formats.number(selection.study.days)),
        (gettext("Indicators"), formats.number(n_indicators)),
    ]


def _summary(selection: Selection, parts: Sequence[Selection]) -> list[str]:
    if selection.scope == Scope.WINDOW:
        return [text_alternative(selection)]
    if selection.scope == Scope.DAYS:
        busiest = max(selection.reports, key=lambda report: report.n_visitors or 0)
        day = formats.day_title(busiest.first_date)
        return [
            text_alternative(selection),
            f"{day}{formats.colon()} {estimates_texts.report_summary(busiest)}",
        ]
    return [
        f"{part.reports[0].indicator.shown_name}{formats.colon()} {text_alternative(part)}" for part in parts
    ]


def _scaling(selection: Selection) -> str:
    return gettext(
        "Visitors per category are scaled to the population, using the operator's market share of "
        "%(share)s. The total is not scaled."
    ) % {"share": formats.percent(float(selection.study.market_share))}


# --- caveats ----------------------------------------------------------------------------------


def _add_caveats(document: Document, parts: Sequence[Selection]) -> None:
    reports = [report for part in parts for report in part.reports]
    texts = [
        gettext(
            "On average, 95 of 100 intervals contain the true share. The noise can push an estimate "
            "below zero. Treat a negative estimate as a small share."
        ),
        gettext(
            "Consistent shares are the estimates, adjusted as little as possible so that none is "
            "negative and they add up to 100%. Do not add up consistent shares from different date ranges."
        ),
        gettext("Some of the answers received are made up and are not marked as such.")
        if any(report.has_fakes for report in reports)
        else gettext("Noise protects every answer received."),
    ]
    if any(report.indicator.kind == "daily" and report.window.days > 1 for report in reports):
        texts.append(
            gettext(
                "In a date range of several days, each visitor counts once, with the value from their first "
                "day in the range."
            )
        )
    n_days = reports[0].study.days
    texts.append(
        ngettext(
            "The study covers %(n)d day (time zone: %(timezone)s).",
            "The study covers %(n)d days (time zone: %(timezone)s).",
            n_days,
        )
        % {"n": n_days, "timezone": reports[0].study.timezone}
    )
    document.heading(gettext("How to read the figures"))
    document.bullets(texts + _reasons_of_blanks(reports))


def _reasons_of_blanks(reports: Sequence[WindowReport]) -> list[str]:
    found = {estimate.status for report in reports for estimate in report.estimates}
    return [
        formats.labelled(formats.blank_words(status), studies_texts.status_reason(status, reports[0].study))
        for status in Status
        if status in found and status != Status.OK
    ]
