"""Generalised randomised response with keyed bits: one lasting answer per subscriber, indicator and value."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ldp import kernels
from ldp.channels import GrrChannel
from ldp.entropy import ANSWER, BUFFER_BLOCKS, KeyedPrf, last_accepted
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
    _check(values, pseudonyms=pseudonyms, domain_size=channel.domain_size)
    words = partial(prf.words, purpose=ANSWER, indicator=indicator, plan_version=plan_version)
    out = np.empty(values.shape[0], np.uint16)
    # Slices of the PRF's own size keep words and answers in the cache.
    for start in range(0, values.shape[0], BUFFER_BLOCKS):
        part = slice(start, start + BUFFER_BLOCKS)
        _answer(values[part], pseudonyms[part], words=words, channel=channel, out=out[part])
    return out


def _answer(
    values: NDArray[np.int32],
    pseudonyms: NDArray[np.uint64],
    *,
    words: Callable[..., NDArray[np.uint64]],
    channel: GrrChannel,
    out: NDArray[np.uint16],
) -> None:
    """Fill `out`; rejected replacements are drawn again from the next counter until none is left."""
    others = channel.domain_size - 1
    last = last_accepted(others)
    keyed = np.maximum(values, 0).astype(np.uint32)  # no value: any bits, the kernel ignores them
    first = words(pseudonyms, values=keyed, counter=0)
    redraws = kernels.grr_answers(values, first, np.uint64(channel.threshold), np.uint64(others), last, out)
    counter = 1
    while redraws:
        rows = np.flatnonzero(out == REDRAW)
        again = words(pseudonyms[rows], values=keyed[rows], counter=counter)
        redraws = kernels.grr_redraw(values, rows, again, np.uint64(others), last, out)
        counter += 1


def _check(values: NDArray[np.int32], *, pseudonyms: NDArray[np.uint64], domain_size: int) -> None:
    if values.dtype != np.int32 or values.shape != pseudonyms.shape:
        shape = pseudonyms.shape
        raise LdpError(f"values must be int32 of shape {shape}, got {values.dtype} of {values.shape}")
    if values.size and not -1 <= values.min() <= values.max() < domain_size:
        raise LdpError(f"value must be in [-1, {domain_size}), got {values.min()} to {values.max()}")
