"""The estimate: the Markov chain of the flows, which has the largest entropy of all that fit the tally.

Of the people of a day, the same share continues to each later day, from any earlier day:

    x(pattern) = N product over its edges of G[edge] / people who leave its start.

Iterative proportional fitting of all unions ends at the same numbers.
"""

from heapq import nlargest

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.scenario.flows import Flows
from ldp.estimation.scenario.questions import Scenario

Floats = NDArray[np.float64]
Pattern = tuple[int, ...]


def likely_people(flows: Flows, scenario: Scenario) -> float:
    """People to expect in a scenario if who comes on a day depends only on the last day before it.

    Parameters
    ----------
    flows : Flows
    scenario : Scenario; of the same days

    Returns
    -------
    float, in [0, people of the flows]

    Raises
    ------
    LdpError : flows and scenario differ in their days

    Notes
    -----
    Dynamic programming over pairs of day and state: O(days^2 states).
    """
    check_same_days(flows, scenario)
    shares, end = _shares(flows), scenario.days + 1
    moves = [np.eye(scenario.n_states)[step] for step in scenario.steps]
    people = np.zeros((end + 1, scenario.n_states))
    people[0, 0] = flows.total
    for p in range(end):
        for kind, move in enumerate(moves):
            later = np.flatnonzero((scenario.kind[p] == kind) & (shares[p] > 0))
            people[later] += np.outer(shares[p, later], people[p] @ move)
    return float(people[end, scenario.counted])


def likeliest_patterns(flows: Flows, *, n: int = 20) -> list[tuple[Pattern, float]]:
    """Patterns that most people are expected to have, most first: their days, and people.

    Parameters
    ----------
    flows : Flows
    n : int; at least 1; fewer are returned where fewer exist

    Notes
    -----
    Each day needs only the n best ways on from it: O(days^2 n log n).
    """
    if n < 1:
        raise LdpError(f"n must be >= 1, got {n}")
    shares, end = _shares(flows), flows.days + 1
    best: dict[int, list[tuple[float, Pattern]]] = {end: [(flows.total, ())]}
    for p in range(end - 1, -1, -1):
        ways = (
            (float(shares[p, t]) * people, (t, *rest) if t < end else ())
            for t in range(p + 1, end + 1)
            if shares[p, t] > 0
            for people, rest in best[t]
        )
        best[p] = nlargest(n, ways)
    return [(pattern, people) for people, pattern in best[0]]


def check_same_days(flows: Flows, scenario: Scenario) -> None:
    """Raise LdpError if a question is about another number of days."""
    if flows.days != scenario.days:
        raise LdpError(f"a scenario must have the {flows.days} days of the tally, got {scenario.days}")


def _shares(flows: Flows) -> Floats:
    """Return the share of those who leave a node on each edge; 0 where no one does."""
    leaving = flows.edges.sum(axis=1, keepdims=True)
    return np.asarray(flows.edges / np.where(leaving > 0, leaving, 1), np.float64)
