"""Who comes, leaves and comes back: per category, from tallies that were published anyway.

No answer is asked for again, so nothing here costs epsilon. Totals are exact; a category has an interval,
which is exact or a bound (`ldp.windows`, `ldp.movement`). Visitors of a category are scaled by the market
share, totals are not, as in every report.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from django.utils.translation import gettext

from ldp import (
    Interval,
    NoReportsError,
    WindowEstimate,
    all_unions,
    day_pair_bounds,
    day_pair_share,
    leaving_visitors,
    mean_days_present,
    new_visitors,
    returning_visitors,
    shared_share,
    window_visitors,
)
from ldp.windows import IndicatorTallies
from ldp.windows import Window as Days
from reports.coverage import DayCoverage, coverage_of
from reports.derived import key_figures
from reports.models import Indicator
from reports.movement_figures import OF_A_DAY, DayTotals, Derived, Movement, Point, Show
from reports.selectors import LEVEL, Counts, Window, WindowError, has_unions, reports_with_tallies
from reports.small_cells import hides_a_day, hides_last_visits, hides_new_or_returning, hides_window
from reports.status import Status, estimates_status, is_suppressed, window_status

# A daily indicator counts the value of the first day in a window: who comes has one, who leaves has none.
_OF_DAILY: Final = (Show.ARRIVALS, Show.RETURNING, Show.WINDOW)


class NoisyTotalsError(WindowError):
    """Totals of the study have presence noise: differences of them have errors that are not computed."""

    def __init__(self) -> None:
        super().__init__(
            gettext(
                "This study has presence noise. Arrivals, departures and returns are differences of noisy "
                "totals, whose errors are not computed, so none is shown."
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Tallies of one publication, with what every point needs."""

    indicator: Indicator
    tallies: IndicatorTallies
    unions: Counts
    totals: tuple[DayTotals, ...]

    @property
    def days(self) -> int:
        return self.indicator.study.days

    def hides_new(self, window: Days) -> bool:
        """Whether the small-cell rule hides who is new in a window, and who returns."""
        days = {"first_day": window.first_day, "last_day": window.last_day}
        return hides_new_or_returning(self.indicator.study, self.unions, **days)

    @property
    def days_with_visitors(self) -> list[int]:
        return [day for day in range(1, self.days + 1) if self.unions[day, day]]


def available_shows(indicator: Indicator) -> tuple[Show, ...]:
    """Figures that are defined for an indicator; none where days cannot be joined, or there is only one."""
    if indicator.study.days < 2 or not has_unions(indicator):
        return ()
    return _OF_DAILY if indicator.kind == Indicator.Kind.DAILY else tuple(Show)


def movement(
    indicator: Indicator, *, show: Show | None = None, cohort: int | None = None, window: Window | None = None
) -> Movement:
    """Totals of every day, and one figure per category.

    Parameters
    ----------
    indicator : Indicator
    show : Show; one that the indicator has, else the first of them
    cohort : int; study day whose visitors are followed, with a later one; else the first that has visitors
    window : Window; after the first day; else all days from the second one with visitors

    Raises
    ------
    NoisyTotalsError : the study has presence noise
    """
    study = indicator.study
    if study.presence is not None:
        raise NoisyTotalsError
    notes = tuple(study.day_notes.all())
    whole = Window(1, study.days if has_unions(indicator) else 1)
    [((report,), tallies)] = reports_with_tallies([indicator], [[whole]])
    unions = all_unions(tallies.visitors)
    coverage = coverage_of(study, visitors=unions, notes=notes)
    totals = tuple(_day_totals(indicator, day, unions=unions) for day in coverage.days)
    source = _Source(indicator=indicator, tallies=tallies, unions=unions, totals=totals)
    available = available_shows(indicator)
    chosen = show if show in available else next(iter(available), None)
    cohort, window = _with_defaults(source, cohort, window)
    return Movement(
        report=report,
        key=key_figures(study, visitors=unions),
        totals=totals,
        available=available,
        show=chosen,
        cohort=cohort if chosen in OF_A_DAY else None,
        window=window if chosen == Show.WINDOW else None,
        points=_points(source, chosen, cohort=cohort, window=window) if chosen else (),
        notes=notes,
    )


def _with_defaults(source: _Source, cohort: int | None, window: Window | None) -> tuple[int, Window]:
    first, last = next(iter(source.days_with_visitors), 1), source.days
    if cohort is None or not 1 <= cohort < last:
        cohort = min(first, max(last - 1, 1))
    if window is None or window.first_day < 2:
        window = Window(min(first + 1, last), last)
    return cohort, window


