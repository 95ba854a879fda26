"""Short forms of benchmarks: what comparisons say holds as often as they say, errors are as foretold."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import compare_coverage, scenario_coverage, simulator, soak
from benchmarks import derived_coverage as coverage
from benchmarks.compare_coverage import KINDS, MEASURES


@pytest.fixture(scope="module", params=[30, pytest.param(120, marks=pytest.mark.long)])
def scores(request):
    return compare_coverage.run(request.param, seed=7)


def test_intervals_hold_and_corrected_tables_are_rarely_wrong(scores):
    """With 120 keys power 0.97 against coverage of 0.80; rows of a table go together, at worst as one row."""
    names = {name for name, _ in scores}
    assert len(scores) == len(names) * len(MEASURES) == 20
    assert {f"categories, {kind}" for kind in KINDS} < names
    assert {score.is_exact for score in scores.values()} == {True, False}
    for (name, _), score in scores.items():
        doubt, coverage = np.sqrt(0.95 * 0.05 / score.keys), score.covered / score.keys
        assert coverage > 0.95 - 4 * doubt, name
        assert not score.is_exact or coverage < 0.95 + 4 * doubt, name
        assert score.false_held <= score.false_alone
        assert score.false_held / score.keys < 0.05 + 4 * doubt, name
        # Shared visitors make a difference more certain; never above all errors in step.
        assert score.ratio / score.keys < (0.9 if name.startswith("windows") else 2**0.5), name
    exact = [score.covered / score.keys for score in scores.values() if score.is_exact]
    assert abs(np.mean(exact) - 0.95) < 0.015 * np.sqrt(120 / score.keys)
    assert max(score.false_alone / score.keys for score in scores.values()) > 0.1


def test_bars_of_scenarios_hold_the_truth_and_one_that_does_so_too_rarely_is_marked():
    rows = scenario_coverage.run(n_keys=2, processes=1, mechanisms=("smp-grr",))
    assert [(row.indicator, row.question) for row in rows] == [
        (indicator, question)
        for indicator in scenario_coverage.INDICATORS
        for question in scenario_coverage.questions()
    ]
    for row in rows:
        assert row.is_good, row
        assert 0.1 < row.width < 1.5
        assert 1 < row.width_of_known < 4
    rare = replace(rows[0], coverage=0.925, keys=1_000)
    assert scenario_coverage.table([rows[0], rare]).count("(out of tolerance)") == 1
    assert replace(rare, coverage=0.927).is_good


BOUNDS = {coverage.AGAIN, coverage.BOTH, coverage.MEAN_DAYS}
EXACT = {
    "arrivals", "returning", "departures", "seen again until a day", "seen again on the next day",
    "arrivals (daily)", "returning (daily)",
}  # fmt: skip


@pytest.mark.parametrize("mechanism", ["smp-grr", pytest.param("rsfd-ouez", marks=pytest.mark.long)])
def test_intervals_hold_the_truth_as_often_as_they_say(mechanism):
    rows = coverage.run(n_keys=60, processes=1, mechanisms=[mechanism])
    kinds = dict.fromkeys(EXACT, True) | dict.fromkeys(BOUNDS, False)
    assert {row.figure: row.is_exact for row in rows} == kinds
    for row in rows:
        assert row.doubt < 0.02
        assert row.coverage > 0.95 - 4 * row.doubt, row
        assert not row.is_exact or row.coverage < 0.95 + 4 * row.doubt, row
    # Bounds are wider than what more knowledge would give, but not useless.
    wider = {row.figure: row.wider for row in rows if row.wider is not None}
    assert set(wider) == BOUNDS
    assert all(1 < factor < 12 for factor in wider.values()), wider


KEYS = 40
# Of what the page cannot know: days differ in visitors, categories in size.
BIAS = 0.03


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["smp-grr", "smp-adp", "spl-grr", "rsfd-ouez"])
def test_half_widths_are_those_that_are_foretold(mechanism):
    squared = simulator.squared_errors(mechanism, "profile", soak.study_keys(KEYS, seed=3))
    found = simulator.scores(mechanism, "profile", squared)
    assert len(found) == 2 * 7
    for score in found:
        assert score.doubt < 0.12, score
        assert abs(score.ratio - 1) < BIAS + 4 * score.doubt, score
    # Over all of them the doubt is small: this is what fails if a factor is wrong.
    assert abs(float(np.mean([score.ratio for score in found])) - 1) < 0.05


def test_the_crowd_is_what_anybody_can_count():
    crowd = simulator.expected_crowd()
    assert crowd.visitors == pytest.approx(190_345 / 7)
    assert crowd.in_all(7) == pytest.approx(88_935)
