"""Hours of a day in which rows are expected."""

from dataclasses import replace
from datetime import date

from tests.mobility.quality.deliveries_by_hand import calendar


def test_visitor_hours_are_those_with_a_visitor_minute() -> None:
    assert calendar(hours=(6, 23)).visitor_hours(1) == tuple(range(6, 24))


def test_an_hour_that_the_clock_skips_is_not_expected() -> None:
    spring = calendar(days=3, start=date(2024, 3, 30), hours=(0, 4))
    assert spring.visitor_hours(1) == (0, 1, 2, 3, 4)
    assert spring.visitor_hours(2) == (0, 1, 3, 4)
    lord_howe = replace(
        calendar(days=1, start=date(2024, 10, 6), hours=(0, 4)), timezone="Australia/Lord_Howe"
    )
    assert lord_howe.visitor_hours(1) == (0, 1, 2, 3, 4)  # of the hour from 2:00 half is skipped
    autumn = calendar(days=1, start=date(2024, 10, 27), hours=(0, 4))
    assert autumn.visitor_hours(1) == (0, 1, 2, 3, 4)


def test_days_have_dates_and_weekdays() -> None:
    study = calendar(days=14)
    assert study.date_of(1) == date(2024, 5, 1)
    assert study.date_of(14) == date(2024, 5, 14)
    assert study.same_weekday(1, 8)
    assert study.same_weekday(8, 1)
    assert not study.same_weekday(1, 7)
