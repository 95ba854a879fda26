"""Reports as files: the names and the order that scripts rely on. No timestamps: same data, same bytes."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from reports.selectors import Estimate, WindowReport

ESTIMATE_NAMES = tuple(field.name for field in fields(Estimate))
REPORT_NAMES = (
    "study",
    "indicator",
    "first_day",
    "last_day",
    "plan_version",
    "mechanism",
    "epsilon",
    "unit",
    "n_visitors",
    "n_reports",
)
FORMATS = ("json", "csv")
CONTENT_TYPES = {"json": "application/json", "csv": "text/csv; charset=utf-8"}


def render(reports: Iterable[WindowReport], *, file_format: str) -> str:
    """Text of an export in one of FORMATS."""
    return to_csv(reports) if file_format == "csv" else to_json(reports)


def to_json(reports: Iterable[WindowReport]) -> str:
    """A list with one object per indicator and window."""
    return json.dumps(
        [report_record(report) for report in reports], ensure_ascii=False, allow_nan=False, indent=1
    )


def to_csv(reports: Iterable[WindowReport]) -> str:
    """One row per estimate; what is missing is empty."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*REPORT_NAMES, *ESTIMATE_NAMES))
    writer.writerows(_rows(reports))
    return text.getvalue()


def report_record(report: WindowReport) -> dict[str, Any]:
    """Plain values of one report."""
    return {
        "study": report.study.slug,
        "indicator": report.indicator.slug,
        "first_day": report.first_date.isoformat(),
        "last_day": report.last_date.isoformat(),
        "plan_version": report.plan_version,
        "mechanism": report.mechanism,
        "epsilon": report.epsilon,
        "unit": report.unit,
        "n_visitors": report.n_visitors,
        "n_reports": report.n_reports,
        "estimates": [
            {name: getattr(estimate, name) for name in ESTIMATE_NAMES} for estimate in report.estimates
        ],
    }


def _rows(reports: Iterable[WindowReport]) -> Iterator[list[Any]]:
    for report in reports:
        record = report_record(report)
        for estimate in record["estimates"]:
            yield [*(record[name] for name in REPORT_NAMES), *(estimate[name] for name in ESTIMATE_NAMES)]
