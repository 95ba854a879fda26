"""Forecasts of daily figures: a level that wanders, effects of weekday and season, and noise of known size.

The state is (level, six contrasts between weekdays, two waves of the year); the level moves by a variance q
a day, and a day differs from it by a variance h and by the noise of its published figure, which the plan
says. A Kalman filter follows it (Durbin and Koopman 2012, chapter 4). Forecasts are averages over a grid of q
and h, weighted by their likelihood, so their variances include the uncertainty about q and h: with the most
likely ones alone, intervals of long spans are too narrow. Published figures only, so it costs no epsilon.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.series.forecast import LEVELS
from ldp.estimation.series.grid import Floats

DayMethod = Literal["level, weekday and year", "level and weekday", "level", "last value"]

YEAR_DAYS, WEEKDAY_DAYS, LEVEL_DAYS = 730, 14, 5  # with a value, that a method needs
WAVES: Final = 2  # of a year: one and two periods
DIFFUSE: Final = 1e6  # of the figures' variance: nothing is known before the first of them
GRID: Final = 10.0 ** np.arange(-7.0, 0.1, 0.5)  # variances q and h, of the figures' variance
Z: Final = np.array([NormalDist().inv_cdf((1 + level) / 2) for level in LEVELS])


@dataclass(frozen=True, slots=True, kw_only=True)
class DayFigures:
    """Figures of consecutive days.

    values : float64 (days,), NaN where there is none
    variances : float64 (days,), of the noise of each; 0 where it is exact
    weekdays : int64 (days or more,), 0 to 6, also of the days to be forecast
    seasons : float64, same shape; share of its year that is over before a day; None: no effect of seasons
    """

    values: Floats
    variances: Floats
    weekdays: NDArray[np.int64]
    seasons: Floats | None = None

    def __post_init__(self) -> None:
        if self.values.ndim != 1 or self.variances.shape != self.values.shape:
            raise LdpError(
                f"values and variances must have one shape (days,), got {self.values.shape} and "
                f"{self.variances.shape}"
            )
        known = ~np.isnan(self.values)
        if not np.isfinite(self.values[known]).all() or not (self.variances[known] >= 0).all():
            raise LdpError("values must be finite or NaN, and variances of known ones at least 0")
        if not np.isin(self.weekdays, range(7)).all() or len(self.weekdays) < len(self.values):
            raise LdpError("weekdays must be in 0..6, one for each day")
        if self.seasons is not None and self.seasons.shape != self.weekdays.shape:
            raise LdpError(f"seasons must have the shape of weekdays, got {self.seasons.shape}")

    def until(self, day: int) -> Self:
        """Return the days before place `day`, and all weekdays and seasons."""
        return replace(self, values=self.values[:day], variances=self.variances[:day])


@dataclass(frozen=True, slots=True, kw_only=True)
class DayForecast:
    """Expected figures of the next days, or sums of them, and their variances, without new noise.

    variances : NaN where the method gives none
    """

    method: DayMethod
    values: Floats
    variances: Floats

    def half_widths(self, noise: Floats | float = 0.0) -> Floats:
        """Half widths of the intervals of `LEVELS` of figures with noise of this variance: (levels, days)."""
        widths: Floats = Z[:, None] * np.sqrt(self.variances + noise)
        return widths


def day_method(figures: DayFigures) -> DayMethod:
    """Return the method that the known days allow; weekdays need two of each, and seasons two years."""
    known = ~np.isnan(figures.values)
    n_of_weekday = np.bincount(figures.weekdays[: len(known)][known], minlength=7)
    if known.sum() >= WEEKDAY_DAYS and n_of_weekday.min() >= 2:
        has_seasons = figures.seasons is not None and known.sum() >= YEAR_DAYS
        return "level, weekday and year" if has_seasons else "level and weekday"
    return "level" if known.sum() >= LEVEL_DAYS else "last value"


def forecast_days(figures: DayFigures, *, days: int) -> DayForecast:
    """Forecast the days that follow the last one.

    Raises
    ------
    LdpError : no figure is known, or weekdays of the days to be forecast are missing
    """
    most = len(figures.weekdays) - len(figures.values)
    if not 1 <= days <= most:
        raise LdpError(f"days must be in 1..{most}, whose weekdays are known, got {days}")
    return forecast_sums(figures, spans=[(day, day) for day in range(1, days + 1)])


def forecast_sums(figures: DayFigures, *, spans: Sequence[tuple[int, int]]) -> DayForecast:
    """Forecast the sum of the figures over each span of days after the last one.

    Parameters
    ----------
    spans : first and last day of each, counted from 1: the day after the last one

    Raises
    ------
    LdpError : no figure is known, or weekdays of the days to be forecast are missing

    Notes
    -----
    A move of the level counts in all later days of a span: over m days that begin f days ahead, their squares
    add up to f m^2 + (m - 1)^2 + ... + 1.
    """
    n, most = len(figures.values), len(figures.weekdays) - len(figures.values)
    if np.isnan(figures.values).all():
        raise LdpError("a forecast must have a figure to begin with, got none")
    if not all(1 <= first <= last <= most for first, last in spans):
        raise LdpError(f"spans must lie in 1..{most}, whose weekdays are known, got {list(spans)}")
    method = day_method(figures)
    lengths = np.array([last - first + 1 for first, last in spans], np.float64)
    if method == "last value":
        value = figures.values[~np.isnan(figures.values)][-1]
        return DayForecast(method=method, values=value * lengths, variances=np.full(len(spans), np.nan))
    design = design_of(
        figures.weekdays,
        has_weekdays=method != "level",
        seasons=figures.seasons if method == "level, weekday and year" else None,
    )
    moves, own = (scale_of(figures) * each.ravel() for each in np.meshgrid(GRID, GRID))
    state = follow(figures, design=design[:n], moves=moves, own=own)
    # Before the figures, each standard deviation of days is as likely as another (Gelman 2006, section 2.2).
    # Large moves are less likely: else intervals of long spans would cover too much.
    before = own**0.5 * moves**0.25
    weights = np.exp(state.log_likelihood - state.log_likelihood.max()) * before
    ahead = np.array([design[n + first - 1 : n + last].sum(axis=0) for first, last in spans])
    starts = np.array([first for first, _ in spans], np.float64)
    steps = starts * lengths**2 + (lengths - 1) * lengths * (2 * lengths - 1) / 6
    spread = np.einsum("hi,pij,hj->ph", ahead, state.covariance, ahead)
    values, variances = mixed(
        state.mean @ ahead.T,
        spread + np.outer(moves, steps) + np.outer(own, lengths),
        weights / weights.sum(),
    )
    return DayForecast(method=method, values=values, variances=variances)


def mixed(means: Floats, variances: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of a mixture; its parts are on the next to last axis, which is dropped."""
    mean = np.einsum("p,...pk->...k", weights, means)
    around = variances + (means - mean[..., np.newaxis, :]) ** 2
    return mean, np.einsum("p,...pk->...k", weights, around)


