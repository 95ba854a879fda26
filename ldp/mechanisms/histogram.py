"""Noisy histograms (SHE) with keyed bits: one lasting report per subscriber, indicator and value."""

import numpy as np
from numpy.typing import NDArray

from ldp import kernels_oracles
from ldp.entropy import KeyedPrf
from ldp.families.histogram import HistogramChannel
from ldp.kernels_oracles import NO_COUNT
from ldp.mechanisms.unary import place_words

__all__ = ["NO_COUNT", "answers", "sums"]


def answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: HistogramChannel,
    indicator: int,
    plan_version: int,
) -> NDArray[np.int16]:
    """Noisy counts of each subscriber; the same arguments always give the same counts.

    Parameters
    ----------
    values : ndarray of int32, shape (n,); true codes in [0, domain_size), or -1 for no value; not modified
    pseudonyms : ndarray of uint64, shape (n,)
    prf : KeyedPrf; source of the bits
    channel : HistogramChannel
    indicator : int; position in the plan
    plan_version : int; in [1, 255]

    Returns
    -------
    ndarray of int16, shape (n, domain_size); a whole row of NO_COUNT where the value is -1

    Raises
    ------
    LdpError : shapes differ, or a value is out of range

    Notes
    -----
    Word j of the answer is looked up in the channel's table: no logarithm, no rounding. Cost: domain_size / 2
    AES blocks per subscriber. Sources as of `HistogramChannel`.
    """
    out = np.empty((values.shape[0], channel.domain_size), np.int16)
    table = _table(channel)
    for part, first, words in place_words(
        values,
        pseudonyms=pseudonyms,
        prf=prf,
        domain_size=channel.domain_size,
        indicator=indicator,
        plan_version=plan_version,
    ):
        kernels_oracles.noisy_counts(values[part], words, table, first, out[part])
    return out


def sums(
    values: NDArray[np.int32],
    *,
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: HistogramChannel,
    indicator: int,
    plan_version: int,
) -> NDArray[np.int64]:
    """Column sums of `answers`, without the reports themselves: memory does not grow with n * domain_size.

    Returns
    -------
    ndarray of int64, shape (domain_size,); rows without a value count nothing
    """
    out = np.zeros(channel.domain_size, np.int64)
    table = _table(channel)
    for part, first, words in place_words(
        values,
        pseudonyms=pseudonyms,
        prf=prf,
        domain_size=channel.domain_size,
        indicator=indicator,
        plan_version=plan_version,
    ):
        kernels_oracles.noisy_sums(values[part], words, table, first, out)
    return out


def _table(channel: HistogramChannel) -> tuple[NDArray[np.uint64], int]:
    """Running sums of the weights without the last, which is 2**64 for sure; and the lowest count."""
    return np.cumsum(np.array(channel.weights[:-1], np.uint64), dtype=np.uint64), channel.lowest
