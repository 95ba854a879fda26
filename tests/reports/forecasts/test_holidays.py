"""Public holidays count as Sundays where a setting asks for it, and are days like others without it."""

from datetime import date

import numpy as np
import pytest

from ldp.estimation.series.forecast import forecast
from ldp.estimation.series.grid import Series
from ldp.estimation.series.levels import DayFigures, forecast_days
from reports.forecasts.actions import is_current, kept_forecast, refresh
from reports.forecasts.holidays import holidays_between
from reports.forecasts.series import slot_series, visitor_days
from reports.slots.queries import presence
from tests.reports import report_factory as factory
from tests.reports import slot_factory

BASTILLE = date(2026, 7, 14)  # a Tuesday
DAY = 12


@pytest.mark.parametrize(
    ("asked", "timezone", "found"),
    [("", "Europe/Paris", set()), ("FR", "UTC", {BASTILLE}), ("timezone", "Europe/Paris", {BASTILLE}),
     ("timezone", "Europe/Madrid", set()), ("timezone", "UTC", set()), ("XX", "Europe/Paris", set())],
)  # fmt: skip
def test_a_setting_or_the_time_zone_names_the_country(settings, asked, timezone, found) -> None:
    settings.MOBILITY_HOLIDAYS = asked
    assert holidays_between(date(2026, 7, 1), 31, timezone=timezone) == found


@pytest.mark.django_db
def test_a_study_counts_its_holidays_as_sundays_and_a_changed_setting_is_a_new_forecast(settings) -> None:
    slots = slot_factory.published(days=16, slots=48, first_day=date(2026, 7, 10))
    days = factory.published(factory.GENDER, days=16, first_day=date(2026, 7, 10), slug="days")
    assert slot_series(presence(slots)).series.sundays == frozenset()
    refresh(days)
    row = kept_forecast(days, "days")
    assert is_current(row)
    settings.MOBILITY_HOLIDAYS = "timezone"
    assert slot_series(presence(slots)).series.sundays == {4}
    assert visitor_days(days)[0].figures.weekdays[:9].tolist() == [4, 5, 6, 0, 6, 2, 3, 4, 5]
    assert not is_current(row)


def test_a_holiday_to_come_is_forecast_like_a_sunday() -> None:
    weekly = np.array([70.0, 71, 72, 73, 74, 40, 20])
    weekdays = np.arange(42) % 7
    weekdays[36] = 6  # a Tuesday
    figures = DayFigures(values=np.tile(weekly, 5), variances=np.zeros(35), weekdays=weekdays)
    assert forecast_days(figures, days=2).values == pytest.approx([70, 20], abs=0.05)


def test_the_clock_of_a_holiday_is_that_of_a_sunday() -> None:
    series = Series(
        values=np.ones((3 * DAY, 1)), slots_per_day=DAY, first_slot=DAY, sundays=frozenset({1, 3})
    )
    rows = np.array([0, DAY + 2, 2 * DAY + 2, 3 * DAY + 5])
    assert series.slots_of_week(rows).tolist() == [DAY, 6 * DAY + 2, 3 * DAY + 2, 6 * DAY + 5]
    assert series.until(DAY).sundays == {1, 3}


def test_holidays_move_a_forecast_of_slots_towards_sundays() -> None:
    random = np.random.default_rng(1)
    slots = np.arange(70 * DAY)
    low = (slots // DAY) % 7 == 6
    values = (1000 + 50 * np.sin(2 * np.pi * slots / DAY) - 300 * low + random.normal(0, 5, len(slots)))[
        :, None
    ]
    plain = Series(values=values, slots_per_day=DAY)
    aware = Series(values=values, slots_per_day=DAY, sundays=frozenset({70}))
    assert forecast(aware, horizons=[4]).values[0, 0] < forecast(plain, horizons=[4]).values[0, 0] - 10
