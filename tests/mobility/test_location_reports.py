"""Noisy places stand beside the other answers: one word a day, one tally, whatever the plan asks else."""

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from ldp import IndicatorRequest, PlanSpec, build_plan
from ldp.entropy import KeyedPrf
from ldp.geo.grid import Grid
from ldp.geo.location import LocationSpec
from ldp.geo.sanitiser import LocationSanitiser
from ldp.params import Mechanism
from ldp.tallies import Delta, union
from mobility.ingest.events import NO_VALUE
from mobility.presence import DayArrivals, Presence, add_days, forget_subscribers, remove_day
from mobility.sanitise import StudySanitiser

DAYS = 4
PRF = KeyedPrf(bytes(range(16)))
GRID = Grid(x0_m=0, y0_m=0, step_m=100, n_x=7, n_y=5)
LOCATION = LocationSpec(level=Fraction(14, 10), radius_m=Fraction(200), grid=GRID)
KINDS = ("static", "daily", "static")


def plan_of(mechanism: str, *, max_values: int | None = None) -> PlanSpec:
    location = LocationSpec(
        level=LOCATION.level, radius_m=LOCATION.radius_m, grid=GRID, max_values=max_values
    )
    return build_plan(
        mechanism=mechanism,  # type: ignore[arg-type]
        unit="profile",
        version=1,
        days=DAYS,
        epsilon=Decimal(1),
        indicators=[
            IndicatorRequest(slug=f"i{i}", kind=kind, domain_size=3)  # type: ignore[arg-type]
            for i, kind in enumerate(KINDS)
        ],
        location=location,
    )


@pytest.fixture(params=get_args(Mechanism))
def sanitiser(request: pytest.FixtureRequest) -> StudySanitiser:
    return StudySanitiser(plan_of(request.param), prf=PRF)


