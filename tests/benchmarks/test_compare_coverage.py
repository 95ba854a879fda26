"""Short form of the benchmark: what comparisons say holds as often as they say, over a few keys."""

import numpy as np
import pytest

from benchmarks import compare_coverage
from benchmarks.compare_coverage import KINDS, MEASURES, Score

pytestmark = pytest.mark.slow

KEYS = 120
# Rows of a table go together: as uncertain as one row a table, at worst.
DOUBT = np.sqrt(0.95 * 0.05 / KEYS)


@pytest.fixture(scope="module")
def scores() -> dict[tuple[str, str], Score]:
    return compare_coverage.run(KEYS, seed=7)


def test_every_comparison_is_there(scores: dict[tuple[str, str], Score]) -> None:
    names = {name for name, _ in scores}
    assert len(scores) == len(names) * len(MEASURES) == 20
    assert {f"categories, {kind}" for kind in KINDS} < names
    assert {score.is_exact for score in scores.values()} == {True, False}


def test_intervals_hold_the_truth(scores: dict[tuple[str, str], Score]) -> None:
    for name, score in scores.items():
        coverage = score.covered / score.keys
        assert coverage > 0.95 - 4 * DOUBT, name
        if score.is_exact:
            assert coverage < 0.95 + 4 * DOUBT, name
    exact = [score.covered / score.keys for score in scores.values() if score.is_exact]
    assert abs(np.mean(exact) - 0.95) < 0.015


def test_corrected_tables_are_rarely_wrong(scores: dict[tuple[str, str], Score]) -> None:
    for name, score in scores.items():
        assert score.false_held <= score.false_alone
        assert score.false_held / score.keys < 0.05 + 4 * DOUBT, name
    assert max(score.false_alone / score.keys for score in scores.values()) > 0.1


def test_shared_visitors_make_a_difference_more_certain(scores: dict[tuple[str, str], Score]) -> None:
    for (name, _), score in scores.items():
        ratio = score.ratio / score.keys
        if name.startswith("windows"):
            assert ratio < 0.9, name
        assert ratio < 2**0.5, name  # never above all errors in step


def test_table_marks_what_is_out_of_tolerance() -> None:
    good = Score(is_exact=True, keys=100, covered=95.0, false_alone=12, false_held=4, ratio=70.0)
    wide = Score(is_exact=True, keys=100, covered=97.0, false_alone=2, false_held=1, ratio=140.0)
    bound = Score(is_exact=False, keys=100, covered=100.0, false_alone=0, false_held=7, ratio=140.0)
    lines = compare_coverage.table(
        {("a", "frequency"): good, ("b", "visitors"): wide, ("c", "visitors"): bound}
    )
    assert lines[2] == "| a | frequency | exact | 95.0 % | 12.0 % | 4.0 % | 0.70 |"
    assert [line.endswith("(out of tolerance) |") for line in lines[2:]] == [False, True, True]
