"""Unary encoding (SUE, OUE, THE) with keyed bits: one lasting report per subscriber, indicator and value."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ldp import kernels_oracles
from ldp.entropy import ANSWER, KeyedPrf
from ldp.families.unary import UnaryChannel
from ldp.kernels_oracles import NO_BIT
from ldp.mechanisms.grr import check_values, keyed_values

__all__ = ["NO_BIT", "answers", "count_support", "place_words", "support_counts"]

Values = NDArray[np.int32]
Words = NDArray[np.uint64]


def answers(
    values: Values,
    *,
    pseudonyms: Words,
    prf: KeyedPrf,
    channel: UnaryChannel,
    indicator: int,
    plan_version: int,
) -> NDArray[np.uint8]:
    """Sanitised bits of each subscriber; the same arguments always give the same bits.

    Parameters
    ----------
    values : ndarray of int32, shape (n,); true codes in [0, domain_size), or -1 for no value; not modified
    pseudonyms : ndarray of uint64, shape (n,)
    prf : KeyedPrf; source of the bits
    channel : UnaryChannel
    indicator : int; position in the plan
    plan_version : int; in [1, 255]

    Returns
    -------
    ndarray of uint8, shape (n, domain_size); 0 or 1, a whole row of NO_BIT where the value is -1

    Raises
    ------
    LdpError : shapes differ, or a value is out of range

    Notes
    -----
    Bit j is word j of the answer below its threshold. Cost: domain_size / 2 AES blocks per subscriber.
    Source: Wang et al., USENIX Security 2017.
    """
    out = np.empty((values.shape[0], channel.domain_size), np.uint8)
    thresholds = np.uint64(channel.threshold_p), np.uint64(channel.threshold_q)
    for part, first, words in place_words(
        values,
        pseudonyms=pseudonyms,
        prf=prf,
        domain_size=channel.domain_size,
        indicator=indicator,
        plan_version=plan_version,
    ):
        kernels_oracles.unary_bits(values[part], words, thresholds, first, out[part])
    return out


def count_support(reports: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Reports that support each value: ones per column.

    Parameters
    ----------
    reports : ndarray of uint8, shape (n, domain_size); as `answers` gives them

    Returns
    -------
    ndarray of int64, shape (domain_size,)
    """
    out = np.zeros(reports.shape[1], np.int64)
    kernels_oracles.column_sums(reports, out)
    return out


def support_counts(
    values: Values,
    *,
    pseudonyms: Words,
    prf: KeyedPrf,
    channel: UnaryChannel,
    indicator: int,
    plan_version: int,
) -> NDArray[np.int64]:
    """Column sums of `answers`, without the reports themselves: memory does not grow with n * domain_size.

    Returns
    -------
    ndarray of int64, shape (domain_size,); rows without a value count nothing
    """
    out = np.zeros(channel.domain_size, np.int64)
    thresholds = np.uint64(channel.threshold_p), np.uint64(channel.threshold_q)
    for part, first, words in place_words(
        values,
        pseudonyms=pseudonyms,
        prf=prf,
        domain_size=channel.domain_size,
        indicator=indicator,
        plan_version=plan_version,
    ):
        kernels_oracles.unary_support(values[part], words, thresholds, first, out)
    return out


def place_words(
    values: Values,
    *,
    pseudonyms: Words,
    prf: KeyedPrf,
    domain_size: int,
    indicator: int,
    plan_version: int,
) -> Iterator[tuple[slice, int, Words]]:
    """Words of an answer that has one word per value of the domain.

    Yields
    ------
    rows, the first of two places, and uint64 words of shape (rows, 2); word j is word j % 2 of the
    keyed block with counter j // 2

    Raises
    ------
    LdpError : shapes differ, or a value is out of range
    """
    check_values(values, pseudonyms=pseudonyms, domain_size=domain_size)
    keyed = keyed_values(values)
    for counter in range((domain_size + 1) // 2):
        for part, words in prf.chunks(
            pseudonyms,
            purpose=ANSWER,
            indicator=indicator,
            plan_version=plan_version,
            values=keyed,
            counter=counter,
        ):
            yield part, 2 * counter, words
