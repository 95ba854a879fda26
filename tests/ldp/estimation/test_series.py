"""Forecasts follow what repeats, use the past only, and are judged by days that they did not know."""

from dataclasses import replace

import numpy as np
import pytest

from ldp.errors import LdpError
from ldp.estimation.series import forecast as forecasts
from ldp.estimation.series import levels, regression
from ldp.estimation.series.backtest import LAST, MODEL, Backtest, backtest
from ldp.estimation.series.backtest import WEEK as WEEK_BEFORE
from ldp.estimation.series.forecast import backtest_errors, forecast
from ldp.estimation.series.grid import Floats, Series
from ldp.estimation.series.levels import (
    DayFigures,
    backtest_days,
    day_method,
    forecast_days,
    forecast_sums,
)

RANDOM = np.random.default_rng


def figures(values: list[float] | levels.Floats, *, noise: float = 0.0, more: int = 14) -> DayFigures:
    found = np.asarray(values, float)
    weekdays = np.arange(len(found) + more) % 7
    return DayFigures(values=found, variances=np.full(len(found), noise), weekdays=weekdays)


def test_a_level_is_followed_as_by_hand() -> None:
    """Two days, diffuse start: mean 10, variance 1 (own) + 3 (noise) = 4; moves by 4; then half way to 18."""
    known = figures([10.0, 18.0], noise=3.0)
    state = levels.follow(known, design=np.ones((2, 1)), moves=np.array([4.0]), own=np.array([1.0]))
    # After day 1: 10 with variance 4. Before day 2: 8, of the figure 12; gain 8 / 12.
    assert state.mean[0, 0] == pytest.approx(10 + 8 * 8 / 12, rel=1e-5)
    assert state.covariance[0, 0, 0] == pytest.approx(8 - 8 * 8 / 12, rel=1e-5)


@pytest.mark.parametrize(("has_weekdays", "has_seasons"), [(False, False), (True, False), (True, True)])
def test_the_filter_is_the_conditional_distribution_of_the_state(
    has_weekdays: bool, has_seasons: bool
) -> None:
    known = figures(RANDOM(1).normal(100, 20, 17), noise=25.0)
    known.values[[4, 9]] = np.nan
    known.variances[3] = 400.0
    moves, own, n = 9.0, 16.0, len(known.values)
    seasons = np.arange(n) / 30 if has_seasons else None
    design = levels.design_of(known.weekdays[:n], has_weekdays=has_weekdays, seasons=seasons)
    assert design.shape == (n, 11 if has_seasons else 7 if has_weekdays else 1)
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
    assert forecast_days(figures([7.0] * 20), days=3).values == pytest.approx([7.0] * 3, abs=0.01)


def seasonal(
    n: int, *, seed: int = 0, noise: float = 0.0, moves: float = 0.0, own: float = 0.0
) -> DayFigures:
    """Days of a rhythm of the week and of the year around a level; the true ones until 480 days later."""
    random, days = RANDOM(seed), np.arange(n + 480)
    seasons = days % 365 / 365
    rhythm = 60 + 6 * (days % 7 > 4) + 9 * np.cos(2 * np.pi * seasons) + 4 * np.sin(4 * np.pi * seasons)
    true = rhythm + np.cumsum(random.normal(0, moves**0.5, len(days))) + random.normal(0, own**0.5, len(days))
    values = true + random.normal(0, noise**0.5, len(days))
    variances = np.full(len(days), noise)
    values[n:] = true[n:]
    return DayFigures(values=values, variances=variances, weekdays=days % 7, seasons=seasons)


SPANS = [(1, 1), (3, 9), (20, 49), (50, 140), (100, 464)]


def sums_of(known: DayFigures, n: int) -> levels.Floats:
    return np.array([known.values[n + first - 1 : n + last].sum() for first, last in SPANS])


def test_rhythms_of_week_and_year_are_forecast_as_sums_of_spans() -> None:
    known = seasonal(760)
    found = forecast_sums(known.until(760), spans=SPANS)
    assert found.method == "level, weekday and year"
    assert found.values == pytest.approx(sums_of(known, 760), rel=1e-3)
    days = forecast_days(known.until(760), days=464)
    single = [days.values[first - 1 : last].sum() for first, last in SPANS]
    assert found.values == pytest.approx(single)
    assert found.variances[0] == pytest.approx(days.variances[0])


