"""Smoothed days are the best linear guess of a level under its model, and flags mark unlike days."""

import numpy as np
import pytest

from ldp.errors import LdpError
from ldp.estimation.series import levels
from ldp.estimation.series.smoothing import FALSE_ALARMS, SmoothedDays, smooth_days
from tests.ldp.exact import refuses

RANDOM = np.random.default_rng


def wandering(days: int, k: int, *, moves: float, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Levels and figures around them."""
    random = RANDOM(seed)
    levels = 0.2 + np.cumsum(random.normal(0, moves**0.5, (days, k)), axis=0)
    return levels, levels + random.normal(0, noise**0.5, (days, k))


def test_levels_are_their_conditional_distribution() -> None:
    """By the joint normal law of all days: what follows from the days until one, and from all days."""
    _, values = wandering(20, 3, moves=4.0, noise=1.0, seed=1)
    variances = np.full(values.shape, 1.0)
    variances[7] = 9.0
    values[[4, 5], 0] = np.nan
    found = smooth_days(values, variances)
    assert found.moves > 0
    steps = np.minimum.outer(np.arange(20), np.arange(20)) * found.moves
    for code in range(3):
        is_known = ~np.isnan(values[:, code])
        for day in range(20):
            for until, mean, variance in (
                (day, found.filtered, found.filtered_variances),
                (19, found.smoothed, found.smoothed_variances),
            ):
                seen = np.flatnonzero(is_known[: until + 1])
                prior = steps + 1e7  # nothing is known before the first day
                joint = prior[np.ix_(seen, seen)] + np.diag(variances[seen, code])
                gain = np.linalg.solve(joint, prior[seen, day])
                assert mean[day, code] == pytest.approx(gain @ values[seen, code], abs=2e-3)
                assert variance[day, code] == pytest.approx(
                    prior[day, day] - gain @ prior[seen, day], abs=5e-3
                )


def test_a_level_that_stays_is_the_mean_of_its_days() -> None:
    values = np.array([[0.1], [0.3], [0.2], [0.2]])
    found = smooth_days(values, np.full((4, 1), 0.5))
    assert found.moves == 0
    assert found.smoothed == pytest.approx(np.full((4, 1), 0.2), abs=1e-5)
    assert found.smoothed_variances == pytest.approx(np.full((4, 1), 0.125), abs=1e-4)
    assert found.filtered[1, 0] == pytest.approx(0.2, abs=1e-5)


def test_days_before_the_first_figure_have_none() -> None:
    values = np.full((6, 2), np.nan)
    values[2:, 0] = [0.1, 0.2, 0.1, 0.2]
    found = smooth_days(values, np.full((6, 2), 0.01))
    assert np.isnan(found.smoothed[:2]).all() and np.isnan(found.smoothed[:, 1]).all()
    assert not np.isnan(found.smoothed[2:, 0]).any()
    assert not found.changes.any()


def test_ordinary_days_are_flagged_as_seldom_as_stated() -> None:
    """200 series of 12 levels that stay or wander: share of days with a flag, within 3.5 standard errors."""
    flagged = []
    for seed in range(200):
        _, values = wandering(62, 12, moves=1e-5 * (seed % 2), noise=9e-4, seed=seed)
        flagged.append(smooth_days(values, np.full(values.shape, 9e-4)).changes.any(axis=1)[5:])
    share = np.mean(flagged)
    error = np.std(np.mean(flagged, axis=1)) / len(flagged) ** 0.5
    assert 0.2 * FALSE_ALARMS < share < FALSE_ALARMS + 3.5 * error


def test_an_event_is_flagged_when_it_begins_and_when_it_ends() -> None:
    shares = np.tile([0.5, 0.3, 0.2], (40, 1))
    shares[20:23] = [0.2, 0.6, 0.2]
    values = shares + RANDOM(1).normal(0, 0.03, shares.shape)
    found = smooth_days(values, np.full(shares.shape, 9e-4))
    assert np.flatnonzero(found.changes.any(axis=1)).tolist() == [20, 23]
    assert found.changes[[20, 23], :2].all() and not found.changes[:, 2].any()


def test_one_day_that_is_unlike_all_others_does_not_hide_itself() -> None:
    """A jump makes every day look restless if levels are thought to move as much always."""
    values = 0.5 + RANDOM(4).normal(0, 0.01, (14, 2))
    values[9] += [0.4, -0.4]
    assert smooth_days(values, np.full((14, 2), 1e-4)).changes.any(axis=1).nonzero()[0].tolist() == [9, 10]


def test_it_is_the_filter_of_forecasts() -> None:
    _, values = wandering(9, 1, moves=4.0, noise=1.0, seed=2)
    variances = np.full(values.shape, 1.0)
    found = smooth_days(values, variances)
    figures = levels.DayFigures(
        values=values[:, 0], variances=variances[:, 0], weekdays=np.zeros(9, np.int64)
    )
    asked = {"moves": np.array([found.moves]), "own": np.zeros(1)}
    state = levels.follow(figures, design=np.ones((9, 1)), **asked)
    assert found.filtered[-1, 0] == state.mean[0, 0]
    assert found.filtered_variances[-1, 0] == state.covariance[0, 0, 0]


def test_what_is_no_series_is_refused() -> None:
    figures = np.full((3, 2), 0.5)
    refuses("one shape", smooth_days, figures, figures[:2])
    refuses("must have an estimate", smooth_days, figures * np.nan, figures)
    refuses("false_alarms must be in", smooth_days, figures, figures, false_alarms=1.0)
    assert isinstance(smooth_days(figures, figures), SmoothedDays)
    with pytest.raises(LdpError, match="at least 0"):
        smooth_days(figures, -figures)
