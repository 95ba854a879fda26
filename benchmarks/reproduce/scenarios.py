"""Chapter 4: what the unions of days of MS-FIMU say about combinations of days, and what they leave open."""

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

import ldp
from benchmarks.reproduce.runs import Floats
from ldp.estimation.scenario.flows import with_departures
from mobility.demo.population import Population, build_population

Counts = NDArray[np.int64]

DAYS: Final = 7
SOLUTIONS: Final = 50
PATTERNS: Final = [days for k in range(1, DAYS + 1) for days in combinations(range(1, DAYS + 1), k)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Visitors of one scenario: what the unions allow, the estimate, and the data set."""

    name: str
    answer: ldp.ScenarioPeople
    true: int


@cache
def rows() -> tuple[Row, ...]:
    """All week, each number of days, and three days in a row."""
    there = _there(people().presence)
    n_days, runs = there.sum(axis=1), there[:, :-2] & there[:, 1:-1] & there[:, 2:]
    scenarios = [("all seven days", ldp.on_days(days=DAYS, present=range(1, DAYS + 1)), n_days == DAYS)]
    for k in range(1, DAYS):
        scenarios.append((f"exactly {k} of seven days", ldp.exactly_days(k, days=DAYS), n_days == k))
    scenarios.append(("three days in a row", ldp.days_in_a_row(3, days=DAYS), runs.any(axis=1)))
    return tuple(
        Row(name=name, answer=ldp.scenario_people(_tally(), scenario), true=int(chosen.sum()))
        for name, scenario, chosen in scenarios
    )


@cache
def widths() -> Floats:
    """Most less least visitors of each of the 127 combinations of days."""
    answers = [ldp.scenario_people(_tally(), _only(pattern)) for pattern in PATTERNS]
    return np.array([answer.most - answer.least for answer in answers], np.float64)


@cache
def misplaced_by_estimate() -> float:
    """Total variation between the estimate of all combinations and the data set; 1 = all visitors."""
    flows = ldp.flows_of(_tally())
    return _misplaced(np.array([ldp.likely_people(flows, _only(pattern)) for pattern in PATTERNS]))


@cache
def misplaced_by_solutions() -> Floats:
    """Return error rates of linear programs, as in the thesis, with random costs; shape (SOLUTIONS,)."""
    windows = [(a, b) for a in range(1, DAYS + 1) for b in range(a, DAYS + 1)]
    has = np.array([[any(a <= day <= b for day in days) for days in PATTERNS] for a, b in windows], float)
    unions = ldp.all_unions(_tally())
    costs = ldp.KeyedStream(b"reproduce vertex").words(SOLUTIONS * len(PATTERNS)) / 2.0**64
    found = [
        linprog(cost, A_eq=has, b_eq=[unions[window] for window in windows], method="highs-ds").x
        for cost in costs.reshape(SOLUTIONS, -1)
    ]
    return np.array([_misplaced(solution) for solution in found])


@cache
def synthetic_errors() -> dict[str, float]:
    """Error rate of each attribute of a synthetic population made from exact counts; 0.01 = 1%."""
    stream, crowd = ldp.KeyedStream(b"reproduce people"), people()
    presence = ldp.synthetic_presence(ldp.flows_of(_tally()), stream=stream)
    errors = {}
    for slug, codes in crowd.static.items():
        true = _tallies(crowd.presence, codes)
        made = ldp.synthetic_static(presence, with_departures(true).astype(float), stream=stream)
        unions = (ldp.all_unions(each) for each in (_tallies(presence, made, k=len(true)), true))
        errors[slug] = ldp.error_rate(*unions)
    return errors


@cache
def people() -> Population:
    """Visitors of MS-FIMU; how days and attributes go together is made up."""
    return build_population(seed=1)


@cache
def _tally() -> Counts:
    found = np.zeros((DAYS + 1, DAYS + 1), np.int64)
    ldp.tally_visitors(people().presence, found, sign=1)
    return found


def _tallies(presence: NDArray[np.uint64], codes: NDArray[np.int32], *, k: int = 0) -> Counts:
    found = np.zeros((k or int(codes.max()) + 1, DAYS + 1, DAYS + 1), np.int64)
    ldp.tally_static(presence, codes.astype(np.uint16), found, sign=1)
    return found


def _there(presence: NDArray[np.uint64]) -> NDArray[np.bool_]:
    return (presence[:, np.newaxis] >> np.arange(DAYS, dtype=np.uint64) & np.uint64(1)).astype(bool)


def _only(pattern: tuple[int, ...]) -> ldp.Scenario:
    others = set(range(1, DAYS + 1)) - set(pattern)
    return ldp.on_days(days=DAYS, present=pattern, absent=others)


def _misplaced(visitors: Floats) -> float:
    bitmaps = [sum(1 << (day - 1) for day in pattern) for pattern in PATTERNS]
    true = np.bincount(people().presence.astype(np.int64), minlength=2**DAYS)[bitmaps]
    return float(np.abs(visitors - true).sum() / 2 / true.sum())
