"""Moves of a day and visited zones, from the places of people: one is sanitised at once, none is kept.

A stay lasts while the places of a person lie in one zone; what is in no zone is outside. Everyone begins and
ends the day outside. The places are those of each quarter-hour (`mobility.vault.state.stays`), so moves do
not depend on the order of files or rows. A zone is visited if one of these places lies in it.
"""

import numba
import numpy as np
from numpy.typing import NDArray

from ldp.privacy.moves import MoveSpec
from mobility.vault.state.stays import Whereabouts

Pseudonyms = NDArray[np.uint64]


def items_of_day(
    seen: Whereabouts, zone_of_cell: NDArray[np.uint16], people: Pseudonyms, spec: MoveSpec
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return where the items of each person begin, shape (people + 1,), and the codes of all.

    Moves are in the order of time; places and pairs in that of their codes, each once.

    Parameters
    ----------
    zone_of_cell : zone of each cell; anything from the number of zones on is outside
    people : sorted; who is not seen has no items
    """
    starts = np.empty(len(people) + 1, np.int64)
    codes = np.empty(len(seen) + len(people), np.int32)  # one move more than there are stays
    write = _write_moves if spec.items == "moves" else _write_places
    n = write(seen.pseudonym, seen.cell, zone_of_cell, people, spec.outside, starts, codes)
    if spec.items == "pairs":
        return _pairs(starts, codes[:n], spec.places)
    return starts, codes[:n]


def _pairs(
    starts: NDArray[np.int64], places: NDArray[np.int32], n_places: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Pairs of the places of each person, whose places rise."""
    n_visited = np.diff(starts)
    of_pairs = np.concatenate([[0], np.cumsum(n_visited * (n_visited - 1) // 2)]).astype(np.int64)
    codes = np.empty(int(of_pairs[-1]), np.int32)
    _write_pairs(starts, places, n_places, codes)
    return of_pairs, codes


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


@numba.njit(cache=True, nogil=True)
def _write_places(who, where, zone_of_cell, people, outside, starts, places):  # type: ignore[no-untyped-def]
    """Write the codes of each person's zones, in their order; how many these are."""
    n, row = 0, 0
    last_visitor = np.full(outside, -1, np.int64)  # of each zone
    for person in range(len(people)):
        starts[person] = n
        while row < len(who) and who[row] < people[person]:
            row += 1
        while row < len(who) and who[row] == people[person]:
            zone = np.int64(zone_of_cell[where[row]])
            if zone < outside and last_visitor[zone] != person:
                last_visitor[zone] = person
                places[n] = zone
                n += 1
            row += 1
        places[starts[person] : n].sort()
    starts[len(people)] = n
    return n


@numba.njit(cache=True, nogil=True)
def _write_pairs(starts, places, n_places, codes):  # type: ignore[no-untyped-def]
    """Write the codes of all pairs of each person's places."""
    n = 0
    for person in range(len(starts) - 1):
        for i in range(starts[person], starts[person + 1]):
            one = np.int64(places[i])
            before = one * (2 * n_places - one - 1) // 2  # pairs whose first place comes earlier
            for j in range(i + 1, starts[person + 1]):
                codes[n] = before + places[j] - one - 1
                n += 1
