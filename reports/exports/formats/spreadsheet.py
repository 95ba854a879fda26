"""Reports as an XLSX workbook: a sheet that says what this is, then one sheet per indicator.

Rows go to disk one by one (constant memory); no text is ever a formula. The date inside the file is the last
day of the data, so that the same data give the same bytes.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext

from reports.base.version import software
from reports.estimates.queries import WindowReport
from reports.exports.errors import ExportError
from reports.exports.facts import facts_of, status_words
from reports.exports.formats.column_texts import column_words
from reports.exports.formats.columns import NAMES, Kind, kind_of
from reports.exports.records import flat_rows
from reports.exports.selection import Selection

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
    Kind.SHARE: "0.0%",
    Kind.PEOPLE: "#,##0",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table: its columns with what they hold, and its rows, which are read once."""

    name: str
    columns: Sequence[tuple[str, Kind]]
    rows: Iterable[Sequence[Any]]


def to_xlsx(selection: Selection) -> bytes:
    """Workbook of a selection; ExportError if an indicator has more rows than a sheet can hold."""
    by_indicator = [
        list(reports)
        for _, reports in groupby(selection.reports, key=lambda report: report.indicator.position)
    ]
    for reports in by_indicator:
        _check_rows(reports)
    used = {gettext("About").lower()}
    columns = [(name, kind_of(name)) for name in NAMES]
    sheets = [
        Sheet(
            name=_sheet_name(reports[0].indicator.slug, used=used), columns=columns, rows=flat_rows(reports)
        )
        for reports in by_indicator
    ]
    about = {
        selection.title: [(fact.label, fact.shown) for fact in facts_of(selection)],
        gettext("Values in the “status” column"): list(status_words(selection.study).items()),
    }
    return workbook(sheets, title=selection.title, last_date=selection.last_date, about=about)


def workbook(
    sheets: Sequence[Sheet],
    *,
    title: str,
    last_date: date,
    about: Mapping[str, Sequence[tuple[str, str]]],
    meanings: Mapping[str, str | Promise] = MappingProxyType({}),
) -> bytes:
    """A sheet that says what this is (`about`: pairs of texts by their headings) and explains the columns,
    then the others.

    Parameters
    ----------
    meanings : of columns that mean something else than in other workbooks
    """
    from xlsxwriter import Workbook  # noqa: PLC0415 - 0.1 s, in every web process

    file = io.BytesIO()
    with Workbook(file, {"constant_memory": True, "strings_to_formulas": False}) as book:
        created = datetime.combine(last_date, time())
        book.set_properties({"title": title, "author": software()["name"], "created": created})
        names = dict.fromkeys(name for sheet in sheets for name, _ in sheet.columns)
        columns = [(name, str(meanings.get(name) or column_words(name))) for name in names]
        _write_about(book, {**about, gettext("Columns"): columns})
        for sheet in sheets:
            _write_sheet(book, sheet)
    return file.getvalue()


def _check_rows(reports: Sequence[WindowReport]) -> None:
    n_rows = sum(len(report.estimates) for report in reports)
    if n_rows > MAX_ROWS:
        raise ExportError(
            gettext(
                "A spreadsheet can hold at most %(most)d rows per indicator, but %(indicator)s has "
                "%(rows)d. Choose CSV or Parquet, or choose a single date range."
            )
            % {"most": MAX_ROWS, "indicator": reports[0].indicator.slug, "rows": n_rows}
        )


def _write_about(book: "Workbook", about: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    sheet = book.add_worksheet(gettext("About"))
    head, text = book.add_format({"bold": True}), book.add_format({"text_wrap": True, "valign": "top"})
    label = book.add_format({"valign": "top", "font_color": "#55626f"})
    sheet.set_column(0, 0, 46)
    sheet.set_column(1, 1, 90)
    row = 0
    for heading, pairs in about.items():
        sheet.write_string(row, 0, heading, head)
        row += 1 if row else 2
        for name, value in pairs:
            sheet.write_string(row, 0, name, label)
            sheet.write_string(row, 1, value, text)
            row += 1
        row += 1


def _write_sheet(book: "Workbook", table: Sheet) -> None:
    sheet = book.add_worksheet(table.name)
    head = book.add_format({"bold": True, "bottom": 1})
    formats = {kind: book.add_format({"num_format": text}) for kind, text in _NUMBER_FORMATS.items()}
    for place, (name, kind) in enumerate(table.columns):
        width = max(_WIDTHS.get(kind, 10), len(name) + 2)
        sheet.set_column(place, place, width, formats.get(kind))
    sheet.freeze_panes(1, 0)
    for place, (name, _) in enumerate(table.columns):
        sheet.write_string(0, place, name, head)
    n_rows = 0
    for n_rows, row in enumerate(table.rows, start=1):
        for place, (value, (_, kind)) in enumerate(zip(row, table.columns, strict=True)):
            _write(sheet, n_rows, place, value, kind=kind, form=formats.get(kind))
    sheet.autofilter(0, 0, n_rows, len(table.columns) - 1)


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
