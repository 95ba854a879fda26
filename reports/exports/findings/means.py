"""Mean of a number by category as a file: a row for each category, with the share of visitors in it."""

from django.http import HttpRequest, HttpResponse

from reports.estimates.queries import Window
from reports.exports.errors import ExportError
from reports.exports.file_views import file_of_study
from reports.exports.findings.of_window import window_file
from reports.exports.findings.tables import Findings, Record, head_of, interval_codes, tail_of
from reports.exports.formats.columns import Kind
from reports.numbers.by_category import CategoryMean, MeansReport, means_report
from reports.numbers.queries import NoNumberError
from reports.numbers.texts import rounding_words
from reports.studies.models import Indicator
from reports.studies.texts import status_reason


@file_of_study
def download_means(request: HttpRequest, slug: str, indicator_slug: str, file_format: str) -> HttpResponse:
    """Means of the window that the page shows."""
    return window_file(request, slug, indicator_slug, file_format, make=_of_window, refusal=NoNumberError)


def _of_window(indicator: Indicator, window: Window) -> Findings:
    means = means_report(indicator, window)
    if not means.means:
        raise ExportError(status_reason(means.report.status, indicator.study))
    return means_findings(means)


def means_findings(found: MeansReport) -> Findings:
    """A row for each category, in plan order."""
    report = found.report
    rows = means_rows(found)
    return Findings(
        name=f"{report.study.slug}_{report.indicator.slug}_means",
        title=report.indicator.shown_name,
        sheet="means",
        reports=(report,),
        words=(rounding_words(found.joint.scale),),
        before=head_of(report),
        rows=rows,
        after=tail_of(report),
        kinds={name: Kind.NUMBER for name in rows[0] if name.startswith(("mean", "share"))}
        | {"market_share": Kind.NUMBER, "mean_status": Kind.TEXT, "share_status": Kind.TEXT},
        codes={"interval": interval_codes()},
    )


def means_rows(found: MeansReport) -> list[Record]:
    """Mean and share of each category, with their errors; the mean is in the unit of the number."""
    return [_row(found, each) for each in found.means]


def _row(found: MeansReport, each: CategoryMean) -> Record:
    mean, share = each.mean, each.share
    return {
        "number": found.joint.number.slug,
        "by": found.joint.by.slug,
        "by_category": each.category,
        "mean": mean.value,
        "mean_std_error": mean.std_error,
        "mean_ci_low": mean.ci_low,
        "mean_ci_high": mean.ci_high,
        "unit_of_mean": found.joint.scale.unit,
        "mean_status": str(mean.status),
        "share": share.value,
        "share_std_error": share.std_error,
        "share_ci_low": share.ci_low,
        "share_ci_high": share.ci_high,
        "share_status": str(share.status),
        "interval": "at_least",
    }
