"""Forecasts of published counts by slot and zone: a robust seasonal ridge regression on past values.

It reads published values only, and so costs no epsilon. The target is the change from the last value;
features are the values of the last day in every zone, the same change on earlier days, and the clock.
Outliers are drawn in by refitting to winsorised targets (Huber 1981). Intervals are split-conformal (Lei et
al. 2018): half widths are quantiles of errors on the last two weeks, by a model that has not seen them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.series.grid import Floats, Series
from ldp.estimation.series.regression import MEAN_DAYS, Regression

Method = Literal["ridge", "mean step", "last value"]

CALIBRATION_DAYS: Final = 14
RIDGE_DAYS, MEAN_STEP_DAYS = 21, 3  # of history that a method needs
LEVELS: Final = (0.80, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Expected counts of the slots that follow a series.

    values : float64, shape (horizons, zones); may be negative, as noisy counts may
    half_widths : float64, shape (levels, horizons, zones), of `LEVELS`; NaN where errors are too few
    """

    method: Method
    horizons: tuple[int, ...]
    values: Floats
    half_widths: Floats


def method_of(series: Series) -> Method:
    """Return the method that a series allows by its length, and by its slots with values of all zones."""
    targets = series.values[(MEAN_DAYS + 1) * series.slots_per_day :]
    n_known = np.count_nonzero(~np.isnan(targets).any(axis=1))
    if series.days >= RIDGE_DAYS and n_known >= series.slots_per_day:
        return "ridge"
    return "mean step" if series.days >= MEAN_STEP_DAYS else "last value"


def forecast(series: Series, *, horizons: Sequence[int], noise_sd: float = 0.0) -> Forecast:
    """Forecast the slots `horizons` after the last one.

    Parameters
    ----------
    horizons : slots ahead, each in 1..slots_per_day
    noise_sd : known standard deviation of the noise of published counts: intervals are then of the counts
        without it

    Raises
    ------
    LdpError : no rows, no value in a zone, or a horizon outside 1..slots_per_day
    """
    _check(series, horizons)
    model = _Model(series, horizons)
    values = model.at(series, np.full((len(horizons), 1), len(series.values)))[:, 0]
    cut = len(series.values) - CALIBRATION_DAYS * series.slots_per_day
    if cut < series.slots_per_day:
        half_widths = np.full((len(LEVELS), *values.shape), np.nan)
    else:
        errors = errors_by_horizon(series, horizons, origins=[cut])
        half_widths = np.stack([half_width(each, noise_sd=noise_sd) for each in errors], axis=1)
    return Forecast(method=model.method, horizons=tuple(horizons), values=values, half_widths=half_widths)


def half_width(errors: Floats, *, noise_sd: float = 0.0) -> Floats:
    """Half widths of the intervals of `LEVELS` from errors, shape (n, zones): (levels, zones).

    Each is the error of the split-conformal rank in its zone; NaN where there are too few errors for it.
    """
    sizes = np.sort(np.sqrt(np.maximum(errors**2 - noise_sd**2, 0.0)), axis=0)  # NaN last
    sizes = np.pad(sizes, ((0, 1), (0, 0)), constant_values=np.nan)
    n = np.count_nonzero(~np.isnan(sizes), axis=0)
    ranks = np.ceil(np.outer(LEVELS, n + 1)).astype(np.int64)
    widths: Floats = np.take_along_axis(sizes, ranks - 1, axis=0)
    return widths


def backtest_errors(series: Series, horizon: int, *, origins: Sequence[int]) -> Floats:
    """Return the errors of one horizon: (slots, zones), as `errors_by_horizon`."""
    errors: Floats = errors_by_horizon(series, [horizon], origins=origins)[0]
    return errors


def errors_by_horizon(series: Series, horizons: Sequence[int], *, origins: Sequence[int]) -> Floats:
    """Errors of forecasts of all slots from the first origin on: value minus forecast, NaN without a value.

    At each origin, a slot, the model is fitted again to the rows before it; it forecasts up to the next one.
    Shape (horizons, slots, zones).
    """
    ends = [*origins[1:], len(series.values)]
    parts = []
    for origin, end in zip(origins, ends, strict=True):
        model, targets = _Model(series.until(origin), horizons), np.arange(origin, end)
        # A target is `horizon` slots after the last value that its forecast may use.
        nexts = targets - np.array(horizons)[:, None] + 1
        parts.append(series.values[targets] - model.at(series, nexts))
    return np.concatenate(parts, axis=1)


def last_value_errors(series: Series, horizon: int, *, first: int, lag: int = 0) -> Floats:
    """Errors of a forecast by the value `lag` slots (0: the last known) before: (slots from first, zones)."""
    filled, targets = series.filled(), np.arange(first, len(series.values))
    errors: Floats = series.values[targets] - filled[targets - (lag or horizon)]
    return errors


def _check(series: Series, horizons: Sequence[int]) -> None:
    if np.isnan(series.values).all(axis=0).any():
        raise LdpError("each zone must have a value, got a zone without any")
    for horizon in horizons:
        if not 1 <= horizon <= series.slots_per_day:
            raise LdpError(f"a horizon must be in 1..{series.slots_per_day}, got {horizon}")


class _Model:
    """A fitted forecast of some horizons."""

    def __init__(self, series: Series, horizons: Sequence[int]) -> None:
        self.method, self._horizons = method_of(series), horizons
        self._regression = Regression(series, horizons) if self.method == "ridge" else None

    def at(self, series: Series, nexts: NDArray[np.int64]) -> Floats:
        """Forecasts made just before the slots `nexts`, of the slots horizon - 1 after them.

        nexts : for each horizon, shape (horizons, n). Returns shape (horizons, n, zones).
        """
        filled = series.filled()
        last = filled[nexts - 1]
        if self._regression is not None:
            return last + self._regression.steps(series, filled, nexts)
        if self.method == "last value":
            return last
        day, both = series.slots_per_day, zip(nexts, self._horizons, strict=True)
        return last + np.stack([_mean_step(filled, at, horizon=horizon, day=day) for at, horizon in both])


def _mean_step(filled: Floats, nexts: NDArray[np.int64], *, horizon: int, day: int) -> Floats:
    """Mean of the same change on as many as MEAN_DAYS earlier days."""
    total, n = np.zeros((len(nexts), filled.shape[1])), np.zeros((len(nexts), 1))
    for back in range(day, MEAN_DAYS * day + 1, day):
        before = nexts - 1 - back
        known = before >= 0
        total[known] += filled[before[known] + horizon] - filled[before[known]]
        n += known[:, None]
    mean: Floats = total / np.maximum(n, 1.0)
    return mean
