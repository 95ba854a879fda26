"""Common parts of pages about an indicator."""

from collections.abc import Sequence
from typing import Any

from django.http import Http404, HttpRequest, QueryDict
from django.urls import reverse
from django.utils.dates import WEEKDAYS, WEEKDAYS_ABBR

from ldp import PlanSpec
from reports.accounts.access import any_study_or_404, indicator_or_404, study_or_404
from reports.estimates.options import Addressed
from reports.estimates.picker import build_picker, kept_days, window_query, window_title
from reports.estimates.queries import Counts, Window
from reports.studies.models import Indicator, Study
from reports.studies.queries import has_unions
from reports.studies.texts import crumbs_to, with_query


def indicator_page(
    request: HttpRequest, slug: str, indicator_slug: str, *, is_below: bool = False, any_units: bool = False
) -> tuple[Indicator, dict[str, Any]]:
    """The indicator of an address, and what pages about it, or below its page, share.

    Http404 for a page below that of moves, which are flows only; of events unless the page has `any_units`.
    """
    study = any_study_or_404(request, slug) if any_units else study_or_404(request, slug)
    indicators = list(study.indicators.all())
    indicator = indicator_or_404(indicator_slug, among=indicators)
    if is_below and indicator.max_moves is not None:
        raise Http404
    days = kept_days(request.GET, study)
    report = with_query(reverse("reports:indicator", args=[slug, indicator_slug]), days)
    above = [(indicator.shown_name, report)] if is_below else []
    return indicator, {
        "study": study,
        "indicators": indicators,
        "indicator": indicator,
        "weekdays": weekdays(),
        "kept_days": days,
        "kept_days_fields": list(QueryDict(days).items()),
        "crumbs": crumbs_to(study, days) + above,
    }


def window_page(
    indicator: Indicator, window: Window, *, visitors: Counts, options: Addressed
) -> dict[str, Any]:
    """Context of every page about a window; `query` names it alone, `full_query` the options too."""
    study, query = indicator.study, window_query(indicator.study, window)
    return {
        "options": options,
        "picker": build_picker(indicator, visitors=visitors, current=window, options=options),
        "first": study.date_of(window.first_day),
        "last": study.date_of(window.last_day),
        "window_title": window_title(study, window),
        "missing": missing_days(study, window, visitors=visitors),
        "query": query,
        "full_query": options.query(query),
    }


def widest_indicator(indicators: Sequence[Indicator]) -> Indicator:
    """Return an indicator that has the windows of all days, if there is one."""
    return next((each for each in indicators if has_unions(each)), indicators[0])


def compared_indicators(indicators: Sequence[Indicator], spec: PlanSpec) -> list[Indicator]:
    """Return the indicators whose days can be compared: numbers and moves have no shares of categories."""
    numbers = {each.slug for each in spec.indicators if each.scale is not None}
    return [each for each in indicators if each.max_moves is None and each.slug not in numbers]


def weekdays() -> list[tuple[str, str]]:
    """Days of the week from Monday on, short and long."""
    return [(str(WEEKDAYS_ABBR[weekday]), str(WEEKDAYS[weekday])) for weekday in range(7)]


def missing_days(study: Study, window: Window, *, visitors: Counts) -> list[str]:
    """Days of a longer window of which there is no data, in words, a text for each run of days."""
    days = range(window.first_day, window.last_day + 1)
    # With presence noise a total that is 0 says nothing: a day is here when it is closed.
    here = {day for day in days if (day <= study.noisy_through if study.presence else visitors[day, day])}
    missing = [day for day in days if window.days > 1 and day not in here]
    starts = [day for day in missing if day - 1 not in missing]
    ends = [day for day in missing if day + 1 not in missing]
    return [window_title(study, Window(*run)) for run in zip(starts, ends, strict=True)]
