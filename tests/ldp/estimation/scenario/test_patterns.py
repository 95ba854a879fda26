"""Likely patterns with their bounds: those of the independent program, and nothing of hidden windows."""

import numpy as np
import pytest

from ldp import flows_of, likeliest_patterns, likely_patterns, on_days, scenario_people
from ldp.errors import FewVisitorsError
from ldp.privacy.presence import PresenceSpec
from tests.ldp.estimation.scenario.people import fimu, tally_of
from tests.ldp.exact import refuses


def test_each_pattern_has_the_bounds_of_the_scenario_that_fixes_every_day():
    tally = tally_of(fimu(), days=7)
    found = likely_patterns(tally, n=127)
    assert [each.pattern for each in found] == [
        pattern for pattern, _ in likeliest_patterns(flows_of(tally), n=127)
    ]
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
