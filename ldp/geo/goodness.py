"""Does a deconvolved density explain the reports? Chi-square over blocks that are filled well enough."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.geo.deconvolution import Density, Land, deconvolve
from ldp.geo.made_up import made_up_reports
from ldp.geo.transition import Transition
from ldp.kernels.streams import KeyedStream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LEAST_EXPECTED: Final = 25.0  # reports in a block
_KEY: Final = b"reports made up."  # public: these reports are of no one


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodness:
    """Fit of a deconvolved density.

    Parameters
    ----------
    chi_square : float; mean over blocks of (reports - expected)^2 / expected
    low, high : float; in which 95% of such means lie if the density is right
    n_blocks : int
    """

    chi_square: float
    low: float
    high: float
    n_blocks: int


def goodness(
    counts: Ints,
    *,
    transition: Transition,
    fitted: Density,
    land: Land | None = None,
    n_replicates: int = 20,
) -> Goodness:
    """Compare the reports with those that the density makes likely.

    Parameters
    ----------
    counts, transition, land : as in `deconvolve`
    fitted : Density; what `deconvolve` returned for them
    n_replicates : int; in [5, 1000]

    Notes
    -----
    The range is mean +- 1.96 standard deviations over replicates: subscribers as in the density, new noise,
    and a density deconvolved again. So it needs no degrees of freedom, of which early stopping leaves
    no simple number, and knows that counts of subscribers who stay in place vary less than Poisson's.
    It notices noise that is less than assumed, people where there is said to be no land, or reports that are
    not of this mechanism. It hardly notices more noise than assumed: a smoother density explains that.
    """
    if not 5 <= n_replicates <= 1000:
        raise LdpError(f"n_replicates must be in [5, 1000], got {n_replicates}")
    blocks = filled_blocks(fitted.expected)
    stream = KeyedStream(_KEY)
    found = []
    for _ in range(n_replicates):
        drawn = made_up_reports(fitted.density, transition=transition, stream=stream)
        again = deconvolve(drawn, transition=transition, land=land, steps=fitted.steps)
        found.append(_chi_square(drawn, again.expected, blocks=blocks))
    mean, half = np.mean(found), NormalDist().inv_cdf(0.975) * np.std(found, ddof=1)
    low = float(mean - half)
    return Goodness(
        chi_square=_chi_square(counts, fitted.expected, blocks=blocks),
        low=max(low, 0.0),
        high=float(mean + half),
        n_blocks=int(blocks.max()) + 1,
    )


def filled_blocks(expected: Floats) -> Ints:
    """Cut a map into rectangles as small as they can be with 25 expected reports each, by halving.

    Takes and returns an array of shape (n_y, n_x): of float64, at least 0; of int64, the index of the
    rectangle. If there are fewer than 25 reports, there is one.
    """
    blocks = np.empty(expected.shape, np.int64)
    sums = np.zeros((expected.shape[0] + 1, expected.shape[1] + 1))
    sums[1:, 1:] = expected.cumsum(axis=0).cumsum(axis=1)
    waiting, n_blocks = [(0, expected.shape[0], 0, expected.shape[1])], 0
    while waiting:
        top, bottom, left, right = waiting.pop()
        middle_y, middle_x = (top + bottom) // 2, (left + right) // 2
        if bottom - top >= right - left:
            halves = [(top, middle_y, left, right), (middle_y, bottom, left, right)]
        else:
            halves = [(top, bottom, left, middle_x), (top, bottom, middle_x, right)]
        if min(sums[b, r] - sums[t, r] - sums[b, x] + sums[t, x] for t, b, x, r in halves) >= _LEAST_EXPECTED:
            waiting += halves
        else:
            blocks[top:bottom, left:right] = n_blocks
            n_blocks += 1
    return blocks


def _chi_square(counts: Ints, expected: Floats, *, blocks: Ints) -> float:
    by_block = np.bincount(blocks.ravel(), weights=counts.ravel())
    likely = np.maximum(np.bincount(blocks.ravel(), weights=expected.ravel()), 1e-9)
    return float(np.mean((by_block - likely) ** 2 / likely))
