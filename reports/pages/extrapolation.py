"""Card of the total of the population on the page of an indicator with market shares by category."""

from typing import Any

from reports.base import formats
from reports.estimates.queries import WindowReport
from reports.extrapolation import texts
from reports.extrapolation.queries import Extrapolation, extrapolations, has_shares


def extrapolation_context(report: WindowReport) -> dict[str, Any]:
    """Total of the window and of each of its days; nothing without shares."""
    if not has_shares(report.indicator):
        return {}
    whole, days = extrapolations(report.indicator, report.window)
    return {
        "extrapolation": whole,
        "extrapolation_words": texts.total_sentence(whole),
        "extrapolation_method": texts.method_words(whole),
        "extrapolation_rows": [texts.category_cells(each) for each in whole.rows],
        "extrapolation_total": texts.people_texts(whole.total),
        "extrapolation_days": [_day(each) for each in days],
    }


def _day(found: Extrapolation) -> tuple[str, str, str, str]:
    people, interval = texts.people_texts(found.total)
    return (
        formats.short_day(found.report.first_date),
        formats.number(found.report.n_visitors),
        people,
        interval,
    )
