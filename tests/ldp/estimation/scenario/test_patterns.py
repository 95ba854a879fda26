"""Estimates of patterns, nearest flows, tables of unions, and exact answers from further tallies."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from ldp import (
    UnionTable,
    all_unions,
    days_in_a_row,
    exactly_days,
    fit_unions,
    flows_of,
    likeliest_patterns,
    likely_patterns,
    likely_people,
    merge_tables,
    on_days,
    projected_flows,
    scenario_people,
)
from ldp.errors import FewVisitorsError
from ldp.estimation.scenario.projection import nearest_flows
from ldp.estimation.scenario.stays import PresenceTallies
from ldp.keyed.tallying import tally_stays
from ldp.privacy.plans import PRESENCE_TALLIES
from ldp.privacy.presence import PresenceSpec
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


def by_pattern(people, *, days: int) -> np.ndarray:
    flows = flows_of(tally_of(people, days=days))
    return np.array([likely_people(flows, on_pattern(pattern, days=days)) for pattern in patterns(days)])


def test_estimate_is_what_proportional_fitting_of_the_28_unions_of_fimu_ends_at():
    program = PatternProgram(fimu(), days=7)
    x = np.full(127, 88_935 / 127)
    for _ in range(1_500):
        for inside, people in zip(program.unions.astype(bool), program.people, strict=True):
            x[inside] *= people / x[inside].sum()
            x[~inside] *= (88_935 - people) / max(x[~inside].sum(), 1e-300)
    assert by_pattern(fimu(), days=7) == pytest.approx(x, abs=1e-4)


def test_total_variation_of_the_estimate_from_the_data_set_is_22_7_percent():
    truth = np.array([fimu()[pattern] for pattern in patterns(7)])
    distance = np.abs(by_pattern(fimu(), days=7) - truth).sum() / 2 / 88_935
    assert distance == pytest.approx(0.227, abs=5e-4)


@given(people=crowds(5))
@settings(max_examples=20, deadline=None)
def test_estimates_of_questions_are_the_sums_of_those_of_their_patterns(people):
    flows, each = flows_of(tally_of(people, days=5)), by_pattern(people, days=5)
    assert each.sum() == pytest.approx(sum(people.values()))
    for scenario, question in (
        (on_days(days=5, present=[2, 5], absent=[3]), lambda p: {2, 5} <= set(p) and 3 not in p),
        (on_days(days=5, absent=[1, 5]), lambda p: not {1, 5} & set(p)),
        (exactly_days(3, days=5), lambda p: len(p) == 3),
        (days_in_a_row(2, days=5), lambda p: longest_run(p) >= 2),
    ):
        expected = sum(x for x, pattern in zip(each, patterns(5), strict=True) if question(pattern))
        assert likely_people(flows, scenario) == pytest.approx(expected, abs=1e-9)
    likeliest = likeliest_patterns(flows, n=4)
    assert [people for _, people in likeliest] == pytest.approx(sorted(each, reverse=True)[: len(likeliest)])
    for pattern, expected in likeliest:
        assert expected == pytest.approx(each[patterns(5).index(pattern)])


def test_flows_and_scenario_must_have_the_same_days():
    flows = flows_of(tally_of({(1, 2): 3}, days=2))
    message = "a scenario must have the 2 days of the tally, got 3"
    refuses(message, likely_people, flows, exactly_days(1, days=3))
    refuses("n must be >= 1, got 0", likeliest_patterns, flows, n=0)


def nearest_by_slsqp(wanted, *, weights, most, has_end) -> np.ndarray:
    nodes = wanted.shape[0]
    places = np.triu_indices(nodes, 1)
    balance = np.zeros((nodes, places[0].size))
    balance[places[1], np.arange(places[0].size)] += 1
    balance[places[0], np.arange(places[0].size)] -= 1
    balance = balance[1:-1] if has_end else balance[1:]
    found = minimize(
        lambda x: (weights[places] * (x - wanted[places]) ** 2).sum() / 1e4,
        np.clip(wanted[places], 0, most[places]),
        jac=lambda x: 2 * weights[places] * (x - wanted[places]) / 1e4,
        method="SLSQP",
        bounds=[(0, None if np.isinf(high) else high) for high in most[places]],
        constraints={
            "type": "eq" if has_end else "ineq",
            "fun": lambda x: balance @ x,
            "jac": lambda _: balance,
        },
        options={"maxiter": 500, "ftol": 1e-13},
    )
    result = np.zeros_like(wanted)
    result[places] = found.x
    return result


@pytest.mark.parametrize("has_end", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_flows_are_those_of_another_solver(has_end, seed):
    rng = np.random.default_rng(seed)
    wanted = np.triu(rng.normal(50, 100, (7, 7)), 1)
    weights = np.exp(rng.normal(0, 1, (7, 7)))
    most = np.triu(rng.uniform(50, 300, (7, 7)), 1) if has_end else np.full((7, 7), np.inf)
    found = nearest_flows(wanted, weights=weights, most=most, has_end=has_end)
    expected = nearest_by_slsqp(wanted, weights=weights, most=most, has_end=has_end)
    assert found == pytest.approx(expected, abs=0.01)


def test_projected_flows_are_those_of_people_and_nearer_to_the_truth_than_the_noisy_tally():
    truth = tally_of({pattern: number // 200 for pattern, number in fimu().items()}, days=7)
    noisy = truth + np.triu(np.random.default_rng(2).integers(-40, 41, truth.shape), 1)
    flows = projected_flows(noisy)
    assert flows.edges.min() >= 0
    assert flows.edges[:, 1:-1].sum(axis=0) == pytest.approx(flows.edges[1:-1].sum(axis=1))
    assert np.linalg.norm(flows.tally - truth) < 0.9 * np.linalg.norm(noisy - truth)


def test_flows_of_people_are_their_own_projection():
    truth = tally_of(fimu(), days=7)
    assert projected_flows(truth).tally == pytest.approx(truth, abs=1e-6)


def test_each_pattern_has_the_bounds_of_the_scenario_that_fixes_every_day():
    tally = tally_of(fimu(), days=7)
    found = likely_patterns(tally, n=127)
    likeliest = likeliest_patterns(flows_of(tally), n=127)
    assert [each.pattern for each in found] == [pattern for pattern, _ in likeliest]
    for each in found:
        absent = set(range(1, 8)) - set(each.pattern)
        exact = scenario_people(tally, on_days(days=7, present=each.pattern, absent=absent))
        assert (each.people.least, each.people.most) == (exact.least, exact.most)
        assert each.people.estimate == pytest.approx(exact.estimate)


def test_patterns_depend_on_no_hidden_window_and_few_are_left_out():
    people = {(1,): 100, (3,): 80, (1, 3): 60, (1, 2): 3, (2, 3): 4}
    tally = tally_of(people, days=3)
    other = tally_of(people | {(1, 3): 59, (1, 2, 3): 1}, days=3)
    assert not np.array_equal(tally, other)
    found = likely_patterns(tally, small_cell=10)
    assert found == likely_patterns(other, small_cell=10)
    assert all(each.people.estimate >= 10 and 2 not in each.pattern for each in found)
    assert {each.pattern for each in found} == {(1,), (3,), (1, 3)}
    for each in found:
        assert each.people.least <= people[each.pattern] <= each.people.most
    with pytest.raises(FewVisitorsError, match="visitors must be 0 or at least 300, got fewer"):
        likely_patterns(tally, small_cell=300)


def test_bounds_from_noisy_cells_hold_the_people_of_each_pattern():
    exact = tally_of(fimu(), days=7)
    channel = PresenceSpec.from_json({"epsilon": "1/1", "max_days": 7}).noise(codes_a_day=1).channel
    noise = np.rint(np.random.default_rng(1).laplace(0, channel.variance**0.5 / 2**0.5, exact.shape))
    noisy = exact + np.triu(noise, 1).astype(np.int64)
    found = likely_patterns(noisy, noise=channel)
    assert len(found) == 20
    for each in found:
        assert each.people.least <= fimu()[each.pattern] <= each.people.most
        assert each.people.least < each.people.most
    refuses(r"level must be in \(0, 1\), got 1", likely_patterns, exact, level=1)


def windows_of(tally: np.ndarray) -> dict[tuple[int, int], int]:
    days, unions = tally.shape[0] - 1, all_unions(tally)
    return {(a, b): int(unions[a, b]) for a in range(1, days + 1) for b in range(a, days + 1)}


@given(people=crowds(6))
@settings(max_examples=20, deadline=None)
def test_a_whole_table_has_exactly_the_flows_of_its_people(people):
    tally = tally_of(people, days=6)
    fit = fit_unions(UnionTable.of_windows(windows_of(tally), days=6))
    assert (fit.flows.tally == tally).all()
    assert (fit.slack, fit.moved) == (0, {})


@given(people=crowds(5))
@settings(max_examples=20, deadline=None)
def test_hidden_numbers_are_filled_in_within_their_limits_and_the_rest_is_kept(people):
    tally = tally_of(people, days=5)
    known = windows_of(tally)
    hidden = {window: (1, 19) if 0 < number < 20 else number for window, number in known.items()}
    fit = fit_unions(UnionTable.of_windows(hidden, days=5))
    assert fit.slack == 0
    for window, number in windows_of(fit.flows.tally).items():
        if isinstance(hidden[window], tuple):
            assert 0 <= number <= 20  # whole people near limits that need not be met in whole ones
        else:
            assert abs(number - known[window]) <= 2


def test_a_number_that_no_people_fit_is_named_with_the_least_that_must_change():
    windows = windows_of(tally_of(fimu(), days=7))
    windows[2, 4] += 300
    assert fit_unions(UnionTable.of_windows(windows, days=7)).moved == {}
    windows[1, 1] = 88_935 + 200
    fit = fit_unions(UnionTable.of_windows(windows, days=7))
    assert set(fit.moved) == {(1, 1)}
    assert fit.slack == -fit.moved[1, 1] > 200
    unions = all_unions(fit.flows.tally)
    assert unions[1, 1] == pytest.approx(windows[1, 1] + fit.moved[1, 1], abs=1)
    assert unions[1, 7] == 88_935


def test_sources_are_merged_and_those_that_contradict_each_other_are_named():
    """Totals of table 4.1 of the thesis: 23,816, 23,598 and 23,810 for the same days."""
    first, second = (
        UnionTable.of_windows({(1, 1): one, (1, 2): (90, 99)}, days=2) for one in (23_816, 23_598)
    )
    third = UnionTable.of_windows({(1, 1): 23_810, (1, 2): (95, 120), (2, 2): 40}, days=2)
    merged, conflicts = merge_tables({"age": first, "gender": second, "region": third})
    assert [each.window for each in conflicts] == [(1, 1)]
    assert conflicts[0].people == {
        "age": (23_816, 23_816), "gender": (23_598, 23_598), "region": (23_810, 23_810),
    }  # fmt: skip
    assert (merged.low[1, 1], merged.high[1, 1]) == (23_598, 23_816)
    assert (merged.low[1, 2], merged.high[1, 2]) == (95, 99)
    assert (merged.low[2, 2], merged.high[2, 2]) == (40, 40)
    refuses("tables must be about the same days, got", merge_tables, {})
    other = UnionTable.of_windows({(1, 1): 3}, days=3)
    refuses(r"tables must be about the same days, got \[2, 3\]", merge_tables, {"a": first, "b": other})


def test_tables_with_impossible_windows_are_refused():
    for message, windows, days in (
        ("at least one window, got none", {}, 2),
        (r"windows must lie within days 1\.\.2, got 2\.\.3", {(2, 3): 4}, 2),
        (r"windows must lie within days 1\.\.2, got 2\.\.1", {(2, 1): 4}, 2),
        (r"people of 1\.\.2 must be limits 0 <= least <= most, got 5 and 4", {(1, 2): (5, 4)}, 2),
        (r"people of 1\.\.2 must be limits 0 <= least <= most, got -1 and -1", {(1, 2): -1}, 2),
        (r"days must be in \[1, 62\], got 63", {(1, 2): 4}, 63),
    ):
        refuses(message, UnionTable.of_windows, windows, days=days)


def tallies_of(people, *, days: int, small_cell: int = 0) -> PresenceTallies:
    bitmaps = [sum(1 << day - 1 for day in pattern) for pattern, n in people.items() for _ in range(n)]
    out = np.zeros((2, days + 1, days + 1), np.int64)
    tally_stays(np.array(bitmaps, np.uint64), out, tallies=PRESENCE_TALLIES, sign=1)
    return PresenceTallies(visits=out[0], runs=out[1], people=len(bitmaps), small_cell=small_cell)


def stays(pattern: tuple[int, ...], length: int) -> int:
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
