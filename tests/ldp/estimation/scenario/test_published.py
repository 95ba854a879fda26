"""Tables of unions: flows that fit them, windows and sources that contradict others."""

import numpy as np
import pytest
from hypothesis import given, settings

from ldp import UnionTable, all_unions, fit_unions, merge_tables
from tests.ldp.estimation.scenario.people import crowds, fimu, tally_of
from tests.ldp.exact import refuses


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
