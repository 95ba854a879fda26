"""Noisy histograms (SHE) with keyed bits: one lasting report per subscriber, indicator and value."""

from collections.abc import Iterator
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from ldp.kernels import oracles
from ldp.kernels.entropy import ANSWER, KeyedPrf, PlanFields
from ldp.keyed.grr import check_values, keyed_values
from ldp.protocols.histogram import HistogramChannel


def answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: HistogramChannel,
    **fields: Unpack[PlanFields],
) -> NDArray[np.int16]:
    """Noisy counts of each subscriber; the same arguments always give the same counts.

    Parameters, Raises : as of `grr.answers`

    Returns
    -------
    ndarray of int16, shape (n, domain_size); a whole row of NO_COUNT where the value is -1

    Notes
    -----
    Word j of the answer is looked up in the channel's table: no logarithm, no rounding. Cost: domain_size / 2
    AES blocks per subscriber. Sources as of `HistogramChannel`.
    """
    out = np.empty((values.shape[0], channel.domain_size), np.int16)
    table = _table(channel)
    for part, first, words in _place_words(values, pseudonyms, prf, channel.domain_size, **fields):
        oracles.noisy_counts(values[part], words, table, first, out[part])
    return out


def sums(
    values: NDArray[np.int32],
    *,
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: HistogramChannel,
    **fields: Unpack[PlanFields],
) -> NDArray[np.int64]:
    """Column sums of `answers`, without the reports themselves: memory does not grow with n * domain_size.

    Returns
    -------
    ndarray of int64, shape (domain_size,); rows without a value count nothing
    """
    out = np.zeros(channel.domain_size, np.int64)
    table = _table(channel)
    for part, first, words in _place_words(values, pseudonyms, prf, channel.domain_size, **fields):
        oracles.noisy_sums(values[part], words, table, first, out)
    return out


def _place_words(
    values: NDArray[np.int32],
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    domain_size: int,
    **fields: Unpack[PlanFields],
) -> Iterator[tuple[slice, int, NDArray[np.uint64]]]:
    """Yield rows, the first of two places, and the words of both, shape (rows, 2).

    Each value has its own word: word j is word j % 2 of the keyed block with counter j // 2.
    """
    check_values(values, pseudonyms=pseudonyms, domain_size=domain_size)
    keyed = keyed_values(values)
    for counter in range((domain_size + 1) // 2):
        for part, words in prf.chunks(pseudonyms, purpose=ANSWER, values=keyed, counter=counter, **fields):
            yield part, 2 * counter, words


def _table(channel: HistogramChannel) -> tuple[NDArray[np.uint64], int]:
    """Running sums of the weights without the last, which is 2**64 for sure; and the lowest count."""
    return np.cumsum(np.array(channel.weights[:-1], np.uint64), dtype=np.uint64), channel.lowest
