"""Reports of regions with keyed bits: one lasting report per subscriber, indicator and value."""

from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.kernels.entropy import ANSWER, KeyedPrf, PlanFields
from ldp.keyed import grr
from ldp.keyed.designs import projective
from ldp.protocols.partial.regions import RegionChannel, regions_of
from ldp.protocols.projective import ProjectiveChannel


def answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: RegionChannel,
    **fields: Unpack[PlanFields],
) -> NDArray[np.uint16]:
    """Code of each subscriber's report; the same arguments always give the same reports.

    Parameters, Raises : as of `grr.answers`

    Returns
    -------
    ndarray of uint16, shape (n,); in [0, n_codes), NO_ANSWER where the value is -1

    Notes
    -----
    The keyed block has the value, not its place in the region: values of two regions get independent bits.
    Cost: one AES block per subscriber.
    """
    grr.check_values(values, pseudonyms=pseudonyms, domain_size=channel.domain_size)
    keyed, regions = grr.keyed_values(values), regions_of(channel)
    places = np.empty(channel.domain_size, np.int32)
    for region in regions:
        places[region.values] = np.arange(region.values.size)
    # Without a value, after all regions.
    numbers = np.append(np.array(channel.region_of), len(regions))[values]
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(len(regions) + 1))
    out = np.full(values.shape[0], NO_ANSWER, np.uint16)
    for region, start, end in zip(regions, ends[:-1], ends[1:], strict=True):
        if (rows := order[start:end]).size:
            own = region.channel
            draw: Any = projective.draw if isinstance(own, ProjectiveChannel) else grr.draw
            asked = {"keyed": keyed[rows], "pseudonyms": pseudonyms[rows], "prf": prf, "channel": own}
            codes = draw(places[values[rows]], purpose=ANSWER, counter=0, **asked, **fields)
            out[rows] = codes + np.uint16(region.codes.start)
    return out
