"""Cross-tabulations as files: a row for each cell and each total, of all categories; or the selected ones."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext

from reports.accounts.access import study_or_404
from reports.base.attachments import attachment
from reports.base.formats import colon
from reports.crosstab import texts
from reports.crosstab.association import verdict_of
from reports.crosstab.combined import NotCombinedError, combined
from reports.crosstab.joints import joint_indicators, selectable_indicators
from reports.crosstab.queries import Figure, Measured, NoCrosstabError, Table, measure, table_of
from reports.crosstab.query import View, check_selected, view_of
from reports.estimates.queries import WindowError, visitor_unions
from reports.exports.errors import ExportError
from reports.exports.file_views import file_of_study, format_or_404, refused
from reports.exports.findings.tables import Findings, Record, head_of, tail_of
from reports.exports.formats.choosing import CROSSTAB
from reports.exports.formats.columns import Kind
from reports.studies.texts import status_reason

_COMBINED: Final = ("combined", "combined_std_error", "combined_ci_low", "combined_ci_high")


@file_of_study
def download_crosstab(request: HttpRequest, slug: str, file_format: str) -> HttpResponse:
    """The table that the address names, as its page shows it, with all categories."""
    study, found = study_or_404(request, slug), format_or_404(CROSSTAB, file_format)
    joints = joint_indicators(study)
    if not joints:
        return refused(
            ExportError(gettext("This study has no joint indicators, so it has no cross-tabulations."))
        )
    try:
        view = view_of(request.GET, joints, visitors=visitor_unions(study))
        measured = measure(view.joint, view.window)
    except (WindowError, NoCrosstabError) as error:
        return refused(error)
    if measured.reports is None:
        return refused(ExportError(status_reason(measured.report.status, study)))
    table = table_of(measured, view)
    if table is None:
        return refused(
            ExportError(
                gettext(
                    "The table has too many cells to export. Download the data for the indicator instead."
                )
            )
        )
    findings = crosstab_findings(measured, table)
    return attachment(
        found.write(findings), content_type=found.content_type, name=f"{findings.name}.{found.ending}"
    )


@file_of_study
def download_selection(request: HttpRequest, slug: str, file_format: str) -> HttpResponse:
    """The share of the selected categories that the address names, of a joint or a single indicator."""
    study, found = study_or_404(request, slug), format_or_404(CROSSTAB, file_format)
    asked = selectable_indicators(study)
    if not asked:
        return refused(ExportError(gettext("This study has no indicator with categories to select.")))
    try:
        view = view_of(request.GET, asked, visitors=visitor_unions(study))
        check_selected(view)
        measured = measure(view.joint, view.window)
    except (WindowError, NoCrosstabError) as error:
        return refused(error)
    if measured.reports is None:
        return refused(ExportError(status_reason(measured.report.status, study)))
    findings = selection_findings(measured, view)
    return attachment(
        found.write(findings), content_type=found.content_type, name=f"{findings.name}.{found.ending}"
    )


def selection_findings(measured: Measured, view: View) -> Findings:
    """One row: the share of the selected categories, and in words the sentence of the page."""
    report, figure = measured.report, measured.answer(view.choice)
    return Findings(
        name=f"{report.study.slug}_{report.indicator.slug}_selection",
        title=gettext("Selected categories: %(name)s") % {"name": report.indicator.shown_name},
        sheet="selection",
        reports=(report,),
        words=(texts.sentence(measured, figure, view.choice),),
        before=head_of(report),
        rows=[{"selected_categories": texts.file_conditions(view.joint, view.choice)} | numbers_of(figure)],
        after=tail_of(report),
        kinds={"market_share": Kind.NUMBER},
        codes={},
    )


def crosstab_findings(measured: Measured, table: Table) -> Findings:
    """All figures of a table; a row without a category of the rows or columns is a total."""
    view, report, verdict = table.view, measured.report, verdict_of(measured, table.view)
    found = verdict.found
    tested = {
        "association_p_value": None if found is None else found.p_value,
        "association": None if found is None else verdict.sentence,
    }
    rows, not_combined = _with_combined(list(_rows(table)), measured, view)
    return Findings(
        name=f"{report.study.slug}_{report.indicator.slug}_crosstab",
        title=f"{report.indicator.shown_name}{colon()} {texts.table_title(view)}",
        sheet="crosstab",
        reports=(report,),
        words=(verdict.sentence, verdict.limits, *not_combined),
        before=head_of(report) | _head(table),
        rows=rows,
        after=tested | tail_of(report),
        kinds={
            "market_share": Kind.NUMBER,
            "association_p_value": Kind.NUMBER,
            **dict.fromkeys(_COMBINED, Kind.SHARE),
        },
        codes={
            "share_of": {
                "all": gettext("all visitors"),
                "row": gettext("visitors in the row"),
                "column": gettext("visitors in the column"),
                "table": gettext("visitors in the table"),
            }
        },
    )


def _with_combined(rows: list[Record], measured: Measured, view: View) -> tuple[list[Record], list[str]]:
    """Add the shares from all answers on the parts, if the address asks for them, or a sentence why not."""
    if not view.combined:
        return rows, []
    try:
        from_all = combined(measured, view)
    except NotCombinedError as refusal:
        return rows, [str(refusal)]
    parts = [from_all.cells, from_all.rows, from_all.columns, from_all.whole]
    names = ("value", "std_error", "ci_low", "ci_high")
    columns = [np.concatenate([getattr(part, name).ravel() for part in parts]).tolist() for name in names]
    added = [dict(zip(_COMBINED, numbers, strict=True)) for numbers in zip(*columns, strict=True)]
    return [row | more for row, more in zip(rows, added, strict=True)], []


def _head(table: Table) -> Record:
    """Return the first columns: the parts, and the category of the third one."""
    view, third = table.view, table.view.third_part
    is_fixed = third is not None and view.within is not None
    return {
        "row_indicator": view.row_part.slug,
        "column_indicator": view.column_part.slug,
        "within_indicator": third.slug if third is not None and is_fixed else None,
        "within_category": third.file_names[view.within or 0] if third is not None and is_fixed else None,
    }


def _rows(table: Table) -> Iterator[Record]:
    view = table.view
    rows, columns = view.row_part.file_names, view.column_part.file_names
    of_total = "all" if view.base == "all" or view.within is None else "table"
    for row, cells in zip(rows, table.cells, strict=True):
        for column, figure in zip(columns, cells, strict=True):
            yield _row(row, column, figure, share_of=view.base)
    for row, figure in zip(rows, table.rows, strict=True):
        yield _row(row, None, figure, share_of=of_total)
    for column, figure in zip(columns, table.columns, strict=True):
        yield _row(None, column, figure, share_of=of_total)
    yield _row(None, None, table.whole, share_of="all")


def _row(row: str | None, column: str | None, figure: Figure, *, share_of: str) -> Record:
    return {"row_category": row, "column_category": column, "share_of": share_of} | numbers_of(figure)


def numbers_of(figure: Figure) -> Record:
    """Return the numbers of a figure, also where they are not reliable: the status says so."""
    return {
        "frequency": figure.share,
        "std_error": figure.std_error,
        "ci_low": figure.ci_low,
        "ci_high": figure.ci_high,
        "visitors": figure.visitors,
        "visitors_ci_low": figure.visitors_ci_low,
        "visitors_ci_high": figure.visitors_ci_high,
        "status": str(figure.status),
    }
