"""Tables of unions, ours or from others: do their numbers fit together, and which people would have them?

A published number may be hidden ("#", fewer than 20), so each union has limits. A linear program finds the
flows that miss them least: the sum of all misses is 0 exactly if people exist who fit the table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ldp.errors import FewVisitorsError, LdpError
from ldp.estimation.overlaps import is_few
from ldp.estimation.scenario.flows import (
    MAX_DAYS,
    Counts,
    Flows,
    Limits,
    flows_of,
    hidden_windows,
    places,
    whole_flows,
)
from ldp.estimation.scenario.projection import projected_flows
from ldp.estimation.unions import all_unions
from ldp.protocols.geometric import GeometricChannel

Days = tuple[int, int]  # first and last one
Floats = NDArray[np.float64]

_TO_MIDDLE = 1e-5  # cost of a person off the middle of narrow limits, where a person outside them costs 1
_HIDDEN = 100  # persons: half the width of limits that are narrow
_NODES = 10_000  # of the integer program: any solution fits, the nearest one is not needed
_MISSED = 1e-3  # persons: what is below is the rounding of the solver


@dataclass(frozen=True, slots=True, eq=False)
class UnionTable:
    """Limits of the people of each window; make it with `of_windows` or `of_tally`.

    Parameters
    ----------
    low, high : ndarray of float64, shape (days + 1, days + 1); [first day, last day]; inf: not known
    """

    low: Floats
    high: Floats

    @property
    def days(self) -> int:
        """Days of the study."""
        return int(self.low.shape[0]) - 1

    @property
    def unlimited_day(self) -> int | None:
        """The first day that is in no window with a known number, so that nothing limits its people."""
        days = range(1, self.days + 1)
        return next((day for day in days if np.isinf(self.high[1 : day + 1, day:]).all()), None)

    @property
    def row(self) -> Limits:
        """Limits of the windows, in the order of `places`."""
        windows = places(self.days).windows
        return Limits(self.low[windows], self.high[windows])

    @classmethod
    def of_windows(cls, windows: Mapping[Days, int | tuple[int, int]], *, days: int) -> Self:
        """Table of some windows: each has a number of people, or the least and the most of them.

        Raises
        ------
        LdpError : days or a window are out of range, or limits are in the wrong order
        """
        if not 1 <= days <= MAX_DAYS:
            raise LdpError(f"days must be in [1, {MAX_DAYS}], got {days}")
        if not windows:
            raise LdpError("a table must have a number for at least one window, got none")
        low, high = np.zeros((days + 1, days + 1)), np.full((days + 1, days + 1), np.inf)
        for (first, last), people in windows.items():
            if not 1 <= first <= last <= days:
                raise LdpError(f"windows must lie within days 1..{days}, got {first}..{last}")
            least, most = people if isinstance(people, tuple) else (people, people)
            if not 0 <= least <= most:
                raise LdpError(
                    f"people of {first}..{last} must be limits 0 <= least <= most, got {least} and {most}"
                )
            low[first, last], high[first, last] = least, most
        return cls(low, high)

    @classmethod
    def of_tally(cls, tally: Counts, *, hidden: NDArray[np.bool_], small_cell: int) -> Self:
        """Table of a gap tally whose hidden windows have 1 to small_cell - 1 people."""
        unions = all_unions(tally).astype(np.float64)
        return cls(np.where(hidden, 1, unions), np.where(hidden, small_cell - 1, unions))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnionFit:
    """People who fit a table best.

    Parameters
    ----------
    flows : Flows; in whole people
    slack : float; persons by which windows miss their limits, added up; 0: the table is consistent
    moved : by window, what must be added to its number; the fewest persons, not the only way
    """

    flows: Flows
    slack: float
    moved: Mapping[Days, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableConflict:
    """A window for which two sources cannot both be right.

    Parameters
    ----------
    window : first and last day
    people : by source, the least and the most
    """

    window: Days
    people: Mapping[str, tuple[float, float]]


def merge_tables(tables: Mapping[str, UnionTable]) -> tuple[UnionTable, list[TableConflict]]:
    """Joint limits of several sources: the intersection of their limits, and where there is none.

    Parameters
    ----------
    tables : by name of source; of the same days

    Returns
    -------
    table (where sources conflict, from the least to the most that any says), conflicts

    Raises
    ------
    LdpError : there is no table, or they differ in their days
    """
    if len({table.days for table in tables.values()}) != 1:
        raise LdpError(f"tables must be about the same days, got {[table.days for table in tables.values()]}")
    lows, highs = (np.array([getattr(table, end) for table in tables.values()]) for end in ("low", "high"))
    low, high = lows.max(axis=0), highs.min(axis=0)
    apart = low > high
    conflicts = [
        TableConflict(
            window=(int(a), int(b)),
            people={
                name: (float(table.low[a, b]), float(table.high[a, b])) for name, table in tables.items()
            },
        )
        for a, b in np.argwhere(apart)
    ]
    return UnionTable(
        np.where(apart, lows.min(axis=0), low), np.where(apart, highs.max(axis=0), high)
    ), conflicts


def fit_unions(table: UnionTable) -> UnionFit:
    """Flows that miss the limits of a table by the fewest persons, and windows that have to move.

    Parameters
    ----------
    table : UnionTable

    Notes
    -----
    Where several flows fit, those near the middle of the limits. An exact table costs O(days^2); else one
    linear program: 62 days, some seconds.
    """
    where, limits = places(table.days), table.row
    unions = limits.low
    if not np.array_equal(limits.low, limits.high) or (where.made_of @ unions).min() < 0:
        unions = _nearest(where.made_of, limits)
    missed = unions - np.clip(unions, limits.low, limits.high)
    moved = {
        (int(a), int(b)): float(by)
        for a, b, by in zip(*where.windows, missed, strict=True)
        if abs(by) > _MISSED
    }
    edges = where.square(np.maximum(where.made_of @ unions, 0))
    return UnionFit(flows=whole_flows(Flows(edges)), slack=sum(map(abs, moved.values())), moved=moved)


def nearest_shown_flows(tally: Counts, *, small_cell: int, noise: GeometricChannel | None = None) -> Flows:
    """Flows nearest to what is shown: the exact ones, unless windows are hidden or counts are noisy.

    Raises
    ------
    FewVisitorsError : the study has few visitors in all
    """
    if noise is not None:
        return projected_flows(tally)
    flows = flows_of(tally)
    if is_few(flows.total, small_cell=small_cell):
        raise FewVisitorsError(f"visitors must be 0 or at least {small_cell}, got fewer")
    hidden = hidden_windows(tally, small_cell=small_cell)
    if not hidden.any():
        return flows
    return fit_unions(UnionTable.of_tally(tally, hidden=hidden, small_cell=small_cell)).flows


def shown_flows(tally: Counts, *, small_cell: int) -> Flows:
    """Flows in whole people with every shown union exactly; hidden windows have 1 to small_cell - 1 people.

    They depend on the shown unions only, so they tell no more of a hidden window than these do.

    Parameters
    ----------
    tally : ndarray of int64, shape (days + 1, days + 1); exact
    small_cell : int; 0 = all is shown

    Raises
    ------
    FewVisitorsError : the study has few visitors in all
    LdpError : the tally is not exact

    Notes
    -----
    An integer program over the hidden windows: of those that fit, the ones nearest to the middle.
    """
    flows = flows_of(tally)
    if is_few(flows.total, small_cell=small_cell):
        raise FewVisitorsError(f"visitors must be 0 or at least {small_cell}, got fewer")
    hidden = hidden_windows(tally, small_cell=small_cell)
    if not hidden.any():
        return flows
    where, limits = places(flows.days), UnionTable.of_tally(tally, hidden=hidden, small_cell=small_cell).row
    unions = limits.low.astype(np.int64)
    is_hidden = hidden[where.windows]
    unions[is_hidden] = 0
    known = where.made_of @ unions
    unions[is_hidden] = _hidden_unions(where.made_of[:, is_hidden], known, most=small_cell - 1)
    return Flows(where.square(where.made_of @ unions))


def _hidden_unions(made_of: NDArray[np.int8], known: Counts, *, most: int) -> Counts:
    """Whole numbers in [1, most] with made_of @ numbers + known >= 0: middle + up - down, least of both."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415 - 0.3 s, as above
    from scipy.sparse import csr_array, hstack  # noqa: PLC0415 - as above

    n, middle = made_of.shape[1], (most + 1) // 2
    rows = csr_array(made_of, dtype=np.float64)
    found = milp(
        np.ones(2 * n),
        integrality=np.ones(2 * n),
        bounds=Bounds(0, np.repeat([most - middle, middle - 1], n)),
        constraints=LinearConstraint(hstack([rows, -rows]), lb=-known - rows @ np.full(n, middle)),
        options={"node_limit": _NODES},
    )
    if found.x is None:
        raise LdpError(f"hidden windows must have numbers that fit the shown ones, got: {found.message}")
    up, down = np.rint(found.x).astype(np.int64).reshape(2, n)
    return np.asarray(middle + up - down)


