"""Comparisons, movements and scenarios as one flat table each, as their pages show: CSV, JSON, XLSX."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.utils.translation import gettext

from reports.base.csv_texts import csv_text
from reports.estimates.queries import WindowReport
from reports.exports.errors import ExportError
from reports.exports.facts import facts_of, status_words
from reports.exports.formats import spreadsheet
from reports.exports.formats.columns import Kind, kind_of
from reports.exports.formats.spreadsheet import Sheet, workbook
from reports.exports.records import CONTEXT_NAMES, REPORT_NAMES, report_record
from reports.exports.selection import Scope, Selection

Record = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Rows, each with what all have in common before and behind it.

    Parameters
    ----------
    name : of the file, without its ending
    title : in words
    sheet : name of the sheet of a workbook
    reports : what was computed from, for their plan and days
    words : what the page says of the table
    kinds : of the columns that `kind_of` does not know
    codes : values of columns that are no words, with their meanings, by the name of the column
    is_of_study : the reports are those of all indicators, and the table is about none of them
    """

    name: str
    title: str
    sheet: str
    reports: tuple[WindowReport, ...]
    words: tuple[str, ...]
    before: Record
    rows: list[Record]
    after: Record
    kinds: Mapping[str, Kind]
    codes: Mapping[str, Mapping[str, str]]
    is_of_study: bool = False

    @property
    def selections(self) -> list[Selection]:
        """Return the source of the computation."""
        parts = [self.reports] if self.is_of_study else [(report,) for report in self.reports]
        scope = Scope.STUDY if self.is_of_study else Scope.WINDOW
        return [Selection(scope=scope, study=part[0].study, name="", reports=part) for part in parts]

    @property
    def names(self) -> list[str]:
        """Columns, in their order."""
        return [*self.before, *self.rows[0], *self.after]

    def flat(self) -> Iterator[list[Any]]:
        """Rows with all columns."""
        for row in self.rows:
            yield [*self.before.values(), *row.values(), *self.after.values()]

    @property
    def last_date(self) -> date:
        return max(report.last_date for report in self.reports)


def to_csv(findings: Findings) -> bytes:
    """One row per category and figure; what is missing is empty."""
    return csv_text(findings.names, findings.flat()).encode()


def to_json(findings: Findings) -> bytes:
    """An object: what all rows have in common, and a list `rows`."""
    whole = findings.before | {"rows": findings.rows} | findings.after
    return json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=1).encode()


def to_xlsx(findings: Findings) -> bytes:
    """A sheet that explains the table, and the table; ExportError if that has more rows than a sheet."""
    if len(findings.rows) > spreadsheet.MAX_ROWS:
        text = gettext(
            "A spreadsheet can hold %(most)d rows, but this table has %(rows)d. Choose CSV or JSON."
        )
        raise ExportError(text % {"most": spreadsheet.MAX_ROWS, "rows": len(findings.rows)})
    columns = [(name, findings.kinds.get(name, kind_of(name))) for name in findings.names]
    sheet = Sheet(name=findings.sheet, columns=columns, rows=findings.flat())
    return workbook([sheet], title=findings.title, last_date=findings.last_date, about=_about(findings))


def _about(findings: Findings) -> dict[str, Sequence[tuple[str, str]]]:
    pairs: dict[str, Sequence[tuple[str, str]]] = {
        findings.title: [("", text) for text in findings.words if text]
    }
    for place, found in enumerate(findings.selections):
        heading = gettext("Source of the figures") if place == 0 else gettext("Compared with")
        pairs[heading] = [(fact.label, fact.shown) for fact in facts_of(found)]
    words = status_words(findings.selections[0].study)
    for column, meanings in {**findings.codes, "status": words}.items():
        pairs[gettext("Values in the “%(name)s” column") % {"name": column}] = list(meanings.items())
    return pairs


def interval_codes() -> dict[str, str]:
    """Describe each value of the column `interval`."""
    return {
        "exact": gettext("95 of 100 such intervals contain the true value"),
        "at_least": gettext(
            "the error is an upper bound: at least 95 of 100 such intervals contain the true value"
        ),
        "count": gettext("counted without error, so there is no interval"),
        "bounds": gettext("the value is not known, but certainly lies between the two bounds"),
    }


def head_of(report: WindowReport) -> Record:
    """Return the facts of a report about itself, as in other exports."""
    record = report_record(report)
    return {name: record[name] for name in REPORT_NAMES}


def tail_of(report: WindowReport) -> Record:
    """Return the last columns, as in other exports, and the scale of visitors of categories."""
    record = report_record(report)
    share = {"market_share": float(report.study.market_share)}
    return share | {name: record[name] for name in CONTEXT_NAMES}
