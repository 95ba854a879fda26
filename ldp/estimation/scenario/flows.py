"""Gap tallies as flows through the days: node 0 is the start, nodes 1 to days are days, the last one the end.

An edge from p to t carries the people who are present on p, next on t, and on no day between. As many leave a
day as arrive there: `edges` adds the flow from each day to the end, those who do not come again.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.unions import all_unions

MAX_DAYS: Final = 62

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """People by edge; whole numbers if they are counted, else real ones.

    Parameters
    ----------
    edges : ndarray of int64 or float64, shape (days + 2, days + 2); [p, t] for p < t, else 0; at least 0, and
        what arrives at a day leaves it
    """

    edges: NDArray[Any]

    @property
    def days(self) -> int:
        """Days of the study."""
        return int(self.edges.shape[0]) - 2

    @property
    def total(self) -> float:
        """People who are present on any day."""
        return float(self.edges[0].sum())

    @property
    def present(self) -> NDArray[Any]:
        """People by node, shape (days + 2,); all of them at the start and at the end."""
        found = self.edges.sum(axis=0)
        found[0] = self.edges[0].sum()
        return np.asarray(found)

    @property
    def tally(self) -> NDArray[Any]:
        """Gap tally of these flows, shape (days + 1, days + 1)."""
        return self.edges[:-1, :-1]


class Limits(NamedTuple):
    """Least and most people: of edges, or of unions [first day, last day]; inf where nothing is known."""

    low: NDArray[Any]
    high: NDArray[Any]


def flows_of(tally: Counts) -> Flows:
    """Flows of an exact gap tally.

    Parameters
    ----------
    tally : ndarray of int64, shape (days + 1, days + 1); days in [1, 62]; not modified

    Raises
    ------
    LdpError : it is no gap tally of people, for example because its counts are noisy

    Notes
    -----
    Cost O(days^2).
    """
    edges = with_departures(check_tally(tally))
    if edges.min() < 0:
        raise LdpError(
            "a tally of people must have no count below 0 and no one who leaves a day without being there; "
            f"use projected_flows for noisy counts, got {edges.min()}"
        )
    return Flows(edges)


def with_departures(tally: NDArray[Any]) -> NDArray[Any]:
    """Edges of a tally of any counts, reports for example: shape (..., days + 2, days + 2)."""
    days = tally.shape[-1] - 1
    edges = np.zeros((*tally.shape[:-2], days + 2, days + 2), tally.dtype)
    edges[..., :-1, :-1] = tally
    edges[..., 1:-1, -1] = tally[..., 1:].sum(axis=-2) - tally[..., 1:, :].sum(axis=-1)
    return edges


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Edges and windows of a study, each in one row; `places` makes them.

    Parameters
    ----------
    edges : two ndarrays of int64; start and end of each edge, the one from the start to the end too
    windows : two ndarrays of int64; first and last day of each window
    made_of : ndarray of int8, shape (edges, windows); each edge as a signed sum of unions
    """

    edges: tuple[Counts, Counts]
    windows: tuple[Counts, Counts]
    made_of: NDArray[np.int8]

    @property
    def is_taken(self) -> NDArray[np.bool_]:
        """Return edges and windows, without the edge from the start to the end, which no one takes."""
        return np.concatenate([self.made_of.any(axis=1), np.ones(self.windows[0].size, np.bool_)])

    def of_tally(self, tally: NDArray[Any]) -> NDArray[Any]:
        """Counts of all edges, then of all windows; shape (..., edges + windows)."""
        edges, windows = with_departures(tally), all_unions(tally)
        return np.concatenate([edges[..., *self.edges], windows[..., *self.windows]], axis=-1)

    def square(self, edges: NDArray[Any]) -> NDArray[Any]:
        """A row of edges as shape (..., days + 2, days + 2)."""
        nodes = int(self.edges[1][-1]) + 1
        found = np.zeros((*edges.shape[:-1], nodes, nodes), edges.dtype)
        found[..., *self.edges] = edges
        return found


@lru_cache(maxsize=4)
def places(days: int) -> Places:
    """Edges and windows of a study of `days`."""
    start, end = np.triu_indices(days + 2, 1)
    first, last = (each + 1 for each in np.triu_indices(days))
    place = np.zeros((days + 2, days + 2), np.int64)
    place[first, last] = np.arange(first.size)
    made_of = np.zeros((start.size, first.size), np.int8)
    for row, (p, t) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        terms = [(1, p + 1, t), (-1, p + 1, t - 1), (-1, p, t), (1, p, t - 1)]
        if t > days:  # people who leave on p: all of p until the end, less all after p
            terms = [(1, p, days), (-1, p + 1, days)] if p else []
        for sign, a, b in terms:
            if 1 <= a <= b:
                made_of[row, place[a, b]] = sign
    return Places((start, end), (first, last), made_of)


def whole_flows(flows: Flows) -> Flows:
    """Nearby flows in whole people; what arrives at a day still leaves it."""
    nodes = flows.edges.shape[0]
    edges = np.zeros((nodes, nodes), np.int64)
    arrived = round(flows.total)
    for p in range(nodes - 1):
        wanted = flows.edges[p, p + 1 :]
        share = np.cumsum(wanted) / max(float(wanted.sum()), 1e-9)
        share[-1] = 1
        edges[p, p + 1 :] = np.diff(np.floor(np.minimum(share, 1) * arrived + 0.5), prepend=0)
        arrived = int(edges[:, p + 1].sum())
    return Flows(edges)


def check_tally(tally: Counts) -> Counts:
    """Return the tally; LdpError if it has not the shape of one."""
    if tally.ndim != 2 or tally.shape[0] != tally.shape[1]:
        raise LdpError(f"a gap tally must have shape (days + 1, days + 1), got {tally.shape}")
    if not 1 <= tally.shape[0] - 1 <= MAX_DAYS:
        raise LdpError(f"days must be in [1, {MAX_DAYS}], got {tally.shape[0] - 1}")
    if np.tril(tally).any():
        raise LdpError("a gap tally must have counts only where the previous day is before the day")
    return tally


def hidden_windows(tally: Counts, *, small_cell: int) -> NDArray[np.bool_]:
    """Windows whose visitors are few and so not shown; shape (days + 1, days + 1), [first, last]."""
    unions = all_unions(tally)
    return np.asarray((unions > 0) & (unions < small_cell), np.bool_)
