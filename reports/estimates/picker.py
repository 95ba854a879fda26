"""Choosing a window on a page: from the address to a window, and the links to all the others."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext

from reports.base import formats
from reports.base.status import Status
from reports.estimates.options import Addressed, ReportOptions
from reports.estimates.queries import Counts, Window, WindowError, shown_visitors, window_between
from reports.studies.models import Indicator, Study
from reports.studies.queries import has_unions

MAX_TRIANGLE_DAYS = 14  # a wider table is no help
DEFAULT_OPTIONS = ReportOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A link to a window; `day` is its first one, `is_inside` says that the current window covers it."""

    window: Window
    query: str
    day: date
    title: str
    visitors: int | None
    is_current: bool
    is_inside: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Windows that start on one day; None where a window would end before it starts."""

    day: date
    cells: tuple[Choice | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """Days from Monday to Sunday, None outside the study; `whole` is the union of those in the study."""

    whole: Choice | None
    days: tuple[Choice | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picker:
    """All that a page needs to offer the windows of an indicator.

    `rows` is the triangle of all windows, `weeks` a calendar for studies that are too long for one; one of
    both is empty. `shorter` and `longer` move the end of the current window by a day.
    """

    days: tuple[date, ...]
    unions: bool
    rows: tuple[Row, ...]
    weeks: tuple[Week, ...]
    earlier: Choice | None
    later: Choice | None
    shorter: Choice | None
    longer: Choice | None


def requested_window(query: QueryDict, *, indicator: Indicator, visitors: Counts) -> Window:
    """Window named by `from` and `to`; without both, all days (or the first with visitors).

    WindowError if it is not a date, or not a day of the study.
    """
    return window_in_address(query, indicator.study) or default_window(indicator, visitors)


def window_in_address(query: QueryDict, study: Study) -> Window | None:
    """Window named by `from` and `to`, as programs name it; None without both.

    WindowError as of `requested_window`.
    """
    first, last = (day_in_address(text) if text else None for text in (query.get("from"), query.get("to")))
    return window_between(study, first, last) if first or last else None


def asked_days(query: QueryDict, study: Study) -> Window | None:
    """Days that a page of many days is asked for; None = all: none, one alone, or none of the study."""
    try:
        window = window_in_address(query, study)
    except WindowError:
        return None
    return window if window and window.days > 1 else None


def kept_days(query: QueryDict, study: Study) -> str:
    """Part of an address that keeps the days of another; "" if they are not days of the study."""
    try:
        window = window_in_address(query, study)
    except WindowError:
        return ""
    return window_query(study, window) if window else ""


def window_query(study: Study, window: Window) -> str:
    """Part of an address that names a window."""
    return urlencode({"from": study.date_of(window.first_day), "to": study.date_of(window.last_day)})


def window_title(study: Study, window: Window) -> str:
    """Days of a window in words."""
    return formats.window_title(study.date_of(window.first_day), study.date_of(window.last_day))


def build_picker(
    indicator: Indicator,
    *,
    visitors: Counts,
    current: Window | None,
    options: Addressed = DEFAULT_OPTIONS,
) -> Picker:
    """Links to the windows of an indicator, with the visitors of each; they keep the options."""
    study = indicator.study
    days = range(1, study.days + 1)
    unions = has_unions(indicator)

    def choice(first: int, last: int) -> Choice | None:
        if not 1 <= first <= last <= study.days or (last > first and not unions):
            return None
        return _choice(study, Window(first, last), visitors=visitors, current=current, options=options)

    def moved(first_step: int, last_step: int) -> Choice | None:
        return choice(current.first_day + first_step, current.last_day + last_step) if current else None

    is_triangle = study.days <= MAX_TRIANGLE_DAYS
    return Picker(
        days=tuple(study.date_of(day) for day in days),
        unions=unions,
        rows=tuple(
            Row(day=study.date_of(first), cells=tuple(choice(first, last) for last in days))
            for first in (days if is_triangle else range(0))
        ),
        weeks=() if is_triangle else tuple(_weeks(study, choice)),
        earlier=moved(-1, -1),
        later=moved(1, 1),
        shorter=moved(0, -1),
        longer=moved(0, 1),
    )


def _weeks(study: Study, choice: Callable[[int, int], Choice | None]) -> Iterator[Week]:
    """Calendar weeks that have days of the study."""
    for monday in range(1 - study.first_day.weekday(), study.days + 1, 7):
        first, last = max(monday, 1), min(monday + 6, study.days)
        yield Week(
            whole=choice(first, last),
            days=tuple(choice(day, day) for day in range(monday, monday + 7)),
        )


def _choice(
    study: Study, window: Window, *, visitors: Counts, current: Window | None, options: Addressed
) -> Choice:
    n_visitors = shown_visitors(study, int(visitors[window.first_day, window.last_day]))
    if study.presence is not None and n_visitors is not None:
        n_visitors = max(n_visitors, 0)  # noise alone can make it negative
    days = window_title(study, window)
    return Choice(
        window=window,
        query=options.query(window_query(study, window)),
        day=study.date_of(window.first_day),
        title=_noisy_title(study, window, days, n_visitors) if study.presence else _title(days, n_visitors),
        visitors=n_visitors,
        is_current=window == current,
        is_inside=current is not None
        and current.first_day <= window.first_day
        and window.last_day <= current.last_day,
    )


def _noisy_title(study: Study, window: Window, days: str, n_visitors: int | None) -> str:
    """Return the title for a study with presence noise: closed days are shown, also with no one."""
    if window.first_day > study.noisy_through:
        return _title(days, 0)
    return gettext("%(days)s: about %(visitors)s visitors") % {
        "days": days,
        "visitors": formats.counted(n_visitors),
    }


def _title(days: str, n_visitors: int | None) -> str:
    if not n_visitors:
        status = Status.SUPPRESSED if n_visitors is None else Status.NOT_COLLECTED
        return f"{days}{formats.colon()} {formats.status_word(status)}"
    return gettext("%(days)s: %(visitors)s visitors") % {
        "days": days,
        "visitors": formats.number(n_visitors),
    }


def default_window(indicator: Indicator, visitors: Counts) -> Window:
    study = indicator.study
    if has_unions(indicator):
        return Window(1, study.days)
    day = next((day for day in range(1, study.days + 1) if visitors[day, day]), 1)
    return Window(day, day)


def day_in_address(text: str) -> date:
    """A day as addresses write it; WindowError, with a text for people, if it is none."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise WindowError(
            gettext("Enter a day as a date such as 2017-05-31, not “%s”.") % text[:40]
        ) from None
