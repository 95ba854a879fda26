"""Common parts of pages about an indicator."""

from typing import Any

from django.urls import reverse
from django.utils.dates import WEEKDAYS, WEEKDAYS_ABBR
from django.utils.translation import gettext

from reports.base import formats
from reports.estimates.queries import Counts, Window
from reports.studies.models import Indicator, Study


def page_context(study: Study, *, indicators: list[Indicator], indicator: Indicator) -> dict[str, Any]:
    """Common parts of pages about an indicator."""
    return {
        "study": study,
        "indicators": indicators,
        "indicator": indicator,
        "weekdays": weekdays(),
        "crumbs": [
            (gettext("Studies"), reverse("reports:studies")),
            (study.name, reverse("reports:study", args=[study.slug])),
        ],
    }


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
    return [
        formats.window_title(study.date_of(first), study.date_of(last))
        for first, last in zip(starts, ends, strict=True)
    ]
