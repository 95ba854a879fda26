"""Generalised randomised response with keyed bits: one lasting answer per subscriber, indicator and value."""

import numpy as np
from numpy.typing import NDArray

from ldp import kernels
from ldp.channels import GrrChannel
from ldp.entropy import ANSWER, KeyedPrf, last_accepted
from ldp.errors import LdpError
from ldp.kernels import NO_ANSWER, REDRAW

__all__ = ["NO_ANSWER", "answers"]


def answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: GrrChannel,
    indicator: int,
    plan_version: int,
) -> NDArray[np.uint16]:
    """Sanitised code of each subscriber; the same arguments always give the same answers.

    Parameters
    ----------
    values : ndarray of int32, shape (n,); true codes in [0, domain_size), or -1 for no value; not modified
    pseudonyms : ndarray of uint64, shape (n,)
    prf : KeyedPrf; source of the bits
    channel : GrrChannel
    indicator : int; position in the plan
    plan_version : int; in [1, 255]

    Returns
    -------
    ndarray of uint16, shape (n,); NO_ANSWER where the value is -1

    Raises
    ------
    LdpError : shapes differ, or a value is out of range

    Notes
    -----
    Source: Kairouz et al., ICML 2016. The value is part of the keyed block: a changed value gets independent
    bits, an unchanged one the same answer. Cost: one AES block per subscriber.
    """
    check_values(values, pseudonyms=pseudonyms, domain_size=channel.domain_size)
    return draw(
        values,
        keyed=keyed_values(values),
        pseudonyms=pseudonyms,
        prf=prf,
        channel=channel,
        purpose=ANSWER,
        indicator=indicator,
        plan_version=plan_version,
        counter=0,
    )


def draw(
    values: NDArray[np.int32],
    *,
    keyed: NDArray[np.uint32],
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: GrrChannel,
    counter: int,
    **fields: int,
) -> NDArray[np.uint16]:
    """As `answers`, without checks, from the block with `keyed` values; redraws take the next counters.

    `fields` are the block's purpose, indicator and plan_version.
    """
    others = channel.domain_size - 1
    limits = np.uint64(others), last_accepted(others)
    out = np.empty(values.shape[0], np.uint16)
    redraws = 0
    for part, words in prf.chunks(pseudonyms, **fields, values=keyed, counter=counter):
        redraws += kernels.grr_answers(values[part], words, np.uint64(channel.threshold), *limits, out[part])
    while redraws:
        counter += 1
        rows = np.flatnonzero(out == REDRAW)
        words = prf.words(pseudonyms[rows], **fields, values=keyed[rows], counter=counter)
        # Threshold 0: the value was given up already, only its replacement is drawn again.
        again = np.empty(rows.size, np.uint16)
        redraws = kernels.grr_answers(values[rows], words, np.uint64(0), *limits, again)
        out[rows] = again
    return out


def keyed_values(values: NDArray[np.int32]) -> NDArray[np.uint32]:
    """Values for the keyed block; without a value the bits do not matter."""
    return np.maximum(values, 0).view(np.uint32)


def check_values(values: NDArray[np.int32], *, pseudonyms: NDArray[np.uint64], domain_size: int) -> None:
    """Raise LdpError unless values are codes of the domain, or -1, one per pseudonym."""
    if values.dtype != np.int32 or values.shape != pseudonyms.shape:
        shape = pseudonyms.shape
        raise LdpError(f"values must be int32 of shape {shape}, got {values.dtype} of {values.shape}")
    if values.size and not -1 <= values.min() <= values.max() < domain_size:
        raise LdpError(f"value must be in [-1, {domain_size}), got {values.min()} to {values.max()}")