def test_a_year_that_is_known_less_than_twice_has_no_seasons() -> None:
    for n, method in ((729, "level and weekday"), (730, "level, weekday and year")):
        assert day_method(seasonal(n).until(n)) == method
    known = replace(seasonal(800).until(800), seasons=None)
    assert day_method(known) == "level and weekday"


def test_the_variance_of_a_sum_is_that_of_moves_in_all_later_days(monkeypatch) -> None:
    """With one pair of variances: the state's, and moves (q) and own deviations (h) of the days ahead."""
    monkeypatch.setattr(levels, "GRID", np.array([0.01]))
    known = seasonal(760, noise=4, moves=0.1, own=4).until(760)
    found = forecast_sums(known, spans=SPANS)
    scale = 0.01 * levels.scale_of(known)
    design = levels.design_of(known.weekdays, has_weekdays=True, seasons=known.seasons)
    state = levels.follow(known, design=design[:760], moves=np.array([scale]), own=np.array([scale]))
    for place, (first, last) in enumerate(SPANS):
        weights = design[760 + first - 1 : 760 + last].sum(axis=0)
        later = np.array([sum(day >= step for day in range(first, last + 1)) for step in range(1, last + 1)])
        expected = weights @ state.covariance[0] @ weights + scale * ((later**2).sum() + last - first + 1)
        assert found.variances[place] == pytest.approx(expected)


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


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: forecast_days(figures([np.nan] * 3), days=1), "must have a figure"),
        (lambda: forecast_days(figures([1.0] * 3), days=15), r"days must be in 1\.\.14.*got 15"),
        (lambda: forecast_sums(figures([1.0] * 3), spans=[(2, 15)]), r"spans must lie in 1\.\.14.*2, 15"),
        (lambda: forecast_sums(figures([1.0] * 3), spans=[(3, 2)]), "spans must lie"),
        (lambda: replace(figures([1.0]), seasons=np.zeros(3)), "shape of weekdays"),
        (lambda: figures([1.0, np.inf]), "must be finite"),
        (lambda: figures([1.0], noise=-1.0), "at least 0"),
        (lambda: figures([1.0], more=-1), "one for each day"),
    ],
)
def test_what_cannot_be_followed_is_refused(call: object, words: str) -> None:
    with pytest.raises(LdpError, match=words):
        call()  # type: ignore[operator]


DAY = 12
WEEK = 7 * DAY


@pytest.fixture(autouse=True)
def grouped_lags(monkeypatch: pytest.MonkeyPatch) -> None:
    """Group lags into few groups, as there are many zones and the day is short."""
    monkeypatch.setattr(regression, "LAG_GROUPS", 5)


def series(*, days: int, zones: int = 2, noise: float = 0.0, seed: int = 1) -> Series:
    """A day's rhythm in each zone, around a level that wanders."""
    random = np.random.default_rng(seed)
    slots = np.arange(days * DAY)[:, None]
    rhythm = np.sin(2 * np.pi * slots / DAY) + 0.5 * np.cos(4 * np.pi * slots / DAY)
    level = np.cumsum(random.normal(0, 0.1, (days * DAY, 1)), axis=0)
    values = 100.0 * np.arange(1, zones + 1) * (6 + rhythm + level)
    return Series(values=values + random.normal(0, noise, values.shape), slots_per_day=DAY)


def rmse(errors: Floats) -> float:
    return float(np.sqrt(np.nanmean(errors**2)))


def with_values(known: Series, values: Floats) -> Series:
    return Series(values=values, slots_per_day=known.slots_per_day, first_slot=known.first_slot)


@pytest.mark.parametrize(
    ("days", "method"),
    [(1, "last value"), (2.99, "last value"), (3, "mean step"), (20.9, "mean step"), (21, "ridge")],
)
def test_the_length_of_the_history_decides_the_method(days: float, method: str) -> None:
    known = series(days=30).until(int(days * DAY))
    assert forecast(known, horizons=[1]).method == method


def test_little_history_gives_the_last_value_or_adds_the_usual_step() -> None:
    known = series(days=10)
    short = known.until(2 * DAY)
    assert forecast(short, horizons=[1, 3]).values == pytest.approx(np.tile(short.values[-1], (2, 1)))
    last = known.values[-1]
    steps = [known.values[-1 - d * DAY + 3] - known.values[-1 - d * DAY] for d in range(1, 10)]
    assert forecast(known, horizons=[3]).values[0] == pytest.approx(last + np.mean(steps, axis=0))


