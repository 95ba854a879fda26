"""Choice of the one move of each day that a person reports."""

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.kernels.entropy import TRIP_PICK, KeyedPrf
from ldp.keyed.designs.fresh import day_counter
from ldp.privacy.moves import MoveSpec

Words = NDArray[np.uint64]


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
    counter = day_counter(day)
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
