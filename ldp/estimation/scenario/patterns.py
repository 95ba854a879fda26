"""The likeliest patterns of presence, each with its least and most people: what a table of them shows.

A pattern fixes every day, so its bounds follow from the limits of its edges and days alone: at most the
smallest edge on its path, at least the sum of its edges less the people of its days. Where limits are exact
numbers, the bounds are sharp.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ldp.errors import LdpError
from ldp.estimation.scenario.bounds import ScenarioPeople, without_few
from ldp.estimation.scenario.flows import Counts, Limits, places
from ldp.estimation.scenario.intervals import visitor_limits
from ldp.estimation.scenario.markov import Pattern, likeliest_patterns
from ldp.estimation.scenario.program import whole
from ldp.estimation.scenario.published import nearest_shown_flows
from ldp.protocols.geometric import GeometricChannel


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternPeople:
    """People who came on exactly these days.

    Parameters
    ----------
    pattern : days, from 1
    people : as of a scenario that fixes every day
    """

    pattern: Pattern
    people: ScenarioPeople


def likely_patterns(
    tally: Counts,
    *,
    n: int = 20,
    small_cell: int = 0,
    noise: GeometricChannel | None = None,
    level: float = 0.95,
) -> list[PatternPeople]:
    """Return the likeliest patterns with their bounds, most people first.

    Parameters
    ----------
    tally : ndarray of int64, shape (days + 1, days + 1)
    n : int; at least 1; fewer are returned where fewer exist, or where their people are few
    small_cell : int; 0 = all is shown; windows with fewer people count as "1 to small_cell - 1", and patterns
        with fewer people to expect are left out
    noise : GeometricChannel; of each cell, if the plan has presence noise
    level : float; with noise, the bounds of each pattern hold with this probability

    Raises
    ------
    LdpError : n or level is out of range, or the tally is not exact and has no noise
    FewVisitorsError : the study has few visitors in all

    Notes
    -----
    O(days^2 n log n); with hidden windows one linear program more.
    """
    if not 0 < level < 1:
        raise LdpError(f"level must be in (0, 1), got {level}")
    flows = nearest_shown_flows(tally, small_cell=small_cell, noise=noise)
    miss = (1 - level) / (2 * flows.days + 1)  # edges and days of the longest pattern
    limits = visitor_limits(tally, small_cell=small_cell, noise=noise, miss=miss)
    found = []
    for pattern, estimate in likeliest_patterns(flows, n=n):
        least, most = _bounds(limits, pattern, days=flows.days)
        people = ScenarioPeople(
            least=least, most=most, estimate=float(np.clip(estimate, least, most)), method="closed form"
        )
        people = without_few(people, total=flows.total, small_cell=small_cell)
        if not np.isnan(people.estimate):
            found.append(PatternPeople(pattern=pattern, people=people))
    return found


def _bounds(limits: Limits, pattern: Pattern, *, days: int) -> tuple[int, int]:
    """Least and most people of a pattern, in whole people."""
    where = places(days)
    n_edges = len(where.made_of)
    first, last = where.windows
    of_days = limits.high[n_edges:][first == last]
    low, high = (where.square(each[:n_edges]) for each in limits)
    path = list(pairwise((0, *pattern, days + 1)))
    least = sum(low[edge] for edge in path) - sum(of_days[day - 1] for day in pattern)
    return whole(max(0.0, float(least)), float(min(high[edge] for edge in path)))
