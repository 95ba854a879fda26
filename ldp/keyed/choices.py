"""Choice of questions: which indicator each subscriber answers, and on which days; for the whole study."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.kernels import codes
from ldp.kernels.entropy import CHOOSE_DAYS, CHOOSE_INDICATOR, CHOOSE_SLOT, KeyedPrf, slices, word_bounds
from ldp.privacy.plans import MAX_DAYS, MAX_INDICATORS
from ldp.protocols.channels import WORD

Words = NDArray[np.uint64]


def choose_indicator(
    pseudonyms: Words, *, prf: KeyedPrf, d: int, shares: Sequence[int] | None = None
) -> NDArray[np.uint8]:
    """Indicator that each subscriber answers, for the whole study: every plan version with these shares.

    Parameters
    ----------
    pseudonyms : ndarray of uint64, shape (n,)
    d : int; number of indicators, in [1, 255]
    shares : sequence of int, shape (d,), or None; probabilities times 2**64, at least 1 each; None = equal

    Returns
    -------
    ndarray of uint8, shape (n,); in [0, d)

    Raises
    ------
    LdpError : d is out of range, or shares are not d positive integers that add up to 2**64

    Notes
    -----
    With shares, the first word of the block is compared with their running sums. The choice does not
    depend on any value, so shares change no promise; `smp_weights` says which are good.
    """
    if not 1 <= d <= MAX_INDICATORS:
        raise LdpError(f"d must be in [1, {MAX_INDICATORS}], got {d}")
    fields = {"purpose": CHOOSE_INDICATOR, "indicator": 0, "plan_version": 0}
    if shares is None:
        return prf.below(pseudonyms, bound=d, value=0, **fields).astype(np.uint8)
    if len(shares) != d or min(shares) < 1 or sum(shares) != WORD:
        raise LdpError(f"shares must be {d} positive integers with sum {WORD}, got {list(shares)}")
    bounds = word_bounds(shares)
    asked = np.empty(pseudonyms.shape[0], np.uint8)
    for part, words in prf.chunks(pseudonyms, values=0, counter=0, **fields):
        asked[part] = np.searchsorted(bounds, words[:, 0], side="right")
    return asked


def choose_days(
    pseudonyms: Words,
    *,
    prf: KeyedPrf,
    days: int,
    max_values: int,
    indicator: int,
    purpose: int = CHOOSE_DAYS,
) -> Words:
    """Days on which each subscriber answers a daily indicator, for the whole study and every plan version.

    Parameters
    ----------
    pseudonyms : ndarray of uint64, shape (n,)
    days : int; days of the study, in [1, 62]
    max_values : int; days to choose, in [1, days]
    indicator : int; position in the plan
    purpose : int; of the keyed block

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
    for part in slices(pseudonyms.shape[0]):
        order = np.tile(np.arange(days, dtype=np.uint8), (bitmaps[part].shape[0], 1))
        for step in range(max_values):
            drawn = prf.below(
                pseudonyms[part],
                bound=days - step,
                purpose=purpose,
                indicator=indicator,
                plan_version=0,
                value=step,
            )
            codes.shuffle_step(order, step, drawn, bitmaps[part])
    return bitmaps


def slot_days(pseudonyms: Words, *, prf: KeyedPrf, days: int, window_days: int, indicator: int) -> Words:
    """Days on which each subscriber answers a stream, for the whole study and every plan version.

    A subscriber has one permanent slot s, and answers on the days t with t mod window_days = s: on one of any
    `window_days` consecutive days. So those who answer on one of these days are a random part of all
    subscribers, and no one answers twice (population division).

    Parameters
    ----------
    pseudonyms : ndarray of uint64, shape (n,)
    days : int; days of the study, in [1, 62]
    window_days : int; in [1, days]
    indicator : int; position in the plan

    Returns
    -------
    ndarray of uint64, shape (n,); bit t-1 = day t; every slot is equally likely

    Raises
    ------
    LdpError : days or window_days is out of range

    Notes
    -----
    Source: LPU of Ren et al., LDP-IDS, SIGMOD 2022.
    """
    if not 1 <= window_days <= days <= MAX_DAYS:
        raise LdpError(f"1 <= window_days <= days <= {MAX_DAYS} must hold, got {window_days} and {days}")
    bitmaps = np.zeros(window_days, np.uint64)
    for day in range(1, days + 1):
        bitmaps[day % window_days] |= np.uint64(1 << (day - 1))
    fields = {"purpose": CHOOSE_SLOT, "indicator": indicator, "plan_version": 0}
    slots = prf.below(pseudonyms, bound=window_days, value=0, **fields)
    return np.asarray(bitmaps[slots.astype(np.int64)], np.uint64)
