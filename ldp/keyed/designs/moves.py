"""Reports on one of a day's moves, with fresh bits each day: nothing of two days is the same answer."""

from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.kernels.entropy import TRIP_ANSWER, TRIP_PICK, KeyedPrf, PlanFields
from ldp.keyed import grr
from ldp.keyed.designs import projective
from ldp.privacy.moves import MoveSpec
from ldp.privacy.plans import MAX_DAYS
from ldp.protocols.projective import CodeChannel, ProjectiveChannel

Words = NDArray[np.uint64]
RETRIES: Final = 256  # counters of a day; one in 2**32 people needs a second one


def picked_moves(
    starts: NDArray[np.int64],
    moves: NDArray[np.int32],
    *,
    spec: MoveSpec,
    pseudonyms: Words,
    prf: KeyedPrf,
    indicator: int,
    day: int,
) -> NDArray[np.int32]:
    """Code of the one move of a day that each subscriber reports, or of "no move", in every plan version.

    Parameters
    ----------
    starts : ndarray of int64, shape (n + 1,); where the moves of each subscriber begin, and the last ends
    moves : ndarray of int32, shape (starts[-1],); codes of moves
    pseudonyms : ndarray of uint64, shape (n,)
    indicator : int; position in the plan
    day : int; in [1, 62]

    Returns
    -------
    ndarray of int32, shape (n,)

    Raises
    ------
    LdpError : starts do not fit, or the day is out of range
    """
    counter = _counter(day)
    if starts.shape != (pseudonyms.shape[0] + 1,) or starts[0] != 0 or starts[-1] != moves.shape[0]:
        raise LdpError(
            f"starts must be {pseudonyms.shape[0] + 1} from 0 to {moves.shape[0]}, got {starts.shape}"
        )
    n_moves = np.diff(starts)
    among, places = np.maximum(n_moves, spec.per_day), np.empty(n_moves.shape, np.int64)
    for bound in np.unique(among).tolist():
        rows = np.flatnonzero(among == bound)
        fields = {"purpose": TRIP_PICK, "indicator": indicator, "plan_version": 0}
        places[rows] = prf.below(pseudonyms[rows], bound=bound, value=0, counter=counter, **fields)
    picked = np.full(n_moves.shape, spec.nothing, np.int32)
    is_move = places < n_moves
    picked[is_move] = moves[(starts[:-1] + places)[is_move]]
    return picked


def answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: Words,
    prf: KeyedPrf,
    channel: CodeChannel,
    day: int,
    **fields: Unpack[PlanFields],
) -> NDArray[np.uint16]:
    """Code of each subscriber's report of a day; the same arguments always give the same reports.

    Parameters
    ----------
    values : ndarray of int32, shape (n,); as `picked_moves` returns, -1 for no report
    pseudonyms, prf, channel, fields, Returns, Raises : as of `grr.answers`
    day : int; in [1, 62]
    """
    grr.check_values(values, pseudonyms=pseudonyms, domain_size=channel.domain_size)
    draw: Any = projective.draw if isinstance(channel, ProjectiveChannel) else grr.draw
    asked = {"pseudonyms": pseudonyms, "prf": prf, "channel": channel, "purpose": TRIP_ANSWER}
    codes: NDArray[np.uint16] = draw(
        values, keyed=grr.keyed_values(values), counter=_counter(day), **asked, **fields
    )
    return codes


def _counter(day: int) -> int:
    """First counter of a day's bits."""
    if not 1 <= day <= MAX_DAYS:
        raise LdpError(f"day must be in [1, {MAX_DAYS}], got {day}")
    return RETRIES * day
