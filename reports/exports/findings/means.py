"""Mean of a number by category as a file: a row for each category, with the share of visitors in it."""

from django.http import HttpRequest, HttpResponse

from reports.accounts.access import indicator_or_404, study_or_404
from reports.base.attachments import attachment
from reports.estimates.picker import requested_window
from reports.estimates.queries import WindowError, visitor_unions
from reports.exports.errors import ExportError
from reports.exports.file_views import file_of_study, format_or_404, refused
from reports.exports.findings.tables import Findings, Record, head_of, interval_codes, tail_of
from reports.exports.formats.choosing import NUMBERS
from reports.exports.formats.columns import Kind
from reports.numbers.by_category import CategoryMean, MeansReport, means_report
from reports.numbers.queries import NoNumberError
from reports.numbers.texts import rounding_words
from reports.studies.texts import status_reason


@file_of_study
def download_means(request: HttpRequest, slug: str, indicator_slug: str, file_format: str) -> HttpResponse:
    """Means of the window that the page shows."""
    study, found = study_or_404(request, slug), format_or_404(NUMBERS, file_format)
    indicator = indicator_or_404(indicator_slug, among=list(study.indicators.all()))
    try:
        window = requested_window(request.GET, indicator=indicator, visitors=visitor_unions(study))
        means = means_report(indicator, window)
    except (WindowError, NoNumberError) as error:
        return refused(error)
    if not means.means:
        return refused(ExportError(status_reason(means.report.status, study)))
    findings = means_findings(means)
    return attachment(
        found.write(findings), content_type=found.content_type, name=f"{findings.name}.{found.ending}"
    )


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