@pytest.mark.parametrize("days", [2, 10, 30])
@pytest.mark.parametrize("zones", [2, regression.JOINT_ZONES + 1])
def test_nothing_from_the_forecast_slots_on_changes_a_forecast(days: int, zones: int) -> None:
    known = series(days=days, zones=zones, noise=5)
    origin = len(known.values) - DAY
    other = known.values.copy()
    other[origin:] = 1e6
    for horizon in (1, 4):
        errors = forecasts.backtest_errors(known, horizon, origins=[origin])[:1]
        changed = forecasts.backtest_errors(with_values(known, other), horizon, origins=[origin])[:1]
        assert changed - other[origin] == pytest.approx(errors - known.values[origin])


@pytest.mark.parametrize("zones", [2, regression.JOINT_ZONES + 1])
@pytest.mark.parametrize("horizon", [1, 3])
def test_it_errs_less_than_the_last_value_and_than_the_week_before(zones: int, horizon: int) -> None:
    known = series(days=90, zones=zones, noise=5)
    origin = len(known.values) - 2 * WEEK
    model = rmse(forecasts.backtest_errors(known, horizon, origins=[origin]))
    assert model < 0.7 * rmse(forecasts.last_value_errors(known, horizon, first=origin))
    assert model < 0.7 * rmse(forecasts.last_value_errors(known, horizon, first=origin, lag=WEEK))


def test_winsorised_targets_resist_outliers(monkeypatch: pytest.MonkeyPatch) -> None:
    known = series(days=90, noise=5)
    origin = len(known.values) - 2 * WEEK
    spoiled = known.values.copy()
    spoiled[np.random.default_rng(3).choice(origin - WEEK, 30, replace=False)] *= 3
    errors = rmse(forecasts.backtest_errors(with_values(known, spoiled), 1, origins=[origin]))
    monkeypatch.setattr(regression, "REFITS", 0)
    assert errors < 0.9 * rmse(forecasts.backtest_errors(with_values(known, spoiled), 1, origins=[origin]))


def test_days_without_values_are_no_targets_and_count_no_error() -> None:
    known = series(days=40, noise=5)
    values = known.values.copy()
    values[20 * DAY : 21 * DAY] = np.nan
    values[-DAY:] = np.nan
    gappy = with_values(known, values)
    assert np.isfinite(forecast(gappy, horizons=[1, DAY]).values).all()
    errors = forecasts.backtest_errors(gappy, 1, origins=[38 * DAY])
    assert np.isnan(errors[DAY:]).all()
    assert np.isfinite(errors[:DAY]).all()
    # A gap takes the value of the week before.
    assert gappy.filled()[20 * DAY : 21 * DAY] == pytest.approx(known.values[13 * DAY : 14 * DAY])


@pytest.mark.parametrize(
    ("n", "ranks"), [(99, [80, 95]), (100, [81, 96]), (28, [24, 28]), (18, [16, None]), (3, [None, None])]
)
def test_half_widths_are_split_conformal_ranks_of_the_errors(n: int, ranks: list[int | None]) -> None:
    errors = np.full((100, 2), np.nan)  # one zone has a value in n slots only
    errors[:n, 0], errors[:99, 1] = np.arange(n, 0.0, -1), np.arange(1.0, 100.0)
    expected = np.array([[np.nan if rank is None else rank for rank in ranks], [80, 95]]).T
    assert forecasts.half_width(errors) == pytest.approx(expected, nan_ok=True)
    with_noise = forecasts.half_width(errors, noise_sd=10.0)
    assert with_noise == pytest.approx(np.sqrt(expected**2 - 10.0**2), nan_ok=True)


