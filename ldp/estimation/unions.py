"""Unions of consecutive days, from gap tallies: plain numpy, so that a reader needs no compiler.

`ldp.estimation.tallies` explains gap tallies.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError

Counts = NDArray[np.int64]


def union(tally: Counts, *, first_day: int, last_day: int) -> Any:
    """Counts of the union of the days first_day..last_day, each subscriber once; int64, shape (...).

    Parameters
    ----------
    tally : ndarray of int64, shape (..., days + 1, days + 1); that of visitors gives a scalar

    Raises
    ------
    LdpError : not 1 <= first_day <= last_day <= days
    """
    days = tally.shape[-1] - 1
    if not 1 <= first_day <= last_day <= days:
        raise LdpError(f"window must lie within days 1..{days}, got {first_day}..{last_day}")
    return tally[..., :first_day, first_day : last_day + 1].sum(axis=(-2, -1))


def all_unions(tally: Counts) -> Counts:
    """Counts of every union at once.

    Returns
    -------
    ndarray of int64, shape (..., days + 1, days + 1); [..., a, b] = union of a..b, 0 where a < 1 or b < a
    """
    by_first_day = np.zeros_like(tally)
    by_first_day[..., 1:, :] = np.cumsum(tally, axis=-2)[..., :-1, :]
    return np.cumsum(np.triu(by_first_day), axis=-1)
