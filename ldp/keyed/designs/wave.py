"""Square wave with keyed bits: one lasting report per subscriber, indicator and level."""

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.kernels.codes import reciprocal
from ldp.kernels.entropy import ANSWER, KeyedPrf, PlanFields
from ldp.kernels.streams import last_accepted
from ldp.kernels.wave import wave_codes
from ldp.keyed.grr import check_values, keyed_values
from ldp.protocols.numbers.wave import WaveChannel


def answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: WaveChannel,
    **fields: Unpack[PlanFields],
) -> NDArray[np.uint16]:
    """Code of each subscriber's report; the same arguments always give the same answers.

    Parameters
    ----------
    values : ndarray of int32, shape (n,); levels (`Scale.levels`) in [0, n_levels), -1 for no value
    pseudonyms, prf, fields, Returns, Raises : as of `grr.answers`

    Notes
    -----
    Word 0 decides whether the code is in the window; word 1 draws one of that kind. If word 1 is biased for
    either kind, both are drawn again with the next counter, which says nothing about the level. Cost: one
    AES block per subscriber.
    """
    check_values(values, pseudonyms=pseudonyms, domain_size=channel.n_levels)
    keyed, limits = keyed_values(values), _limits(channel)
    out = np.empty(values.shape[0], np.uint16)
    rows, counter = np.arange(values.shape[0]), 0
    while rows.size:
        blocks = prf.chunks(pseudonyms[rows], values=keyed[rows], counter=counter, purpose=ANSWER, **fields)
        for part, words in blocks:
            codes = np.empty(words.shape[0], np.uint16)
            wave_codes(values[rows[part]], words, limits, codes)
            out[rows[part]] = codes
        rows, counter = rows[(out[rows] == NO_ANSWER) & (values[rows] >= 0)], counter + 1
    return out


def _limits(channel: WaveChannel) -> NDArray[np.uint64]:
    """Parameters of `wave_codes`."""
    inside, outside = channel.width, channel.n_codes - channel.width
    bounds = (inside, reciprocal(inside), outside, reciprocal(outside))
    return np.array([channel.threshold, last_accepted(inside * outside), *bounds], np.uint64)