@pytest.mark.parametrize(
    ("slots", "method"),
    [((slice(0, None, 2), slice(1, None, 2)), "mean step"), ((slice(0), slice(35 * DAY)), "ridge")],
)
def test_a_regression_needs_slots_with_values_of_all_zones(slots: tuple[slice, slice], method: str) -> None:
    known = series(days=40, noise=5)
    values = known.values.copy()
    for zone, missing in enumerate(slots):
        values[missing, zone] = np.nan
    found = forecast(with_values(known, values), horizons=[1, DAY])
    assert found.method == method
    assert np.isfinite(found.values).all()


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        (np.zeros(5), {}, r"shape \(slots, zones\), got \(5,\)"),
        (np.zeros((5, 0)), {}, r"got \(5, 0\)"),
        (np.full((5, 1), np.inf), {}, "finite"),
        (np.zeros((5, 1)), {"slots_per_day": 1}, "slots_per_day must be >= 2, got 1"),
    ],
)
def test_a_series_that_is_none_is_refused(values: Floats, options: dict[str, int], words: str) -> None:
    with pytest.raises(LdpError, match=words):
        Series(values=values, **({"slots_per_day": DAY} | options))


@pytest.mark.parametrize(
    ("values", "horizon", "words"),
    [
        (np.zeros((5, 1)), 0, r"in 1\.\.12, got 0"),
        (np.zeros((5, 1)), DAY + 1, r"in 1\.\.12, got 13"),
        (np.full((5, 1), np.nan), 1, "a zone without any"),
        (np.zeros((0, 1)), 1, "a zone without any"),
    ],
)
def test_what_cannot_be_forecast_is_refused(values: Floats, horizon: int, words: str) -> None:
    with pytest.raises(LdpError, match=words):
        forecast(Series(values=values, slots_per_day=DAY), horizons=[horizon])


def rhythm_of(days: float, *, noise: float = 5.0) -> Series:
    slots = np.arange(int(days * DAY))
    rhythm = 500 + 100 * np.sin(2 * np.pi * slots / DAY)
    values = rhythm[:, None] * [1, 2] + np.random.default_rng(1).normal(0, noise, (len(slots), 2))
    return Series(values=values, slots_per_day=DAY)


def found(known: Series, horizon: int = 3) -> Backtest:
    [result] = backtest(known, [horizon])
    return result


def test_each_day_is_forecast_by_a_fit_to_the_days_before_it() -> None:
    known = rhythm_of(40.5)  # the half day at the end is not judged
    judged = found(known)
    assert (judged.first, judged.days) == (33 * DAY, 7)
    parts = [backtest_errors(known.until((day + 1) * DAY), 3, origins=[day * DAY]) for day in range(33, 40)]
    assert judged.rmse[MODEL] == pytest.approx(np.sqrt(np.mean(np.concatenate(parts) ** 2, axis=0)))
    assert judged.mae[MODEL] == pytest.approx(np.mean(np.abs(np.concatenate(parts)), axis=0))


def test_the_last_value_and_the_week_before_are_judged_on_the_same_slots() -> None:
    known = rhythm_of(40)
    judged, values = found(known), known.values
    slots = np.arange(33 * DAY, 40 * DAY)
    for row, lag in ((LAST, 3), (WEEK_BEFORE, 7 * DAY)):
        errors = values[slots] - values[slots - lag]
        assert judged.rmse[row] == pytest.approx(np.sqrt(np.mean(errors**2, axis=0)))
        assert judged.mae[row] == pytest.approx(np.mean(np.abs(errors), axis=0))


def test_intervals_of_the_backtest_do_not_know_its_days() -> None:
    known = rhythm_of(60)
    judged = found(known)
    assert (judged.coverage >= [[0.72], [0.9]]).all()
    wild = known.values.copy()
    wild[judged.first :] += np.random.default_rng(2).normal(0, 500, (7 * DAY, 2))
    assert found(Series(values=wild, slots_per_day=DAY)).coverage.max() < 0.3


@pytest.mark.parametrize(("days", "judged", "has_week"), [(3, 0, 0), (4, 1, 0), (13, 7, 0), (14, 7, 1)])
def test_a_short_history_is_judged_on_fewer_days_or_not_at_all(days: int, judged: int, has_week: int) -> None:
    results = backtest(rhythm_of(days), [1])
    assert sum(result.days for result in results) == judged
    for result in results:
        assert np.isfinite(result.rmse).all(axis=1).tolist() == [True, True, bool(has_week)]
        assert np.isnan(result.coverage).all()


def test_a_zone_without_values_in_these_days_has_no_errors() -> None:
    values = rhythm_of(30).values.copy()
    values[23 * DAY :, 1] = np.nan
    judged = found(Series(values=values, slots_per_day=DAY))
    for figures in (judged.rmse, judged.mae, judged.coverage):
        assert np.isfinite(figures[:, 0]).all()
        assert np.isnan(figures[:, 1]).all()
