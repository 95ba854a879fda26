"""Exact answers from the further tallies of presence, against people whose days are known."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ldp import days_in_a_row, exactly_days, scenario_people
from ldp.estimation.scenario.stays import PresenceTallies
from ldp.keyed.tallying import tally_stays
from ldp.privacy.plans import PRESENCE_TALLIES
from tests.ldp.estimation.scenario.people import counted, crowds, fimu, longest_run, tally_of


def tallies_of(people, *, days: int, small_cell: int = 0) -> PresenceTallies:
    bitmaps = [sum(1 << day - 1 for day in pattern) for pattern, n in people.items() for _ in range(n)]
    out = np.zeros((2, days + 1, days + 1), np.int64)
    tally_stays(np.array(bitmaps, np.uint64), out, tallies=PRESENCE_TALLIES, sign=1)
    return PresenceTallies(visits=out[0], runs=out[1], people=len(bitmaps), small_cell=small_cell)


def stays(pattern: tuple[int, ...], length: int) -> int:
    """Runs of days of exactly this length."""
    days = set(pattern)
    return sum({*range(day, day + length)} <= days and not {day - 1, day + length} & days for day in pattern)


def test_fimu_is_answered_as_the_thesis_could_not():
    more, tally = tallies_of(fimu(), days=7), tally_of(fimu(), days=7)
    assert more.people_on(present=range(1, 8), absent=()) == 176
    assert [more.people_by_days.exactly(k) for k in (1, 7)] == [38_505, 176]
    three = scenario_people(tally, days_in_a_row(3, days=7), known=more.people_in_a_row(3))
    assert (three.least, three.most) == (21_144, 22_191)  # without: 3,264 to 39,169; there are 22,042
    assert more.people_in_a_row(4) == (counted(fimu(), lambda days: longest_run(days) >= 4),) * 2
    exact = scenario_people(tally, exactly_days(1, days=7), known=(38_505, 38_505))
    assert (exact.least, exact.most, exact.estimate, exact.method) == (38_505, 38_505, 38_505, "counted")


@given(people=crowds(5))
@settings(max_examples=30, deadline=None)
def test_numbers_of_days_and_stays_are_those_of_the_people_and_bounds_hold_them(people):
    more = tallies_of(people, days=5)
    for k in range(1, 6):
        assert more.people_by_days.exactly(k) == counted(people, lambda days, k=k: len(days) == k)
        assert more.stays_by_length.exactly(k) == sum(n * stays(days, k) for days, n in people.items())
        least, most = more.people_in_a_row(k)
        truth = counted(people, lambda days, k=k: longest_run(days) >= k)
        assert least <= truth <= most and (k < 3 or least == most)


@given(people=crowds(4), chosen=st.lists(st.sampled_from(["in", "out", ""]), min_size=4, max_size=4))
@settings(max_examples=60, deadline=None)
@example(people={(1, 2): 3, (1, 2, 3): 5, (2, 3): 7, (2,): 11}, chosen=["out", "in", "in", "out"])
def test_days_in_a_row_and_those_next_to_them_are_counted_and_other_questions_are_not(people, chosen):
    present, absent = ({day for day, each in enumerate(chosen, 1) if each == name} for name in ("in", "out"))
    found = tallies_of(people, days=4).people_on(present=present, absent=absent)
    is_run = bool(present) and max(present) - min(present) < len(present)
    if not is_run or absent - {min(present) - 1, max(present) + 1}:
        assert found is None
    else:
        assert found == counted(people, lambda days: present <= set(days) and not absent & set(days))


def test_the_longest_are_hidden_together_where_few_have_them():
    many = {(day,): 100 for day in range(1, 7)} | {(1, 2): 50, (1, 3): 50, (2, 3, 4): 40, (2, 4, 6): 40}
    for people, by_days, lengths in (
        (many, 6, 6),
        (many | {(1, 2, 3, 4, 5): 3}, 2, 2),  # five are few: three of all six are hidden, and are enough
        (many | {(1, 2, 3, 4, 5, 6): 3}, 2, 2),
        (many | {(2, 3): 3}, 6, 6),
        ({(1,): 3, (1, 2): 50, (2, 4, 6): 40}, 0, 3),
    ):
        more = tallies_of(people, days=6, small_cell=20)
        assert (more.people_by_days.through, more.stays_by_length.through) == (by_days, lengths)
        assert more.people_by_days.exactly(by_days + 1 if by_days < 6 else 6) is (None if by_days < 6 else 0)
