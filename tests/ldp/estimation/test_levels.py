"""Forecasts of days follow a level and weekdays, and know how large the noise of published figures is."""

import numpy as np
import pytest

from ldp.errors import LdpError
from ldp.estimation.series import levels
from ldp.estimation.series.levels import DayFigures, backtest_days, day_method, forecast_days

RANDOM = np.random.default_rng


def figures(values: list[float] | levels.Floats, *, noise: float = 0.0, more: int = 14) -> DayFigures:
    found = np.asarray(values, float)
    return DayFigures(
        values=found,
        variances=np.full(len(found), noise),
        weekdays=np.arange(len(found) + more) % 7,
    )


def test_a_level_is_followed_as_by_hand() -> None:
    """Two days, diffuse start: mean 10, variance 1 (own) + 3 (noise) = 4; moves by 4; then half way to 18."""
    known = figures([10.0, 18.0], noise=3.0)
    state = levels.follow(known, design=np.ones((2, 1)), moves=np.array([4.0]), own=np.array([1.0]))
    # After day 1: 10 with variance 4. Before day 2: 8, of the figure 12; gain 8 / 12.
    assert state.mean[0, 0] == pytest.approx(10 + 8 * 8 / 12, rel=1e-5)
    assert state.covariance[0, 0, 0] == pytest.approx(8 - 8 * 8 / 12, rel=1e-5)


@pytest.mark.parametrize("has_weekdays", [False, True])
def test_the_filter_is_the_conditional_distribution_of_the_state(has_weekdays: bool) -> None:
    known = figures(RANDOM(1).normal(100, 20, 17), noise=25.0)
    known.values[[4, 9]] = np.nan
    known.variances[3] = 400.0
    moves, own, n = 9.0, 16.0, len(known.values)
    design = levels.design_of(known.weekdays[:n], has_weekdays=has_weekdays)
    state = levels.follow(known, design=design, moves=np.array([moves]), own=np.array([own]))

    prior = levels.DIFFUSE * levels.scale_of(known) * np.eye(design.shape[1])
    steps = np.minimum.outer(np.arange(1, n + 1), np.arange(1, n + 1))
    joint = design @ prior @ design.T + moves * steps + np.diag(own + known.variances)
    at_end = prior @ design.T
    at_end[0] += moves * np.arange(1, n + 1)
    is_known = ~np.isnan(known.values)
    values, joint, at_end = known.values[is_known], joint[np.ix_(is_known, is_known)], at_end[:, is_known]
    gain = np.linalg.solve(joint, at_end.T).T
    end_prior = prior.copy()
    end_prior[0, 0] += moves * n
    assert state.mean[0] == pytest.approx(gain @ values, rel=1e-4, abs=1e-3)
    assert state.covariance[0] == pytest.approx(end_prior - gain @ at_end.T, rel=1e-4, abs=0.05)
    _, log_det = np.linalg.slogdet(2 * np.pi * joint)
    expected = -(log_det + values @ np.linalg.solve(joint, values)) / 2
    assert state.log_likelihood[0] == pytest.approx(expected, abs=1e-3)


def test_the_contrasts_of_weekdays_take_nothing_from_the_level() -> None:
    design = levels.design_of(np.arange(7), has_weekdays=True)
    assert design.T @ design == pytest.approx(np.diag([7.0, 1, 1, 1, 1, 1, 1]))


def test_a_weekly_rhythm_is_forecast_to_the_digit() -> None:
    rhythm = np.array([10.0, 20, 30, 40, 50, 70, 60])
    found = forecast_days(figures(np.tile(rhythm, 5)), days=14)
    assert found.method == "level and weekday"
    assert found.values == pytest.approx(np.tile(rhythm, 2), abs=0.05)


def test_known_noise_is_no_movement_of_the_level() -> None:
    known = figures(1000 + RANDOM(2).normal(0, 50, 62), noise=2500.0)
    found = forecast_days(known, days=1)
    assert found.values[0] == pytest.approx(1000, abs=60)
    assert found.variances[0] < 2500 / 3
    believed = DayFigures(values=known.values, variances=np.zeros(62), weekdays=known.weekdays)
    assert forecast_days(believed, days=1).variances[0] > 1500  # the same, if it were taken for a truth


def test_intervals_of_noisy_figures_cover_what_they_claim() -> None:
    inside = []
    for seed in range(8):
        random = RANDOM(seed)
        level = 500 + np.cumsum(random.normal(0, 6, 62)) + 40 * (np.arange(62) % 7 > 4)
        judged = backtest_days(figures(level + random.normal(0, 20, 62), noise=400.0), days=28)
        assert judged is not None
        assert judged.days == 28
        assert judged.rmse[0] < judged.rmse[1:].min()
        inside.append(judged.coverage)
    # 224 days: standard errors 2.7 and 1.5 points, and estimated variances make intervals a little narrow.
    assert np.mean(inside, axis=0) == pytest.approx([0.80, 0.95], abs=0.05)


def test_nothing_from_a_day_on_changes_its_forecast() -> None:
    known = figures(RANDOM(3).normal(100, 20, 30), noise=25.0)
    known.values[20] = np.nan
    judged = backtest_days(known, days=1)
    alone = known.values[29] - forecast_days(known.until(29), days=1).values[0]
    assert judged is not None
    assert judged.rmse == pytest.approx(np.abs([alone, *(known.values[29] - known.values[[28, 22]])]))
    assert judged.mae == pytest.approx(judged.rmse)


@pytest.mark.parametrize(
    ("n", "missing", "method"),
    [
        (1, 0, "last value"), (4, 0, "last value"), (5, 0, "level"), (13, 0, "level"),
        (14, 0, "level and weekday"), (15, 1, "level"), (16, 3, "level"), (23, 7, "level and weekday"),
    ],
)  # fmt: skip
def test_the_known_days_decide_the_method(n: int, missing: int, method: str) -> None:
    known = figures(np.arange(100.0, 100 + n))
    known.values[n - missing - 1 : n - 1] = np.nan
    assert day_method(known) == method
    found = forecast_days(known, days=7)
    assert found.method == method
    assert np.isfinite(found.values).all()
    assert np.isnan(found.variances).any() == (method == "last value")
    if method == "last value":
        assert (found.values == 99 + n).all()


def test_equal_exact_days_are_forecast_as_they_are() -> None:
    assert forecast_days(figures([7.0] * 20), days=3).values == pytest.approx([7.0] * 3, abs=0.01)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: forecast_days(figures([np.nan] * 3), days=1), "must have a figure"),
        (lambda: forecast_days(figures([1.0] * 3), days=15), r"days must be in 1\.\.14.*got 15"),
        (lambda: figures([1.0, np.inf]), "must be finite"),
        (lambda: figures([1.0], noise=-1.0), "at least 0"),
        (lambda: figures([1.0], more=-1), "one for each day"),
    ],
)
def test_what_cannot_be_followed_is_refused(call: object, words: str) -> None:
    with pytest.raises(LdpError, match=words):
        call()  # type: ignore[operator]
