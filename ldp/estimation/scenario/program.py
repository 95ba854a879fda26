"""Least and most people of a scenario, by a linear program over edges in layers: one layer per state.

Variables are people by edge and state, for the pairs of day and state that can be reached. As many leave a
pair as arrive there; an edge carries its flow over the states. Flows in layers are sets of persons; sets of
persons are flows in layers, so the optimum is sharp. Flows may be known within limits only, and so may the
unions that they add up to.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.scenario.flows import Limits, places
from ldp.estimation.scenario.questions import Scenario

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_INFEASIBLE = 2
_LARGE = 10_000  # variables: beyond, the interior point method is ten times as fast as the simplex method
_ROUNDING = 1e-6  # far above the tolerance of the solver, far below a person


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Layers:
    """Variables: edge (its place in the list), and the pairs of node and state that it connects."""

    edge: Ints
    start: Ints
    end: Ints


def extremes(
    scenario: Scenario, *, edges: Limits, unions: Limits | None = None, most: float | None = None
) -> tuple[float, float] | None:
    """Least and most people of a scenario; None if no flows are within the limits.

    Parameters
    ----------
    scenario : Scenario
    edges : Limits; of each edge, in the order of `places`
    unions : Limits; of each window, in that order
    most : float; if it is known

    Raises
    ------
    LdpError : the solver gave up

    Notes
    -----
    HiGHS (Huangfu and Hall, Mathematical Programming Computation 2018), twice. Variables: at most edges times
    states; 35 edges for 7 days, 2,015 for 62.
    """
    layers = _layers(scenario, np.flatnonzero(edges.high > 0))
    parts = [Limits(np.zeros(layers.edge.size), np.full(layers.edge.size, np.inf)), edges]
    if unions is not None:
        parts.append(unions)
    equations = _equations(scenario, layers, has_unions=unions is not None)
    cost = np.zeros(equations.shape[1])
    end = (scenario.days + 1) * scenario.n_states + scenario.counted
    cost[: layers.edge.size] = layers.end == end
    bounds = np.column_stack([np.concatenate(each) for each in zip(*parts, strict=True)])
    least = _solved(cost, equations, bounds=bounds)
    if least is not None and most is None:
        most = -(_solved(-cost, equations, bounds=bounds) or 0.0)
    return None if least is None or most is None else (max(least, 0.0), most)


def whole(least: float, most: float) -> tuple[int, int]:
    """Whole people between two bounds of their number."""
    return int(np.ceil(least - _ROUNDING)), int(np.floor(most + _ROUNDING))


def _layers(scenario: Scenario, used: Ints) -> _Layers:
    """All steps that can be reached; edges come in the order of their start."""
    size, (start, end) = scenario.n_states, places(scenario.days).edges
    reached = np.zeros((scenario.days + 2, size), np.bool_)
    reached[0, 0] = True
    parts = []
    for edge in used:
        p, t = start[edge], end[edge]
        before = np.flatnonzero(reached[p])
        after = scenario.steps[scenario.kind[p, t], before]
        reached[t, after] = True
        parts.append((np.full(before.size, edge), p * size + before, t * size + after))
    found = [np.concatenate(part) for part in zip(*parts, strict=True)] or [np.zeros(0, np.int64)] * 3
    return _Layers(edge=found[0], start=found[1], end=found[2])


def _equations(scenario: Scenario, layers: _Layers, *, has_unions: bool) -> Any:
    """Rows whose sum is 0, sparse: each pair of day and state, each edge, and each edge made of unions.

    Columns: steps, edges, unions.
    """
    from scipy.sparse import block_array, csr_array, eye_array  # noqa: PLC0415 - 0.1 s for every use of ldp

    made_of = csr_array(places(scenario.days).made_of, dtype=np.float64)
    steps, (n_edges, _) = np.arange(layers.edge.size), made_of.shape
    n_pairs = (scenario.days + 2) * scenario.n_states

    def one_each(row: Ints, *, n_rows: int) -> Any:
        return csr_array((np.ones(steps.size), (row, steps)), shape=(n_rows, steps.size))

    balance = one_each(layers.end, n_rows=n_pairs) - one_each(layers.start, n_rows=n_pairs)
    balance = balance[scenario.n_states : -scenario.n_states]  # without the start and the end
    of_edges = one_each(layers.edge, n_rows=n_edges)
    one = eye_array(n_edges)
    if has_unions:
        return block_array(
            [[balance, None, None], [of_edges, -one, None], [None, -one, made_of]], format="csr"
        )
    return block_array([[balance, None], [of_edges, -one]], format="csr")


def _solved(cost: Floats, equations: Any, *, bounds: Floats) -> float | None:
    from scipy.optimize import linprog  # noqa: PLC0415 - 0.3 s for every use of ldp

    method = "highs" if cost.size <= _LARGE else "highs-ipm"
    found = linprog(cost, A_eq=equations, b_eq=np.zeros(equations.shape[0]), bounds=bounds, method=method)
    if found.status == _INFEASIBLE:
        return None
    if not found.success:
        raise LdpError(f"a linear program must have an end, got: {found.message}")
    return float(found.fun)
