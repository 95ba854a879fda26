"""Arrivals, departures and returns: per category, from tallies that were published anyway.

No answer is asked for again, so nothing here costs epsilon. Totals are exact; a category has an interval,
which is exact or a bound (`ldp.estimation.windows`, `ldp.estimation.movement`). Visitors of a category are
scaled by the market share, totals are not, as in every report.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Final

import numpy as np
from django.utils.translation import gettext

from ldp import (
    Interval,
    NoReportsError,
    WindowEstimate,
    all_unions,
    day_pair_share,
    leaving_visitors,
    mean_days_present,
    new_visitors,
    project_simplex,
    returning_visitors,
    shared_share,
    window_visitors,
)
from ldp.errors import FewVisitorsError
from ldp.estimation.strata import Strata
from ldp.estimation.windows import IndicatorTallies, independent_sum
from reports.base.status import Status, estimates_status
from reports.estimates.coverage import DayCoverage, coverage_of
from reports.estimates.derived import KeyFigures, key_figures
from reports.estimates.queries import LEVEL, Window, WindowError, reports_with_strata
from reports.estimates.small_cells import ShownVisitors
from reports.movement.differences import findings_of
from reports.movement.figures import OF_A_DAY, DayTotals, Derived, Movement, Point, Show
from reports.studies.models import Indicator
from reports.studies.queries import has_lasting_reports, has_unions

# A daily indicator counts the value of the first day in a window: who comes has one, who leaves has none.
_OF_DAILY: Final = (Show.ARRIVALS, Show.RETURNING, Show.WINDOW)
_OF_CLASSES: Final = (*_OF_DAILY, Show.DEPARTURES)


class NoMovementError(WindowError):
    """There are no such figures for the study; `str()` says why."""


class NoisyTotalsError(NoMovementError):
    """Totals of the study have presence noise: differences of them have errors that are not computed."""

    def __init__(self) -> None:
        super().__init__(
            gettext(
                "Arrivals, departures and returns are not shown for this study, because its totals "
                "contain presence noise. Each of these figures would be a difference between noisy "
                "totals, and the error of such a difference is not computed."
            )
        )


class GroupsToldError(NoMovementError):
    """Answers to the indicator tell the group of a category: no error of a difference is computed."""

    def __init__(self) -> None:
        super().__init__(
            gettext(
                "Arrivals, departures and returns are not available for this indicator yet, because its "
                "answers disclose groups or categories."
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Tallies of one publication, of each class of people, with what every point needs."""

    indicator: Indicator
    strata: Strata
    shown: ShownVisitors
    key: KeyFigures
    totals: tuple[DayTotals, ...]

    @property
    def tallies(self) -> IndicatorTallies:
        """Tallies of all people, who have no classes."""
        (tallies,) = self.strata
        return tallies

    @property
    def days(self) -> int:
        return self.indicator.study.days

    @property
    def days_with_visitors(self) -> list[int]:
        return [day for day in range(1, self.days + 1) if self.has_visitors(day)]

    def has_visitors(self, first_day: int, last_day: int | None = None) -> bool:
        """Return whether anyone was there on a day, or on the days of a window; shown or not."""
        return bool(self.shown.unions[first_day, last_day or first_day])


def available_shows(indicator: Indicator) -> tuple[Show, ...]:
    """Figures that are defined for an indicator; none where days cannot be joined, or there is only one."""
    return _shows(indicator, lasts=has_lasting_reports(indicator))


def _shows(indicator: Indicator, *, lasts: bool) -> tuple[Show, ...]:
    if indicator.study.days < 2 or not has_unions(indicator):
        return ()
    if not lasts:
        return _OF_DAILY
    # Of shares and means, how the errors of classes go together is not worked out.
    return _OF_CLASSES if indicator.study.classes else tuple(Show)


