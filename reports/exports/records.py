"""Reports as JSON and CSV: the names and the order that scripts rely on. No clock: same data, same bytes."""

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from reports.base.csv_texts import csv_text
from reports.base.version import software
from reports.estimates.queries import LEVEL, Estimate, WindowReport

# The names of categories in files are the same in each language.
ESTIMATE_NAMES = tuple(name for name in Estimate._fields if name not in ("category_fr", "below"))
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
CONTEXT_NAMES = ("ci_level", "timezone", "software_version")  # behind all others
# Of the layout of cumulative days: a date, a category, and how many days end on that date.
CUMULATIVE_DAYS = 7
CUMULATIVE_NAMES = (
    "study", "indicator", "date", "category", "cumulative_days", "volume", "volume_ci_low", "volume_ci_high",
    "status",
)  # fmt: skip
BELOW = "visitors_below"  # of studies with small categories only, at the end
NOISY_NAMES = ("n_visitors_ci_low", "n_visitors_ci_high")  # of studies with presence noise only, at the end
FORMATS = ("json", "csv")
CONTENT_TYPES = {"json": "application/json", "csv": "text/csv; charset=utf-8"}


def render(reports: Iterable[WindowReport], *, file_format: str) -> str:
    """Text of an export in one of FORMATS."""
    return to_csv(reports) if file_format == "csv" else to_json(reports)


def to_json(reports: Iterable[WindowReport]) -> str:
    """A list with one object per indicator and window."""
    # One after the other: all together take ten times the memory of their text.
    items = (
        json.dumps([report_record(each)], ensure_ascii=False, allow_nan=False, indent=1) for each in reports
    )
    text = ",\n".join(item.removeprefix("[\n").removesuffix("\n]") for item in items)
    return f"[\n{text}\n]" if text else "[]"


def to_csv(reports: Iterable[WindowReport]) -> str:
    """One row per estimate; what is missing is empty, and `status` says why."""
    found = list(reports)
    names = (*REPORT_NAMES, *ESTIMATE_NAMES, *CONTEXT_NAMES)
    if any(report.study.small_category for report in found):
        limits = (each.below for report in found for each in report.estimates)
        rows = ([*row, limit] for row, limit in zip(flat_rows(found), limits, strict=True))
        return csv_text((*names, BELOW), rows)
    if not any(report.study.presence for report in found):
        return csv_text(names, flat_rows(found))
    ends = (tuple(_noisy_ends(report).values()) for report in found for _ in report.estimates)
    rows = ([*row, *more] for row, more in zip(flat_rows(found), ends, strict=True))
    return csv_text((*names, *NOISY_NAMES), rows)


def to_cumulative_csv(reports: Iterable[WindowReport]) -> str:
    """Visitors by date and category over the 1 to CUMULATIVE_DAYS days that end on the date, a row each.

    Without moves and visits, which are shares of answers and no visitors.
    """
    found = [
        each for each in reports if each.window.days <= CUMULATIVE_DAYS and each.indicator.max_moves is None
    ]
    order = list(dict.fromkeys(each.indicator.slug for each in found))
    found.sort(key=lambda each: (order.index(each.indicator.slug), each.last_date, each.window.days))
    has_limits = any(each.study.small_category for each in found)
    names = (*CUMULATIVE_NAMES, *CONTEXT_NAMES, *((BELOW,) if has_limits else ()))
    rows = (
        [*row, *((estimate.below,) if has_limits else ())]
        for _, of_date in groupby(found, key=lambda each: (each.indicator.slug, each.last_date))
        for estimate, row in _cumulative_rows(list(of_date))
    )
    return csv_text(names, rows)


def _cumulative_rows(reports: list[WindowReport]) -> Iterator[tuple[Estimate, list[Any]]]:
    """Rows of an indicator and a date, by category and then by number of days."""
    for estimates in zip(*(each.estimates for each in reports), strict=True):
        for report, estimate in zip(reports, estimates, strict=True):
            head = [report.study.slug, report.indicator.slug, report.last_date.isoformat(), estimate.category]
            volume = (estimate.visitors, estimate.visitors_ci_low, estimate.visitors_ci_high)
            yield estimate, [*head, report.window.days, *volume, str(estimate.status), *_context(report)]


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
            {name: _plain(getattr(estimate, name)) for name in ESTIMATE_NAMES}
            | ({BELOW: estimate.below} if report.study.small_category else {})
            for estimate in report.estimates
        ],
        "status": str(report.status),
        **dict(zip(CONTEXT_NAMES, _context(report), strict=True)),
        **(_noisy_ends(report) if report.study.presence else {}),
    }


def _context(report: WindowReport) -> tuple[float, str, str]:
    """Values of CONTEXT_NAMES."""
    return LEVEL, report.study.timezone, software()["version"]


def _noisy_ends(report: WindowReport) -> dict[str, int | None]:
    """Interval of a noisy number of visitors; None = nothing of the window is here yet, or it is exact."""
    total = report.noisy_visitors
    ends = (None, None) if total is None else (total.ci_low, total.ci_high)
    return dict(zip(NOISY_NAMES, ends, strict=True))


def flat_rows(reports: Iterable[WindowReport]) -> Iterator[list[Any]]:
    """One row per estimate: REPORT_NAMES, ESTIMATE_NAMES, CONTEXT_NAMES."""
    for report in reports:
        record = report_record(report)
        before = [record[name] for name in REPORT_NAMES]
        after = [record[name] for name in CONTEXT_NAMES]
        for estimate in record["estimates"]:
            yield [*before, *(estimate[name] for name in ESTIMATE_NAMES), *after]


def _plain(value: Any) -> Any:
    """Value without the class of an enumeration."""
    return str(value) if isinstance(value, str) else value
