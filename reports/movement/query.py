"""Movements that an address names: which figure, of which day or days."""

from datetime import date
from typing import Any, Final

from django.http import QueryDict
from django.utils.translation import gettext

from reports.estimates.picker import day_in_address, window_in_address
from reports.estimates.queries import Window, WindowError, window_from_dates
from reports.movement.figures import Show
from reports.movement.queries import available_shows
from reports.studies.models import Indicator, Study

Asked = dict[str, Any]
NAMES: Final = ("show", "day", "from", "to")  # parameters of an address


def asked_of(query: QueryDict, *, indicator: Indicator) -> Asked:
    """Return the query of the address; WindowError, with a text for people, if it is invalid."""
    study, asked = indicator.study, Asked()
    if name := query.get("show"):
        if name not in available_shows(indicator):
            raise WindowError(gettext("This indicator has no figure named “%s”.") % name[:40])
        asked["show"] = Show(name)
    if text := query.get("day"):
        day = study.day_of(day_in_address(text))
        if not 1 <= day < study.days:
            raise WindowError(
                gettext("%s cannot be chosen here. Choose any day of the study except the last one.") % text
            )
        asked["cohort"] = day
    if asked.get("show") == Show.WINDOW and (text := query.get("from")):
        days = day_in_address(text), day_in_address(query.get("to") or text)
        asked["window"] = _window(study, min(days), max(days))
    elif "show" not in asked and (window := counted_window(query, indicator)):
        asked |= {"show": Show.WINDOW, "window": window}
    return asked


def counted_window(query: QueryDict, indicator: Indicator) -> Window | None:
    """Days of the address, which other pages name too; None where visitors are not new or returning."""
    try:
        window = window_in_address(query, indicator.study)
    except WindowError:
        return None
    is_counted = window is not None and window.first_day > 1 and Show.WINDOW in available_shows(indicator)
    return window if is_counted else None


def _window(study: Study, first: date, last: date) -> Window:
    try:
        window = window_from_dates(study, first, last)
    except WindowError:
        window = Window(0, 0)
    if window.first_day < 2:
        raise WindowError(
            gettext(
                "The days %(first)s to %(last)s cannot be chosen here. Choose days after the first day "
                "of the study."
            )
            % {"first": first, "last": last}
        )
    return window
