"""Threshold reports with keyed bits: one permanent cut per subscriber, a permanent answer on each side."""

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.kernels.entropy import ANSWER, CHOOSE_CUT, KeyedPrf, PlanFields, word_bounds
from ldp.keyed import grr
from ldp.protocols.channels import GrrChannel
from ldp.protocols.numbers.threshold import ThresholdChannel

Words = NDArray[np.uint64]


def choose_cut(
    pseudonyms: Words, *, prf: KeyedPrf, indicator: int, channel: ThresholdChannel
) -> NDArray[np.uint8]:
    """Cut that each subscriber is asked about, in every plan version with these shares; uint8, shape (n,).

    It depends on no value, so everyone may know it.
    """
    bounds = word_bounds(channel.shares)
    cuts = np.empty(pseudonyms.shape[0], np.uint8)
    fields = {"purpose": CHOOSE_CUT, "indicator": indicator, "plan_version": 0}
    for part, words in prf.chunks(pseudonyms, values=0, counter=0, **fields):
        cuts[part] = np.searchsorted(bounds, words[:, 0], side="right")
    return cuts


def sides(
    levels: NDArray[np.int32],
    *,
    pseudonyms: Words,
    prf: KeyedPrf,
    indicator: int,
    channel: ThresholdChannel,
) -> NDArray[np.int32]:
    """Return whether each number reaches the subscriber's cut, 0 or 1; -1 without a number. Not sanitised.

    Parameters
    ----------
    levels : ndarray of int32, shape (n,); `Scale.levels` in [0, n_cuts], anything else for no value
    pseudonyms, prf, indicator, channel : as of `choose_cut`
    """
    cuts = choose_cut(pseudonyms, prf=prf, indicator=indicator, channel=channel)
    is_known = (levels >= 0) & (levels <= channel.domain_size)
    return np.where(is_known, levels > cuts.astype(np.int32), -1).astype(np.int32)


def answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: Words,
    prf: KeyedPrf,
    channel: ThresholdChannel,
    **fields: Unpack[PlanFields],
) -> NDArray[np.uint16]:
    """Code of each subscriber's report; the same arguments always give the same answers.

    Parameters
    ----------
    values : ndarray of int32, shape (n,); levels (`Scale.levels`) in [0, n_cuts], -1 for no value
    pseudonyms, prf, fields, Returns, Raises : as of `grr.answers`

    Notes
    -----
    The keyed value is twice the cut plus the true bit: two blocks a subscriber, however many days.
    """
    grr.check_values(values, pseudonyms=pseudonyms, domain_size=channel.domain_size + 1)
    cuts = choose_cut(pseudonyms, prf=prf, indicator=fields["indicator"], channel=channel).astype(np.int32)
    bits = np.where(values < 0, 0, values > cuts).astype(np.int32)
    bit = GrrChannel(domain_size=2, threshold=channel.threshold)
    keyed = grr.keyed_values(2 * cuts + bits)
    reported = grr.draw(
        bits, keyed=keyed, pseudonyms=pseudonyms, prf=prf, channel=bit, purpose=ANSWER, counter=0, **fields
    )
    return np.where(values < 0, NO_ANSWER, 2 * cuts + reported).astype(np.uint16)
