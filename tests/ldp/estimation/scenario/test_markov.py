"""The estimate: what proportional fitting of the unions ends at, and sums over all patterns."""

import numpy as np
import pytest
from hypothesis import given, settings

from ldp import days_in_a_row, exactly_days, flows_of, likeliest_patterns, likely_people, on_days
from tests.ldp.estimation.scenario.people import (
    PatternProgram,
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
    refuses(
        "a scenario must have the 2 days of the tally, got 3", likely_people, flows, exactly_days(1, days=3)
    )
    refuses("n must be >= 1, got 0", likeliest_patterns, flows, n=0)