def design_of(weekdays: NDArray[np.int64], *, has_weekdays: bool, seasons: Floats | None = None) -> Floats:
    """Return the weights of the state in each day; contrasts of weekdays add up to 0.

    Returns
    -------
    weights : float64 (days, 1), with weekdays (days, 7), with seasons too (days, 11)
    """
    level = np.ones((len(weekdays), 1))
    if not has_weekdays:
        return level
    # Helmert contrasts: orthogonal to each other and to the level.
    contrasts = np.zeros((7, 6))
    for k in range(1, 7):
        contrasts[:k, k - 1], contrasts[k, k - 1] = 1.0, -float(k)
    parts = [level, contrasts[weekdays] / np.linalg.norm(contrasts, axis=0)]
    if seasons is not None:
        angles = 2 * np.pi * seasons[:, np.newaxis] * np.arange(1, WAVES + 1)
        parts += [np.cos(angles), np.sin(angles)]
    return np.hstack(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """State after a day under each pair of variances.

    mean : float64 (pairs, states); covariance : (pairs, states, states); log_likelihood : (pairs,)
    error, error_variance : (pairs,), of the day's figure around what was expected of it; NaN without a figure
    """

    mean: Floats
    covariance: Floats
    log_likelihood: Floats
    error: Floats
    error_variance: Floats


def follow(figures: DayFigures, *, design: Floats, moves: Floats, own: Floats) -> State:
    """State after all days, for several pairs of variances at once; parameters as of `states`."""
    shape = (len(figures.values), len(moves))
    values, variances = (
        np.broadcast_to(each[:, np.newaxis], shape) for each in (figures.values, figures.variances)
    )
    prior = np.full(len(moves), DIFFUSE * scale_of(figures))
    last = deque(states(values, variances, prior=prior, design=design, moves=moves, own=own), maxlen=1)
    if not last:
        raise LdpError("figures must be of at least one day, got none")
    return last[0]


def states(
    values: Floats, variances: Floats, *, prior: Floats, design: Floats, moves: Floats, own: Floats
) -> Iterator[State]:
    """Yield the state after each day, by a Kalman filter for several series, or pairs of variances, at once.

    The covariance is that of the last day that was yielded: one who keeps several days copies it.

    values, variances : float64 (days, pairs); NaN where there is no figure
    prior : float64 (pairs,), variance of each part of the state before the first day
    design : float64 (days, states), of `design_of`
    moves : float64 (pairs,) or (days, pairs), of the level from the day before to each
    own : float64 (pairs,), of days around the level
    """
    n_states, n_pairs = design.shape[1], values.shape[1]
    # Pairs are on the last axis: the few states would make all operations three times as slow.
    mean = np.zeros((n_states, n_pairs))
    covariance = np.eye(n_states)[:, :, np.newaxis] * prior
    change, rows = np.empty_like(covariance), covariance.reshape(n_states, -1)
    log_likelihood = np.zeros(n_pairs)
    steps = np.broadcast_to(moves, values.shape)
    for value, noise, shown, step in zip(values, variances, design, steps, strict=True):
        covariance[0, 0] += step
        along = (shown @ rows).reshape(n_states, n_pairs)
        variance = shown @ along + own + noise
        error = value - shown @ mean
        known = ~np.isnan(value)
        gain = np.where(known, along / variance, 0.0)
        mean = mean + gain * np.where(known, error, 0.0)
        covariance -= np.multiply(gain[:, np.newaxis], along, out=change)
        density = np.log(2 * np.pi * variance) + error**2 / variance
        log_likelihood = log_likelihood - np.where(known, density, 0.0) / 2
        yield State(
            mean=mean.T,
            covariance=np.moveaxis(covariance, -1, 0),
            log_likelihood=log_likelihood,
            error=error,
            error_variance=variance,
        )


def scale_of(figures: DayFigures) -> float:
    """Variance of the figures, and of their noise: the unit of all other variances; above 0."""
    known = ~np.isnan(figures.values)
    values = figures.values[known]
    scale = float(values.var() + figures.variances[known].mean())
    return scale if scale > 0 else max(1e-6 * float(np.abs(values).max()) ** 2, 1e-12)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayBacktest:
    """Errors of one day ahead, or of sums, each by what was known before it.

    rmse, mae : float64 (3,), of the forecast, the last value and the week before; NaN where none is known.
        Of sums the last value is that of the days before of the same number, and there is no third
    coverage : (levels,), of published figures, noise included
    days : with a figure, that were judged; of sums their number
    """

    days: int
    rmse: Floats
    mae: Floats
    coverage: Floats


def backtest_days(figures: DayFigures, *, days: int) -> DayBacktest | None:
    """Judge forecasts of each of the last days; None where no day has enough before it."""
    n = len(figures.values)
    origins = [
        day
        for day in range(max(n - days, 1), n)
        if not np.isnan(figures.values[day]) and day_method(figures.until(day)) != "last value"
    ]
    if not origins:
        return None
    errors, inside = [], []
    for day in origins:
        value, before = figures.values[day], figures.until(day)
        found = forecast_days(before, days=1)
        last = before.values[~np.isnan(before.values)][-1]
        week = figures.values[day - 7] if day >= 7 else np.nan
        errors.append([value - found.values[0], value - last, value - week])
        inside.append(np.abs(errors[-1][0]) <= found.half_widths(figures.variances[day])[:, 0])
    return _judged(errors, inside)


def backtest_sums(figures: DayFigures, *, spans: Sequence[tuple[int, int]]) -> DayBacktest | None:
    """Judge forecasts of the sums over some spans of known days by the days before each.

    Spans with too short a history for effects of weekdays, or one shorter than the span, are left out; None
    where no other one is left.

    Parameters
    ----------
    spans : places of the first and last day of each, from 0
    """
    errors, inside = [], []
    for first, last in spans:
        before, n = figures.until(first), last - first + 1
        if first < n or day_method(before) in ("level", "last value"):
            continue
        total = figures.values[first : last + 1].sum()
        found = forecast_sums(before, spans=[(1, n)])
        errors.append([total - found.values[0], total - before.values[-n:].sum(), np.nan])
        noise = figures.variances[first : last + 1].sum()
        inside.append(np.abs(errors[-1][0]) <= found.half_widths(noise)[:, 0])
    return _judged(errors, inside) if errors else None


def _judged(errors: Sequence[Sequence[float]], inside: Sequence[NDArray[np.bool_]]) -> DayBacktest:
    each = np.array(errors).T
    known = np.maximum(np.count_nonzero(~np.isnan(each), axis=1), 1)
    none = np.isnan(each).all(axis=1)
    return DayBacktest(
        days=len(errors),
        rmse=np.where(none, np.nan, np.sqrt(np.nansum(each**2, axis=1) / known)),
        mae=np.where(none, np.nan, np.nansum(np.abs(each), axis=1) / known),
        coverage=np.mean(inside, axis=0),
    )
