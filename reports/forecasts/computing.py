"""Results of forecasts as plain values, as they are kept: what is unknown is None."""

import hashlib
from datetime import timedelta
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp.estimation.series.backtest import Backtest, backtest
from ldp.estimation.series.forecast import forecast
from ldp.estimation.series.grid import Series
from ldp.estimation.series.levels import (
    DayBacktest,
    DayFigures,
    backtest_days,
    backtest_sums,
    day_method,
    forecast_days,
    forecast_sums,
)
from ldp.privacy.slots import DAY_MINUTES
from reports.events.periods import (
    PERIODS,
    Period,
    PeriodKind,
    next_period,
    period_name,
    period_start,
    periods_of,
)
from reports.events.queries import last_day_of
from reports.forecasts.series import (
    DAYS_AHEAD,
    NamedFigures,
    SlotSeries,
    category_days,
    event_days,
    slot_series,
    visitor_days,
)
from reports.slots.queries import presence
from reports.studies.models import Indicator, Study

VERSION: Final = 7  # of a result's layout and of the methods
SLOTS_AHEAD: Final = 48
BACKTEST_HOURS: Final = (0, 1, 2, 6, 24)  # ahead; 0: the next slot
BACKTEST_DAYS: Final = 14
BACKTEST_PERIODS: Final[dict[PeriodKind, int]] = {"week": 8, "month": 6}  # of events; a second each
MOST_CATEGORIES: Final = 50  # of events: each takes up to a second
Result = dict[str, Any]


def slots_result(study: Study, *, before: Result) -> Result:
    """Forecast of the next slots of all zones, not scaled; empty where nothing is published.

    Parameters
    ----------
    before : an earlier result: its backtest is taken over if it is of the same days
    """
    found = slot_series(presence(study))
    if found is None:
        return {}
    targets = [
        slot
        for slot in range(found.closed, min(found.closed + SLOTS_AHEAD, len(found.clock)))
        if found.horizon(slot) <= found.series.slots_per_day
    ]
    ahead = forecast(found.series, horizons=[found.horizon(slot) for slot in targets])
    judged_on = _digest(found.series)
    is_judged = before.get("judged_on") == judged_on
    return {
        "method": ahead.method,
        "n_known": found.n_known,
        "closed": found.closed,
        "targets": targets,
        "values": _plain(ahead.values),
        "half_widths": _plain(ahead.half_widths),
        "judged_on": judged_on,
        "backtest": before["backtest"] if is_judged else _judged(found),
    }


def days_result(study: Study, indicator: Indicator | None) -> Result:
    """Forecast of the next days of all visitors, or of the share of each category."""
    named = visitor_days(study) if indicator is None else category_days(indicator)
    if not named:
        return {}
    return {
        "method": day_method(named[0].figures),
        "n_known": max(int(np.count_nonzero(~np.isnan(each.figures.values))) for each in named),
        "last_day": len(named[0].figures.values),
        "series": [_day_series(each) for each in named],
    }


def events_result(indicator: Indicator) -> Result:
    """Forecast of the events of the next period of each kind, in all and by category.

    Empty before the first file; without series where the history is too short for effects of weekdays, and
    without periods that end further ahead than it is long.
    """
    study, last = indicator.study, last_day_of(indicator.study)
    if not last:
        return {}
    today = study.date_of(last)
    starts = {kind: next_period(period_start(today, kind), kind) for kind in PERIODS}
    ends = {kind: next_period(start, kind) - timedelta(days=1) for kind, start in starts.items()}
    spans = {kind: ((starts[kind] - today).days, (ends[kind] - today).days) for kind in PERIODS}
    # Further ahead than the history is long, little is known of how the level moves.
    spans = {kind: span for kind, span in spans.items() if span[1] <= last}
    named = event_days(indicator, last=last, ahead=max((end for _, end in spans.values()), default=0))
    method = day_method(named[0].figures)
    found: Result = {"method": method, "n_known": last, "last_day": last, "left_out": 0, "series": []}
    if method in ("level", "last value"):
        return found
    sizes = [float(each.figures.values.sum()) for each in named]
    shown = sorted(range(1, len(named)), key=lambda place: -sizes[place])[:MOST_CATEGORIES]
    whole = [_last_whole(study, kind, last=last) for kind in spans]
    found["left_out"] = len(named) - 1 - len(shown)
    # Of exact numbers only: the errors of categories would be those of the noise of answers.
    judged = backtest_days(named[0].figures, days=BACKTEST_DAYS)
    found["backtest"] = None if judged is None else _day_backtest(judged)
    found["longer"] = {
        kind: _day_backtest(tested)
        for kind, most in BACKTEST_PERIODS.items()
        if (tested := backtest_sums(named[0].figures, spans=_last_spans(study, kind, last=last, most=most)))
    }
    found["periods"] = [
        {
            "kind": kind,
            "name": period_name(starts[kind], kind),
            "first_day": starts[kind].isoformat(),
            "last_day": ends[kind].isoformat(),
            "before": before and before.name,
        }
        for kind, before in zip(spans, whole, strict=True)
    ]
    found["series"] = [
        _event_series(named[place], spans=list(spans.values()), before=whole) for place in (0, *sorted(shown))
    ]
    return found


