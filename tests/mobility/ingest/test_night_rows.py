"""Rows of a study that asks for nights: what is kept for a night, and how it is counted."""

from datetime import date

import numpy as np
import pytest

from ldp.entropy import KeyedPrf
from mobility.daily import DailyValues
from mobility.ingest.counts import RowCounts
from mobility.ingest.events import NO_VALUE, Events
from mobility.ingest.visits import group_events
from mobility.sanitise import StudySanitiser
from tests.mobility.ingest.night_study import CELLS, night_study
from tests.mobility.ingest.small_extract import SANITISE_KEY, coder_of, ingest, pseudonym_of

FIRST_DAY = date(2017, 6, 1)
DAYS = 2
NONE = int(NO_VALUE)


def read(*rows: str, closed: frozenset[int] = frozenset(), cells: str = CELLS, **night: str | None):  # type: ignore[no-untyped-def]
    """Events and counts of rows "time,cell[,gender]" of one person; times without a date are of day 1."""
    options = {"mechanism": "spl-grr", "cells": cells, **night}
    definition = night_study(first_day=FIRST_DAY, days=DAYS, **options)  # type: ignore[arg-type]
    lines = [f"336,{row if row.count(',') > 1 else row + ','}" for row in rows]
    data = "\n".join(["who,when,where,gender", *lines, ""]).encode()
    (events,), counts = ingest(data, coder_of(definition, closed_days=closed))
    return events, counts


def outcomes(counts: RowCounts) -> dict[str, int]:
    found = {"accepted": counts.accepted, **counts.ignored, **counts.rejected}
    assert sum(found.values()) == counts.rows_read
    return {reason: n for reason, n in found.items() if n}


@pytest.mark.parametrize(
    ("time", "day", "outcome"),
    [
        ("2017-06-01T05:59:59", None, "outside_hours"),  # of the night before the study
        ("2017-06-01T06:00:00", 1, "accepted"),
        ("2017-06-01T23:59:59", 1, "accepted"),
        ("2017-06-02T00:00:00", 0, "accepted"),  # of the night of day 1 only
        ("2017-06-02T05:59:59", 0, "accepted"),
        ("2017-06-02T06:00:00", 2, "accepted"),
        ("2017-06-03T00:00:00", 0, "accepted"),  # the last night goes on after the study
        ("2017-06-03T05:59:59", 0, "accepted"),
        ("2017-06-03T06:00:00", None, "outside_period"),
        ("2017-05-31T23:00:00", None, "outside_period"),
        ("2018-06-01T23:00:00", None, "outside_period"),
    ],
)
def test_where_nights_begin_and_end(time: str, day: int | None, outcome: str) -> None:
    events, counts = read(f"{time},cell-9")
    assert outcomes(counts) == {outcome: 1}
    assert events.day.tolist() == ([] if day is None else [day])


def test_hours_of_rows_are_those_of_their_date() -> None:
    _, counts = read("2017-06-01T22:30,cell-9", "2017-06-02T03:00,cell-9", "2017-06-03T03:00,cell-9")
    assert np.argwhere(counts.hours).tolist() == [[0, 22], [1, 3]]
    assert counts.accepted == 3


def test_a_night_may_begin_outside_the_visitor_hours() -> None:
    """They end at 23:59 here, and the night has its own beginning."""
    events, counts = read("2017-06-02T00:10,cell-9", night_from="23:00", night_to="00:10")
    assert outcomes(counts) == {"outside_hours": 1}
    events, counts = read("2017-06-02T00:09,cell-9", night_from="23:00", night_to="00:10")
    assert outcomes(counts) == {"accepted": 1}
    assert events.day.tolist() == [0]


def test_rows_of_a_closed_night_come_too_late() -> None:
    rows = ["2017-06-01T23:00,cell-9", "2017-06-02T03:00,cell-9", "2017-06-02T12:00,cell-9",
            "2017-06-03T03:00,cell-9"]  # fmt: skip
    _, counts = read(*rows, closed=frozenset([1]))
    assert outcomes(counts) == {"accepted": 2, "day_closed": 2}
    _, counts = read(*rows, closed=frozenset([1, 2]))
    assert outcomes(counts) == {"day_closed": 4}


def test_cells_are_those_of_the_date() -> None:
    cells = (
        "cell_id,lon,lat,zone,valid_from,valid_to\n"
        "cell-1,6.8,47.6,South,2017-06-02,\ncell-2,6.8,47.6,North,,2017-06-01\ncell-3,6.8,47.6,North,,2017-06-03\n"
    )
    for time, valid in (
        ("2017-06-02T03:00", {"cell-1", "cell-3"}),
        ("2017-06-03T03:00", {"cell-1", "cell-3"}),
        ("2017-06-01T23:00", {"cell-2", "cell-3"}),
    ):
        for cell in ("cell-1", "cell-2", "cell-3"):
            _, counts = read(f"{time},{cell}", cells=cells)
            assert outcomes(counts) == {"accepted" if cell in valid else "outside_area": 1}
    _, counts = read("2017-06-02T03:00,elsewhere", "2017-06-03T03:00,elsewhere", "2017-06-02T03:00,")
    assert outcomes(counts) == {"outside_area": 2, "empty_cell": 1}


def test_rows_of_a_night_say_nothing_else() -> None:
    """A value of an hour that is not a visitor hour would be ignored in a study without nights too."""
    events, counts = read(
        "2017-06-01T12:00,cell-9,F", "2017-06-02T03:00,cell-9,M", "2017-06-03T03:00,cell-9,M"
    )
    assert sorted(zip(events.day.tolist(), events.codes[:, 0].tolist(), strict=True)) == [
        (0, NONE), (0, NONE), (1, 0),
    ]  # fmt: skip
    _, counts = read("2017-06-02T03:00,cell-9,X")
    assert outcomes(counts) == {"unknown_value": 1}


def grouped(events: Events, **night: str):  # type: ignore[no-untyped-def]
    definition = night_study(first_day=FIRST_DAY, days=DAYS, mechanism="spl-grr", **night)  # type: ignore[arg-type]
    sanitiser = StudySanitiser(definition.plan_spec(), prf=KeyedPrf(SANITISE_KEY))
    return group_events(events, rules=DailyValues(definition, sanitiser).rules)


def test_rows_of_a_night_make_no_visit_and_repeats_are_counted() -> None:
    rows = ["2017-06-01T22:30,cell-9", "2017-06-02T03:00,cell-8", "2017-06-02T03:00,cell-7"]
    events, _ = read(*rows, *rows)
    found = grouped(events)
    assert found.duplicates == 3
    assert found.visits.day.tolist() == [1]
    assert found.values.pseudonym.tolist() == [pseudonym_of("336")]
    assert found.stays[1].cell.tolist() == [0]
    assert found.nights[1].cell.tolist() == [0, 1]  # of one second the cell that comes first in the registry
    nights_only, _ = read(*rows[1:])
    found = grouped(nights_only)
    assert len(found.visits.pseudonym) == len(found.values.pseudonym) == 0
    assert found.stays == {}
    assert len(found.nights[1]) == 1


def test_studies_without_nights_ignore_them_as_before() -> None:
    _, counts = read("2017-06-02T03:00,cell-9", "2017-06-03T03:00,cell-9", night_from=None)
    assert outcomes(counts) == {"outside_hours": 1, "outside_period": 1}
