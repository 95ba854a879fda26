"""Mean and quantiles of a number as a file, and the difference of two means where the address asks for it."""

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
from reports.numbers.queries import (
    Figure,
    MeanComparison,
    NoNumberError,
    NumberReport,
    compare_means,
    number_report,
    reference_window,
)
from reports.numbers.texts import blank_sentence, mean_sentence, meanings, rounding_words


@file_of_study
def download_number(request: HttpRequest, slug: str, indicator_slug: str, file_format: str) -> HttpResponse:
    """Figures of the window and of the days to compare with, as the page names them."""
    study, found = study_or_404(request, slug), format_or_404(NUMBERS, file_format)
    indicator = indicator_or_404(indicator_slug, among=list(study.indicators.all()))
    try:
        window = requested_window(request.GET, indicator=indicator, visitors=visitor_unions(study))
        reference = reference_window(request.GET, study=study)
        if reference is None:
            number, comparison = number_report(indicator, window), None
        else:
            comparison = compare_means(indicator, window, reference)
            number = comparison.number
    except (WindowError, NoNumberError) as error:
        return refused(error)
    if number.mean.value is None:
        return refused(ExportError(blank_sentence(number.mean.status, study)))
    findings = number_findings(number, comparison)
    return attachment(
        found.write(findings), content_type=found.content_type, name=f"{findings.name}.{found.ending}"
    )


def number_findings(number: NumberReport, comparison: MeanComparison | None) -> Findings:
    """A row for the mean and each quantile, then one for the reference's mean and for the difference."""
    report = number.report
    numbers = ("share_below", "value", "value_below", "std_error", "ci_low", "ci_high", "market_share")
    return Findings(
        name=f"{report.study.slug}_{report.indicator.slug}_number",
        title=report.indicator.shown_name,
        sheet="number",
        reports=(report,) if comparison is None else (report, comparison.reference.report),
        words=(mean_sentence(number), rounding_words(number.scale)),
        before=head_of(report),
        rows=number_rows(number, comparison),
        after=tail_of(report),
        kinds=dict.fromkeys(numbers, Kind.NUMBER),
        codes={"statistic": meanings(), "interval": interval_codes()},
    )


def number_rows(number: NumberReport, comparison: MeanComparison | None) -> list[Record]:
    """Figures of a number, each with its unit; a quantile lies from `value` to below `value_below`."""
    unit = number.scale.unit
    rows = [_row("mean", number.mean, unit=unit)]
    for share, each in (number.quantiles or {}).items():
        figure = Figure(status=number.mean.status, value=each.low, ci_low=each.ci_low, ci_high=each.ci_high)
        rows.append(_row("quantile", figure, unit=unit, share=share, below=each.high))
    if comparison is not None:
        rows.append(_row("reference_mean", comparison.reference.mean, unit=unit))
        rows.append(_row("difference", comparison.difference, unit=unit))
    return rows


def _row(
    statistic: str, figure: Figure, *, unit: str, share: float | None = None, below: int | None = None
) -> Record:
    return {
        "statistic": statistic,
        "share_below": share,
        "value": figure.value,
        "value_below": below,
        "unit_of_value": unit,
        "std_error": figure.std_error,
        "ci_low": figure.ci_low,
        "ci_high": figure.ci_high,
        "interval": "exact" if figure.is_exact and statistic != "quantile" else "at_least",
        "status": str(figure.status),
    }
