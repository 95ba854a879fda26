"""Generalised randomised response with keyed bits: one lasting answer per subscriber, indicator and value."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.kernels import codes
from ldp.kernels.entropy import ANSWER, BlockFields, KeyedPrf, PlanFields, uniform_limits
from ldp.protocols.channels import GrrChannel

_ONLY_ROW: Final = np.zeros(1, np.uint8)

Words = NDArray[np.uint64]


def answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: Words,
    prf: KeyedPrf,
    channel: GrrChannel,
    **fields: Unpack[PlanFields],
) -> NDArray[np.uint16]:
    """Sanitised code of each subscriber; the same arguments always give the same answers.

    Parameters
    ----------
    values : ndarray of int32, shape (n,); true codes in [0, domain_size), or -1 for no value; not modified
    pseudonyms : ndarray of uint64, shape (n,)
    prf : KeyedPrf; source of the bits
    channel : GrrChannel
    fields : indicator, its position in the plan, and plan_version, in [1, 255]

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
        counter=0,
        **fields,
    )


def draw(
    values: NDArray[np.int32] | NDArray[np.uint16],
    *,
    keyed: NDArray[np.uint32],
    pseudonyms: Words,
    prf: KeyedPrf,
    channel: GrrChannel,
    counter: int,
    **fields: Unpack[BlockFields],
) -> NDArray[np.uint16]:
    """Draw like `answers`, without checks, from the block with `keyed` values; redraws use the next counters.

    Values may also be codes with NO_ANSWER.
    """
    limits = limits_of([channel])
    blocks = prf.runs(pseudonyms, **fields, values=keyed, counter=counter)
    out, rows = _draw_once(values, blocks=blocks, limits=limits)
    # Threshold 0: the value was given up already, only its replacement is drawn again.
    limits[0, 0] = 0
    while rows.size:
        counter += 1
        blocks = prf.runs(pseudonyms[rows], **fields, values=keyed[rows], counter=counter)
        out[rows], again = _draw_once(values[rows], blocks=blocks, limits=limits)
        rows = rows[again]
    return out


def _draw_once(
    values: NDArray[np.int32] | NDArray[np.uint16], *, blocks: Iterator[tuple[slice, Words]], limits: Words
) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Answers from the words of one counter, and the rows whose replacement was biased."""
    out = np.empty(values.shape[0], np.uint16)
    rows = [np.empty(0, np.int64)]
    for part, sealed in blocks:
        in_one_piece: Any = np.ascontiguousarray(values[part])
        if codes.grr_answers(in_one_piece, _ONLY_ROW, sealed, limits, out[part]):
            replaced = out[part] != values[part].astype(np.uint16)  # a replacement never equals the value
            biased = sealed[1::2].byteswap() > limits[0, 3]
            rows.append(part.start + np.flatnonzero(replaced & biased))
    return out, np.concatenate(rows)


def limits_of(channels: Sequence[GrrChannel]) -> Words:
    """Parameters of `kernels.grr_answers` for each channel."""
    return np.array(
        [(channel.threshold, *uniform_limits(channel.domain_size - 1)) for channel in channels], np.uint64
    )


def keyed_values(values: NDArray[np.int32]) -> NDArray[np.uint32]:
    """Values for the keyed block; without a value the bits do not matter."""
    return np.maximum(values, 0).view(np.uint32)


def check_values(values: NDArray[np.int32], *, pseudonyms: Words, domain_size: int) -> None:
    """Raise LdpError unless values are codes of the domain, or -1, one per pseudonym."""
    if values.dtype != np.int32 or values.shape != pseudonyms.shape:
        shape = pseudonyms.shape
        raise LdpError(f"values must be int32 of shape {shape}, got {values.dtype} of {values.shape}")
    if values.size and not -1 <= values.min() <= values.max() < domain_size:
        raise LdpError(f"value must be in [-1, {domain_size}), got {values.min()} to {values.max()}")
