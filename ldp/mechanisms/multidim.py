"""Several indicators: who answers what (Smp: one indicator each; Spl: all), and on which days."""

import numpy as np
from numpy.typing import NDArray

from ldp import kernels
from ldp.entropy import BUFFER_BLOCKS, CHOOSE_DAYS, CHOOSE_INDICATOR, KeyedPrf
from ldp.errors import LdpError
from ldp.params import MAX_DAYS, MAX_INDICATORS


def choose_indicator(pseudonyms: NDArray[np.uint64], *, prf: KeyedPrf, d: int) -> NDArray[np.uint8]:
    """Indicator that each subscriber answers, for the whole study and every plan version.

    Parameters
    ----------
    pseudonyms : ndarray of uint64, shape (n,)
    d : int; number of indicators, in [1, 255]

    Returns
    -------
    ndarray of uint8, shape (n,); in [0, d), each equally likely

    Raises
    ------
    LdpError : d is out of range
    """
    if not 1 <= d <= MAX_INDICATORS:
        raise LdpError(f"d must be in [1, {MAX_INDICATORS}], got {d}")
    drawn = prf.below(pseudonyms, bound=d, purpose=CHOOSE_INDICATOR, indicator=0, plan_version=0, value=0)
    return drawn.astype(np.uint8)


def choose_days(
    pseudonyms: NDArray[np.uint64], *, prf: KeyedPrf, days: int, max_values: int, indicator: int
) -> NDArray[np.uint64]:
    """Days on which each subscriber answers a daily indicator, for the whole study and every plan version.

    Parameters
    ----------
    pseudonyms : ndarray of uint64, shape (n,)
    days : int; days of the study, in [1, 62]
    max_values : int; days to choose, in [1, days]
    indicator : int; position in the plan

    Returns
    -------
    ndarray of uint64, shape (n,); bit t-1 = day t; every set of max_values days is equally likely

    Raises
    ------
    LdpError : days or max_values is out of range

    Notes
    -----
    Fisher-Yates; step i (from 0) is the value of the keyed block. Cost: max_values AES blocks per subscriber.
    """
    if not 1 <= max_values <= days <= MAX_DAYS:
        raise LdpError(f"1 <= max_values <= days <= {MAX_DAYS} must hold, got {max_values} and {days}")
    if max_values == days:
        return np.full(pseudonyms.shape[0], 2**days - 1, np.uint64)
    bitmaps = np.zeros(pseudonyms.shape[0], np.uint64)
    for start in range(0, pseudonyms.shape[0], BUFFER_BLOCKS):
        part = slice(start, start + BUFFER_BLOCKS)
        order = np.tile(np.arange(days, dtype=np.uint8), (bitmaps[part].shape[0], 1))
        for step in range(max_values):
            drawn = prf.below(
                pseudonyms[part],
                bound=days - step,
                purpose=CHOOSE_DAYS,
                indicator=indicator,
                plan_version=0,
                value=step,
            )
            kernels.shuffle_step(order, step, drawn, bitmaps[part])
    return bitmaps
