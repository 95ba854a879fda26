"""Nights of a study: minute by minute against the time zone database, and the rows that are kept for them."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from ldp.kernels.entropy import KeyedPrf
from mobility.extracts.rows.events import NO_VALUE
from mobility.extracts.rows.nights import nights_of
from mobility.extracts.rows.timestamps import study_clock
from mobility.vault.sanitise import StudySanitiser
from mobility.vault.state.daily import DailyValues
from mobility.vault.state.visits import group_events
from tests.mobility.extracts.rows.night_study import CELLS, night_study
from tests.mobility.extracts.rows.small_extract import SANITISE_KEY, coder_of, ingest, pseudonym_of

PARIS = ZoneInfo("Europe/Paris")
SPRING, AUTUMN, SUMMER = date(2017, 3, 25), date(2017, 10, 28), date(2017, 6, 1)
N_DAYS = 3


def nights(first_day: date, *, night_from: str, night_to: str):
    definition = night_study(first_day=first_day, days=N_DAYS, night_from=night_from, night_to=night_to)
    found = nights_of(definition)
    assert found is not None
    return found, study_clock("Europe/Paris", first_day=first_day, days=N_DAYS).origin


def boundaries(first_day: date, text: str, *, days_later: int) -> list[datetime]:
    hour, minute = map(int, text.split(":"))
    dates = [first_day + timedelta(days=day + days_later) for day in range(N_DAYS)]
    return [datetime.combine(day, time(hour, minute), PARIS).astimezone(UTC) for day in dates]


@pytest.mark.parametrize("first_day", [SPRING, AUTUMN, SUMMER])
@pytest.mark.parametrize(
    ("night_from", "night_to"), [("22:00", "06:00"), ("23:10", "02:30"), ("12:01", "12:00")]
)
def test_every_minute_belongs_to_the_night_that_began_last(first_day, night_from, night_to) -> None:
    found, origin = nights(first_day, night_from=night_from, night_to=night_to)
    starts = boundaries(first_day, night_from, days_later=0)
    ends = boundaries(first_day, night_to, days_later=1)
    begin = datetime.combine(first_day, datetime.min.time(), UTC) - timedelta(days=1)
    minutes = [begin + timedelta(minutes=minute) for minute in range((N_DAYS + 3) * 24 * 60)]
    expected = [
        next((day for day in range(1, N_DAYS + 1) if starts[day - 1] <= minute < ends[day - 1]), 0)
        for minute in minutes
    ]
    seconds = np.array([int(minute.timestamp()) - origin for minute in minutes])
    assert (found.day_of(seconds).tolist(), set(expected)) == (expected, set(range(N_DAYS + 1)))


def test_seconds_at_both_ends() -> None:
    found, _ = nights(SUMMER, night_from="22:00", night_to="06:00")
    start, end = int(found.start[1]), int(found.end[1])
    seconds = np.array([start - 1, start, end - 1, end, -(2**40), 2**40])
    assert (found.day_of(seconds).tolist(), found.day_of(seconds[:0]).tolist()) == ([0, 2, 2, 0, 0, 0], [])
    assert nights_of(night_study(first_day=SUMMER, days=N_DAYS, night_from=None)) is None


FIRST_DAY = date(2017, 6, 1)
N_ROW_DAYS = 2
NONE = int(NO_VALUE)


def read(*rows: str, closed: frozenset[int] = frozenset(), cells: str = CELLS, **night: str | None):
    """Events and counts of rows "time,cell[,gender]" of one person; times without a date are of day 1."""
    options = {"mechanism": "spl-grr", "cells": cells, **night}
    definition = night_study(first_day=FIRST_DAY, days=N_ROW_DAYS, **options)
    lines = [f"336,{row if row.count(',') > 1 else row + ','}" for row in rows]
    data = "\n".join(["who,when,where,gender", *lines, ""]).encode()
    (events,), counts = ingest(data, coder_of(definition, closed_days=closed))
    return events, counts


def outcomes(counts) -> dict[str, int]:
    found = {"accepted": counts.accepted, **counts.ignored, **counts.rejected}
    assert sum(found.values()) == counts.rows_read
    return {reason: n for reason, n in found.items() if n}


@pytest.mark.parametrize(
    ("when", "day", "outcome"),
    [
        ("2017-06-01T05:59:59", None, "outside_hours"),  # of the night before the study
        ("2017-06-01T06:00:00", 1, "accepted"), ("2017-06-01T23:59:59", 1, "accepted"),
        ("2017-06-02T00:00:00", 0, "accepted"), ("2017-06-02T05:59:59", 0, "accepted"),  # of that night only
        ("2017-06-02T06:00:00", 2, "accepted"),
        ("2017-06-03T00:00:00", 0, "accepted"), ("2017-06-03T05:59:59", 0, "accepted"),  # after the study
        ("2017-06-03T06:00:00", None, "outside_period"), ("2017-05-31T23:00:00", None, "outside_period"),
        ("2018-06-01T23:00:00", None, "outside_period"),
    ],
)  # fmt: skip
def test_where_nights_begin_and_end(when: str, day: int | None, outcome: str) -> None:
    events, counts = read(f"{when},cell-9")
    assert (outcomes(counts), events.day.tolist()) == ({outcome: 1}, [] if day is None else [day])


def test_a_night_may_begin_outside_the_visitor_hours() -> None:
    rows = ["2017-06-02T00:09,cell-9", "2017-06-02T00:10,cell-9"]
    events, counts = read(*rows, night_from="23:00", night_to="00:10")
    assert outcomes(counts) == {"accepted": 1, "outside_hours": 1}
    assert (events.day.tolist(), events.second.tolist()) == ([0], read(rows[0])[0].second.tolist())


def test_rows_of_a_closed_night_come_too_late() -> None:
    rows = [f"2017-06-{when},cell-9" for when in ("01T23:00", "02T03:00", "02T12:00", "03T03:00")]
    _, counts = read(*rows)
    assert outcomes(counts) == {"accepted": 4}
    assert np.argwhere(counts.hours).tolist() == [[0, 23], [1, 3], [1, 12]]  # those of the study's dates
    assert outcomes(read(*rows, closed=frozenset([1]))[1]) == {"accepted": 2, "day_closed": 2}
    assert outcomes(read(*rows, closed=frozenset([1, 2]))[1]) == {"day_closed": 4}


def test_cells_are_those_of_the_date() -> None:
    dated = ["1,6.8,47.6,South,2017-06-02,", "2,6.8,47.6,North,,2017-06-01", "3,6.8,47.6,North,,2017-06-03"]
    cells = "cell_id,lon,lat,zone,valid_from,valid_to\n" + "".join(f"cell-{row}\n" for row in dated)
    for when, other in (("02T03:00", "cell-1"), ("03T03:00", "cell-1"), ("01T23:00", "cell-2")):
        for cell in ("cell-1", "cell-2", "cell-3"):
            _, counts = read(f"2017-06-{when},{cell}", cells=cells)
            assert outcomes(counts) == {"accepted" if cell in (other, "cell-3") else "outside_area": 1}
    _, counts = read("2017-06-02T03:00,elsewhere", "2017-06-03T03:00,elsewhere", "2017-06-02T03:00,")
    assert outcomes(counts) == {"outside_area": 2, "empty_cell": 1}


def test_rows_of_a_night_say_nothing_else() -> None:
    events, counts = read(
        "2017-06-01T12:00,cell-9,F", "2017-06-02T03:00,cell-9,M", "2017-06-03T03:00,cell-9,M"
    )
    values = sorted(zip(events.day.tolist(), events.codes[:, 0].tolist(), strict=True))
    assert values == [(0, NONE), (0, NONE), (1, 0)]
    _, counts = read("2017-06-02T03:00,cell-9,X")
    assert outcomes(counts) == {"unknown_value": 1}


def grouped(events, **night: str):
    definition = night_study(first_day=FIRST_DAY, days=N_ROW_DAYS, mechanism="spl-grr", **night)
    sanitiser = StudySanitiser(definition.plan_spec(), prf=KeyedPrf(SANITISE_KEY))
    return group_events(events, rules=DailyValues(definition, sanitiser).rules)


def test_rows_of_a_night_make_no_visit_and_repeats_are_counted() -> None:
    rows = ["2017-06-01T22:30,cell-9", "2017-06-02T03:00,cell-8", "2017-06-02T03:00,cell-7"]
    events, _ = read(*rows, *rows)
    found = grouped(events)
    assert (found.duplicates, found.visits.day.tolist()) == (3, [1])
    assert (found.values.pseudonym.tolist(), found.stays[1].cell.tolist()) == ([pseudonym_of("336")], [0])
    assert found.nights[1].cell.tolist() == [0, 1]  # of one second the cell that comes first in the registry
    nights_only, _ = read(*rows[1:])
    found = grouped(nights_only)
    assert len(found.visits.pseudonym) == len(found.values.pseudonym) == 0
    assert (found.stays, len(found.nights[1])) == ({}, 1)