def _last_whole(study: Study, kind: PeriodKind, *, last: int) -> Period | None:
    """Return the last period of a kind that the study covers in full; None if there is none."""
    return next((each for each in reversed(periods_of(study, kind, last=last)) if each.is_whole), None)


def _last_spans(study: Study, kind: PeriodKind, *, last: int, most: int) -> list[tuple[int, int]]:
    """Return the places, from 0, of the last periods of a kind that the study covers in full."""
    whole = [each.window for each in periods_of(study, kind, last=last) if each.is_whole]
    return [(each.first_day - 1, each.last_day - 1) for each in whole[-most:]]


def _event_series(
    named: NamedFigures, *, spans: list[tuple[int, int]], before: list[Period | None]
) -> Result:
    figures = named.figures
    ahead = forecast_sums(figures, spans=spans)
    return {
        "name": named.name,
        "values": _plain(ahead.values),
        "half_widths": _plain(ahead.half_widths()),
        "weekday_means": _plain(_weekday_means(figures, spans=spans)),
        "before": [
            None
            if each is None
            else float(figures.values[each.window.first_day - 1 : each.window.last_day].sum())
            for each in before
        ],
    }


def _weekday_means(figures: DayFigures, *, spans: list[tuple[int, int]]) -> NDArray[np.float64]:
    """Return the sum over each span of the mean of its weekdays so far."""
    n = len(figures.values)
    counts = np.bincount(figures.weekdays[:n], minlength=7)
    means = np.bincount(figures.weekdays[:n], weights=figures.values, minlength=7) / counts
    return np.array([means[figures.weekdays[n + first - 1 : n + last]].sum() for first, last in spans])


def _day_series(named: NamedFigures) -> Result:
    figures = named.figures
    ahead = forecast_days(figures, days=DAYS_AHEAD)
    judged = backtest_days(figures, days=BACKTEST_DAYS)
    return {
        "name": named.name,
        "known": _plain(figures.values),
        "values": _plain(ahead.values),
        "half_widths": _plain(ahead.half_widths()),
        "backtest": None if judged is None else _day_backtest(judged),
    }


def _judged(found: SlotSeries) -> list[Result]:
    per_hour = 60 * found.series.slots_per_day // DAY_MINUTES
    most = min(SLOTS_AHEAD, found.series.slots_per_day)
    horizons = sorted({max(hours * per_hour, 1) for hours in BACKTEST_HOURS})
    judged = backtest(found.series, [horizon for horizon in horizons if horizon <= most])
    return [_slot_backtest(each, day=found.series.slots_per_day) for each in judged]


def _slot_backtest(judged: Backtest, *, day: int) -> Result:
    return {
        "slots": judged.horizon,
        "first_day": judged.first // day + 1,
        "days": judged.days,
        "rmse": _plain(judged.rmse),
        "mae": _plain(judged.mae),
        "coverage": _plain(judged.coverage, decimals=4),
    }


def _day_backtest(judged: DayBacktest) -> Result:
    return {
        "days": judged.days,
        "rmse": _plain(judged.rmse),
        "mae": _plain(judged.mae),
        "coverage": _plain(judged.coverage, decimals=4),
    }


def _digest(series: Series) -> str:
    """Return a hash of the whole days of a series, which a backtest is about."""
    whole = len(series.values) // series.slots_per_day * series.slots_per_day
    return hashlib.sha256(np.ascontiguousarray(series.values[:whole]).tobytes()).hexdigest()


def _plain(values: NDArray[np.float64], *, decimals: int = 6) -> Any:
    """Nested lists of rounded numbers; None where there is none."""
    found = np.round(values, decimals).astype(object)
    found[np.isnan(values)] = None
    return found.tolist()
