"""Reports of one code with fresh bits each day: nothing of two days is the same answer."""

from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.kernels.entropy import KeyedPrf, PlanFields
from ldp.keyed import grr
from ldp.keyed.designs import projective
from ldp.privacy.plans import MAX_DAYS
from ldp.protocols.projective import CodeChannel, ProjectiveChannel

Words = NDArray[np.uint64]
RETRIES: Final = 256  # counters of a day; one in 2**32 people needs a second one


def fresh_answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: Words,
    prf: KeyedPrf,
    channel: CodeChannel,
    day: int,
    purpose: int,
    **fields: Unpack[PlanFields],
) -> NDArray[np.uint16]:
    """Code of each subscriber's report of a day; the same arguments always give the same reports.

    Parameters
    ----------
    values : ndarray of int32, shape (n,); true codes, -1 for no report
    pseudonyms, prf, channel, fields, Returns, Raises : as of `grr.answers`
    day : int; in [1, 62]; the bits of each day are independent, also for the same value
    purpose : int; of the keyed block
    """
    grr.check_values(values, pseudonyms=pseudonyms, domain_size=channel.domain_size)
    draw: Any = projective.draw if isinstance(channel, ProjectiveChannel) else grr.draw
    asked = {"pseudonyms": pseudonyms, "prf": prf, "channel": channel, "purpose": purpose}
    codes: NDArray[np.uint16] = draw(
        values, keyed=grr.keyed_values(values), counter=day_counter(day), **asked, **fields
    )
    return codes


def day_counter(day: int) -> int:
    """First counter of a day's bits; LdpError if the day is not in [1, 62]."""
    if not 1 <= day <= MAX_DAYS:
        raise LdpError(f"day must be in [1, {MAX_DAYS}], got {day}")
    return RETRIES * day