def movement(
    indicator: Indicator, *, show: Show | None = None, cohort: int | None = None, window: Window | None = None
) -> Movement:
    """Totals of every day, and one figure per category; NoMovementError if the study has noise, or answers
    disclose groups.

    Parameters
    ----------
    indicator : Indicator
    show : Show; one that the indicator has, else the first of them
    cohort : int; study day whose visitors are followed, with a later one; else the first that has visitors
    window : Window; after the first day; else all days from the second one with visitors
    """
    study = indicator.study
    if study.presence is not None:
        raise NoisyTotalsError
    if indicator.protect:
        raise GroupsToldError
    notes = tuple(study.day_notes.all())
    whole = Window(1, study.days if has_unions(indicator) else 1)
    [((report,), strata)] = reports_with_strata([indicator], [[whole]])
    unions = all_unions(np.sum([each.visitors for each in strata], axis=0))
    coverage = coverage_of(study, visitors=unions, notes=notes)
    shown = ShownVisitors(study, unions)
    totals = tuple(_day_totals(shown, day) for day in coverage.days)
    key = key_figures(study, visitors=unions)
    source = _Source(indicator=indicator, strata=strata, shown=shown, key=key, totals=totals)
    # Differences of shares of a number are those of its cuts, whose errors are not those of categories.
    # Where categories are hidden, differences of windows would give some.
    is_hidden = report.cuts or study.small_category
    available = () if is_hidden else _shows(indicator, lasts=strata[0].kind == "static")
    chosen = show if show in available else next(iter(available), None)
    cohort, window = _with_defaults(source, cohort, window)
    found = Movement(
        report=report,
        key=key,
        totals=totals,
        available=available,
        show=chosen,
        cohort=cohort if chosen in OF_A_DAY else None,
        window=window if chosen == Show.WINDOW else None,
        points=_points(source, chosen, cohort=cohort, window=window) if chosen else (),
        notes=notes,
    )
    return replace(found, findings=findings_of(found, strata))


def consistent(found: Movement) -> Movement:
    """Return the figure with values of visitors that are 0 or more and add up to their total."""
    points = tuple(
        replace(
            point,
            estimates=tuple(
                each if each.consistent is None else replace(each, value=each.consistent)
                for each in point.estimates
            ),
        )
        for point in found.points
    )
    return replace(found, points=points)


def _with_defaults(source: _Source, cohort: int | None, window: Window | None) -> tuple[int, Window]:
    first, last = next(iter(source.days_with_visitors), 1), source.days
    if cohort is None or not 1 <= cohort < last:
        cohort = min(first, max(last - 1, 1))
    if window is None or window.first_day < 2:
        window = Window(min(first + 1, last), last)
    return cohort, window


