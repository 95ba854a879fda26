"""Choosing a window on a page: from the address to a window, and the links to all the others."""

from dataclasses import dataclass
from datetime import date
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext

from reports import wording
from reports.models import Indicator, Study
from reports.selectors import Counts, Window, WindowError, has_unions, window_from_dates

MAX_TRIANGLE_DAYS = 14  # a wider table is no help


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A link to a window."""

    window: Window
    query: str
    title: str
    visitors: int
    is_current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Windows that start on one day; None where a window would end before it starts."""

    day: date
    cells: tuple[Choice | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picker:
    """All that a page needs to offer the windows of an indicator."""

    days: tuple[date, ...]
    unions: bool
    rows: tuple[Row, ...]
    earlier: Choice | None
    later: Choice | None


def requested_window(query: QueryDict, *, indicator: Indicator, visitors: Counts) -> Window:
    """Window named by `from` and `to`; without them, all days (or the first with visitors).

    Raises
    ------
    WindowError : not a date, or not a day of the study
    """
    first = query.get("from", "")
    if not first:
        return _default_window(indicator, visitors)
    days = _date(first), _date(query.get("to") or first)
    # Whoever picks the days in the wrong order means the window between them.
    return window_from_dates(indicator.study, min(days), max(days))


def window_query(study: Study, window: Window) -> str:
    """Part of an address that names a window."""
    return urlencode({"from": study.date_of(window.first_day), "to": study.date_of(window.last_day)})


def build_picker(indicator: Indicator, *, visitors: Counts, current: Window | None) -> Picker:
    """Links to the windows of an indicator, with the visitors of each."""
    study = indicator.study
    days = range(1, study.days + 1)
    unions = has_unions(indicator)

    def choice(first: int, last: int) -> Choice | None:
        if not 1 <= first <= last <= study.days or (last > first and not unions):
            return None
        return _choice(study, Window(first, last), visitors=visitors, current=current)

    def shifted(step: int) -> Choice | None:
        return choice(current.first_day + step, current.last_day + step) if current else None

    shown = days if study.days <= MAX_TRIANGLE_DAYS else range(0)
    return Picker(
        days=tuple(study.date_of(day) for day in days),
        unions=unions,
        rows=tuple(
            Row(day=study.date_of(first), cells=tuple(choice(first, last) for last in days))
            for first in shown
        ),
        earlier=shifted(-1),
        later=shifted(1),
    )


def _choice(study: Study, window: Window, *, visitors: Counts, current: Window | None) -> Choice:
    n_visitors = int(visitors[window.first_day, window.last_day])
    days = wording.window_title(study.date_of(window.first_day), study.date_of(window.last_day))
    return Choice(
        window=window,
        query=window_query(study, window),
        title=gettext("%(days)s: %(visitors)s visitors")
        % {"days": days, "visitors": wording.number(n_visitors)},
        visitors=n_visitors,
        is_current=window == current,
    )


def _default_window(indicator: Indicator, visitors: Counts) -> Window:
    study = indicator.study
    if has_unions(indicator):
        return Window(1, study.days)
    day = next((day for day in range(1, study.days + 1) if visitors[day, day]), 1)
    return Window(day, day)


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise WindowError(f"day must be a date such as 2017-05-31, got {text[:40]!r}") from None
