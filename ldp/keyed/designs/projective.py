"""Projective response with keyed bits: one lasting report per subscriber, indicator and value."""

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.errors import LdpError
from ldp.kernels import projective as kernels
from ldp.kernels.codes import reciprocal
from ldp.kernels.entropy import ANSWER, BlockFields, KeyedPrf, PlanFields
from ldp.kernels.streams import last_accepted
from ldp.keyed.grr import check_values, keyed_values
from ldp.protocols.projective import ProjectiveChannel
from ldp.protocols.projective_space import space_of, support_of


def answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: ProjectiveChannel,
    **fields: Unpack[PlanFields],
) -> NDArray[np.uint16]:
    """Number of a point for each subscriber; the same arguments always give the same points.

    Parameters, Raises : as of `grr.answers`

    Returns
    -------
    ndarray of uint16, shape (n,); in [0, n_codes), NO_ANSWER where the value is -1

    Notes
    -----
    Word 0 decides whether the point is orthogonal to the value's; word 1 draws one of that kind. If word 1 is
    biased for either kind, both are drawn again, which says nothing about the value. Cost: one AES block per
    subscriber.
    """
    check_values(values, pseudonyms=pseudonyms, domain_size=channel.domain_size)
    keyed = keyed_values(values)
    asked: BlockFields = {"purpose": ANSWER, **fields}
    return draw(values, keyed=keyed, pseudonyms=pseudonyms, prf=prf, channel=channel, counter=0, **asked)


def draw(
    values: NDArray[np.int32],
    *,
    keyed: NDArray[np.uint32],
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: ProjectiveChannel,
    counter: int,
    **fields: Unpack[BlockFields],
) -> NDArray[np.uint16]:
    """Draw like `answers`, without checks, from the block with `keyed` values; redraws take next counters."""
    out = np.empty(values.shape[0], np.uint16)
    space = space_of(channel.prime, channel.dimension)
    limits = _limits(channel)
    inverses = [0, *(pow(number, -1, channel.prime) for number in range(1, channel.prime))]
    tables = space.coordinates, np.array(inverses, np.uint64), space.starts
    rows = np.arange(values.shape[0])
    while rows.size:
        again = []
        chunks = prf.chunks(pseudonyms[rows], values=keyed[rows], counter=counter, **fields)
        for part, words in chunks:
            of_part = rows[part]
            points = np.empty(of_part.size, np.uint16)
            n_redraws = kernels.projective_points(
                values[of_part],
                words,
                limits,
                *tables,
                points,
            )
            out[of_part] = points
            if n_redraws:
                again.append(of_part[(points == NO_ANSWER) & (values[of_part] >= 0)])
        rows, counter = np.concatenate([*again, rows[:0]]), counter + 1
    return out


def count_support(reports: NDArray[np.uint16], *, channel: ProjectiveChannel) -> NDArray[np.int64]:
    """Reports that support each value.

    Parameters
    ----------
    reports : ndarray of uint16, shape (n,); numbers of points, or NO_ANSWER

    Returns
    -------
    ndarray of int64, shape (domain_size,)

    Raises
    ------
    LdpError : a point is out of range
    """
    points = reports[reports != NO_ANSWER]
    if points.size and points.max() >= channel.n_codes:
        raise LdpError(f"point must be < {channel.n_codes}, got {points.max()}")
    return support_of(np.bincount(points, minlength=channel.n_codes).astype(np.int64), channel=channel)


def _limits(channel: ProjectiveChannel) -> NDArray[np.uint64]:
    """Parameters of `kernels.projective_points`."""
    inside, outside = channel.support_size, channel.n_codes - channel.support_size
    return np.array(
        [
            channel.threshold,
            last_accepted(inside * outside),
            inside,
            reciprocal(inside),
            outside,
            reciprocal(outside),
            channel.prime,
            2**32 // channel.prime + 1,
        ],
        np.uint64,
    )
