"""Raw daily values of a shard's day: codes of each indicator, and the main cell by itself."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from ldp.entropy import KeyedPrf
from ldp.geo.grid import Grid
from mobility.daily import DailyValues, Part
from mobility.daystate import DaySightings
from mobility.ingest.events import NO_VALUE
from mobility.ingest.nights import nights_of
from mobility.ingest.stays import NO_CELL, Whereabouts
from mobility.sanitise import StudySanitiser
from reports.studyfile.definition import LocationDefinition
from tests.mobility.ingest.night_study import night_study
from tests.mobility.ingest.small_extract import SANITISE_KEY, asked_of

NONE = int(NO_VALUE)
DEFINITION = night_study(first_day=date(2017, 6, 1), days=3, mechanism="spl-grr")
DAY_START = (
    2 * 86_400 - 2 * 3600
)  # of day 1 on the events' clock: it starts two days before, local = UTC + 2 h


# Grid codes of the four cells; two masts stand in one square.
LOCATION = LocationDefinition(
    level=Decimal("1.4"),
    radius_m=200,
    max_values=None,
    grid=Grid(x0_m=0, y0_m=0, step_m=500, n_x=4, n_y=3),
    places=(7, 11, 7, 0),
)


def daily_of(mechanism: str = "spl-grr", *, location: LocationDefinition | None = None) -> DailyValues:
    definition = night_study(first_day=date(2017, 6, 1), days=3, mechanism=mechanism)
    definition = replace(definition, location=location)
    sanitiser = StudySanitiser(definition.plan_spec(), prf=KeyedPrf(SANITISE_KEY))
    return DailyValues(definition, sanitiser)


def places_of(*rows: tuple[int, float, int]) -> Whereabouts:
    """(person, local hour of day 1, cell)."""
    return Whereabouts(
        pseudonym=np.array([row[0] for row in rows], np.uint64),
        second=np.array([DAY_START + row[1] * 3600 for row in rows], np.uint32),
        cell=np.array([row[2] for row in rows], np.uint32),
    )


def seen_of(people: list[int]) -> DaySightings:
    """Everyone from 9 to 12 o'clock."""
    n = len(people)
    return DaySightings(
        pseudonym=np.array(people, np.uint64),
        first=np.full(n, DAY_START + 9 * 3600, np.uint32),
        last=np.full(n, DAY_START + 12 * 3600, np.uint32),
        static=np.empty((n, 0), np.uint16),
    )


SEEN = replace(
    seen_of([1, 2, 3, 4]),
    # Registry: 0 South, 1 North, 2 South, 3 without a zone.
    stays=places_of((1, 9, 1), (1, 10, 0), (1, 12, 1), (2, 9, 3), (2, 12, 1), (3, 9, 2)),
    nights=places_of((1, 22, 0), (1, 23, 1), (2, 22, 0), (2, 27, 1), (4, 23, 3), (9, 22, 1)),
)
EVERYBODY = np.arange(4)


def test_main_cells_are_places_in_the_registry_and_known_of_those_who_were_somewhere() -> None:
    """What locations are reported from."""
    cells = daily_of().main_cells(SEEN, np.array([0, 1, 2, 3, 4, 9], np.uint64))
    assert cells.dtype == np.uint32
    assert cells.tolist() == [NO_CELL, 0, 3, 2, NO_CELL, NO_CELL]


def test_night_cells_count_until_the_night_ends() -> None:
    """Person 1 is last seen at 23 o'clock and stays until 6; person 2 moves at 3, after 5 hours."""
    cells = daily_of().night_cells(SEEN, np.array([1, 2, 4, 9], np.uint64), day=1)
    assert cells.tolist() == [1, 0, 3, 1]
    nights = nights_of(DEFINITION)
    assert nights is not None
    assert int(nights.end[0]) == DAY_START + 30 * 3600


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        # stayed_in, slept_in, duration (3 to 4 hours is the third band)
        ("visit", [[0, NONE, 2], [NONE, NONE, 2], [0, NONE, 2], [NONE, NONE, 2]]),
        ("night", [[NONE, 1, NONE], [NONE, 0, NONE], [NONE, NONE, NONE], [NONE, NONE, NONE]]),
    ],
)
def test_codes_of_each_indicator_in_plan_order(part: Part, expected: list[list[int]]) -> None:
    codes = daily_of().codes(SEEN, EVERYBODY, day=1, part=part)
    assert codes.dtype == np.uint16
    assert codes.tolist() == expected
    some = daily_of().codes(SEEN, np.array([0, 2]), day=1, part=part)
    assert some.tolist() == [expected[0], expected[2]]


def test_places_are_kept_of_those_who_answer() -> None:
    people = np.arange(200, dtype=np.uint64)
    rules = daily_of("smp-grr").rules
    assert rules is not None
    assert rules.of_day is not None
    assert rules.of_night is not None
    asked = [asked_of(person, d=4) for person in range(200)]
    assert rules.of_day(people).tolist() == [index == 1 for index in asked]
    assert rules.of_night(people).tolist() == [index == 2 for index in asked]
    everybody = daily_of("spl-grr").rules
    assert everybody is not None
    assert everybody.of_day is not None
    assert everybody.of_day(people).all()


def test_everyone_reports_a_place() -> None:
    rules = daily_of("smp-grr", location=LOCATION).rules
    assert rules is not None
    assert rules.of_day is not None
    assert rules.of_night is not None
    people = np.arange(200, dtype=np.uint64)
    assert rules.of_day(people).all()
    assert 0 < rules.of_night(people).sum() < 200


def test_places_are_squares_of_the_grid() -> None:
    daily = daily_of(location=LOCATION)
    codes = daily.grid_codes(SEEN, EVERYBODY, part="visit")
    assert codes is not None
    assert codes.dtype == np.uint16
    assert codes.tolist() == [7, 0, 7, NONE]
    by_night = daily.grid_codes(SEEN, EVERYBODY, part="night")
    assert by_night is not None
    assert by_night.tolist() == [NONE] * 4
    assert daily_of().grid_codes(SEEN, EVERYBODY, part="visit") is None


def test_a_study_without_places_has_no_rules() -> None:
    plain = replace(
        DEFINITION, indicators=tuple(i for i in DEFINITION.indicators if i.slug in ("gender", "duration"))
    )
    sanitiser = StudySanitiser(plain.plan_spec(), prf=KeyedPrf(SANITISE_KEY))
    assert DailyValues(plain, sanitiser).rules is None
    located = replace(plain, location=LOCATION)
    of_places = DailyValues(located, StudySanitiser(located.plan_spec(), prf=KeyedPrf(SANITISE_KEY))).rules
    assert of_places is not None
    assert of_places.of_day is not None
    assert of_places.of_night is None
