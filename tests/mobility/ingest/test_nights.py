"""Nights of a study, minute by minute against the time zone database, also where the clocks change."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from mobility.ingest.nights import Nights, nights_of
from mobility.ingest.timestamps import study_clock
from tests.mobility.ingest.night_study import night_study

PARIS = ZoneInfo("Europe/Paris")
SPRING, AUTUMN, SUMMER = date(2017, 3, 25), date(2017, 10, 28), date(2017, 6, 1)
DAYS = 3


def nights(first_day: date, *, night_from: str, night_to: str) -> tuple[Nights, int]:
    definition = night_study(first_day=first_day, days=DAYS, night_from=night_from, night_to=night_to)
    found = nights_of(definition)
    assert found is not None
    return found, study_clock("Europe/Paris", first_day=first_day, days=DAYS).origin


def boundaries(first_day: date, text: str, *, days_later: int) -> list[datetime]:
    hour, minute = map(int, text.split(":"))
    dates = [first_day + timedelta(days=day + days_later) for day in range(DAYS)]
    return [
        datetime(day.year, day.month, day.day, hour, minute, tzinfo=PARIS).astimezone(UTC) for day in dates
    ]


@pytest.mark.parametrize("first_day", [SPRING, AUTUMN, SUMMER])
@pytest.mark.parametrize(
    ("night_from", "night_to"), [("22:00", "06:00"), ("23:10", "02:30"), ("12:01", "12:00")]
)
def test_every_minute_belongs_to_the_night_that_began_last(
    first_day: date, night_from: str, night_to: str
) -> None:
    found, origin = nights(first_day, night_from=night_from, night_to=night_to)
    starts = boundaries(first_day, night_from, days_later=0)
    ends = boundaries(first_day, night_to, days_later=1)
    begin = datetime.combine(first_day, datetime.min.time(), UTC) - timedelta(days=1)
    minutes = [begin + timedelta(minutes=minute) for minute in range((DAYS + 3) * 24 * 60)]
    expected = [
        next((day for day in range(1, DAYS + 1) if starts[day - 1] <= minute < ends[day - 1]), 0)
        for minute in minutes
    ]
    seconds = np.array([int(minute.timestamp()) - origin for minute in minutes])
    assert found.day_of(seconds).tolist() == expected
    assert set(expected) == set(range(DAYS + 1))


@pytest.mark.parametrize(
    ("first_day", "hours"), [(SPRING, [7, 8, 8]), (AUTUMN, [9, 8, 8]), (SUMMER, [8, 8, 8])]
)
def test_nights_are_as_long_as_they_were(first_day: date, hours: list[int]) -> None:
    found, _ = nights(first_day, night_from="22:00", night_to="06:00")
    assert ((found.end - found.start) / 3600).tolist() == hours


def test_a_night_ends_when_its_time_comes_first_and_not_later_if_the_clocks_skip_it() -> None:
    """02:30 comes twice in autumn, and not at all in spring: then at what would have been 02:30."""
    for first_day, hours in ((SPRING, 4.5), (AUTUMN, 4.5)):
        found, _ = nights(first_day, night_from="22:00", night_to="02:30")
        assert (found.end[0] - found.start[0]) / 3600 == hours


def test_seconds_at_both_ends() -> None:
    found, _ = nights(SUMMER, night_from="22:00", night_to="06:00")
    start, end = int(found.start[1]), int(found.end[1])
    assert found.day_of(np.array([start - 1, start, end - 1, end, -(2**40), 2**40])).tolist() == [
        0,
        2,
        2,
        0,
        0,
        0,
    ]
    assert found.day_of(np.array([], np.uint32)).tolist() == []


def test_a_study_that_asks_for_no_night_has_none() -> None:
    assert nights_of(night_study(first_day=SUMMER, days=DAYS, night_from=None)) is None
