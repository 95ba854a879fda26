"""Forecasts of published counts by slot and zone: a robust seasonal ridge regression on past values.

It reads published values only, and so costs no epsilon. The target is the change from the last value;
features are the values of the last day in every zone, the same change on earlier days, and the clock.
Outliers are drawn in by refitting to winsorised targets (Huber 1981). Intervals are split-conformal (Lei et
al. 2018): half widths are quantiles of errors on the last two weeks, by a model that has not seen them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError

Floats = NDArray[np.float64]
Method = Literal["ridge", "mean step", "last value"]

ALPHA: Final = 1000.0
REFITS: Final = 5
CLIP: Final = 2.5  # of the residuals' robust standard deviation
TO_SD: Final = 1.4826  # of a normal variable, from its median absolute value
STEP_DAYS: Final = (1, 2, 3, 7, 14)
MEAN_DAYS: Final = 14
DAY_HARMONICS, WEEK_HARMONICS = 4, 3
CALIBRATION_DAYS: Final = 14
RIDGE_DAYS, MEAN_STEP_DAYS = 21, 3  # of history that a method needs
JOINT_ZONES: Final = 20  # above: own zone, sum, and components
COMPONENTS: Final = 5
LEVELS: Final = (0.80, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Counts on a full grid of slots.

    values : float64, shape (slots, zones); NaN where nothing is published
    slots_per_day : slots of a local day, at least 2
    first_slot : slot of the week of the first row, from 0
    sundays : numbers of days that count as Sundays, as public holidays may; 0: that of the first row
    """

    values: Floats
    slots_per_day: int
    first_slot: int = 0
    sundays: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] == 0:
            raise LdpError(f"values must have shape (slots, zones), got {self.values.shape}")
        if self.slots_per_day < 2:
            raise LdpError(f"slots_per_day must be >= 2, got {self.slots_per_day}")
        if np.isinf(self.values).any():
            raise LdpError("values must be finite, or NaN where there are none")

    @property
    def days(self) -> float:
        """Days from the first row to the last."""
        return len(self.values) / self.slots_per_day

    def until(self, slot: int) -> Self:
        """Return the rows before `slot`."""
        return replace(self, values=self.values[:slot])

    def slots_of_week(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Slot of the week of some rows, also after the last one; a holiday has those of a Sunday."""
        found = self.first_slot + slots
        if not self.sundays:
            return found
        day = self.slots_per_day
        from_first = self.first_slot % day + slots  # the first row may lie within its day
        is_sunday = np.isin(from_first // day, list(self.sundays))
        return np.where(is_sunday, 6 * day + from_first % day, found)

    def filled(self) -> Floats:
        """Values with each gap filled from the week before, else from the slot before, else 0."""
        values, week = self.values.copy(), 7 * self.slots_per_day
        for slot in np.flatnonzero(np.isnan(values).any(axis=1)):
            gap = np.isnan(values[slot])
            for earlier in (slot - week, slot - 1):
                if earlier >= 0:
                    values[slot, gap] = values[earlier, gap]
                    gap = np.isnan(values[slot])
            values[slot, gap] = 0.0
        return values


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
    method = method_of(series)
    values = np.stack([_Step(series, h).ahead(series) for h in horizons])
    cut = len(series.values) - CALIBRATION_DAYS * series.slots_per_day
    if cut < series.slots_per_day:
        half_widths = np.full((len(LEVELS), *values.shape), np.nan)
    else:
        errors = [backtest_errors(series, h, origins=[cut]) for h in horizons]
        half_widths = np.stack([half_width(each, noise_sd=noise_sd) for each in errors], axis=1)
    return Forecast(method=method, horizons=tuple(horizons), values=values, half_widths=half_widths)


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
    """Errors of forecasts of all slots from the first origin on: value minus forecast, NaN without a value.

    At each origin, a slot, the model is fitted again to the rows before it; it forecasts up to the next one.
    """
    ends = [*origins[1:], len(series.values)]
    parts = []
    for origin, end in zip(origins, ends, strict=True):
        step = _Step(series.until(origin), horizon)
        targets = np.arange(origin, end)
        # A target is `horizon` slots after the last value that its forecast may use.
        parts.append(series.values[targets] - step.at(series, targets - horizon + 1))
    return np.concatenate(parts)


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


class _Step:
    """A fitted forecast of one horizon."""

    def __init__(self, series: Series, horizon: int) -> None:
        self.horizon = horizon
        self.method = method_of(series)
        self._ridge = _Ridge(series, horizon) if self.method == "ridge" else None

    def ahead(self, series: Series) -> Floats:
        """Forecast of the slot `horizon` after the last row."""
        after = np.full((1, series.values.shape[1]), np.nan)
        longer = replace(series, values=np.vstack([series.values, after]))
        ahead: Floats = self.at(longer, np.array([len(series.values)]))[0]
        return ahead

    def at(self, series: Series, nexts: NDArray[np.int64]) -> Floats:
        """Forecasts made just before the slots `nexts`, of the slots horizon - 1 after them."""
        filled = series.filled()
        last = filled[nexts - 1]
        if self._ridge is not None:
            return last + self._ridge.steps(filled, series, nexts)
        if self.method == "last value":
            return last
        return last + _mean_step(filled, nexts, horizon=self.horizon, day=series.slots_per_day)


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


class _Ridge:
    """The regression of one horizon.

    With many zones each has its own, on its values, the sum of all, and their first principal components.
    """

    def __init__(self, series: Series, horizon: int) -> None:
        self.horizon, self._day = horizon, series.slots_per_day
        filled = series.filled()
        self._axes = None if filled.shape[1] <= JOINT_ZONES else _components(filled)
        rows = np.arange(MEAN_DAYS * self._day + 1, len(filled) - horizon + 1)
        wanted = series.values[rows + horizon - 1] - filled[rows - 1]
        is_known = ~np.isnan(wanted).any(axis=1)
        rows, wanted = rows[is_known], wanted[is_known]
        self._shared = _Columns(self._of_all(filled, series, rows))
        if self._axes is None:
            self._fits = [_Fit(self._shared, None, wanted)]
        else:
            self._fits = [
                _Fit(self._shared, _Columns(self._of_zone(filled, zone, rows)), wanted[:, [zone]])
                for zone in range(filled.shape[1])
            ]
        self._shared.forget()

    def steps(self, filled: Floats, series: Series, nexts: NDArray[np.int64]) -> Floats:
        """Expected changes from the slots before `nexts`."""
        shared = self._shared.standard(self._of_all(filled, series, nexts))
        if self._axes is None:
            return self._fits[0].at(shared, None)
        return np.hstack(
            [fit.at(shared, self._of_zone(filled, zone, nexts)) for zone, fit in enumerate(self._fits)]
        )

    def _of_all(self, filled: Floats, series: Series, nexts: NDArray[np.int64]) -> Floats:
        """Lags of all zones, or of what stands for them, and the clock of the slots that are forecast."""
        if self._axes is not None:
            filled = np.hstack([filled.sum(axis=1, keepdims=True), filled @ self._axes])
        clock = _clock(series.slots_of_week(nexts + self.horizon - 1), day=self._day)
        return np.hstack([_lags(filled, nexts, horizon=self.horizon, day=self._day), clock])

    def _of_zone(self, filled: Floats, zone: int, nexts: NDArray[np.int64]) -> Floats:
        return _lags(filled[:, [zone]], nexts, horizon=self.horizon, day=self._day)


class _Columns:
    """Standardised features, and the inverse of their ridge."""

    def __init__(self, features: Floats) -> None:
        self._mean, scale = features.mean(axis=0), features.std(axis=0)
        self._scale = np.where(scale > 0, scale, 1.0)
        self.x = self.standard(features)
        self.ridge = self.x.T @ self.x + ALPHA * np.eye(self.x.shape[1])
        self.inverse = np.linalg.inv(self.ridge)

    def standard(self, features: Floats) -> Floats:
        scaled: Floats = (features - self._mean) / self._scale
        return scaled

    def forget(self) -> None:
        """Free what only fitting needs."""
        self.x = self.ridge = self.inverse = np.empty((0, 0))


class _Fit:
    """Ridge regression on shared and own features, refitted to winsorised targets."""

    def __init__(self, shared: _Columns, own: _Columns | None, targets: Floats) -> None:
        self._own = own
        solve, fitted = self._solver(shared, own), targets
        y = targets
        for _ in range(REFITS + 1):
            self._level = y.mean(axis=0)
            self._weights, self._own_weights = solve(y - self._level)
            fitted = self._of_standard(shared.x, None if own is None else own.x)
            errors = targets - fitted
            limit = CLIP * TO_SD * np.median(np.abs(errors), axis=0)
            y = fitted + np.clip(errors, -limit, limit)
        if own is not None:
            own.forget()

    @staticmethod
    def _solver(shared: _Columns, own: _Columns | None) -> Callable[[Floats], tuple[Floats, Floats]]:
        """Weights of both kinds of features for centred targets: one elimination serves all refits."""
        if own is None:
            return lambda y: (shared.inverse @ (shared.x.T @ y), np.empty((0, y.shape[1])))
        cross = shared.x.T @ own.x
        through = shared.inverse @ cross
        rest = np.linalg.inv(own.ridge - cross.T @ through)

        def solve(y: Floats) -> tuple[Floats, Floats]:
            first = shared.inverse @ (shared.x.T @ y)
            second = rest @ (own.x.T @ y - cross.T @ first)
            return first - through @ second, second

        return solve

    def _of_standard(self, shared: Floats, own: Floats | None) -> Floats:
        fitted: Floats = self._level + shared @ self._weights
        return fitted if own is None else fitted + own @ self._own_weights

    def at(self, shared: Floats, own: Floats | None) -> Floats:
        """Fitted values; shared : standardised; own : as measured."""
        return self._of_standard(
            shared, None if self._own is None or own is None else self._own.standard(own)
        )


def _components(filled: Floats) -> Floats:
    """Axes of the first principal components, shape (zones, COMPONENTS)."""
    _, _, axes = np.linalg.svd(filled - filled.mean(axis=0), full_matrices=False)
    return axes[:COMPONENTS].T


def _clock(slots: NDArray[np.int64], *, day: int) -> Floats:
    """Harmonics of the day and of the week, shape (n, 14)."""
    turns = [2 * np.pi * k * slots / day for k in range(1, DAY_HARMONICS + 1)]
    turns += [2 * np.pi * k * slots / (7 * day) for k in range(1, WEEK_HARMONICS + 1)]
    return np.stack([wave(turn) for turn in turns for wave in (np.sin, np.cos)], axis=1)


def _lags(filled: Floats, nexts: NDArray[np.int64], *, horizon: int, day: int) -> Floats:
    """Features of past values, shape (n, columns x (day + 9)); uses no slot from `nexts` on."""
    last = nexts - 1
    changes = [
        filled[last - back * day + horizon] - filled[last - back * day] for back in range(1, MEAN_DAYS + 1)
    ]
    parts = [filled[nexts - k] for k in range(1, day + 1)]
    parts += [changes[back - 1] for back in STEP_DAYS]
    parts += [filled[last] - filled[last - day], filled[last] - filled[last - 7 * day]]
    parts.append(np.mean(changes, axis=0))
    parts.append(
        filled[last] - np.mean([filled[last - back * day] for back in range(1, MEAN_DAYS + 1)], axis=0)
    )
    return np.hstack(parts)
