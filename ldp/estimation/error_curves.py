"""Errors of estimated frequencies as a curve: how wide intervals are, and which differences are found.

Everything follows from `pure_variance`: with n reports of N visitors the variance of an estimated frequency
is a + b f + c f (1 - f), where a and b are the noise and c the sample. Presence noise adds its own square
own (`noise_variance`): the same form, and c may be below 0.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.estimators import pure_variance
from ldp.estimation.noisy_estimators import UnionNoise, noise_variance
from ldp.protocols.channels import GrrChannel, PureChannel

LEVEL: Final = 0.95  # of intervals
POWER: Final = 0.8  # of finding a difference

Floats = NDArray[np.float64]

_STEPS = 200
_CLOSE = 1e-12  # of a frequency


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCurve:
    """Variance of an estimated frequency f: noise + slope f + bend f (1 - f).

    Of expected visitors and reports; `sampling` is the part of the bend that comes from asking some visitors
    only.
    """

    n_visitors: float
    n_reports: float
    noise: float
    slope: float
    bend: float
    sampling: float

    def variance(self, f: float) -> float:
        """Return the variance at a true frequency."""
        return self.noise + self.slope * f + self.bend * f * (1 - f)

    def half_width(self, f: float) -> float:
        """Half of the 95% interval at a true frequency."""
        return _z((1 + LEVEL) / 2) * sqrt(self.variance(f))

    @property
    def worst_half_width(self) -> float:
        """Half of the 95% interval at the frequency of [0, 1] where it is largest."""
        ends = max(self.half_width(0), self.half_width(1))
        if self.bend <= 0:
            return ends
        top = (self.slope + self.bend) / (2 * self.bend)
        return max(ends, self.half_width(min(max(top, 0.0), 1.0)))

    def smallest_difference(self, f: float, *, is_shared: bool = False) -> float | None:
        """Smallest rise from f that a comparison with a window of the same size finds with a power of 80%.

        Parameters
        ----------
        f : float; frequency in the first window, in [0, 1]
        is_shared : whether the same people may have been asked in both, as of a value that changes: their
            samples are then taken to err in opposite directions, as pages do; else the windows have different
            people

        Returns
        -------
        float, or None : no rise up to 1 is found that often

        Notes
        -----
        A difference is found where its 95% interval leaves out 0. So d = (z(0.975) + z(0.8)) s(d), with the
        standard error s of a difference from f to f + d. Its square is concave in d, hence so is s, and the
        steps d <- z s(d) from above end at the only root. (Presence noise bends s upwards, but lets it rise
        from f = 1 / domain_size on: then they end at the largest root.)
        """
        z, rise = _z((1 + LEVEL) / 2) + _z(POWER), 1 - f
        if rise <= z * self._difference_error(f, rise, is_shared=is_shared):
            return None
        for _ in range(_STEPS):
            before, rise = rise, z * self._difference_error(f, rise, is_shared=is_shared)
            if before - rise < _CLOSE:
                break
        return rise

    def _difference_error(self, f: float, rise: float, *, is_shared: bool) -> float:
        above = min(f + rise, 1.0)
        together = 2 * self.sampling * sqrt(f * (1 - f) * above * (1 - above)) if is_shared else 0.0
        return sqrt(self.variance(f) + self.variance(above) + together)


def error_curve(
    channel: PureChannel, *, n_reports: float, n_visitors: float, noise: UnionNoise | None = None
) -> ErrorCurve:
    """Error of frequencies from n reports, of visitors of whom the reporters are a random sample.

    Parameters
    ----------
    channel : PureChannel; as used for the reports; a GrrChannel if there is noise
    n_reports : float; expected, above 0
    n_visitors : float; at least n_reports
    noise : UnionNoise or None; of each count, None = counts are exact

    Raises
    ------
    LdpError : there is noise, but reports are no codes
    """
    points = [0.0, 1.0, 0.5]
    variance = pure_variance(points, n_reports=n_reports, n_population=n_visitors, channel=channel)
    sampling = _bend(variance) if n_reports < n_visitors else 0.0
    if noise is not None:
        if not isinstance(channel, GrrChannel):
            raise LdpError(f"channel must be GRR where counts are noisy, got {channel}")
        variance = variance + noise_variance(points, n_reports=n_reports, noise=noise, channel=channel)
    return ErrorCurve(
        n_visitors=n_visitors,
        n_reports=n_reports,
        noise=float(variance[0]),
        slope=float(variance[1] - variance[0]),
        bend=sampling if noise is None else _bend(variance),
        sampling=sampling,
    )


def _bend(variance: Floats) -> float:
    """Return the distance of a square's middle above its ends: the factor of f (1 - f)."""
    zero, one, half = variance.tolist()
    return float(4 * half - 2 * (zero + one))


@lru_cache(maxsize=8)
def _z(probability: float) -> float:
    return NormalDist().inv_cdf(probability)