def _day_totals(indicator: Indicator, coverage: DayCoverage, *, unions: Counts) -> DayTotals:
    study, day = indicator.study, coverage.day
    if coverage.visitors is None:
        return DayTotals(coverage=coverage, arrivals=None, returning=None, departures=None)
    arrivals = int(unions[1, day] - unions[1, day - 1])
    later = int(unions[day + 1, study.days]) if day < study.days else 0
    departures = int(unions[day, study.days]) - later
    is_hidden = hides_new_or_returning(study, unions, first_day=day, last_day=day)
    return DayTotals(
        coverage=coverage,
        arrivals=None if is_hidden else arrivals,
        returning=None if is_hidden else int(unions[day, day]) - arrivals,
        departures=None if hides_last_visits(study, unions, day=day) else departures,
    )


def _points(source: _Source, show: Show, *, cohort: int, window: Window) -> tuple[Point, ...]:
    if show == Show.DAYS_PRESENT:
        return (_days_present(source),)
    if show == Show.WINDOW:
        return _window_points(source, window)
    if show in OF_A_DAY:
        later = range(cohort + 1, source.days + 1)
        make = _back_within if show == Show.BACK_WITHIN else _there_again
        return tuple(make(source, cohort, day) for day in later)
    daily = {Show.ARRIVALS: _arrivals, Show.RETURNING: _returning, Show.DEPARTURES: _departures}
    return tuple(daily[show](source, day) for day in range(1, source.days + 1))


def _arrivals(source: _Source, day: int) -> Point:
    total = int(source.unions[1, day] - source.unions[1, day - 1])
    today = Days(day, day)

    def compute() -> WindowEstimate:
        if day == 1:
            return window_visitors(source.tallies, window=today, level=LEVEL)
        return new_visitors(source.tallies, window=today, since=1, level=LEVEL)

    return _visitors(source, day, total, compute, is_hidden=source.hides_new(today))


def _returning(source: _Source, day: int) -> Point:
    if day == 1:
        return _visitors(source, day, 0, None, is_hidden=False)
    total = int(source.unions[day, day] - source.unions[1, day] + source.unions[1, day - 1])
    today = Days(day, day)
    return _visitors(
        source,
        day,
        total,
        lambda: returning_visitors(source.tallies, window=today, since=1, level=LEVEL),
        is_hidden=source.hides_new(today),
    )


def _departures(source: _Source, day: int) -> Point:
    last, today = source.days, Days(day, day)
    later = int(source.unions[day + 1, last]) if day < last else 0

    def compute() -> WindowEstimate:
        if day == last:
            return window_visitors(source.tallies, window=today, level=LEVEL)
        return leaving_visitors(source.tallies, window=today, until=last, level=LEVEL)

    is_hidden = hides_last_visits(source.indicator.study, source.unions, day=day)
    return _visitors(source, day, int(source.unions[day, last]) - later, compute, is_hidden=is_hidden)


def _window_points(source: _Source, window: Window) -> tuple[Point, ...]:
    """Those who are new in a window, and those who return."""
    days = Days(window.first_day, window.last_day)
    total = int(source.unions[days.first_day, days.last_day])
    new = int(source.unions[1, days.last_day] - source.unions[1, days.first_day - 1])
    return (
        _visitors(
            source,
            days.first_day,
            new,
            lambda: new_visitors(source.tallies, window=days, since=1, level=LEVEL),
            all_visitors=total,
            is_hidden=source.hides_new(days),
        ),
        _visitors(
            source,
            days.first_day,
            total - new,
            lambda: returning_visitors(source.tallies, window=days, since=1, level=LEVEL),
            all_visitors=total,
            is_hidden=source.hides_new(days),
        ),
    )


def _back_within(source: _Source, cohort: int, day: int) -> Point:
    study, unions = source.indicator.study, source.unions
    both = int(unions[cohort, cohort] + unions[cohort + 1, day] - unions[cohort, day])
    first, later = Days(cohort, cohort), Days(cohort + 1, day)
    return _share(
        source,
        cohort,
        day,
        (both, both),
        lambda: shared_share(source.tallies, first=first, second=later, level=LEVEL),
        is_seen=bool(unions[cohort + 1, day]),
        is_hidden=hides_window(study, unions, first_day=cohort + 1, last_day=day),
    )


def _there_again(source: _Source, cohort: int, day: int) -> Point:
    study = source.indicator.study
    least, most = (int(bound[cohort, day]) for bound in day_pair_bounds(source.tallies.visitors))
    return _share(
        source,
        cohort,
        day,
        (least, most),
        lambda: day_pair_share(source.tallies, days=(cohort, day), level=LEVEL),
        is_seen=bool(source.unions[day, day]),
        # The bounds are made of the days between, too.
        is_hidden=hides_a_day(study, source.unions, first_day=cohort + 1, last_day=day),
    )


