"""Results of forecasts as plain values, as they are kept: what is unknown is None."""

import hashlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp.estimation.series.backtest import Backtest, backtest
from ldp.estimation.series.forecast import forecast
from ldp.estimation.series.grid import Series
from ldp.estimation.series.levels import DayBacktest, backtest_days, day_method, forecast_days
from ldp.privacy.slots import DAY_MINUTES
from reports.forecasts.series import (
    DAYS_AHEAD,
    NamedFigures,
    SlotSeries,
    category_days,
    slot_series,
    visitor_days,
)
from reports.slots.queries import presence
from reports.studies.models import Indicator, Study

VERSION: Final = 2  # of a result's layout and of the methods
SLOTS_AHEAD: Final = 48
BACKTEST_HOURS: Final = (0, 1, 2, 6, 24)  # ahead; 0: the next slot
BACKTEST_DAYS: Final = 14
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
