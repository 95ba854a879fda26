"""Table 10.2: distance of emergencies from their centre after noise, from what is printed of it before.

The places are not public. Their distances have a printed mean and standard deviation; between these two, a
lognormal law stands for them. The mean square needs no law: noise adds 6 / epsilon^2 to it.
"""

from dataclasses import dataclass
from functools import cache
from math import exp, log, log1p, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.reproduce import published
from benchmarks.reproduce.published import PlaceLevel
from ldp.errors import LdpError
from ldp.geo.planar_laplace import PlanarLaplace

Doubles = NDArray[np.float64]

QUANTILES: Final = 20_000  # middles of as many equally likely parts of the law
MEAN_WITHIN: Final = 0.02  # km; the law is not the true one
HALF_DIGIT: Final = 0.005  # km, of what is printed

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_TAIL: Final = 45.0  # epsilon times the length of noise beyond which nothing counts
_ROUNDS: Final = 8  # of the arithmetic-geometric mean, which doubles its correct digits in each


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


@cache
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
    square = published.MEAN_KM**2 + published.STD_KM**2 + 6 / law.epsilon_per_m**2 / 1e6
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


def mean_distance(distances_m: Doubles, *, law: PlanarLaplace) -> Doubles:
    """Return the mean distance to a point after noise, of places at these distances from it.

    Parameters
    ----------
    distances_m : ndarray of float64, shape (n,); in metres, finite and at least 0; not modified
    law : PlanarLaplace

    Returns
    -------
    ndarray of float64, shape (n,); in metres, above the distance, to seven digits

    Raises
    ------
    LdpError : a distance is out of range

    Notes
    -----
    Over the angle, the mean for noise of length r at distance d is 2 / pi (d + r) E(m), with the complete
    elliptic integral E and m = 4 d r / (d + r)^2. Over the length, Gauss-Legendre below and above
    r = d, where that mean has no second derivative. The mean square is d^2 + 6 / epsilon^2: the angle is
    uniform, so the mixed term has mean 0.
    """
    if not (np.isfinite(distances_m) & (distances_m >= 0)).all():
        raise LdpError("distances_m must be finite and >= 0")
    d = np.minimum(law.epsilon_per_m * distances_m, _TAIL)[:, None]
    # Beyond the tail no noise is as long as the distance: only the lower part counts.
    below, above = d / 2 * (_NODES + 1), d + (_TAIL - d) / 2 * (_NODES + 1)
    at = law.epsilon_per_m * distances_m[:, None]
    mean = np.zeros(distances_m.shape)
    for r, half in ((below, d / 2), (above, (_TAIL - d) / 2)):
        mean += (half * _WEIGHTS * r * np.exp(-r) * (_over_angle(at, r) - at)).sum(axis=1)
    return distances_m + mean / law.epsilon_per_m


def _over_angle(d: Doubles, r: Doubles) -> Doubles:
    """2 / pi (d + r) E(4 d r / (d + r)^2), by the arithmetic-geometric mean of d + r and |d - r|."""
    a, b = d + r, abs(d - r)
    total, scale = (a**2 + b**2) / 2, 0.5
    for _ in range(_ROUNDS):
        a, b, scale = (a + b) / 2, np.sqrt(a * b), 2 * scale
        total = total - scale * (a**2 - b**2)
    return np.divide(total, a, out=np.zeros_like(total), where=a > 0)
