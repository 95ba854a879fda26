"""Hadamard response with keyed bits: one lasting report per subscriber, indicator and value."""

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.errors import LdpError
from ldp.kernels import oracles
from ldp.kernels.entropy import ANSWER, KeyedPrf, PlanFields
from ldp.keyed.grr import check_values, keyed_values
from ldp.protocols.hadamard import HadamardChannel


def answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: HadamardChannel,
    **fields: Unpack[PlanFields],
) -> NDArray[np.uint16]:
    """Sanitised column of each subscriber; the same arguments always give the same columns.

    Parameters, Raises : as of `grr.answers`

    Returns
    -------
    ndarray of uint16, shape (n,); column in [0, n_columns), NO_ANSWER where the value is -1

    Notes
    -----
    Word 0 keeps or flips the sign, word 1 draws a column of that sign. Cost: one AES block per subscriber.
    Source: Acharya, Sun, Zhang, AISTATS 2019.
    """
    check_values(values, pseudonyms=pseudonyms, domain_size=channel.domain_size)
    out = np.empty(values.shape[0], np.uint16)
    keyed = keyed_values(values)
    for part, words in prf.chunks(pseudonyms, purpose=ANSWER, values=keyed, counter=0, **fields):
        oracles.hadamard_columns(
            values[part],
            words,
            np.uint64(channel.sign.threshold),
            np.uint64(channel.n_columns - 1),
            np.uint64(NO_ANSWER),
            out[part],
        )
    return out


def count_support(reports: NDArray[np.uint16], *, channel: HadamardChannel) -> NDArray[np.int64]:
    """Reports that support each value: their column has a plus in its row.

    Parameters
    ----------
    reports : ndarray of uint16, shape (n,); columns, or NO_ANSWER

    Returns
    -------
    ndarray of int64, shape (domain_size,)

    Raises
    ------
    LdpError : a column is out of range

    Notes
    -----
    By the fast Walsh-Hadamard transform, in integers. Cost: n + n_columns log n_columns.
    """
    columns = reports[reports != NO_ANSWER]
    if columns.size and columns.max() >= channel.n_columns:
        raise LdpError(f"column must be < {channel.n_columns}, got {columns.max()}")
    signs = np.bincount(columns, minlength=channel.n_columns).astype(np.int64)
    oracles.walsh_hadamard(signs)  # pluses less minuses, per row
    return np.asarray((columns.size + signs[1 : channel.domain_size + 1]) // 2, np.int64)