def _day_totals(shown: ShownVisitors, coverage: DayCoverage) -> DayTotals:
    day = coverage.day
    if coverage.visitors is None:
        return DayTotals(coverage=coverage, arrivals=None, returning=None, departures=None)
    before = shown.cut((1, day - 1), (day, day))
    return DayTotals(
        coverage=coverage,
        arrivals=None if before is None else before.only_second,
        returning=None if before is None else before.both,
        departures=shown.last_time(day),
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
    return tuple(_of_day(source, show, day) for day in range(1, source.days + 1))


def _of_day(source: _Source, show: Show, day: int) -> Point:
    """Arrivals, returns or departures of a day."""
    of_category: Callable[..., WindowEstimate] = window_visitors  # all who arrive first, or leave last
    if show == Show.RETURNING:
        of_category = partial(returning_visitors, since=1)
    elif show == Show.ARRIVALS and day > 1:
        of_category = partial(new_visitors, since=1)
    elif show == Show.DEPARTURES and day < source.days:
        of_category = partial(leaving_visitors, until=source.days)
    total = getattr(source.totals[day - 1], show)
    return _visitors(source, day, total, partial(of_category, window=Window(day, day), level=LEVEL))


def _window_points(source: _Source, window: Window) -> tuple[Point, ...]:
    """New visitors of a window, and returning ones."""
    first, last = window.first_day, window.last_day
    status = source.shown.status(first, last, is_outage=False)
    cut = source.shown.cut((1, first - 1), (first, last))
    return tuple(
        _visitors(
            source,
            first,
            None if cut is None else total(cut),
            partial(of_category, window=window, since=1, level=LEVEL),
            status=status,
        )
        for total, of_category in (
            (attrgetter("only_second"), new_visitors),
            (attrgetter("both"), returning_visitors),
        )
    )


def _back_within(source: _Source, cohort: int, day: int) -> Point:
    first, later = Window(cohort, cohort), Window(cohort + 1, day)
    cut = source.shown.cut(first, later)
    return _share(
        source,
        cohort,
        day,
        None if cut is None else (cut.both, cut.both),
        lambda: shared_share(source.tallies, first=first, second=later, level=LEVEL),
        is_seen=source.has_visitors(cohort + 1, day),
    )


def _there_again(source: _Source, cohort: int, day: int) -> Point:
    return _share(
        source,
        cohort,
        day,
        source.shown.on_both(source.tallies.visitors, cohort, day),
        lambda: day_pair_share(source.tallies, days=(cohort, day), level=LEVEL),
        is_seen=source.has_visitors(day),
    )


def _days_present(source: _Source) -> Point:
    mean, status = source.key.mean_days, source.key.status
    n_days = len(source.days_with_visitors)
    if status == Status.OK and mean is None:
        status = Status.SUPPRESSED
    found = None if mean is None else _found(lambda: mean_days_present(source.tallies, level=LEVEL))
    return _point(source, 1, status, (mean, mean), found, whole=max(n_days - 1, 1), scale=1.0, is_exact=False)


# --- points -----------------------------------------------------------------------------------


def _visitors(
    source: _Source,
    day: int,
    total: int | None,
    of_class: Callable[[IndicatorTallies], WindowEstimate],
    *,
    status: Status | None = None,
) -> Point:
    """A point in visitors; `status` of the window that they are a part of, if that is not the day.

    `total` is None where it is unreliable: if the window is, by the small-cell rule.
    """
    status = status or source.totals[day - 1].coverage.status
    found = None
    if status == Status.OK and total:
        try:
            found = _found(lambda: independent_sum([of_class(each) for each in source.strata]))
        except FewVisitorsError:  # of a class
            total = None
    if status == Status.OK and total is None:
        status = Status.SUPPRESSED
    shown = total if status == Status.OK else None
    if shown == 0:
        found = _nobody(source)
    share = float(source.indicator.study.market_share)
    return _point(source, day, status, (shown, shown), found, whole=max(shown or 0, 1), scale=1 / share)


def _share(
    source: _Source,
    cohort: int,
    day: int,
    both: tuple[int, int] | None,
    compute: Callable[[], Interval],
    *,
    is_seen: bool,
) -> Point:
    """A point as a share of the visitors of the day `cohort`; `is_seen`: the later days have visitors.

    `both` : least and largest number of those who come back; None where the small-cell rule hides it
    """
    status = source.totals[(cohort if is_seen else day) - 1].coverage.status
    if status == Status.OK and both is None:
        status = Status.SUPPRESSED
    if status != Status.OK or both is None:
        return _point(source, day, status, (None, None), None, whole=1, scale=1.0)
    low, high = (count / int(source.shown.unions[cohort, cohort]) for count in both)
    found = _found(compute)
    return _point(source, day, status, (low, high), found, whole=1, scale=1.0, is_exact=low == high)


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
        estimates=_estimates(source.indicator, status, found, whole=whole, scale=scale),
    )


def _estimates(
    indicator: Indicator,
    status: Status,
    found: WindowEstimate | Interval | None,
    *,
    whole: float,
    scale: float,
) -> tuple[Derived, ...]:
    categories = indicator.categories
    french = indicator.categories_fr or [None] * len(categories)
    if found is None:
        blank = Status.NOT_COLLECTED if status == Status.OK else status  # visitors, but no answer
        names = zip(categories, french, strict=True)
        return tuple(Derived(category=name, category_fr=name_fr, status=blank) for name, name_fr in names)
    low_shares, high_shares = (found.ci_low / whole).tolist(), (found.ci_high / whole).tolist()
    status = estimates_status(status, ci_low=low_shares, ci_high=high_shares)
    columns = (each.tolist() for each in (found.value, found.ci_low, found.ci_high))
    adjusted: list[float | None] = [None] * len(categories)
    if isinstance(found, WindowEstimate):
        adjusted = (project_simplex(found.value / whole) * whole * scale).tolist()
        if not found.ci_high.any():  # no one
            adjusted = [0.0] * len(categories)
    return tuple(
        Derived(
            category=category,
            category_fr=category_fr,
            status=status,
            value=None if np.isnan(value) else value * scale,
            ci_low=low * scale,
            ci_high=high * scale,
            consistent=same,
        )
        for category, category_fr, value, low, high, same in zip(
            categories, french, *columns, adjusted, strict=True
        )
    )