PEOPLE = np.sort(np.arange(1, 61, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
PLACES = {day: ((np.arange(60) * (day + 2)) % GRID.n_cells).astype(np.uint16) for day in range(1, DAYS + 1)}
for _day, _places in PLACES.items():
    _places[_day::17] = NO_VALUE  # seen in no cell of the registry


def arrivals(sanitiser: StudySanitiser, day: int, rows: NDArray[np.int64]) -> DayArrivals:
    people = PEOPLE[rows]
    raw = np.zeros((len(rows), 1), np.uint16)
    return DayArrivals(
        day=day,
        pseudonym=people,
        static=sanitiser.static_answers(people, np.zeros((len(rows), sanitiser.slots("static")), np.uint16)),
        daily=sanitiser.daily_answers(people, raw, day=day, grid_codes=PLACES[day][rows]),
    )


def present(day: int) -> NDArray[np.int64]:
    return np.flatnonzero(np.arange(60) % (day + 1) != 0)


def added(sanitiser: StudySanitiser, days: list[int]) -> tuple[Presence, Delta]:
    """Presence of these days, and all that was published of them, a day at a time."""
    presence, total = Presence.empty(sanitiser), Delta.zero(sanitiser.plan)
    for number, day in enumerate(days, start=1):
        change = add_days(
            presence, [arrivals(sanitiser, day, present(day))], number=number, sanitiser=sanitiser
        )
        presence, total = change.presence, total + change.delta
    return presence, total


def expected(
    first: int, last: int, *, days: list[int], without: frozenset[int] = frozenset()
) -> Counter[int]:
    """Reports by square in a window: of each subscriber that of the first day there."""
    library = LocationSanitiser(LOCATION, PRF, 1)
    counts: Counter[int] = Counter()
    for row in set(range(60)) - without:
        there = [day for day in sorted(days) if first <= day <= last and row in present(day)]
        if there and PLACES[there[0]][row] != NO_VALUE:
            place = PLACES[there[0]][row : row + 1]
            counts[int(library.reports(PEOPLE[row : row + 1], place)[0])] += 1
    return counts


def counted(delta: Delta, first: int, last: int) -> Counter[int]:
    by_square = union(delta.counts[-1], first_day=first, last_day=last)
    assert union(delta.n_reports[-1], first_day=first, last_day=last) == by_square.sum()
    return Counter({square: int(n) for square, n in enumerate(by_square) if n})


WINDOWS = [(first, last) for first in range(1, DAYS + 1) for last in range(first, DAYS + 1)]


def test_every_window_counts_the_place_of_the_first_day(sanitiser: StudySanitiser) -> None:
    for days in ([1, 2, 3, 4], [3, 1, 4, 2]):
        _, total = added(sanitiser, days)
        for window in WINDOWS:
            assert counted(total, *window) == expected(*window, days=days)


def test_days_and_people_that_are_taken_out_leave_no_place(sanitiser: StudySanitiser) -> None:
    presence, total = added(sanitiser, [1, 2, 3, 4])
    undone = remove_day(presence, day=2, number=9, sanitiser=sanitiser)
    total = total + undone.delta
    gone = frozenset(range(5, 25))
    people = PEOPLE[sorted(gone)]
    forgotten = forget_subscribers(undone.presence, people, number=9, sanitiser=sanitiser)
    total = total + forgotten.delta
    for window in WINDOWS:
        assert counted(total, *window) == expected(*window, days=[1, 3, 4], without=gone)


def test_a_state_survives_its_bytes(sanitiser: StudySanitiser) -> None:
    presence, total = added(sanitiser, [2, 4])
    again = Presence.unpack(presence.pack(), sanitiser)
    assert np.array_equal(again.daily, presence.daily)
    assert (again.daily[:, -1] != NO_VALUE).any()
    assert Delta.unpack(total.pack()).counts[-1].tolist() == total.counts[-1].tolist()


def test_a_published_place_is_final_and_the_first_one_may_come_late() -> None:
    sanitiser = StudySanitiser(plan_of("smp-grr"), prf=PRF)
    presence, _ = added(sanitiser, [1])
    later = arrivals(sanitiser, 1, present(1))
    moved = later.daily.copy()
    moved[:, -1] = np.where(moved[:, -1] == NO_VALUE, np.uint16(3), (moved[:, -1] + 1) % GRID.n_cells)
    change = add_days(
        presence,
        [DayArrivals(day=1, pseudonym=later.pseudonym, static=later.static, daily=moved)],
        number=2,
        sanitiser=sanitiser,
    )
    was_there = later.daily[:, -1] != NO_VALUE
    assert change.late_changes == was_there.sum()
    kept = change.presence.daily[:, -1, 0]
    assert np.array_equal(kept, np.where(was_there, later.daily[:, -1], 3))


def test_the_cap_is_on_days_and_does_not_depend_on_the_places() -> None:
    capped = StudySanitiser(plan_of("smp-grr", max_values=2), prf=PRF)
    rows = np.arange(60)
    places = np.full(60, 12, np.uint16)
    raw = np.zeros((60, 1), np.uint16)
    reports = np.stack(
        [capped.daily_answers(PEOPLE, raw, day=day, grid_codes=places)[:, -1] for day in range(1, DAYS + 1)]
    )
    assert ((reports != NO_VALUE).sum(axis=0) == 2).all()
    others = np.stack([arrivals(capped, day, rows).daily[:, -1] for day in range(1, DAYS + 1)])
    has_place = np.stack([PLACES[day] != NO_VALUE for day in range(1, DAYS + 1)])
    assert ((others != NO_VALUE) == ((reports != NO_VALUE) & has_place)).all()


def test_places_must_be_given_where_the_plan_asks_for_them() -> None:
    sanitiser = StudySanitiser(plan_of("smp-grr"), prf=PRF)
    with pytest.raises(ValueError, match="grid_codes must be given"):
        sanitiser.daily_answers(PEOPLE, np.zeros((60, 1), np.uint16), day=1)
