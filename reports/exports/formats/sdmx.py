"""Reports as a CSV with the column names and codes of SDMX, for statistical systems that read them.

Codes are those of the SDMX cross-domain lists: CL_FREQ, CL_OBS_STATUS, CL_CONF_STATUS. The value is the
unbiased share of an indicator's category among the visitors of the window.
"""

from collections.abc import Iterable
from typing import Any, Final

from reports.base.csv_texts import csv_text
from reports.base.status import Status
from reports.estimates.queries import LEVEL, Estimate, Window, WindowReport

NAMES: Final = (
    "FREQ", "REF_AREA", "TIME_PERIOD", "INDICATOR", "CATEGORY", "OBS_VALUE", "CI_LOW", "CI_HIGH", "CI_LEVEL",
    "N_REPORTS", "EPSILON", "MECHANISM", "POLICY_VERSION", "OBS_STATUS", "CONF_STATUS",
)  # fmt: skip
OBS_STATUS: Final = {
    Status.OK: "E",  # estimated
    Status.NOT_RELIABLE: "U",  # low reliability
    Status.NOT_COLLECTED: "L",  # missing: exists, but was not collected
    Status.SUPPRESSED: "Q",  # missing: suppressed
    Status.SMALL: "Q",
    Status.OUTAGE: "S",  # strike and other special events
}
_FREE, _SMALL_COUNTS = "F", "A"


def to_sdmx_csv(reports: Iterable[WindowReport]) -> str:
    """One row per estimate."""
    return csv_text(NAMES, (_row(report, estimate) for report in reports for estimate in report.estimates))


def _row(report: WindowReport, estimate: Estimate) -> list[Any]:
    return [
        "D" if report.window.days == 1 else "_O",
        report.study.slug,
        _period(report, report.window),
        report.indicator.slug,
        estimate.category,
        estimate.frequency,
        estimate.ci_low,
        estimate.ci_high,
        LEVEL,
        report.n_reports,
        report.epsilon,
        report.mechanism,
        report.plan_version,
        OBS_STATUS[estimate.status],
        _SMALL_COUNTS if estimate.is_hidden else _FREE,
    ]


def _period(report: WindowReport, window: Window) -> str:
    """A day, or start and duration of a time range (ISO 8601): 2017-05-31/P3D."""
    start = report.first_date.isoformat()
    return start if window.days == 1 else f"{start}/P{window.days}D"
