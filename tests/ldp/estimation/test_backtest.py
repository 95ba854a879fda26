"""A backtest judges forecasts, the last value and the week before by days that they did not know."""

import numpy as np
import pytest

from ldp.estimation.series.backtest import LAST, MODEL, WEEK, Backtest, backtest
from ldp.estimation.series.forecast import backtest_errors
from ldp.estimation.series.grid import Series

DAY = 12


def series(days: float, *, noise: float = 5.0) -> Series:
    slots = np.arange(int(days * DAY))
    rhythm = 500 + 100 * np.sin(2 * np.pi * slots / DAY)
    values = rhythm[:, None] * [1, 2] + np.random.default_rng(1).normal(0, noise, (len(slots), 2))
    return Series(values=values, slots_per_day=DAY)


def found(known: Series, horizon: int = 3) -> Backtest:
    [result] = backtest(known, [horizon])
    return result


def test_each_day_is_forecast_by_a_fit_to_the_days_before_it() -> None:
    known = series(40.5)  # the half day at the end is not judged
    judged = found(known)
    assert (judged.first, judged.days) == (33 * DAY, 7)
    parts = [backtest_errors(known.until((day + 1) * DAY), 3, origins=[day * DAY]) for day in range(33, 40)]
    assert judged.rmse[MODEL] == pytest.approx(np.sqrt(np.mean(np.concatenate(parts) ** 2, axis=0)))
    assert judged.mae[MODEL] == pytest.approx(np.mean(np.abs(np.concatenate(parts)), axis=0))


def test_the_last_value_and_the_week_before_are_judged_on_the_same_slots() -> None:
    known = series(40)
    judged, values = found(known), known.values
    slots = np.arange(33 * DAY, 40 * DAY)
    for row, lag in ((LAST, 3), (WEEK, 7 * DAY)):
        errors = values[slots] - values[slots - lag]
        assert judged.rmse[row] == pytest.approx(np.sqrt(np.mean(errors**2, axis=0)))
        assert judged.mae[row] == pytest.approx(np.mean(np.abs(errors), axis=0))


def test_intervals_of_the_backtest_do_not_know_its_days() -> None:
    known = series(60)
    judged = found(known)
    assert (judged.coverage >= [[0.72], [0.9]]).all()
    wild = known.values.copy()
    wild[judged.first :] += np.random.default_rng(2).normal(0, 500, (7 * DAY, 2))
    assert found(Series(values=wild, slots_per_day=DAY)).coverage.max() < 0.3


@pytest.mark.parametrize(("days", "judged", "has_week"), [(3, 0, 0), (4, 1, 0), (13, 7, 0), (14, 7, 1)])
def test_a_short_history_is_judged_on_fewer_days_or_not_at_all(days: int, judged: int, has_week: int) -> None:
    results = backtest(series(days), [1])
    assert sum(result.days for result in results) == judged
    for result in results:
        assert np.isfinite(result.rmse).all(axis=1).tolist() == [True, True, bool(has_week)]
        assert np.isnan(result.coverage).all()


def test_a_zone_without_values_in_these_days_has_no_errors() -> None:
    values = series(30).values.copy()
    values[23 * DAY :, 1] = np.nan
    judged = found(Series(values=values, slots_per_day=DAY))
    for figures in (judged.rmse, judged.mae, judged.coverage):
        assert np.isfinite(figures[:, 0]).all()
        assert np.isnan(figures[:, 1]).all()
