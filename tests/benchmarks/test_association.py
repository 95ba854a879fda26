"""The test of association: it rejects as often as it says, and needs other margins."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.association import p_values

KEYS = 100


def test_it_rejects_independent_attributes_as_often_as_it_says() -> None:
    """They reject 5% of the keys within 3.5 standard errors; p-values are uniform."""
    found = p_values((3, 4), epsilon=1, keys=KEYS, n_people=9000)[:, 0]
    large = p_values((12, 37), epsilon=1, keys=25, n_people=9000)
    assert stats.kstest(found, "uniform").pvalue > 0.001
    assert np.mean(found < 0.05) == pytest.approx(0.05, abs=3.5 * np.sqrt(0.05 * 0.95 / KEYS))
    assert np.mean(large[:, 0] < 0.05) < 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / 25)
    # Margins of the table itself have its noise.
    assert np.mean(large[:, 1] < 0.05) > 0.3


def test_it_finds_attributes_that_go_together() -> None:
    found = p_values((3, 4), epsilon=3, keys=20, n_people=9000, together=0.5)[:, 0]
    assert np.mean(found < 0.05) > 0.9
