"""Smoothed shares of days: a level that wanders, and noise whose variance is known; and days of a change.

Each category is a level that moves by a variance q a day, seen with the known variance of the day's estimate
(`ldp.estimation.series.levels`). q is one for all categories. Figures are averages over values of q, weighted
by the likelihood of all categories together, so their variance includes the uncertainty about q. The filter
uses a day and those before it; the smoother uses all days (Durbin and Koopman 2012, chapter 4). Published
figures only, so it costs no epsilon.

Where the share of a day is unlike the days before it, the level lags behind: smoothed figures are biased
then, and estimates are not. Such days are flagged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.estimators import pure_variance
from ldp.estimation.noisy_estimators import UnionNoise, noise_variance
from ldp.estimation.numbers.wave import likeliest_levels, wave_variance
from ldp.estimation.series.grid import Floats
from ldp.estimation.series.levels import DIFFUSE, LEVEL_DAYS, DayFigures, State, mixed, scale_of, states
from ldp.protocols.channels import GrrChannel, PureChannel
from ldp.protocols.faked_reports import PriorFakedChannel
from ldp.protocols.numbers.wave import WaveChannel

MOVES: Final = 10.0 ** np.arange(-4.0, 1.1, 0.5)  # variances of a day's move, of the figures' variance
AROUND: Final = 28  # days
FALSE_ALARMS: Final = 0.01  # probability that an ordinary day is flagged, for any category


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SmoothedDays:
    """Levels of categories on consecutive days; NaN before the first figure of a category.

    filtered, smoothed : float64, shape (days, categories); by the days until then, and by all days
    filtered_variances, smoothed_variances : same shape; of the level around them
    changes : bool, same shape; days on which a figure is unlike the days before
    """

    filtered: Floats
    filtered_variances: Floats
    smoothed: Floats
    smoothed_variances: Floats
    changes: NDArray[np.bool_]


def smooth_days(values: Floats, variances: Floats, *, false_alarms: float = FALSE_ALARMS) -> SmoothedDays:
    """Filter and smooth the estimates of consecutive days.

    Parameters
    ----------
    values : float64, shape (days, categories); NaN where there is no estimate
    variances : float64, same shape; exact variance of each estimate, above 0
    false_alarms : probability that a day is flagged on which no level moves more than it usually does, in
        (0, 1): that of a category is less, since all of them are compared

    Raises
    ------
    LdpError : shapes do not fit, no estimate at all, or false_alarms is out of range

    Notes
    -----
    Flags are found one by one, the largest first: each lets all levels jump on its day, so that one event
    does not hide itself, or another one, by making days look restless. The levels themselves have no jumps.
    """
    if values.ndim != 2 or values.shape != variances.shape:
        raise LdpError(
            f"values and variances must have one shape (days, categories), got {values.shape} and "
            f"{variances.shape}"
        )
    if not 0 < false_alarms < 1:
        raise LdpError(f"false_alarms must be in (0, 1), got {false_alarms}")
    series = _Series(values, variances)
    found = np.full((4, *values.shape), np.nan)
    found[:, :, series.has_any] = series.smooth()
    for code in np.flatnonzero(series.has_any):
        found[:, : np.flatnonzero(~np.isnan(values[:, code]))[0], code] = np.nan
    return SmoothedDays(
        filtered=found[0],
        filtered_variances=found[1],
        smoothed=found[2],
        smoothed_variances=found[3],
        changes=_changes(series, values.shape, false_alarms=false_alarms),
    )


def smooth_shares(
    shares: Floats, *, n_reports: NDArray[np.int64], n_visitors: NDArray[np.int64], channel: PureChannel
) -> SmoothedDays:
    """Filter and smooth the shares of consecutive days by `smooth_days`.

    Parameters
    ----------
    shares : float64, shape (days, categories); unbiased estimates, NaN where there is none
    n_reports, n_visitors : int64, shape (days,); not read on days without estimates
    channel : as used for the reports

    Notes
    -----
    Variances are taken at the mean of all days, and then at the levels that follow from it.
    """
    variances = partial(share_variances, shares, n_reports=n_reports, n_visitors=n_visitors, channel=channel)
    levels = np.full(shares.shape, np.nan)
    series = _Series(shares, variances())
    levels[:, series.has_any] = series.smooth()[2]
    return smooth_days(shares, variances(at=levels))


def share_variances(
    shares: Floats,
    *,
    n_reports: NDArray[np.int64],
    n_visitors: NDArray[np.int64],
    channel: PureChannel | PriorFakedChannel,
    at: Floats | None = None,
    noise: Sequence[UnionNoise] = (),
) -> Floats:
    """Variances of the estimates of consecutive days, at shares that do not follow each day's noise.

    Parameters
    ----------
    shares, n_visitors, channel : as of `smooth_shares`
    n_reports : int64, shape (days,), or (days, categories) where a report is about one category
    noise : of the counts of each day, if they are noisy; then with a GrrChannel
    at : float64, shape as of shares; true shares, cut to [0, 1]; by default the mean of all days

    Notes
    -----
    The variance of an estimate depends on the true share. At the estimate of the day itself it would weigh
    low estimates more than high ones, which biases the level by about 1 / n_reports.
    """
    is_known = ~np.isnan(shares).all(axis=1, keepdims=True)
    reports = np.where(is_known, n_reports.reshape(len(shares), -1), 1)
    visitors = np.where(is_known, n_visitors[:, np.newaxis], 1)
    if at is None:
        weights = np.where(np.isnan(shares), 0, reports)
        at = (weights * np.nan_to_num(shares)).sum(axis=0) / np.maximum(weights.sum(axis=0), 1)
    levels = np.broadcast_to(np.clip(np.nan_to_num(at), 0, 1), shares.shape)
    if not noise or not isinstance(channel, GrrChannel):
        return pure_variance(levels, n_reports=reports, n_population=visitors, channel=channel)
    of_noise = [
        noise_variance(level, n_reports=float(n), noise=of_day, channel=channel)
        for level, n, of_day in zip(levels, reports[:, 0], noise, strict=True)
    ]
    visitors = np.maximum(visitors, reports)  # noise may make them fewer than the answers
    return np.array(of_noise) + pure_variance(
        levels, n_reports=reports, n_population=visitors, channel=channel
    )


def numbers_of_events(
    shares: Floats, *, n_reports: NDArray[np.int64], n_events: NDArray[np.int64], channel: PureChannel
) -> tuple[Floats, Floats]:
    """Estimated events of each category on consecutive days, and the variance of their noise.

    Parameters
    ----------
    shares : float64, shape (days, categories); NaN on days without reports
    n_reports, n_events : int64, shape (days,); n_events is exact
    channel : as used for the reports

    Returns
    -------
    values, variances : float64, shape of shares

    Notes
    -----
    On a day without reports the events are shared out as on average. The noise of a day grows with its
    number of events: weighed by it, days with few events would count more, and the level would be too low.
    So variances are those of the mean number of the four weeks around a day.
    """
    is_known = ~np.isnan(shares).any(axis=1, keepdims=True)
    weights = np.where(is_known, n_reports[:, np.newaxis], 0)
    mean = (weights * np.nan_to_num(shares)).sum(axis=0) / max(int(weights.sum()), 1)
    filled = np.where(is_known, shares, mean)
    reports, events = (
        np.convolve(each, np.ones(AROUND), "same")[:, np.newaxis]
        / np.convolve(np.ones(len(each)), np.ones(AROUND), "same")[:, np.newaxis]
        if len(each) >= AROUND
        else np.full((len(each), 1), each.mean())
        for each in (n_reports, n_events)
    )
    at = np.broadcast_to(np.clip(mean, 0, 1), shares.shape)
    least = np.maximum(reports, 1 / AROUND)
    noise = pure_variance(at, n_reports=least, n_population=np.maximum(events, least), channel=channel)
    return n_events.astype(np.float64)[:, np.newaxis] * filled, events**2 * noise


def wave_variances(
    codes: NDArray[np.int64], *, n_visitors: NDArray[np.int64], channel: WaveChannel
) -> Floats:
    """Variances of the shares that reach each cut on consecutive days, at the likeliest numbers of all days.

    Parameters
    ----------
    codes : int64, shape (days, n_codes); reports by code; a day without any is left out
    n_visitors : int64, shape (days,)
    channel : as used for the reports

    Returns
    -------
    float64, shape (days, cuts); NaN on days without reports
    """
    n_reports = codes.sum(axis=1)
    found = np.full((len(codes), channel.domain_size), np.nan)
    if n_reports.any():
        levels = likeliest_levels(codes.sum(axis=0), channel=channel)
        weights = np.tri(channel.n_levels, channel.domain_size, -1).T
        for day in np.flatnonzero(n_reports):
            found[day] = wave_variance(
                levels,
                weights=weights,
                channel=channel,
                n_reports=n_reports[day],
                n_population=n_visitors[day],
            )
    return found


class _Series:
    """Estimates of the categories that have any."""

    def __init__(self, values: Floats, variances: Floats) -> None:
        self.has_any = ~np.isnan(values).all(axis=0)
        self.values, self.variances = values[:, self.has_any], variances[:, self.has_any]
        figures = [
            DayFigures(values=value, variances=variance, weekdays=np.zeros(len(value), np.int64))
            for value, variance in zip(self.values.T, self.variances.T, strict=True)
        ]
        if not figures:
            raise LdpError("values must have an estimate, got none")
        self.scales = np.array([scale_of(each) for each in figures])
        self.moves = self.scales.mean() * MOVES

    def states(self, jumps: NDArray[np.bool_]) -> tuple[list[State], Floats]:
        """Filtered levels after each day, of each variance of moves and category, and how likely each is.

        Returns
        -------
        states : of all pairs, those of the first variance first
        weights : float64, one for each variance; their sum is 1
        """
        n, k = len(self.moves), len(self.scales)
        prior = np.tile(DIFFUSE * self.scales, n)
        steps = np.repeat(self.moves, k) + np.where(jumps[:, np.newaxis], prior, 0.0)
        values, variances = np.tile(self.values, n), np.tile(self.variances, n)
        design = np.ones((len(values), 1))
        days = states(values, variances, prior=prior, design=design, moves=steps, own=np.zeros(n * k))
        found = [replace(each, covariance=each.covariance.copy()) for each in days]
        likelihood = found[-1].log_likelihood.reshape(n, k).sum(axis=1)
        # Before the figures, each standard deviation is as likely as another (Gelman 2006, section 2.2).
        weights = np.exp(likelihood - likelihood.max()) * np.sqrt(MOVES)
        return found, weights / weights.sum()

    def errors(self, jumps: NDArray[np.bool_]) -> Floats:
        """Error of each figure by the days before, in standard deviations; on days of a jump, as if none."""
        after, weights = self.states(jumps)
        shape = (len(after), len(weights), len(self.scales))
        variances = np.array([each.error_variance for each in after]).reshape(shape)
        variances -= np.where(jumps[:, np.newaxis], DIFFUSE * self.scales, 0.0)[:, np.newaxis]
        variances = np.maximum(variances, self.variances[:, np.newaxis])
        error, variance = mixed(np.array([each.error for each in after]).reshape(shape), variances, weights)
        return np.asarray(error / np.sqrt(variance))

    def smooth(self) -> Floats:
        """Filtered levels and variances, and smoothed ones; shape (4, days, categories)."""
        after, weights = self.states(np.zeros(len(self.values), np.bool_))
        shape = (len(after), len(weights), len(self.scales))
        mean = np.array([each.mean[:, 0] for each in after]).reshape(shape)
        variance = np.array([each.covariance[:, 0, 0] for each in after]).reshape(shape)
        smooth, spread = mean.copy(), variance.copy()
        moves = self.moves[:, np.newaxis]
        for day in range(len(mean) - 2, -1, -1):
            gain = variance[day] / (variance[day] + moves)
            smooth[day] += gain * (smooth[day + 1] - mean[day])
            spread[day] += gain**2 * (spread[day + 1] - variance[day] - moves)
        return np.array([*mixed(mean, variance, weights), *mixed(smooth, spread, weights)])


def _changes(series: _Series, shape: tuple[int, ...], *, false_alarms: float) -> NDArray[np.bool_]:
    """Days on which a figure is unlike the days before, shape (days, categories)."""
    # Half of what is allowed: with few days before, errors are further out than normal ones.
    far = NormalDist().inv_cdf(1 - false_alarms / (4 * len(series.scales)))
    is_early = np.cumsum(~np.isnan(series.values), axis=0) <= LEVEL_DAYS
    jumps = np.zeros(shape[0], np.bool_)
    errors = _sizes(series, jumps, is_early)
    while not jumps.all():
        tried = jumps.copy()
        tried[int(np.argmax(np.where(jumps, -1.0, errors.max(axis=1))))] = True
        of_tried = _sizes(series, tried, is_early)
        if (of_tried[tried].max(axis=1) <= far).any():  # the new one is not, or explains one found before
            break
        jumps, errors = tried, of_tried
    found = np.zeros(shape, np.bool_)
    found[:, series.has_any] = (errors > far) & jumps[:, np.newaxis]
    return found


def _sizes(series: _Series, jumps: NDArray[np.bool_], is_early: NDArray[np.bool_]) -> Floats:
    """Return errors without their sign, 0 where there is none or too few days are before."""
    errors = np.abs(series.errors(jumps))
    return np.where(is_early | np.isnan(errors), 0.0, errors)
