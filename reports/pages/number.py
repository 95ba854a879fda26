"""Contents of the page of a number: mean, quantiles, share above a cut, difference of means."""

from collections.abc import Sequence
from typing import Any

from django.http import QueryDict
from django.urls import reverse
from django.utils.text import capfirst

from reports.base import formats
from reports.base.status import Status
from reports.estimates.picker import window_query
from reports.estimates.queries import (
    UnionNotAvailableError,
    WindowError,
    WindowReport,
)
from reports.numbers import texts
from reports.numbers.by_category import numbers_by
from reports.numbers.queries import (
    NoNumberError,
    NumberReport,
    compare_means,
    number_report,
    number_reports,
    reference_window,
)
from reports.studies.models import Indicator
from reports.studies.queries import has_unions


def number_context(report: WindowReport, *, query: QueryDict | None) -> dict[str, Any]:
    """Cards of a number; `query` names a cut (`above`) and days to compare with (`with_from`, `with_to`)."""
    asked = query or QueryDict()
    number = number_report(report.indicator, report.window)
    cuts = number.scale.cuts
    above = asked.get("above", "")
    chosen = next((i for i, cut in enumerate(cuts) if str(cut) == above), None)
    place = len(cuts) // 2 if chosen is None else chosen
    return {
        "number": number,
        "number_facts": texts.facts_of(number),
        "mean_text": _mean_text(number),
        "mean_range": texts.interval_text(number.mean, number.scale),
        "mean_words": texts.mean_sentence(number),
        "quantiles": _quantiles(number),
        "rounding": texts.rounding_words(number.scale),
        "cuts": [(cut, texts.figure_text(cut, number.scale), i == place) for i, cut in enumerate(cuts)],
        "above": texts.above_sentence(report.estimates[place]),
        "above_error": above and chosen is None and texts.no_cut_sentence(above, cuts[place], number.scale),
        "with_days": [report.study.date_of(day) for day in range(1, report.study.days + 1)],
        "with_unions": has_unions(report.indicator),
        "by_links": _by_links(report),
        **_comparison(report, asked),
    }


def _by_links(report: WindowReport) -> list[tuple[str, str]]:
    """Pages with the mean of the number by another indicator."""
    days, slug = window_query(report.study, report.window), report.study.slug
    return [
        (each.by.shown_name, f"{reverse('reports:indicator', args=[slug, each.indicator.slug])}?{days}")
        for each in numbers_by(report.study)
        if each.number.pk == report.indicator.pk
    ]


def _mean_text(number: NumberReport) -> str:
    mean = number.mean
    return "" if mean.value is None else texts.figure_text(mean.value, number.scale)


def _quantiles(number: NumberReport) -> list[tuple[float, str, str]]:
    return [
        (share, *texts.quantile_texts(found, number.scale))
        for share, found in (number.quantiles or {}).items()
    ]


def _comparison(report: WindowReport, asked: QueryDict) -> dict[str, Any]:
    """Answer to a question about other days, or what is wrong with it."""
    try:
        reference = reference_window(asked, study=report.study)
        if reference is None:
            return {}
        comparison = compare_means(report.indicator, report.window, reference)
    except (WindowError, NoNumberError, UnionNotAvailableError) as error:
        return {"comparison_error": str(error)}
    return {
        "comparison": comparison,
        "difference": texts.difference_sentence(comparison),
        "with_first": report.study.date_of(reference.first_day),
        "with_last": report.study.date_of(reference.last_day),
        "reference_mean": _mean_text(comparison.reference),
        "reference_range": texts.interval_text(comparison.reference.mean, comparison.reference.scale),
    }


def means_of(
    indicator: Indicator, reports: Sequence[WindowReport]
) -> list[tuple[WindowReport, str, str, str]]:
    """Mean with its interval, and median, of the windows of a page of days; blank where there are none."""
    rows = []
    for number in number_reports(indicator, [report.window for report in reports]):
        is_ok = number.mean.status == Status.OK
        mean = _mean_text(number) if is_ok else capfirst(formats.status_word(number.mean.status))
        median = texts.quantile_texts(number.median, number.scale)[0] if number.median else formats.MISSING
        rows.append((number.report, mean, texts.interval_text(number.mean, number.scale), median))
    return rows
