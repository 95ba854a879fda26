"""Nearest flows of people to noisy or estimated ones: a convex quadratic program, by its dual.

The sum of w (x - g)^2 over edges is least at x = clip(g + (price of the end - price of the start) / w, 0,
most), where each day has a price: what one person more who arrives and does not leave would save. The prices
are the maximum of a smooth concave function of as many variables as days, and its slope is what arrives less
what leaves.
"""

import numpy as np
from numpy.typing import NDArray

from ldp.estimation.scenario.flows import Counts, Flows, check_tally, with_departures

Floats = NDArray[np.float64]


def projected_flows(tally: Counts) -> Flows:
    """Flows nearest to a gap tally with noise: no count below 0, no one leaves a day without being there.

    Parameters
    ----------
    tally : ndarray of int64, shape (days + 1, days + 1); each cell with independent noise of the same
        variance

    Notes
    -----
    Least sum of squares over cells; who leaves for good follows from them. 62 days: a few hundredths of a
    second.
    """
    wanted = np.triu(check_tally(tally).astype(np.float64), 1)
    cells = nearest_flows(
        wanted, weights=np.ones_like(wanted), most=np.full_like(wanted, np.inf), has_end=False
    )
    return Flows(np.maximum(with_departures(cells), 0))


def nearest_flows(wanted: Floats, *, weights: Floats, most: Floats, has_end: bool) -> Floats:
    """Flows in [0, most] with the least weighted sum of squares from the wanted ones.

    Parameters
    ----------
    wanted, most : ndarray of float64, shape (nodes, nodes); [p, t] for p < t
    weights : same shape; above 0
    has_end : bool; the last node is the end, and what arrives at a day leaves it; else at most as much
        leaves
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - 0.3 s for every use of ldp

    nodes = wanted.shape[0]
    inner = slice(1, nodes - 1 if has_end else nodes)
    is_edge = np.triu(np.ones_like(wanted, np.bool_), 1)
    scale = max(float(np.abs(wanted).max()), 1.0)
    weights = weights / weights[is_edge].mean()
    yields = np.where(is_edge, 1 / weights, 0)
    unit = 1 / np.sqrt((yields.sum(axis=0) + yields.sum(axis=1))[inner])  # prices of days on one scale

    def flows(prices: Floats) -> Floats:
        price = np.zeros(nodes)
        price[inner] = prices * unit
        return np.where(is_edge, np.clip(wanted + (price - price[:, np.newaxis]) / weights, 0, most), 0)

    def dual(prices: Floats) -> tuple[float, Floats]:
        x = flows(prices)
        surplus = (x.sum(axis=0) - x.sum(axis=1))[inner] * unit
        value = (weights * (x - wanted) ** 2)[is_edge].sum() / 2 - prices @ surplus
        return -value / scale**2, surplus / scale**2

    found = minimize(
        dual,
        np.zeros(inner.stop - 1),
        jac=True,
        method="L-BFGS-B",
        bounds=None if has_end else [(0, None)] * (inner.stop - 1),
        options={"maxiter": 2_000, "maxcor": 30, "ftol": 0, "gtol": 1e-9 / scale},
    )
    return _balanced(flows(found.x), has_end=has_end)


def _balanced(x: Floats, *, has_end: bool) -> Floats:
    """Return the flows without rounding of the solver: each day passes on what it has."""
    x = x.copy()
    for p in range(1, x.shape[0] - has_end):
        arrives, leaves = x[:, p].sum(), x[p].sum()
        if has_end and leaves == 0:
            x[p, -1] = arrives
        elif leaves > arrives or has_end:
            x[p] *= arrives / leaves
    return x
