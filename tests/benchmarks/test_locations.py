"""What `python -m benchmarks.locations` compares: the same noise drawn in other ways, and the demo's area."""

import math

import numpy as np
import pytest
from scipy import stats

import ldp
from benchmarks import locations
from ldp.geo.planar_laplace import PlanarLaplace


@pytest.mark.parametrize("way", ["numpy", "lambert"])
def test_the_others_draw_the_same_noise(way: str) -> None:
    stream, epsilon = ldp.KeyedStream(bytes(16)), math.log(4) / 200
    u1, u2, u3 = ((stream.words(20_000) >> np.uint64(11)) * 2.0**-53 + 2.0**-54 for _ in range(3))
    if way == "numpy":
        east, north = locations.numpy_shifts(epsilon, u1, u2, u3)
    else:
        east, north = locations.lambert_shifts(epsilon, u1, u3)
    law = PlanarLaplace(epsilon_per_m=epsilon)
    below = [law.cdf(radius) for radius in np.hypot(east, north).tolist()]
    assert stats.kstest(below, "uniform").statistic * math.sqrt(20_000) < 1.95
    turns = np.arctan2(north, east) / (2 * math.pi) % 1
    assert stats.kstest(turns, "uniform").statistic * math.sqrt(20_000) < 1.95


def test_more_noise_moves_more_people_of_the_demo() -> None:
    area = locations.read_area()
    assert (area.zone_of_square[area.grid.codes(area.x_m, area.y_m)] == area.zones).all()
    some, much = (locations.move(area, odds=odds, radius_m=1000) for odds in (6, 2))
    assert 0 < some.other_zone < much.other_zone < 1
    assert 0 < some.outside < much.outside < 1
    assert 0 < some.other_cell < much.other_cell < 1