def _days_present(source: _Source) -> Point:
    n_visitors = int(source.unions[1, source.days])
    n_days = len(source.days_with_visitors)
    status = _status(source, n_visitors, None)
    if status == Status.OK and hides_a_day(
        source.indicator.study, source.unions, first_day=1, last_day=source.days
    ):
        status = Status.SUPPRESSED  # the sum of the days, less those that are shown, is the one that is not
    mean = int(source.unions.diagonal()[1:].sum()) / n_visitors if status == Status.OK else None
    found = _found(lambda: mean_days_present(source.tallies, level=LEVEL)) if mean is not None else None
    return _point(source, 1, status, (mean, mean), found, whole=max(n_days - 1, 1), scale=1.0, is_exact=False)


# --- points -----------------------------------------------------------------------------------


def _visitors(
    source: _Source,
    day: int,
    total: int,
    compute: Callable[[], WindowEstimate] | None,
    *,
    is_hidden: bool,
    all_visitors: int | None = None,
) -> Point:
    """A point in visitors; `all_visitors` of the day or window that they are a part of.

    `is_hidden` : by the small-cell rule, though those of the day or window are shown
    """
    there = int(source.unions[day, day]) if all_visitors is None else all_visitors
    status = _status(source, there, day if all_visitors is None else None)
    if status == Status.OK and is_hidden:
        status = Status.SUPPRESSED
    found = _found(compute) if compute and total and status == Status.OK else None
    if status == Status.OK and total == 0:
        found = _nobody(source)
    share = float(source.indicator.study.market_share)
    shown = total if status == Status.OK else None
    return _point(source, day, status, (shown, shown), found, whole=max(total, 1), scale=1 / share)


def _share(
    source: _Source,
    cohort: int,
    day: int,
    both: tuple[int, int],
    compute: Callable[[], Interval],
    *,
    is_seen: bool,
    is_hidden: bool,
) -> Point:
    """A point as a share of the visitors of the day `cohort`; `is_seen`: the later days have visitors.

    `is_hidden` : by the small-cell rule, since visitors that it suppresses could be computed from the share
    """
    n_visitors = int(source.unions[cohort, cohort])
    status = _status(source, n_visitors, cohort) if is_seen else source.totals[day - 1].coverage.status
    is_small = is_suppressed(both[1], small_cell=source.indicator.study.small_cell)
    if is_small or (status == Status.OK and is_hidden):
        status = Status.SUPPRESSED
    found = _found(compute) if status == Status.OK else None
    low, high = (count / n_visitors if status == Status.OK else None for count in both)
    return _point(source, day, status, (low, high), found, whole=1, scale=1.0, is_exact=both[0] == both[1])


def _status(source: _Source, n_visitors: int, day: int | None) -> Status:
    """Status of a day, or without one of a window."""
    small_cell = source.indicator.study.small_cell
    if day is not None:
        return source.totals[day - 1].coverage.status
    return window_status(n_visitors=n_visitors, n_reports=n_visitors, small_cell=small_cell, is_outage=False)


def _found(compute: Callable[[], WindowEstimate | Interval]) -> WindowEstimate | Interval | None:
    try:
        return compute()
    except NoReportsError:
        return None


def _nobody(source: _Source) -> WindowEstimate:
    zeros = np.zeros(len(source.indicator.categories))
    return WindowEstimate(value=zeros, std_error=zeros, ci_low=zeros, ci_high=zeros, is_exact=True)


def _point(
    source: _Source,
    day: int,
    status: Status,
    total: tuple[float | None, float | None],
    found: WindowEstimate | Interval | None,
    *,
    whole: float,
    scale: float,
    is_exact: bool = True,
) -> Point:
    """`whole` is how far values can be apart: a wider interval than half of it tells nothing."""
    return Point(
        day=day,
        date=source.indicator.study.date_of(day),
        status=status,
        low=total[0],
        high=total[1],
        is_exact=is_exact if found is None else found.is_exact,
        estimates=_estimates(source.indicator.categories, status, found, whole=whole, scale=scale),
    )


def _estimates(
    categories: Sequence[str],
    status: Status,
    found: WindowEstimate | Interval | None,
    *,
    whole: float,
    scale: float,
) -> tuple[Derived, ...]:
    if found is None:
        blank = Status.NOT_COLLECTED if status == Status.OK else status  # visitors, but no answer
        return tuple(Derived(category=category, status=blank) for category in categories)
    low_shares, high_shares = (found.ci_low / whole).tolist(), (found.ci_high / whole).tolist()
    status = estimates_status(status, ci_low=low_shares, ci_high=high_shares)
    rows = zip(categories, found.value.tolist(), found.ci_low.tolist(), found.ci_high.tolist(), strict=True)
    return tuple(
        Derived(
            category=category,
            status=status,
            value=None if np.isnan(value) else value * scale,
            ci_low=low * scale,
            ci_high=high * scale,
        )
        for category, value, low, high in rows
    )
