"""Reports as an XLSX workbook: a sheet that says what this is, then one sheet per indicator.

Rows go to disk one by one (constant memory); no text is ever a formula. The date inside the file is the last
day of the data, so that the same data give the same bytes.
"""

import io
from collections.abc import Sequence
from datetime import date, datetime, time
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext

from reports.exports.columns import NAMES, Kind, kind_of
from reports.exports.errors import ExportError
from reports.exports.facts import facts_of, status_words
from reports.exports.records import flat_rows
from reports.exports.selection import Selection
from reports.selectors import WindowReport
from reports.version import software

if TYPE_CHECKING:
    from xlsxwriter import Workbook
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet

MAX_ROWS: Final = 2**20 - 1  # of a sheet, without the head
_MAX_NAME = 31  # characters of the name of a sheet
_WIDTHS: Final = {Kind.TEXT: 18, Kind.DAY: 12}
_NUMBER_FORMATS: Final = {
    Kind.DAY: "yyyy-mm-dd",
    Kind.COUNT: "#,##0",
    Kind.SHARE: "0.0 %",
    Kind.PEOPLE: "#,##0",
}


def to_xlsx(selection: Selection) -> bytes:
    """Workbook of a selection.

    Raises
    ------
    ExportError : more rows than a sheet can hold
    """
    from xlsxwriter import Workbook

    by_indicator = [
        list(reports)
        for _, reports in groupby(selection.reports, key=lambda report: report.indicator.position)
    ]
    for reports in by_indicator:
        _check_rows(reports)
    file = io.BytesIO()
    with Workbook(file, {"constant_memory": True, "strings_to_formulas": False}) as book:
        book.set_properties(
            {
                "title": selection.title,
                "author": software()["name"],
                "created": datetime.combine(selection.last_date, time()),
            }
        )
        _write_about(book, selection)
        used = {gettext("About").lower()}
        for reports in by_indicator:
            _write_reports(book, reports, name=_sheet_name(reports[0].indicator.slug, used=used))
    return file.getvalue()


def _check_rows(reports: Sequence[WindowReport]) -> None:
    n_rows = sum(len(report.estimates) for report in reports)
    if n_rows > MAX_ROWS:
        raise ExportError(
            gettext(
                "A spreadsheet holds %(most)d rows of an indicator; %(indicator)s has %(rows)d. Take CSV or "
                "Parquet, or a single window."
            )
            % {"most": MAX_ROWS, "indicator": reports[0].indicator.slug, "rows": n_rows}
        )


def _write_about(book: "Workbook", selection: Selection) -> None:
    sheet = book.add_worksheet(gettext("About"))
    head, text = book.add_format({"bold": True}), book.add_format({"text_wrap": True, "valign": "top"})
    label = book.add_format({"valign": "top", "font_color": "#55626f"})
    sheet.set_column(0, 0, 46)
    sheet.set_column(1, 1, 90)
    sheet.write_string(0, 0, selection.title, head)
    row = 2
    for fact in facts_of(selection):
        sheet.write_string(row, 0, fact.label, label)
        sheet.write_string(row, 1, fact.value, text)
        row += 1
    sheet.write_string(row + 1, 0, gettext("Values of the column status"), head)
    for place, (status, meaning) in enumerate(status_words().items(), start=row + 2):
        sheet.write_string(place, 0, status, label)
        sheet.write_string(place, 1, meaning, text)


def _write_reports(book: "Workbook", reports: Sequence[WindowReport], *, name: str) -> None:
    sheet = book.add_worksheet(name)
    head = book.add_format({"bold": True, "bottom": 1})
    kinds = [kind_of(column) for column in NAMES]
    formats = {kind: book.add_format({"num_format": text}) for kind, text in _NUMBER_FORMATS.items()}
    for place, column in enumerate(NAMES):
        width = max(_WIDTHS.get(kinds[place], 10), len(column) + 2)
        sheet.set_column(place, place, width, formats.get(kinds[place]))
    sheet.freeze_panes(1, 0)
    for place, column in enumerate(NAMES):
        sheet.write_string(0, place, column, head)
    n_rows = 0
    for n_rows, row in enumerate(flat_rows(reports), start=1):
        for place, value in enumerate(row):
            _write(sheet, n_rows, place, value, kind=kinds[place], form=formats.get(kinds[place]))
    sheet.autofilter(0, 0, n_rows, len(NAMES) - 1)


def _write(
    sheet: "Worksheet", row: int, column: int, value: Any, *, kind: Kind, form: "Format | None"
) -> None:
    """One cell by what its column holds: a text is never guessed to be a number, a link or a formula."""
    if value is None:
        return
    if kind == Kind.TEXT:
        sheet.write_string(row, column, value)
    elif kind == Kind.DAY:
        sheet.write_datetime(row, column, datetime.combine(date.fromisoformat(value), time()), form)
    else:
        sheet.write_number(row, column, value, form)


def _sheet_name(slug: str, *, used: set[str]) -> str:
    """Slug as the name of a sheet: at most 31 characters, none twice, and not the reserved "history"."""
    name, number = slug[:_MAX_NAME], 2
    while name.lower() in used or name.lower() == "history":
        ending = f"_{number}"
        name, number = slug[: _MAX_NAME - len(ending)] + ending, number + 1
    used.add(name.lower())
    return name
