"""What is drawn of all days of an indicator: which windows, which categories; for the page and for files."""

from collections.abc import Sequence

from django.http import QueryDict

from reports.estimates import charts
from reports.estimates.options import DaysOptions
from reports.estimates.queries import Window, WindowReport, single_days_of
from reports.studies.models import Indicator
from reports.studies.queries import has_unions


def windows_shown(indicator: Indicator, *, options: DaysOptions) -> list[Window]:
    """Each day; or the unions of the days 1..j, where the indicator has unions."""
    study = indicator.study
    if options.show == "cumulative" and has_unions(indicator):
        return [Window(1, day) for day in range(1, study.days + 1)]
    return single_days_of(study)


def max_shown(options: DaysOptions) -> int:
    """How many categories a chart has at most."""
    return charts.MAX_MULTIPLES if options.form == "multiples" else charts.MAX_LINES


def asked_categories(query: QueryDict, *, n_categories: int) -> list[int]:
    """Codes that an address names as `category`, in plan order; what is no code is left out."""
    asked = {int(text) for text in query.getlist("category") if text.isdecimal() and len(text) <= 5}
    return sorted(code for code in asked if code < n_categories)


def shown_categories(
    asked: Sequence[int], *, reports: Sequence[WindowReport], options: DaysOptions
) -> list[int]:
    """Codes of the categories to draw: those asked for, else the largest."""
    if asked:
        return list(asked[: max_shown(options)])
    if options.form == "multiples":
        return charts.largest_categories(reports, at_most=charts.MAX_MULTIPLES)
    return charts.largest_categories(reports)
