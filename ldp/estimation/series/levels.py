"""Forecasts of daily figures: a level that wanders, an effect of each weekday, and noise whose size is known.

The state is (level, six contrasts between weekdays); the level moves by a variance q a day, and a day
differs from it by a variance h and by the noise of its published figure, which the plan says. A Kalman filter
follows it (Durbin and Koopman 2012, chapter 4); q and h have the greatest likelihood on a grid. Published
figures only, so it costs no epsilon.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.series.forecast import LEVELS
from ldp.estimation.series.grid import Floats

DayMethod = Literal["level and weekday", "level", "last value"]

WEEKDAY_DAYS, LEVEL_DAYS = 14, 5  # with a value, that a method needs
DIFFUSE: Final = 1e6  # of the figures' variance: nothing is known before the first of them
COARSE: Final = np.concatenate([[0.0], 10.0 ** np.arange(-6.0, 1.0, 0.5)])  # of the figures' variance
FINE: Final = 10.0 ** np.arange(-0.4, 0.5, 0.1)  # of what is best on the coarse grid
Z: Final = np.array([NormalDist().inv_cdf((1 + level) / 2) for level in LEVELS])


@dataclass(frozen=True, slots=True, kw_only=True)
class DayFigures:
    """Figures of consecutive days.

    values : float64 (days,), NaN where there is none
    variances : float64 (days,), of the noise of each; 0 where it is exact
    weekdays : int64 (days or more,), 0 to 6, also of the days to be forecast
    """

    values: Floats
    variances: Floats
    weekdays: NDArray[np.int64]

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

    def until(self, day: int) -> Self:
        """Return the days before place `day`, and all weekdays."""
        return type(self)(values=self.values[:day], variances=self.variances[:day], weekdays=self.weekdays)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayForecast:
    """Expected figures of the next days, and the variance of each around it, without new noise.

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
    """Return the method that the known days allow; weekdays need two of each."""
    known = ~np.isnan(figures.values)
    n_of_weekday = np.bincount(figures.weekdays[: len(known)][known], minlength=7)
    if known.sum() >= WEEKDAY_DAYS and n_of_weekday.min() >= 2:
        return "level and weekday"
    return "level" if known.sum() >= LEVEL_DAYS else "last value"


def forecast_days(figures: DayFigures, *, days: int) -> DayForecast:
    """Forecast the days that follow the last one.

    Raises
    ------
    LdpError : no figure is known, or weekdays of the days to be forecast are missing
    """
    n = len(figures.values)
    if np.isnan(figures.values).all():
        raise LdpError("a forecast must have a figure to begin with, got none")
    if not 1 <= days <= len(figures.weekdays) - n:
        raise LdpError(
            f"days must be in 1..{len(figures.weekdays) - n}, whose weekdays are known, got {days}"
        )
    method = day_method(figures)
    if method == "last value":
        last = figures.values[~np.isnan(figures.values)][-1]
        return DayForecast(method=method, values=np.full(days, last), variances=np.full(days, np.nan))
    design = design_of(figures.weekdays[: n + days], has_weekdays=method == "level and weekday")
    moves, own = most_likely(figures, design=design[:n])
    state = follow(figures, design=design[:n], moves=np.array([moves]), own=np.array([own]))
    ahead = design[n:]
    spread = np.einsum("hi,ij,hj->h", ahead, state.covariance[0], ahead)
    return DayForecast(
        method=method,
        values=ahead @ state.mean[0],
        variances=spread + moves * np.arange(1, days + 1) + own,
    )


def design_of(weekdays: NDArray[np.int64], *, has_weekdays: bool) -> Floats:
    """Return the weights of the state in each day: (days, 7) with weekdays, whose contrasts add up to 0."""
    level = np.ones((len(weekdays), 1))
    if not has_weekdays:
        return level
    # Helmert contrasts: orthogonal to each other and to the level.
    contrasts = np.zeros((7, 6))
    for k in range(1, 7):
        contrasts[:k, k - 1], contrasts[k, k - 1] = 1.0, -float(k)
    return np.hstack([level, contrasts[weekdays] / np.linalg.norm(contrasts, axis=0)])


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

    values, variances : float64 (days, pairs); NaN where there is no figure
    prior : float64 (pairs,), variance of each part of the state before the first day
    design : float64 (days, states), of `design_of`
    moves : float64 (pairs,) or (days, pairs), of the level from the day before to each
    own : float64 (pairs,), of days around the level
    """
    mean = np.zeros((values.shape[1], design.shape[1]))
    covariance = prior[:, np.newaxis, np.newaxis] * np.eye(design.shape[1])
    log_likelihood = np.zeros(values.shape[1])
    steps = np.broadcast_to(moves, values.shape)
    for value, noise, shown, step in zip(values, variances, design, steps, strict=True):
        covariance[:, 0, 0] += step
        along = covariance @ shown
        variance = along @ shown + own + noise
        error = value - mean @ shown
        known = ~np.isnan(value)
        gain = np.where(known[:, np.newaxis], along / variance[:, np.newaxis], 0.0)
        mean = mean + gain * np.where(known, error, 0.0)[:, np.newaxis]
        covariance = covariance - gain[:, :, np.newaxis] * along[:, np.newaxis, :]
        density = np.log(2 * np.pi * variance) + error**2 / variance
        log_likelihood = log_likelihood - np.where(known, density, 0.0) / 2
        yield State(
            mean=mean,
            covariance=covariance.copy(),
            log_likelihood=log_likelihood,
            error=error,
            error_variance=variance,
        )


def most_likely(figures: DayFigures, *, design: Floats) -> tuple[float, float]:
    """Variances (of the level's moves, of days around it) with the greatest likelihood on the grid."""
    scale = scale_of(figures)
    moves, own = _best(figures, design, scale * COARSE, scale * COARSE)
    return _best(figures, design, moves * FINE, own * FINE)


def _best(figures: DayFigures, design: Floats, moves: Floats, own: Floats) -> tuple[float, float]:
    pairs = np.stack(np.meshgrid(np.unique(moves), np.unique(own)), axis=-1).reshape(-1, 2)
    if (figures.variances == 0).any():  # exact days that lie on a line would have any likelihood
        pairs = np.maximum(pairs, 1e-9 * scale_of(figures))
    found = follow(figures, design=design, moves=pairs[:, 0], own=pairs[:, 1])
    best = pairs[int(np.argmax(found.log_likelihood))]
    return float(best[0]), float(best[1])


def scale_of(figures: DayFigures) -> float:
    """Variance of the figures, and of their noise: the unit of all other variances; above 0."""
    known = ~np.isnan(figures.values)
    values = figures.values[known]
    scale = float(values.var() + figures.variances[known].mean())
    return scale if scale > 0 else max(1e-6 * float(np.abs(values).max()) ** 2, 1e-12)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayBacktest:
    """Errors of one day ahead on the last days, each by what was known before it.

    rmse, mae : float64 (3,), of the forecast, the last value and the week before; NaN where none is known
    coverage : (levels,), of published figures, noise included
    days : with a figure, that were judged
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
    each = np.array(errors).T
    known = np.maximum(np.count_nonzero(~np.isnan(each), axis=1), 1)
    none = np.isnan(each).all(axis=1)
    return DayBacktest(
        days=len(origins),
        rmse=np.where(none, np.nan, np.sqrt(np.nansum(each**2, axis=1) / known)),
        mae=np.where(none, np.nan, np.nansum(np.abs(each), axis=1) / known),
        coverage=np.mean(inside, axis=0),
    )
