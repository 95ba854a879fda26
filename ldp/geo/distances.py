"""Distance from a noisy place to a point: its mean and its mean square, under planar Laplace noise."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.geo.planar_laplace import PlanarLaplace

Doubles = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_TAIL: Final = 45.0  # epsilon times the length of noise beyond which nothing counts
_ROUNDS: Final = 8  # of the arithmetic-geometric mean, which doubles its correct digits in each


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
