"""Table 10.2 of the thesis, drawn with the keyed noise that tables get."""

import pytest

from benchmarks import locations
from benchmarks.reproduce.published import PLACE_LEVELS

WITHIN_KM = 0.02


@pytest.mark.parametrize("printed", PLACE_LEVELS, ids=lambda each: f"ln{each.odds}-{each.radius_m}")
def test_distances_after_noise_are_those_of_the_thesis(printed):
    found = locations.noisy_distances(printed)
    assert found.mean_km == pytest.approx(printed.mean_km, abs=WITHIN_KM)
    assert found.std_km == pytest.approx(printed.std_km, abs=WITHIN_KM)
