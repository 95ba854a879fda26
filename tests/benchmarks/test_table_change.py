"""The test of two windows: it finds a difference of equal tables as often as it says, and real ones."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.table_change import PAIRS, p_values

KEYS = 120


@pytest.mark.parametrize("epsilon", [1, 3])
def test_it_rejects_equal_tables_as_often_as_it_says(epsilon: int) -> None:
    """Check 5% of the keys within 3.5 standard errors, for each pair of windows; p-values are uniform."""
    found = p_values((3, 4), epsilon=epsilon, keys=KEYS, n_people=6000)
    rates = (found < 0.05).mean(axis=0)
    assert np.abs(rates - 0.05).max() < 3.5 * np.sqrt(0.05 * 0.95 / KEYS)
    assert all(stats.kstest(found[:, place], "uniform").pvalue > 0.001 for place in range(len(PAIRS)))


def test_a_large_table_is_not_rejected_too_often() -> None:
    found = p_values((12, 37), epsilon=1, keys=10, n_people=9000)
    assert (found < 0.05).mean() < 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / 10)


def test_it_finds_tables_that_differ() -> None:
    found = p_values((3, 4), epsilon=3, keys=10, n_people=9000, moved=0.6)
    assert (found[:, 0] < 0.05).mean() > 0.9
