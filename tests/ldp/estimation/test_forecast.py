"""Forecasts use the past only, follow what repeats, resist outliers, and say how wrong they may be."""

import numpy as np
import pytest

from ldp.errors import LdpError
from ldp.estimation.series import forecast as forecasts
from ldp.estimation.series import regression
from ldp.estimation.series.forecast import forecast
from ldp.estimation.series.grid import Floats, Series

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
    last, steps = (
        known.values[-1],
        [known.values[-1 - d * DAY + 3] - known.values[-1 - d * DAY] for d in range(1, 10)],
    )
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


def test_a_refit_at_each_origin_knows_what_came_before_it() -> None:
    known = series(days=40, noise=5)
    origins = [38 * DAY, 39 * DAY]
    both = forecasts.backtest_errors(known, 2, origins=origins)
    second = forecasts.backtest_errors(known, 2, origins=origins[1:])
    assert both[DAY:] == pytest.approx(second)


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


def test_intervals_cover_what_they_claim() -> None:
    known = series(days=90, noise=20)
    inside = []
    for week in range(1, 5):
        end = len(known.values) - (week - 1) * WEEK
        origin = end - WEEK
        widths = forecast(known.until(origin), horizons=[1]).half_widths[:, 0]
        errors = forecasts.backtest_errors(known.until(end), 1, origins=[origin])
        inside.append([(np.abs(errors) <= width).mean() for width in widths])
    # 672 errors: standard errors 1.5 and 0.8 points.
    assert np.mean(inside, axis=0) == pytest.approx([0.80, 0.95], abs=0.05)


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
