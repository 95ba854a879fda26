"""Short form of the benchmark: noise is as large as predicted, and intervals hold, over a few keys."""

import numpy as np
import pytest

from benchmarks import presence


@pytest.fixture(scope="module", params=[12, pytest.param(60, marks=pytest.mark.long)])
def scores(request):
    return request.param, presence.run(request.param, seed=7)


def test_intervals_hold_the_truth_and_errors_are_as_large_as_stated(scores):
    """With 60 keys power 0.97 against coverage of 0.80; windows of a study go together, at worst as two."""
    keys, scores = scores
    doubt = np.sqrt(0.95 * 0.05 / (2 * keys))
    assert len(scores) == len(presence.PLANS) * 3
    assert min(score.intervals for score in scores.values()) >= keys * len(presence.WINDOWS)
    for name, score in scores.items():
        assert score.coverage > 0.95 - 4 * doubt, name
        assert name[1] == "total" or score.coverage < 0.95 + 4 * doubt, name
        # Of a study all windows go together; a ratio of spreads is uncertain by 1 / sqrt(2 n).
        assert abs(score.error_ratio - 1) < 4 / np.sqrt(2 * keys), name


def test_noise_alone_is_as_large_as_predicted():
    found = presence.spreads(60)
    assert found[0].predicted == pytest.approx(9.891, abs=0.001)
    assert max(spread.predicted for spread in found) == pytest.approx(39.564, abs=0.001)
    assert all(presence.is_as_predicted(spread) for spread in found)
