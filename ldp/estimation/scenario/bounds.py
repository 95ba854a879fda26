"""Answers from exact tallies: least, most and likely people of a scenario.

A question that fixes every day has a closed form: at most the smallest flow on the pattern's path, at least
the sum of its flows less the people of its days. For days that must be in or out, the most is a maximum flow
through the edges that the question allows: what is left over is a flow, too, and so is made of people.
Everything else is a linear program (`ldp.estimation.scenario.program`). All are sharp: some people fit the
tally and reach them.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from ldp.errors import FewVisitorsError, LdpError
from ldp.estimation.overlaps import is_few
from ldp.estimation.scenario.flows import Counts, Flows, Limits, flows_of, hidden_windows, places
from ldp.estimation.scenario.markov import check_same_days, likely_people
from ldp.estimation.scenario.program import extremes, whole
from ldp.estimation.scenario.published import UnionTable, fit_unions
from ldp.estimation.scenario.questions import Scenario

Method = Literal["counted", "closed form", "maximum flow", "linear program"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioPeople:
    """People of a scenario.

    Parameters
    ----------
    least, most : int; the number lies between both for all people who fit the tally
    estimate : float; as by the Markov chain of the flows, within the bounds; nan where it is not shown
    method : how `most` was found
    """

    least: int
    most: int
    estimate: float
    method: Method


def scenario_people(
    tally: Counts, scenario: Scenario, *, small_cell: int = 0, known: tuple[int, int] | None = None
) -> ScenarioPeople:
    """People of a scenario from an exact gap tally of visitors.

    Parameters
    ----------
    tally : ndarray of int64, shape (days + 1, days + 1)
    scenario : Scenario; of the same days
    small_cell : int; 0 = all is shown. Else windows with fewer people count as "1 to small_cell - 1", and no
        number is shown that is few, or leaves few
    known : least and most people by the further tallies of presence; not used where windows are hidden

    Raises
    ------
    LdpError : the tally is not exact, or of other days
    FewVisitorsError : the study has few visitors in all

    Notes
    -----
    Cost: closed form O(days^2). Linear program of 62 days: 4,000 variables, 2 s, for chosen days; 40,000,
    10 to 60 s, for the number of days.
    """
    flows = flows_of(tally)
    check_same_days(flows, scenario)
    if is_few(flows.total, small_cell=small_cell):
        raise FewVisitorsError(f"visitors must be 0 or at least {small_cell}, got fewer")
    hidden = hidden_windows(tally, small_cell=small_cell)
    if hidden.any():
        table = UnionTable.of_tally(tally, hidden=hidden, small_cell=small_cell)
        return without_few(table_people(table, scenario), total=flows.total, small_cell=small_cell)
    method: Method = "counted"
    least, most = known or (0, int(flows.total))
    if least < most:
        low, high, method = scenario_bounds(flows, scenario)
        least, most = max(least, low), min(most, high)
    found = _answer(flows, scenario, least=least, most=most, method=method)
    return without_few(found, total=flows.total, small_cell=small_cell)


def table_people(table: UnionTable, scenario: Scenario) -> ScenarioPeople:
    """People of a scenario from unions that are known, or known within limits.

    Parameters
    ----------
    table : UnionTable
    scenario : Scenario; of the same days

    Raises
    ------
    LdpError : no people fit the table (the message names windows that contradict others), or a day is in no
        window
    """
    if (day := table.unlimited_day) is not None:
        raise LdpError(f"each day must be in a window with a number, got none for day {day}")
    fit = fit_unions(table)
    if fit.moved:
        windows = ", ".join(f"{a}..{b}" for a, b in fit.moved)
        raise LdpError(f"unions must fit together: correct these windows or leave them out, got {windows}")
    check_same_days(fit.flows, scenario)
    where = places(scenario.days)
    most_of_edges = np.where(where.made_of.any(axis=1), np.inf, 0)
    found = extremes(scenario, edges=Limits(np.zeros_like(most_of_edges), most_of_edges), unions=table.row)
    if found is None:
        raise LdpError("unions must fit together, got a table that no people fit")
    least, most = whole(*found)
    return _answer(fit.flows, scenario, least=least, most=most, method="linear program")


def scenario_bounds(flows: Flows, scenario: Scenario) -> tuple[int, int, Method]:
    """Sharp bounds of the people of a scenario, and how the upper one was found.

    Parameters
    ----------
    flows : Flows; in whole people
    scenario : Scenario; of the same days
    """
    check_same_days(flows, scenario)
    if flows.total == 0:
        return 0, 0, "closed form"
    if scenario.pattern is not None:
        return *_pattern_bounds(flows, scenario.pattern), "closed form"
    people = flows.edges[places(flows.days).edges]
    known = most_on_days(flows, scenario) if scenario.is_of_days else None
    found = extremes(scenario, edges=Limits(people, people), most=known)
    if found is None:
        raise LdpError("flows must be those of people, got flows that no people fit")
    return *whole(*found), "linear program" if known is None else "maximum flow"


def most_on_days(flows: Flows, scenario: Scenario) -> int:
    """Most people of a scenario made by `on_days`: the maximum flow through the edges that it allows.

    Raises
    ------
    LdpError : the scenario is another one
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - 0.1 s for every use of ldp
    from scipy.sparse.csgraph import maximum_flow  # noqa: PLC0415 - as above

    if not scenario.is_of_days:
        raise LdpError("a scenario must name days for a maximum flow; use scenario_bounds for others")
    allowed = csr_array(np.where(scenario.kind == 0, flows.edges, 0).astype(np.int32))
    return int(maximum_flow(allowed, 0, scenario.days + 1).flow_value)


def _pattern_bounds(flows: Flows, pattern: tuple[int, ...]) -> tuple[int, int]:
    path = [flows.edges[edge] for edge in pairwise((0, *pattern, flows.days + 1))]
    surely = sum(path) - flows.present[list(pattern)].sum()
    return max(0, int(surely)), int(min(path))


def _answer(flows: Flows, scenario: Scenario, *, least: int, most: int, method: Method) -> ScenarioPeople:
    estimate = float(np.clip(likely_people(flows, scenario), least, most))
    return ScenarioPeople(least=least, most=most, estimate=estimate, method=method)


def without_few(found: ScenarioPeople, *, total: float, small_cell: int) -> ScenarioPeople:
    """Return the same answer without numbers that are few, or that leave few of all people.

    Parameters
    ----------
    total : people of the study
    small_cell : int; 0 = nothing is few
    """

    def is_hidden(number: float) -> bool:
        return bool(is_few(number, small_cell=small_cell) or is_few(total - number, small_cell=small_cell))

    least, most = found.least, found.most
    if is_few(total - least, small_cell=small_cell):
        least = int(total) - small_cell + 1
    if is_few(least, small_cell=small_cell):
        least = 0
    if is_hidden(most):
        most = small_cell - 1 if most < small_cell else int(total)
    estimate = float("nan") if is_hidden(found.estimate) else found.estimate
    return ScenarioPeople(least=least, most=most, estimate=estimate, method=found.method)
