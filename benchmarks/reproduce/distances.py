"""Table 10.2: distance of emergencies from their centre after noise, from what is printed of it before.

The places are not public. Their distances have a printed mean and standard deviation; between these two, a
lognormal law stands for them. The mean square needs no law: noise adds 6 / epsilon^2 to it.
"""

from dataclasses import dataclass
from math import exp, log, log1p, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from benchmarks.reproduce import published
from benchmarks.reproduce.published import PlaceLevel
from ldp.geo.distances import mean_distance
from ldp.geo.planar_laplace import PlanarLaplace

QUANTILES: Final = 20_000  # middles of as many equally likely parts of the law
MEAN_WITHIN: Final = 0.02  # km; the law is not the true one
HALF_DIGIT: Final = 0.005  # km, of what is printed


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyDistances:
    """Effect of a level on the distances, in km, and on their correlation with a linear response.

    Parameters
    ----------
    level : PlaceLevel; as printed
    epsilon_per_m : float; of the level
    mean_km, std_km : float; of lognormal distances
    correlation : float; of a response that is linear in the true distance
    root_mean_square_km : float; of any law
    """

    level: PlaceLevel
    epsilon_per_m: float
    mean_km: float
    std_km: float
    correlation: float
    root_mean_square_km: float

    @property
    def mean_agrees(self) -> bool:
        """Return whether mean and standard deviation are the printed ones, to what the law allows."""
        printed = self.level
        differences = (self.mean_km - printed.mean_km, self.std_km - printed.std_km)
        return all(abs(each) <= MEAN_WITHIN + HALF_DIGIT for each in differences)

    @property
    def square_agrees(self) -> bool:
        """Return whether the printed digits allow our mean square: both sides are rounded."""
        printed = (self.level.mean_km, self.level.std_km)
        before = (published.MEAN_KM, published.STD_KM)
        slack = sum(2 * each * HALF_DIGIT for each in (*printed, *before))
        return bool(abs(sum(each**2 for each in printed) - self.root_mean_square_km**2) <= slack)


def levels() -> list[NoisyDistances]:
    """All of table 10.2."""
    return [noisy(level) for level in published.PLACE_LEVELS]


def noisy(level: PlaceLevel) -> NoisyDistances:
    """One of them."""
    law = PlanarLaplace(epsilon_per_m=log(level.odds) / level.radius_m)
    variance = log1p((published.STD_KM / published.MEAN_KM) ** 2)
    middle = log(published.MEAN_KM) - variance / 2
    normal = NormalDist(middle, sqrt(variance))
    before = np.array([exp(normal.inv_cdf((i + 0.5) / QUANTILES)) for i in range(QUANTILES)])
    # The noise's contribution is bounded and smooth, so it is the part that is summed.
    added = mean_distance(1000 * before, law=law) / 1000 - before
    mean = published.MEAN_KM + float(added.mean())
    square = published.MEAN_KM**2 + published.STD_KM**2 + law.second_moment_m2 / 1e6
    std = sqrt(square - mean**2)
    covariance = published.STD_KM**2 + float((before * added).mean()) - published.MEAN_KM * added.mean()
    return NoisyDistances(
        level=level,
        epsilon_per_m=law.epsilon_per_m,
        mean_km=mean,
        std_km=std,
        correlation=published.CORRELATION * float(covariance) / (std * published.STD_KM),
        root_mean_square_km=sqrt(square),
    )
