"""Moves of a day between zones, from the places of people: never kept, one is picked and sanitised at once.

A stay lasts while the places of a person lie in one zone; what is in no zone is outside. Everyone begins and
ends the day outside. The places are those of each quarter-hour (`mobility.vault.state.stays`), so moves do
not depend on the order of files or rows.
"""

import numba
import numpy as np
from numpy.typing import NDArray

from ldp.privacy.moves import MoveSpec
from mobility.vault.state.stays import Whereabouts

Pseudonyms = NDArray[np.uint64]


def moves_of_day(
    seen: Whereabouts, zone_of_cell: NDArray[np.uint16], people: Pseudonyms, spec: MoveSpec
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Codes of the moves of all, and where those of each begin, shape (people + 1,).

    Parameters
    ----------
    zone_of_cell : zone of each cell; anything from the number of zones on is outside
    people : sorted; who is not seen has no moves
    """
    starts = np.empty(len(people) + 1, np.int64)
    moves = np.empty(len(seen) + len(people), np.int32)  # one more than there are stays
    n = _write_moves(seen.pseudonym, seen.cell, zone_of_cell, people, spec.outside, starts, moves)
    return starts, moves[:n]


@numba.njit(cache=True, nogil=True)
def _write_moves(who, where, zone_of_cell, people, outside, starts, moves):  # type: ignore[no-untyped-def]
    """Write codes in the order of people and of time; how many these are."""
    n, row = 0, 0
    for person in range(len(people)):
        starts[person] = n
        while row < len(who) and who[row] < people[person]:
            row += 1
        at = outside
        while row < len(who) and who[row] == people[person]:
            zone = min(np.int64(zone_of_cell[where[row]]), outside)
            if zone != at:
                moves[n] = at * (outside + 1) + zone
                n += 1
            at = zone
            row += 1
        if at != outside:
            moves[n] = at * (outside + 1) + outside
            n += 1
    starts[len(people)] = n
    return n
