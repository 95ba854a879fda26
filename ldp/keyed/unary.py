"""Unary encoding (SUE, OUE, THE) with keyed bits: one lasting report per subscriber, indicator and value."""

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from ldp.kernels.entropy import ANSWER, KeyedPrf, PlanFields
from ldp.keyed.grr import check_values
from ldp.keyed.lanes import Round, reports
from ldp.keyed.lanes import support_counts as lane_counts
from ldp.protocols.unary import UnaryChannel

Values = NDArray[np.int32]
Words = NDArray[np.uint64]


def answers(
    values: Values,
    *,
    pseudonyms: Words,
    prf: KeyedPrf,
    channel: UnaryChannel,
    **fields: Unpack[PlanFields],
) -> Words:
    """Sanitised bits of each subscriber, 64 values to a word; the same arguments always give the same bits.

    Parameters, Raises : as of `grr.answers`

    Returns
    -------
    ndarray of uint64, shape (n, ceil(domain_size / 64)); bit v % 64 of word v // 64 is that of value v; no
    bit is set where the value is -1, nor need one be where there is a value

    Notes
    -----
    One round of `lanes`. Cost: about one AES block per subscriber for up to 12 values, 4 for 33 to 64, and so
    on for each 64 values. Source: Wang et al., USENIX Security 2017.
    """
    check_values(values, pseudonyms=pseudonyms, domain_size=channel.domain_size)
    rounds = (Round(channel=channel, purpose=ANSWER),)
    return reports(values, pseudonyms=pseudonyms, rounds=rounds, prf=prf, **fields)


def support_counts(
    values: Values,
    *,
    pseudonyms: Words,
    prf: KeyedPrf,
    channel: UnaryChannel,
    **fields: Unpack[PlanFields],
) -> NDArray[np.int64]:
    """Ones per value in `answers`, without the reports themselves: memory does not grow with n * domain_size.

    Returns
    -------
    ndarray of int64, shape (domain_size,); rows without a value count nothing
    """
    check_values(values, pseudonyms=pseudonyms, domain_size=channel.domain_size)
    rounds = (Round(channel=channel, purpose=ANSWER),)
    return lane_counts(values, pseudonyms=pseudonyms, rounds=rounds, prf=prf, **fields)
