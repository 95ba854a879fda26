"""Reports of sensitive values with keyed bits: one lasting report per subscriber, indicator and value."""

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.kernels.entropy import ANSWER, KeyedPrf, PlanFields
from ldp.kernels.streams import last_accepted
from ldp.keyed.grr import check_values, keyed_values
from ldp.protocols.partial.sensitive import SensitiveChannel


def answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: SensitiveChannel,
    **fields: Unpack[PlanFields],
) -> NDArray[np.uint16]:
    """Code of each subscriber's report; the same arguments always give the same reports.

    Parameters, Raises : as of `grr.answers`

    Returns
    -------
    ndarray of uint16, shape (n,); NO_ANSWER where the value is -1

    Notes
    -----
    Word 0 decides whether the value is reported; word 1 draws one of the sensitive values otherwise. If word
    1 is biased for either kind of value, both are drawn again with the next counter, which says nothing about
    the value. Cost: one AES block per subscriber.
    """
    check_values(values, pseudonyms=pseudonyms, domain_size=channel.domain_size)
    sensitive, s = np.array(channel.sensitive), channel.n_sensitive
    place_of = np.full(channel.domain_size, -1)  # among the sensitive values
    place_of[sensitive] = np.arange(s)
    last = np.uint64(last_accepted(s * max(s - 1, 1)))
    # Of one sensitive value alone no word 0 is too large.
    kept = np.array([channel.kept_other - 1, channel.kept_sensitive - 1], np.uint64)
    keyed, out = keyed_values(values), np.full(values.shape[0], NO_ANSWER, np.uint16)
    rows, counter = np.flatnonzero(values >= 0), 0
    while rows.size:
        blocks = prf.chunks(pseudonyms[rows], values=keyed[rows], counter=counter, purpose=ANSWER, **fields)
        again = []
        for part, words in blocks:
            of_part = rows[part]
            own = values[of_part]
            place, is_sensitive = place_of[own], place_of[own] >= 0
            drawn = (words[:, 1] % np.where(is_sensitive, max(s - 1, 1), s).astype(np.uint64)).astype(
                np.int64
            )
            drawn = np.minimum(drawn + (is_sensitive & (drawn >= place)), s - 1)
            is_kept = words[:, 0] <= kept[is_sensitive.astype(np.int64)]
            out[of_part] = np.where(is_kept, own, sensitive[drawn])
            again.append(of_part[words[:, 1] > last])
        rows, counter = np.concatenate(again), counter + 1
    return out
