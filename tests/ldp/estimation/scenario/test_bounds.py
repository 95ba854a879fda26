"""Least and most people of a scenario: sharp, by an independent program; nothing about few people."""

from itertools import combinations
from math import ceil, floor, isnan

import numpy as np
import pytest
from hypothesis import example, given, settings

from ldp import LdpError, UnionTable, all_unions, days_in_a_row, exactly_days, on_days, scenario_people
from ldp.errors import FewVisitorsError
from ldp.estimation.scenario import program
from ldp.estimation.scenario.bounds import table_people
from tests.ldp.estimation.scenario.people import (
    PatternProgram,
    counted,
    crowds,
    fimu,
    longest_run,
    on_pattern,
    patterns,
    tally_of,
)
from tests.ldp.exact import refuses


@pytest.fixture(scope="module")
def week() -> PatternProgram:
    return PatternProgram(fimu(), days=7)


def found(scenario, **arguments) -> tuple[int, int]:
    answer = scenario_people(tally_of(fimu(), days=7), scenario, **arguments)
    assert answer.least <= answer.estimate <= answer.most
    return answer.least, answer.most


def test_bounds_of_all_127_patterns_of_fimu_are_those_of_the_independent_program(week):
    for pattern in patterns(7):
        expected = week.bounds(lambda other, pattern=pattern: other == pattern)
        assert found(on_pattern(pattern, days=7)) == pytest.approx(expected, abs=1e-6)


def test_bounds_of_all_91_sets_of_two_to_four_days_of_fimu_are_those_of_the_independent_program(week):
    sets = [chosen for size in (2, 3, 4) for chosen in combinations(range(1, 8), size)]
    assert len(sets) == 91
    for chosen in sets:
        expected = week.bounds(lambda other, chosen=chosen: set(chosen) <= set(other))
        assert found(on_days(days=7, present=chosen)) == pytest.approx(expected, abs=1e-6)


def test_the_thesis_answer_for_all_week_is_not_determined_by_the_unions():
    all_week = scenario_people(tally_of(fimu(), days=7), on_days(days=7, present=range(1, 8)))
    assert (all_week.least, all_week.most, round(all_week.estimate)) == (0, 9_233, 280)
    assert fimu()[1, 2, 3, 4, 5, 6, 7] == 176


@pytest.mark.parametrize(
    ("k", "least", "most"),
    [(1, 13_505, 58_642), (2, 447, 66_331), (3, 0, 49_766), (4, 0, 32_350), (5, 0, 20_465), (6, 0, 17_039)],
)
def test_exactly_so_many_days_of_fimu(k, least, most):
    assert found(exactly_days(k, days=7)) == (least, most)


@given(people=crowds(5))
@settings(max_examples=8, deadline=None)
def test_bounds_are_sharp_and_hold_the_truth_for_any_question(people):
    program, tally = PatternProgram(people, days=5), tally_of(people, days=5)
    for scenario, question in (
        (on_days(days=5, present=[2], absent=[3, 4]), lambda p: 2 in p and not {3, 4} & set(p)),
        (on_days(days=5, absent=[1, 4]), lambda p: not {1, 4} & set(p)),
        (on_days(days=5, present=[1, 3, 5]), lambda p: {1, 3, 5} <= set(p)),
        (exactly_days(2, days=5), lambda p: len(p) == 2),
        (days_in_a_row(2, days=5), lambda p: longest_run(p) >= 2),
        (days_in_a_row(1, days=5), lambda p: len(p) > 0),
    ):
        least, most = program.bounds(question)
        answer = scenario_people(tally, scenario)
        assert (answer.least, answer.most) == (ceil(least - 1e-6), floor(most + 1e-6))
        assert answer.least <= counted(people, question) <= answer.most


def test_large_programs_are_solved_by_another_method_to_the_same_bounds(week, monkeypatch):
    monkeypatch.setattr(program, "_LARGE", 0)
    for k in (1, 2):
        expected = week.bounds(lambda pattern, k=k: len(pattern) == k)
        assert found(exactly_days(k, days=7)) == pytest.approx(expected, abs=1e-6)


def test_sixty_two_days_are_answered():
    people = {tuple(range(first, 63, step)): first for first in range(1, 9) for step in (1, 2, 7)}
    tally = tally_of(people, days=62)
    answer = scenario_people(tally, on_days(days=62, present=[8, 15, 22], absent=[9]))
    truth = counted(people, lambda p: {8, 15, 22} <= set(p) and 9 not in p)
    assert answer.least <= truth <= answer.most < sum(people.values())


