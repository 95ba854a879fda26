"""Backtest of forecasts on days that are over, compared with two forecasts that anyone can make."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldp.estimation.series.forecast import (
    CALIBRATION_DAYS,
    LEVELS,
    MEAN_STEP_DAYS,
    errors_by_horizon,
    half_width,
    last_value_errors,
)
from ldp.estimation.series.grid import Floats, Series

DAYS: Final = 7
MODEL, LAST, WEEK = range(3)  # rows of the errors: the forecast, the last value, the value a week before


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """Errors of one horizon on whole days, each forecast with what was known before it.

    first : row of the series at which the first of the days begins
    days : how many
    rmse, mae : float64, shape (3, zones): of MODEL, LAST and WEEK; NaN where no value is known
    coverage : share of values in the intervals of `LEVELS`, shape (levels, zones); NaN without intervals
    """

    horizon: int
    first: int
    days: int
    rmse: Floats
    mae: Floats
    coverage: Floats


def backtest(series: Series, horizons: Sequence[int], *, days: int = DAYS) -> list[Backtest]:
    """Fit at the beginning of each of the last complete days, and forecast its slots, by horizon.

    Empty where no day is left after those that a forecast needs. A series begins with a day.
    """
    day = series.slots_per_day
    whole = len(series.values) // day
    days = min(days, whole - MEAN_STEP_DAYS)
    if days < 1 or not horizons:
        return []
    known, first = series.until(whole * day), (whole - days) * day
    errors = errors_by_horizon(known, horizons, origins=range(first, whole * day, day))
    widths = _half_widths(series, horizons, first=first)
    return [
        _judged(known, horizon, first=first, errors=of_one, widths=width)
        for horizon, of_one, width in zip(horizons, errors, widths, strict=True)
    ]


def _judged(known: Series, horizon: int, *, first: int, errors: Floats, widths: Floats) -> Backtest:
    day = known.slots_per_day
    beside = [last_value_errors(known, horizon, first=first, lag=lag) for lag in (0, 7 * day)]
    if first < 7 * day:  # there is no week before
        beside[1] = np.full_like(errors, np.nan)
    return Backtest(
        horizon=horizon,
        first=first,
        days=len(errors) // day,
        rmse=np.stack([np.sqrt(_mean(each**2)) for each in (errors, *beside)]),
        mae=np.stack([_mean(np.abs(each)) for each in (errors, *beside)]),
        coverage=np.stack([_share_within(errors, width) for width in widths]),
    )


def _half_widths(series: Series, horizons: Sequence[int], *, first: int) -> Floats:
    """Intervals as they were before the first day: (horizons, levels, zones)."""
    cut = first - CALIBRATION_DAYS * series.slots_per_day
    if cut < series.slots_per_day:
        return np.full((len(horizons), len(LEVELS), series.values.shape[1]), np.nan)
    errors = errors_by_horizon(series.until(first), horizons, origins=[cut])
    return np.stack([half_width(each) for each in errors])


def _share_within(errors: Floats, width: Floats) -> Floats:
    inside = np.where(np.isnan(errors) | np.isnan(width), np.nan, np.abs(errors) <= width)
    return _mean(inside)


def _mean(values: Floats) -> Floats:
    """Mean of what is known in each column; NaN where nothing is."""
    n = np.count_nonzero(~np.isnan(values), axis=0)
    total: Floats = np.nansum(values, axis=0)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan)
