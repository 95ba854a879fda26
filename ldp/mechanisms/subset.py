"""Subset selection with keyed bits: one lasting report per subscriber, indicator and value."""

import numpy as np
from numpy.typing import NDArray

from ldp import kernels_oracles
from ldp.entropy import ANSWER, KeyedPrf, last_accepted
from ldp.families.subset import SubsetChannel
from ldp.kernels_oracles import NO_BIT
from ldp.mechanisms.grr import check_values, keyed_values
from ldp.mechanisms.unary import count_support

__all__ = ["NO_BIT", "answers", "count_support"]

_WORDS_AT_ONCE = 2**20


def answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: SubsetChannel,
    indicator: int,
    plan_version: int,
) -> NDArray[np.uint8]:
    """Set of each subscriber, as bits; the same arguments always give the same sets.

    Parameters
    ----------
    values : ndarray of int32, shape (n,); true codes in [0, domain_size), or -1 for no value; not modified
    pseudonyms : ndarray of uint64, shape (n,)
    prf : KeyedPrf; source of the bits
    channel : SubsetChannel
    indicator : int; position in the plan
    plan_version : int; in [1, 255]

    Returns
    -------
    ndarray of uint8, shape (n, domain_size); 1 for the values of the set, rows of NO_BIT without a value

    Raises
    ------
    LdpError : shapes differ, or a value is out of range

    Notes
    -----
    Word 0 says whether the true value is in; words 1 to subset_size draw the others, each set of them equally
    likely (Floyd and Bentley, CACM 1987), without modulo bias: a row with a biased word is drawn again as a
    whole from the next counters. Cost: subset_size / 2 + 1 AES blocks per subscriber.
    """
    check_values(values, pseudonyms=pseudonyms, domain_size=channel.domain_size)
    keyed = keyed_values(values)
    fields = {"purpose": ANSWER, "indicator": indicator, "plan_version": plan_version}
    out = np.empty((values.shape[0], channel.domain_size), np.uint8)
    n_blocks = channel.subset_size // 2 + 1
    rows_at_once = max(1, _WORDS_AT_ONCE // (2 * n_blocks))
    for start in range(0, values.shape[0], rows_at_once):
        part = slice(start, start + rows_at_once)
        _fill(out[part], values[part], keyed[part], pseudonyms[part], prf=prf, channel=channel, fields=fields)
    return out


def _fill(
    out: NDArray[np.uint8],
    values: NDArray[np.int32],
    keyed: NDArray[np.uint32],
    pseudonyms: NDArray[np.uint64],
    *,
    prf: KeyedPrf,
    channel: SubsetChannel,
    fields: dict[str, int],
) -> None:
    """Draw the sets of some rows, again and again until no word was biased."""
    w, n_blocks = channel.subset_size, channel.subset_size // 2 + 1
    first_bound = channel.domain_size - w
    last = np.array([last_accepted(first_bound + step) for step in range(w)], np.uint64)
    rows = np.arange(values.shape[0])
    attempt = 0
    while rows.size:
        words = np.empty((rows.size, 2 * n_blocks), np.uint64)
        for block in range(n_blocks):
            counter = attempt * n_blocks + block
            words[:, 2 * block : 2 * block + 2] = prf.words(
                pseudonyms[rows], **fields, values=keyed[rows], counter=counter
            )
        drawn = np.empty((rows.size, channel.domain_size), np.uint8)
        redraws = kernels_oracles.subset_bits(values[rows], words, np.uint64(channel.threshold), last, drawn)
        out[rows] = drawn
        biased = (drawn[:, 0] == NO_BIT) & (values[rows] >= 0) if redraws else np.zeros(rows.size, np.bool_)
        rows = rows[biased]
        attempt += 1
