"""What a PDF report says: cover, summary, charts, tables, method, caveats, privacy."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from math import ceil

from django.utils.translation import gettext, ngettext

from reports import wording
from reports.exports.drawing import bare_svgs, text_alternative
from reports.exports.facts import as_mapping, software_words
from reports.exports.pdf.document import Document
from reports.exports.pdf.privacy import add_privacy
from reports.exports.selection import Scope, Selection
from reports.models import DayNote, Study
from reports.selectors import Estimate, WindowReport
from reports.status import Status

_DAYS_PER_TABLE = 5


def to_pdf(selection: Selection) -> bytes:
    """Report of a selection in the active language; of a study, each indicator over all its days."""
    plan = selection.reports[0].plan
    document = Document(
        title=f"{selection.title}, {selection.days_title}",
        footer_words=gettext("%(study)s · plan version %(version)d (%(mechanism)s) · %(software)s")
        % {
            "study": selection.study.name,
            "version": plan.version,
            "mechanism": plan.mechanism,
            "software": software_words(),
        },
        facts=as_mapping(selection),
        last_date=selection.last_date,
    )
    parts = _parts(selection)
    _add_cover(document, selection, parts)
    if document.page == 1:
        document.add_page()
    for part in parts:
        _add_results(document, part)
    _add_caveats(document, parts)
    add_privacy(document, selection)
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


def _add_cover(document: Document, selection: Selection, parts: Sequence[Selection]) -> None:
    indicator, study = selection.indicator, selection.study
    document.cover(
        kicker=gettext("Mobility report"),
        title=indicator.name if indicator else study.name,
        subtitles=[study.name, selection.days_title] if indicator else [selection.days_title],
    )
    document.facts(_key_facts(selection))
    document.lead(_summary(selection, parts))
    document.paragraph(gettext("Who counts as a visitor: %(rule)s") % {"rule": wording.visitor_rule(study)})
    if study.market_share != 1:
        document.paragraph(_scaling(selection))
    _add_notes(document, selection)
    document.imprint(document.footer_words)


def _add_notes(document: Document, selection: Selection) -> None:
    notes = {(note.day, note.kind): note for report in selection.reports for note in report.notes}
    if notes:
        document.paragraph(gettext("Notes on days"))
        document.bullets([_note(selection.study, note) for _, note in sorted(notes.items())])


def _note(study: Study, note: DayNote) -> str:
    return f"{wording.day_title(study.date_of(note.day))}: {note.get_kind_display()}. {note.text}"


def _key_facts(selection: Selection) -> list[tuple[str, str]]:
    report = selection.reports[0]
    epsilon = (
        gettext("Epsilon of one answer"),
        wording.epsilon(report.epsilon),
    )
    if selection.scope == Scope.WINDOW:
        return [
            (wording.visitors_title(report.study), _count(report, report.n_visitors)),
            (gettext("Reports (exact)"), _count(report, report.n_reports)),
            epsilon,
        ]
    counted = [report for report in selection.reports if report.n_visitors is not None]
    if selection.scope == Scope.DAYS:
        busiest = max(counted, key=lambda report: report.n_visitors or 0, default=None)
        return [
            (gettext("Days"), wording.number(len(selection.reports))),
            (
                gettext("Busiest day (exact)"),
                wording.number(busiest.n_visitors if busiest else None),
            ),
            epsilon,
        ]
    whole = next((r for r in selection.reports if r.window.days == selection.study.days), report)
    n_indicators = len({report.indicator.pk for report in selection.reports})
    return [
        (wording.visitors_title(whole.study), _count(whole, whole.n_visitors)),
        (gettext("Days"), wording.number(selection.study.days)),
        (gettext("Indicators"), wording.number(n_indicators)),
    ]


def _count(report: WindowReport, value: int | None) -> str:
    return wording.status_word(report.status) if value is None else wording.number(value)


def _summary(selection: Selection, parts: Sequence[Selection]) -> list[str]:
    if selection.scope == Scope.WINDOW:
        return [text_alternative(selection)]
    if selection.scope == Scope.DAYS:
        busiest = max(selection.reports, key=lambda report: report.n_visitors or 0)
        day = wording.day_title(busiest.first_date)
        return [text_alternative(selection), f"{day}: {wording.report_summary(busiest)}"]
    return [f"{part.reports[0].indicator.name}: {text_alternative(part)}" for part in parts]


def _scaling(selection: Selection) -> str:
    return gettext(
        "Visitors of categories are scaled to the population: the operator's market share is %(share)s. The "
        "total is not scaled."
    ) % {"share": wording.percent(float(selection.study.market_share))}


# --- results ----------------------------------------------------------------------------------


def _add_results(document: Document, part: Selection) -> None:
    report = part.reports[0]
    svgs = bare_svgs(part)
    document.heading(report.indicator.name, room=document.size_of(svgs[0])[1] + 24)
    document.paragraph(part.days_title, muted=True)
    for svg in svgs:
        document.drawing(svg, words=text_alternative(part))
    if part.scope == Scope.WINDOW:
        document.paragraph(_window_words(report), muted=True)
        _add_window_table(document, report)
    else:
        document.paragraph(gettext("Points: estimates. Bands: 95 % intervals of each day."), muted=True)
        _add_days_tables(document, part.reports)


def _window_words(report: WindowReport) -> str:
    return gettext(
        "Share of %(visitors)s visitors (exact), from %(reports)s reports (exact). Bars: estimates. Lines: "
        "95 %% intervals."
    ) % {"visitors": _count(report, report.n_visitors), "reports": _count(report, report.n_reports)}


def _add_window_table(document: Document, report: WindowReport) -> None:
    head = [
        report.indicator.name,
        gettext("Share"),
        gettext("95 % interval"),
        gettext("Visitors"),
        gettext("95 % interval"),
        gettext("Consistent share"),
    ]
    rows = [
        [
            estimate.category,
            _shown(estimate, wording.percent(estimate.frequency)),
            wording.share_range(estimate),
            _shown(estimate, wording.number(estimate.visitors)),
            wording.visitors_range(estimate),
            _shown(estimate, wording.percent(estimate.consistent)),
        ]
        for estimate in report.estimates
    ]
    document.grid(head, rows, widths=(42, 20, 34, 20, 32, 22))


def _add_days_tables(document: Document, reports: Sequence[WindowReport]) -> None:
    """All days, few of them per table, since a page is narrow."""
    size = ceil(len(reports) / ceil(len(reports) / _DAYS_PER_TABLE))
    for start in range(0, len(reports), size):
        days = reports[start : start + size]
        head = [days[0].indicator.name, *(wording.short_day(report.first_date) for report in days)]
        rows = [
            [wording.visitors_title(days[0].study), *(_count(report, report.n_visitors) for report in days)],
            [gettext("Reports (exact)"), *(_count(report, report.n_reports) for report in days)],
        ]
        for estimates in zip(*(report.estimates for report in days), strict=True):
            cells = [
                f"{_shown(estimate, wording.percent(estimate.frequency))}\n{wording.share_range(estimate)}"
                for estimate in estimates
            ]
            rows.append([estimates[0].category, *cells])
        document.grid(head, rows, widths=(35, *([27] * len(days))))


def _shown(estimate: Estimate, text: str) -> str:
    """The number, or why it is not to be read."""
    if estimate.status == Status.OK:
        return text
    return f"{wording.status_sign(estimate.status)} {wording.status_word(estimate.status)}"


# --- caveats ----------------------------------------------------------------------------------


def _add_caveats(document: Document, parts: Sequence[Selection]) -> None:
    reports = [report for part in parts for report in part.reports]
    texts = [
        gettext(
            "95 of 100 such intervals contain the true share. The noise can push an estimate below zero; "
            "read it as a small share."
        ),
        gettext(
            "The consistent shares are the nearest ones that have no negative value and add up to 100 %; do "
            "not add them up over windows."
        ),
        gettext("A report is one protected answer, or one that is made up to hide which is the answer.")
        if any(report.has_fakes for report in reports)
        else gettext("A report is one protected answer."),
    ]
    if any(report.indicator.kind == "daily" and report.window.days > 1 for report in reports):
        texts.append(
            gettext(
                "In a window of several days, each visitor counts once, with the value of the first day "
                "there."
            )
        )
    n_days = reports[0].study.days
    texts.append(
        ngettext(
            "The study has %(n)d day, in the time of %(timezone)s.",
            "The study has %(n)d days, in the time of %(timezone)s.",
            n_days,
        )
        % {"n": n_days, "timezone": reports[0].study.timezone}
    )
    document.heading(gettext("How to read the numbers"))
    document.bullets(texts + _reasons_of_blanks(reports))


def _reasons_of_blanks(reports: Sequence[WindowReport]) -> list[str]:
    found = {estimate.status for report in reports for estimate in report.estimates}
    return [
        f"{wording.status_sign(status)} {wording.status_word(status)}: "
        f"{wording.status_reason(status, reports[0].study)}"
        for status in Status
        if status in found and status != Status.OK
    ]
