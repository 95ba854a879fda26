"""Subset selection with keyed bits: one lasting report per subscriber, indicator and value."""

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from ldp.kernels import oracles
from ldp.kernels.entropy import ANSWER, KeyedPrf, PlanFields, slices
from ldp.kernels.streams import last_accepted
from ldp.keyed.grr import check_values, keyed_values
from ldp.keyed.lanes import LANES
from ldp.protocols.subset import SubsetChannel

_WORDS_AT_ONCE = 2**20


def answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: SubsetChannel,
    **fields: Unpack[PlanFields],
) -> NDArray[np.uint64]:
    """Set of each subscriber, as bits; the same arguments always give the same sets.

    Parameters, Raises : as of `grr.answers`

    Returns
    -------
    ndarray of uint64, shape (n, ceil(domain_size / 64)); bit v % 64 of word v // 64 is set if value v is in
    the set; no bit is set where the value is -1

    Notes
    -----
    Word 0 says whether the true value is in; words 1 to subset_size draw the others, each set of them equally
    likely (Floyd and Bentley, CACM 1987), without modulo bias: a row with a biased word is drawn again as a
    whole from the next counters. Cost: subset_size / 2 + 1 AES blocks per subscriber.
    """
    check_values(values, pseudonyms=pseudonyms, domain_size=channel.domain_size)
    keyed = keyed_values(values)
    out = np.empty((values.shape[0], -(-channel.domain_size // LANES)), np.uint64)
    n_blocks = channel.subset_size // 2 + 1
    rows_at_once = max(1, _WORDS_AT_ONCE // (2 * n_blocks))
    for part in slices(values.shape[0], rows=rows_at_once):
        _fill(out[part], values[part], keyed[part], pseudonyms[part], prf=prf, channel=channel, **fields)
    return out


def _fill(
    out: NDArray[np.uint64],
    values: NDArray[np.int32],
    keyed: NDArray[np.uint32],
    pseudonyms: NDArray[np.uint64],
    *,
    prf: KeyedPrf,
    channel: SubsetChannel,
    **fields: Unpack[PlanFields],
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
                pseudonyms[rows], purpose=ANSWER, values=keyed[rows], counter=counter, **fields
            )
        drawn = np.empty((rows.size, out.shape[1]), np.uint64)
        redraws = oracles.subset_bits(
            values[rows], words, np.uint64(channel.threshold), last, channel.domain_size, drawn
        )
        out[rows] = drawn
        biased = ~drawn.any(axis=1) & (values[rows] >= 0) if redraws else np.zeros(rows.size, np.bool_)
        rows = rows[biased]
        attempt += 1
