"""Smoothed shares of a stream as files, in addition to the estimates."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext

from ldp.estimation.series.smoothing import FALSE_ALARMS
from reports.accounts.access import indicator_or_404, study_or_404
from reports.base.attachments import attachment
from reports.base.csv_texts import csv_text
from reports.base.version import software
from reports.estimates.queries import indicator_reports, single_days_of
from reports.exports.errors import ExportError
from reports.exports.file_views import file_of_study, refused
from reports.exports.forecasts import to_json
from reports.exports.formats.choosing import content_type
from reports.forecasts.smoothing import smoothed_categories, visitor_days_of
from reports.studies.models import Indicator

Record = dict[str, Any]


def smoothed_record(indicator: Indicator) -> Record:
    """Estimates and smoothed shares of each day, and visitor-days; no rows where there are none.

    Shares are not scaled, visitor-days are.
    """
    reports = indicator_reports(indicator, single_days_of(indicator.study))
    plan = reports[0].plan
    n_days, summed = visitor_days_of(reports)
    rows = [
        {
            "category": each.category,
            "date": day.date.isoformat(),
            "frequency": report.estimates[each.code].frequency,
            "std_error": report.estimates[each.code].std_error,
            "live": day.live,
            "live_std_error": day.live_error,
            "smoothed": day.smoothed,
            "smoothed_std_error": day.smoothed_error,
            "smoothed_ci_low": day.ends[0],
            "smoothed_ci_high": day.ends[1],
            "is_change": day.is_change,
        }
        for each in smoothed_categories(reports)
        for day, report in zip(each.days, reports, strict=True)
    ]
    return {
        "study": indicator.study.slug,
        "indicator": indicator.slug,
        "plan_version": plan.version,
        "window_days": plan.parsed.window_days,
        "false_alarms": FALSE_ALARMS,
        "rows": rows,
        "visitor_days": [
            {
                "category": each.category,
                "days": n_days,
                "value": each.value,
                "low": each.low,
                "high": each.high,
            }
            for each in summed
        ],
        "software_version": software()["version"],
    }


def to_csv(record: Mapping[str, Any]) -> bytes:
    """A row for each category and day, without visitor-days."""
    before = {name: record[name] for name in ("study", "indicator", "window_days")}
    rows = [{**before, **row} for row in record["rows"]]
    return csv_text(list(rows[0]), [list(row.values()) for row in rows]).encode()


WRITERS: Final[Mapping[str, Callable[[Mapping[str, Any]], bytes]]] = {"csv": to_csv, "json": to_json}


@file_of_study
def download_smoothed(
    request: HttpRequest, slug: str, indicator_slug: str, file_format: str
) -> HttpResponseBase:
    """Smoothed shares of all days of a stream."""
    study = study_or_404(request, slug)
    indicator = indicator_or_404(indicator_slug, among=list(study.indicators.all()))
    if file_format not in WRITERS:
        raise Http404
    record = smoothed_record(indicator)
    if not record["rows"]:
        text = gettext(
            "There are no smoothed shares. They need a daily indicator under smp-stream and at least two "
            "days with estimates."
        )
        return refused(ExportError(text))
    return attachment(
        WRITERS[file_format](record),
        content_type=content_type(file_format),
        name=f"{study.slug}_{indicator.slug}_smoothed.{file_format}",
    )
