"""Hours of the day: local, also where the clocks change; the busiest one counts quarter-hours."""

from dataclasses import replace
from datetime import date, datetime
from zoneinfo import ZoneInfo

import numpy as np

from mobility.vault.state.hours import HourClock
from mobility.vault.state.stays import Whereabouts
from tests.reports import report_factory as factory

PARIS = ZoneInfo("Europe/Paris")
ZERO, ONE, TWO = np.uint64(4), np.uint64(7), np.uint64(9)


def clock_of(first_day: date) -> HourClock:
    return HourClock(replace(factory.definition(), first_day=first_day))


def seconds(clock: HourClock, *moments: datetime) -> np.ndarray:
    return np.array([int(each.timestamp()) - clock._clock.origin for each in moments], np.uint32)


def test_hours_are_local_before_and_after_the_clocks_change() -> None:
    for day in (date(2024, 3, 30), date(2024, 10, 26)):
        clock = clock_of(day)
        moments = [
            datetime(day.year, day.month, day.day + more, hour, minute, tzinfo=PARIS)
            for more in (0, 1)
            for hour in (0, 1, 3, 12, 23)
            for minute in (0, 59)
        ]
        expected = [each.hour for each in moments]
        assert clock.hours(seconds(clock, *moments)).tolist() == expected


def test_an_hour_that_is_shown_twice_is_one() -> None:
    clock = clock_of(date(2024, 10, 27))
    twice = [datetime(2024, 10, 27, 2, 30, tzinfo=PARIS, fold=fold) for fold in (0, 1)]
    assert np.ptp(seconds(clock, *twice)) == 3600
    assert clock.hours(seconds(clock, *twice)).tolist() == [2, 2]


def test_the_busiest_hour_has_most_quarter_hours_and_is_the_earliest_of_equal_ones() -> None:
    clock = clock_of(date(2024, 5, 30))
    seen = {
        ZERO: [(8, 0), (9, 1), (9, 20), (17, 3)],
        ONE: [(7, 5), (21, 0), (21, 40), (22, 0), (22, 59)],
        TWO: [(23, 59)],
    }
    rows = [(who, datetime(2024, 5, 30, *at, tzinfo=PARIS)) for who, times in seen.items() for at in times]
    places = Whereabouts(
        pseudonym=np.array([who for who, _ in rows], np.uint64),
        second=seconds(clock, *(at for _, at in rows)),
        cell=np.zeros(len(rows), np.uint32),
    )
    assert clock.busiest(places, np.array([ZERO, ONE, TWO])).tolist() == [9, 21, 23]
    assert clock.busiest(places, np.array([ONE])).tolist() == [21]