def test_nobody_is_in_a_scenario_of_nobody():
    answer = scenario_people(np.zeros((4, 4), np.int64), exactly_days(2, days=3))
    assert (answer.least, answer.most, answer.estimate) == (0, 0, 0)


@given(people=crowds(4))
@example(people={(1,): 1, (2,): 20})
@example(people={(1, 3): 7, (2,): 200})
@settings(max_examples=10, deadline=None)
def test_small_windows_are_known_within_limits_only_and_no_answer_is_about_few(people):
    total = sum(people.values())
    tally = tally_of(people, days=4)
    for scenario in (exactly_days(1, days=4), on_days(days=4, present=[2]), on_pattern((1, 3), days=4)):
        if total < 20:
            with pytest.raises(FewVisitorsError):
                scenario_people(tally, scenario, small_cell=20)
            continue
        exact, shown = scenario_people(tally, scenario), scenario_people(tally, scenario, small_cell=20)
        assert shown.least <= exact.least <= exact.most <= shown.most
        assert shown.least == 0 or shown.least >= 20
        assert shown.most == total or total - shown.most >= 20 or shown.most == 19
        assert isnan(shown.estimate) or shown.estimate == 0 or shown.estimate >= 20


def test_two_studies_that_differ_in_a_hidden_window_only_have_the_same_answers():
    few, more = (tally_of({(1,): 2, (1, 2): n, (2,): 100 - n, (2, 3): 40, (3,): 50}, days=3) for n in (3, 9))
    assert np.argwhere(all_unions(few) != all_unions(more)).tolist() == [[1, 1]]
    for scenario in (exactly_days(2, days=3), on_days(days=3, present=[2], absent=[1])):
        answers = [scenario_people(tally, scenario) for tally in (few, more)]
        assert answers[0] != answers[1]
        answers = [scenario_people(tally, scenario, small_cell=20) for tally in (few, more)]
        assert answers[0] == answers[1]


def test_a_table_of_unions_gives_the_bounds_of_its_tally_and_wider_ones_where_numbers_are_hidden():
    unions = all_unions(tally_of(fimu(), days=7))
    windows = {(a, b): int(unions[a, b]) for a in range(1, 8) for b in range(a, 8)}
    scenario = exactly_days(2, days=7)
    known = table_people(UnionTable.of_windows(windows, days=7), scenario)
    assert (known.least, known.most) == (447, 66_331)
    windows[2, 2] = (1, 30_000)
    del windows[3, 6]
    hidden = table_people(UnionTable.of_windows(windows, days=7), scenario)
    assert hidden.least <= known.least < known.most <= hidden.most
    second = table_people(UnionTable.of_windows(windows, days=7), on_days(days=7, present=[2]))
    assert second.least < unions[2, 2] < second.most <= 30_000
    windows[1, 1] = 88_936
    refuses(r"correct these windows or leave them out, got .*1\.\.1", table_people,
            UnionTable.of_windows(windows, days=7), scenario)  # fmt: skip
    refuses("each day must be in a window with a number, got none for day 3", table_people,
            UnionTable.of_windows({(1, 2): 5}, days=3), exactly_days(1, days=3))  # fmt: skip


def test_questions_that_no_study_can_answer_are_refused_with_what_works():
    for message, days in (
        (r"present or absent must name a day in \[1, 7\], got none", {}),
        (r"days must be in \[1, 7\], got 0, 9", {"present": [9, 0, 2]}),
        ("a day must be present or absent, not both; got 3 in both", {"present": [3], "absent": [3, 4]}),
        ("at least one day must not be absent", {"absent": range(1, 8)}),
    ):
        refuses(message, on_days, days=7, **days)
    for make in (exactly_days, days_in_a_row):
        for k in (0, 8):
            refuses(rf"k must be in \[1, 7\], the days of the study, got {k}", make, k, days=7)
        refuses(r"days must be in \[1, 62\], got 63", make, 1, days=63)


def test_tallies_that_are_none_of_people_are_refused_with_what_works():
    scenario = exactly_days(1, days=2)
    for message, cells in (
        ("use projected_flows for noisy counts", [[0, -1, 0], [0, 0, 0], [0, 0, 0]]),
        ("use projected_flows for noisy counts", [[0, 1, 0], [0, 0, 2], [0, 0, 0]]),
        ("only where the previous day is before the day", [[0, 1, 0], [1, 0, 0], [0, 0, 0]]),
        (r"must have shape \(days \+ 1, days \+ 1\)", [[0, 1, 0], [0, 0, 0]]),
        ("a scenario must have the 1 days of the tally, got 2", [[0, 1], [0, 0]]),
    ):
        with pytest.raises(LdpError, match=message):
            scenario_people(np.array(cells), scenario)
