"""Reports as SDMX-CSV 2.0, for statistical systems; `sdmx_structure` describes it to them.

Codes are those of the SDMX cross-domain lists: CL_FREQ, CL_OBS_STATUS, CL_CONF_STATUS. The value is the
unbiased share of an indicator's category among the visitors of the study in the window. A category that is
or has a zone is that zone's row.
"""

from collections.abc import Iterator
from typing import Any, Final

from reports.base.csv_texts import csv_text
from reports.base.status import Status
from reports.estimates.queries import LEVEL, Estimate, Window, WindowReport
from reports.exports.formats.sdmx_codes import AGENCY, VERSION, StudyCodes
from reports.exports.selection import Selection

NAMES: Final = (
    "STRUCTURE", "STRUCTURE_ID", "ACTION",
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


def to_sdmx_csv(selection: Selection) -> bytes:
    """One row per estimate."""
    return csv_text(NAMES, _rows(selection)).encode()


def begin_of_rows(codes: StudyCodes, slug: str) -> list[str]:
    """Return the first columns: the data structure definition, and that rows inform."""
    return ["datastructure", f"{AGENCY}:{codes.structure_id(slug)}({VERSION})", "I"]


def _rows(selection: Selection) -> Iterator[list[Any]]:
    codes = StudyCodes(selection.study)
    keys: dict[str, list[tuple[str, str]]] = {}
    for report in selection.reports:
        slug = report.indicator.slug
        if slug not in keys:
            keys[slug] = codes.keys(report.indicator)
        begin = begin_of_rows(codes, slug)
        for key, estimate in zip(keys[slug], report.estimates, strict=True):
            yield [*begin, *_row(report, estimate, key=key)]


def _row(report: WindowReport, estimate: Estimate, *, key: tuple[str, str]) -> list[Any]:
    area, category = key
    return [
        "D" if report.window.days == 1 else "_O",
        area,
        _period(report, report.window),
        report.indicator.slug,
        category,
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
