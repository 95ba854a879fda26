"""The test of two windows on sanitised answers; its rates: tests/ldp/estimation/test_table_change.py."""

import numpy as np

from benchmarks.table_change import p_values


def test_a_large_table_is_not_rejected_too_often() -> None:
    found = p_values((12, 37), epsilon=1, keys=10, n_people=9000)
    assert (found < 0.05).mean() < 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / 10)


def test_it_finds_tables_that_differ() -> None:
    found = p_values((3, 4), epsilon=3, keys=10, n_people=9000, moved=0.6)
    assert (found[:, 0] < 0.05).mean() > 0.9
