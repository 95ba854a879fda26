"""Published figures of a study on the grids that forecasts need: gaps are NaN."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from ldp.estimation.classes import ClassReports, stratified_variance
from ldp.estimation.estimators import ENDLESS, pure_variance
from ldp.estimation.partial.regions import region_variance
from ldp.estimation.series.grid import Floats, Series
from ldp.estimation.series.levels import DayFigures
from ldp.estimation.series.smoothing import numbers_of_events, share_variances, wave_variances
from ldp.estimation.unions import union
from ldp.estimation.windows import IndicatorTallies
from ldp.privacy.slots import DAY_MINUTES
from ldp.protocols.numbers.wave import WaveChannel
from ldp.protocols.partial.regions import RegionChannel
from ldp.protocols.projective_space import value_reports
from reports.estimates.coverage import coverage_of
from reports.estimates.loading import Loaded, tallies_of
from reports.estimates.noise import answer_noise
from reports.estimates.queries import (
    Window,
    WindowReport,
    loaded_reports,
    reports_with_tallies,
    single_days_of,
    visitor_unions,
)
from reports.events.queries import events_by_day
from reports.forecasts.holidays import SUNDAY, holidays_between
from reports.slots.queries import Presence, SlotStatus
from reports.studies.models import Indicator, Study
from reports.studies.slots import SlotClock

DAYS_AHEAD: Final = 7
_MORE_DAYS: Final = 2  # after the study, on which slots that are forecast may lie


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SlotSeries:
    """Counts on a grid of local times of day, on which every day has the same number of rows.

    An hour that a clock change repeats keeps its second half; one that it leaves out is a gap.

    clock : slots of the study and of some days after it
    rows : row of each slot of the clock
    closed : published slots
    """

    series: Series
    clock: SlotClock
    rows: NDArray[np.int64]
    closed: int

    @property
    def n_known(self) -> int:
        """Published slots with figures."""
        here = self.rows[: self.closed]
        return int(np.count_nonzero(~np.isnan(self.series.values[here]).any(axis=1)))

    def horizon(self, slot: int) -> int:
        """Rows from the last published slot to a later one; at least 1."""
        return max(int(self.rows[slot] - self.rows[self.closed - 1]), 1)


def longer_clock(study: Study, *, minutes: int) -> SlotClock:
    """Slots of a study and of some days after it."""
    days = study.days + _MORE_DAYS
    return SlotClock.of(study.timezone, first_day=study.first_day, days=days, minutes=minutes)


def slot_series(found: Presence) -> SlotSeries | None:
    """Published slots of a whole study, not scaled; None where no slot has figures."""
    study, minutes = found.study, found.spec.minutes
    clock = longer_clock(study, minutes=minutes)
    rows, closed = _rows(clock, timezone=study.timezone, minutes=minutes), len(found.counts)
    is_known = np.array([status == SlotStatus.OK for status in found.statuses], dtype=bool)
    known = np.flatnonzero(is_known[clock.day[:closed].astype(np.int64) - 1])
    if not known.size:
        return None
    values = np.full((int(rows[closed - 1]) + 1, found.counts.shape[1]), np.nan)
    values[rows[known]] = found.counts[known]
    per_day = DAY_MINUTES // minutes
    first_slot = study.first_day.weekday() * per_day
    free = holidays_between(study.first_day, study.days + _MORE_DAYS, timezone=study.timezone)
    series = Series(
        values=values,
        slots_per_day=per_day,
        first_slot=first_slot,
        sundays=frozenset((each - study.first_day).days for each in free),
    )
    return SlotSeries(series=series, clock=clock, rows=rows, closed=closed)


def _rows(clock: SlotClock, *, timezone: str, minutes: int) -> NDArray[np.int64]:
    zone, per_day = ZoneInfo(timezone), DAY_MINUTES // minutes
    rows = np.empty(len(clock), np.int64)
    for day in range(1, int(clock.day[-1]) + 1):
        of_day = clock.of_day(day)
        places = np.arange(of_day.stop - of_day.start)
        if len(places) != per_day:  # the clocks change
            times = [datetime.fromtimestamp(second, zone) for second in clock.start[of_day].tolist()]
            places = np.array([(time.hour * 60 + time.minute) // minutes for time in times])
        rows[of_day] = (day - 1) * per_day + places
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFigures:
    """Daily figures of all visitors or events, or of one category: shares of visitors, numbers of events."""

    name: str
    figures: DayFigures


def visitor_days(study: Study) -> list[NamedFigures]:
    """Visitors of each day as pages show them, up to the last day with a number."""
    notes = study.day_notes.all()
    days = coverage_of(study, visitors=visitor_unions(study), notes=notes).days
    values = [np.nan if day.visitors is None else float(day.visitors) for day in days]
    variances = [day.noisy.std_error**2 if day.noisy else 0.0 for day in days]
    return _figures(study, {"": (values, variances)})


def category_days(indicator: Indicator) -> list[NamedFigures]:
    """Share of each category on each day, up to the last day with answers."""
    ((reports, loaded),) = loaded_reports([indicator], [single_days_of(indicator.study)])
    # A forecast that fills a gap would reveal a hidden day.
    hidden = {each.category for report in reports for each in report.estimates if each.is_hidden}
    shares = np.array([[each.frequency for each in report.estimates] for report in reports], np.float64)
    if loaded.classes:
        of_days = [[each.reports(report.window) for each in loaded.classes] for report in reports]
        variances = _class_variances(of_days, shares)
    elif indicator.protect:
        variances = _disclosed_variances(reports, loaded, shares)
    else:
        variances = _variances(reports, tallies_of(loaded), shares)
    columns = zip(indicator.categories, shares.T.tolist(), variances.T.tolist(), strict=True)
    return _figures(
        indicator.study, {name: (values, noise) for name, values, noise in columns if name not in hidden}
    )


def event_days(indicator: Indicator, *, last: int, ahead: int) -> list[NamedFigures]:
    """Events of each day in all, and estimated ones of each category, up to study day `last`.

    Each category's are its share of the exact number of events.
    """
    study = indicator.study
    reports, tallies = _reports(indicator, last=last)
    events = events_by_day(study)[:last]
    values, variances = numbers_of_events(
        np.array([[each.frequency for each in report.estimates] for report in reports], np.float64),
        n_reports=np.array([report.n_reports or 0 for report in reports]),
        n_events=np.array(events),
        channel=tallies.channel,
    )
    columns = zip(indicator.categories, values.T.tolist(), variances.T.tolist(), strict=True)
    known = {"": ([float(each) for each in events], [0.0] * last)}
    known |= {name: (of_category, noise) for name, of_category, noise in columns}
    return _figures(study, known, ahead=ahead)


def _reports(indicator: Indicator, *, last: int) -> tuple[list[WindowReport], IndicatorTallies]:
    """Reports of the days up to `last`, and the tallies that they come from."""
    ((reports, tallies),) = reports_with_tallies(
        [indicator], [[Window(day, day) for day in range(1, last + 1)]]
    )
    return reports, tallies


def _variances(reports: Sequence[WindowReport], tallies: IndicatorTallies, shares: Floats) -> Floats:
    """Variance of each share of days, at the mean of all days."""
    first, channel = reports[0], tallies.channel
    spec = first.plan.parsed
    is_moves = spec.indicators[spec.index(first.indicator.slug)].moves is not None
    n_visitors = np.array([ENDLESS if is_moves else report.n_visitors or 0 for report in reports])
    n_reports = np.array([report.n_reports or 0 for report in reports])
    days = [report.window.last_day for report in reports]
    codes = np.array([union(tallies.counts, first_day=day, last_day=day) for day in days])
    codes[np.isnan(shares).all(axis=1)] = 0
    if isinstance(channel, WaveChannel):
        return wave_variances(codes, n_visitors=n_visitors, channel=channel)
    noise = answer_noise(spec, first.study)
    of_days = [] if noise is None else [noise.of_window(first_day=day, last_day=day) for day in days]
    n_reports = n_reports if noise is None else codes.sum(axis=1)
    return share_variances(
        shares,
        n_reports=value_reports(codes.T, n_reports, channel=channel).T,
        n_visitors=n_visitors,
        channel=channel,
        noise=of_days,
    )


def _disclosed_variances(reports: Sequence[WindowReport], loaded: Loaded, shares: Floats) -> Floats:
    """Variance of each share of days where answers disclose something, at the mean of all days."""
    known = ~np.isnan(shares).all(axis=1)
    variances = np.full(shares.shape, np.nan)
    if known.any():
        mean = np.clip(shares[known].mean(axis=0), 0, 1)
        for day in np.flatnonzero(known).tolist():
            n, people = reports[day].n_reports or 0, reports[day].n_visitors or 0
            sizes = {"n_reports": n, "n_population": people}
            if isinstance(loaded.channel, RegionChannel):
                variances[day] = region_variance(mean, channel=loaded.channel, **sizes)
            else:
                variances[day] = pure_variance(mean, channel=loaded.channel, **sizes)
    return variances


def _class_variances(of_days: Sequence[Sequence[ClassReports]], shares: Floats) -> Floats:
    """Variance of each share of days with classes, at the mean of all days; NaN on days without."""
    known = ~np.isnan(shares).all(axis=1)
    mean = np.clip(shares[known].mean(axis=0), 0, 1) if known.any() else shares[:0]
    variances = np.full(shares.shape, np.nan)
    for day in np.flatnonzero(known).tolist():
        present = [each for each in of_days[day] if each.n_visitors]
        variances[day] = stratified_variance([mean] * len(present), classes=present)
    return variances


def _figures(
    study: Study, columns: dict[str, tuple[list[float], list[float]]], *, ahead: int = DAYS_AHEAD
) -> list[NamedFigures]:
    known = [np.flatnonzero(~np.isnan(values)) for values, _ in columns.values()]
    n = max((int(places[-1]) + 1 for places in known if places.size), default=0)
    dates = [study.first_day + timedelta(days=day) for day in range(n + ahead)]
    free = holidays_between(study.first_day, n + ahead, timezone=study.timezone)
    weekdays = np.array([SUNDAY if each in free else each.weekday() for each in dates], dtype=np.int64)
    return [
        NamedFigures(
            name=name,
            figures=DayFigures(
                values=np.array(values[:n]),
                variances=np.array(variances[:n]),
                weekdays=weekdays,
                seasons=np.array([_season(each) for each in dates]),
            ),
        )
        for name, (values, variances) in columns.items()
        if not np.isnan(values[:n]).all()
    ]


def _season(day: date) -> float:
    """Share of its year that is over before a day."""
    start = day.replace(month=1, day=1)
    return (day - start).days / (start.replace(year=start.year + 1) - start).days