def _nearest(made_of: NDArray[np.int8], limits: Limits) -> Floats:
    """Unions of people nearest to limits: middle + up - down, each first within the limits, then outside."""
    from scipy.optimize import linprog  # noqa: PLC0415 - 0.3 s for every use of ldp
    from scipy.sparse import csr_array, hstack  # noqa: PLC0415 - as above

    is_known, n = np.isfinite(limits.high), limits.low.size
    half = np.where(is_known, (limits.high - limits.low) / 2, np.inf)
    middle = limits.low + np.where(is_known, half, 0)
    rows = csr_array(made_of, dtype=np.float64)
    within = np.column_stack([np.zeros(n), half])
    beyond = np.column_stack([np.zeros(n), np.full(n, np.inf)])
    off_middle = np.where(half <= _HIDDEN, _TO_MIDDLE, 0.0)
    found = linprog(
        np.concatenate([off_middle, off_middle, np.ones(2 * n)]),
        A_ub=-hstack([rows, -rows, rows, -rows]),
        b_ub=rows @ middle,
        bounds=np.concatenate([within, within, beyond, beyond]),
        method="highs",
    )
    if not found.success:
        raise LdpError(f"a linear program must have an end, got: {found.message}")
    up, down, above, below = found.x.reshape(4, n)
    return np.asarray(middle + up - down + above - below)
