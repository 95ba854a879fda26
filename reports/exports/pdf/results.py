"""Charts and tables of a PDF report, as its page shows them, and as much of them as a reader can use."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Self

from django.utils.translation import gettext

from reports.base import formats
from reports.base.status import Status
from reports.estimates import texts as estimates_texts
from reports.estimates.queries import Estimate, WindowReport
from reports.exports.drawing.letters import legible_visual
from reports.exports.drawing.pages import (
    MAX_CATEGORIES,
    bare_svgs,
    cut_words,
    how_to_read,
    in_order,
    size_words,
    text_alternative,
)
from reports.exports.pdf.document import Document
from reports.exports.selection import Scope, Selection
from reports.extrapolation.queries import extrapolation, has_shares
from reports.extrapolation.texts import (
    category_cells,
    method_words,
    people_texts,
    shares_words,
    total_sentence,
)
from reports.studies import texts as studies_texts

_DAYS_PER_TABLE = 5
# Of a whole document: a category of a window takes about 12 ms, a cell of the tables of days about 0.7 ms.
_CATEGORIES = 2 * MAX_CATEGORIES
_CELLS = 1500
_FEWEST_CATEGORIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """Size of an indicator's part of a document: categories of a window, or cells of the tables of days.

    Above that, tables of days have the categories of their chart. Data files have everything.
    """

    categories: int
    cells: int

    @classmethod
    def of(cls, n_parts: int) -> Self:
        """Return the share of one of several indicators in a document; at least 1."""
        categories = min(MAX_CATEGORIES, max(_FEWEST_CATEGORIES, _CATEGORIES // n_parts))
        return cls(categories=categories, cells=_CELLS // n_parts)


def add_results(document: Document, part: Selection, *, extent: Extent) -> None:
    """Section of one indicator."""
    svgs = bare_svgs(part, at_most=extent.categories)
    document.heading(part.reports[0].indicator.shown_name, room=document.size_of(svgs[0])[1] + 24)
    document.paragraph(part.days_title, muted=True)
    for svg in svgs:
        document.drawing(svg, words=text_alternative(part))
    reading = (size_words(part), how_to_read(part), cut_words(part, at_most=extent.categories))
    document.paragraph(" ".join(text for text in reading if text), muted=True)
    if part.scope == Scope.WINDOW:
        _add_window_table(document, in_order(part, at_most=extent.categories))
    else:
        _add_days(document, part, most_cells=extent.cells)
    if has_shares(part.reports[0].indicator):
        _add_extrapolation(document, part, most=extent.categories)


def _add_extrapolation(document: Document, part: Selection, *, most: int) -> None:
    """Totals of the population: of a window with its categories, or of each day."""
    found = [extrapolation(each) for each in part.reports]
    document.paragraph(gettext("Total scaled by category"))
    if part.scope != Scope.WINDOW:
        head = [gettext("Day"), gettext("Visitors, not scaled"), gettext("People"), gettext("95% interval")]
        rows = [
            [
                formats.short_day(each.report.last_date),
                count_words(each.report, each.report.n_visitors),
                *people_texts(each.total),
            ]
            for each in found
        ]
        document.grid(head, rows, widths=(42, 42, 42, 44))
        shares = {each.shares.name: shares_words(each.shares) for each in found if each.shares}
        texts = [gettext("Market shares: %(shares)s.") % {"shares": each} for each in shares.values()]
        document.paragraph(legible_visual(" ".join([*texts, method_words(found[0])])), muted=True)
        return
    (whole,) = found
    document.paragraph(legible_visual(f"{total_sentence(whole)} {method_words(whole)}"))
    if not whole.rows:
        return
    head = [
        whole.report.indicator.shown_name,
        gettext("Visitors, not scaled"),
        gettext("95% interval"),
        gettext("Market share"),
        gettext("People"),
        gettext("95% interval"),
    ]
    rows = [list(category_cells(each)) for each in whole.rows[:most]]
    total = [gettext("Total"), visitors_words(whole.report), "", "", *people_texts(whole.total)]
    document.grid(head, [*rows, total], widths=(38, 24, 30, 26, 22, 30))


def count_words(report: WindowReport, value: int | None) -> str:
    """A count, or why it is not there."""
    return formats.status_word(report.status) if value is None else formats.counted(value)


def visitors_words(report: WindowReport) -> str:
    """Visitors of a window, with the interval of a noisy number."""
    total = report.noisy_visitors
    if total is None:
        return count_words(report, report.n_visitors)
    return f"{formats.noisy_number(total)} ({formats.noisy_range(total)})"


def _add_days(document: Document, part: Selection, *, most_cells: int) -> None:
    n_categories = len(part.reports[0].estimates)
    codes = list(range(n_categories))
    if len(part.reports) * n_categories > most_cells:
        codes = part.shown
        document.paragraph(
            gettext(
                "The tables list the %(n)d categories shown in the chart. The data files (CSV, XLSX, "
                "JSON) contain all %(all)d categories."
            )
            % {"n": len(codes), "all": n_categories}
        )
    _add_days_tables(document, part.reports, codes=codes, measure=part.measure)


def _add_window_table(document: Document, report: WindowReport) -> None:
    head = [
        report.indicator.shown_name,
        gettext("Unbiased share"),
        gettext("95% interval"),
        gettext("Visitors (unbiased)"),
        gettext("95% interval"),
        gettext("Consistent share"),
    ]
    rows = [
        [
            estimate.shown_category,
            _shown(estimate, formats.percent(estimate.frequency)),
            estimates_texts.share_range(estimate),
            _shown_briefly(estimate, formats.number(estimate.visitors)),
            estimates_texts.visitors_range(estimate),
            _shown_briefly(estimate, formats.percent(estimate.consistent)),
        ]
        for estimate in report.estimates
    ]
    document.grid(head, rows, widths=(38, 25, 33, 20, 33, 21))


def _add_days_tables(
    document: Document, reports: Sequence[WindowReport], *, codes: Sequence[int], measure: str
) -> None:
    """All days, few of them per table, since a page is narrow."""
    size = ceil(len(reports) / ceil(len(reports) / _DAYS_PER_TABLE))
    for start in range(0, len(reports), size):
        days = reports[start : start + size]
        head = [days[0].indicator.shown_name, *(formats.short_day(report.last_date) for report in days)]
        rows = [
            [studies_texts.visitors_title(days[0].study), *map(visitors_words, days)],
            [studies_texts.reports_title(days[0].study), *(count_words(day, day.n_reports) for day in days)],
        ]
        for code in codes:
            cells = [_cell(day.estimates[code], measure=measure) for day in days]
            rows.append([days[0].estimates[code].shown_category, *cells])
        document.grid(head, rows, widths=(35, *([27] * len(days))))


def _cell(estimate: Estimate, *, measure: str) -> str:
    """An estimate above its interval."""
    if measure == "visitors":
        shown = _shown(estimate, formats.number(estimate.visitors))
        return f"{shown}\n{_range(estimate, estimates_texts.visitors_range(estimate))}"
    shown = _shown(estimate, formats.percent(estimate.frequency))
    return f"{shown}\n{_range(estimate, estimates_texts.share_range(estimate))}"


def _range(estimate: Estimate, text: str) -> str:
    """Return the interval; a hidden estimate has none."""
    return "" if estimate.is_hidden else text


def _shown(estimate: Estimate, text: str) -> str:
    """Return the number, or why it is unreliable."""
    if estimate.status == Status.OK:
        return text
    return formats.reason_words(estimate)


def _shown_briefly(estimate: Estimate, text: str) -> str:
    """Return `_shown`, in a row that has the words already."""
    return text if estimate.status == Status.OK else formats.status_sign(estimate.status)
