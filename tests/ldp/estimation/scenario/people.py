"""People whose days are known, their tallies, and an independent linear program over all patterns."""

import json
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog

from ldp import Scenario, on_days

ROOT = Path(__file__).parents[4]


@cache
def fimu() -> dict[tuple[int, ...], int]:
    facts = json.loads((ROOT / "mobility" / "demo" / "fimu_facts.json").read_text(encoding="utf-8"))
    return {
        tuple(day for day, sign in enumerate(signs, start=1) if sign == "1"): number
        for signs, number in facts["presence_patterns"].items()
    }


def tally_of(people: dict[tuple[int, ...], int], *, days: int) -> np.ndarray:
    tally = np.zeros((days + 1, days + 1), np.int64)
    for pattern, number in people.items():
        for previous, day in zip((0, *pattern), pattern, strict=False):
            tally[previous, day] += number
    return tally


def patterns(days: int) -> list[tuple[int, ...]]:
    return [chosen for size in range(1, days + 1) for chosen in combinations(range(1, days + 1), size)]


def counted(people: dict[tuple[int, ...], int], question) -> int:
    return sum(number for pattern, number in people.items() if question(pattern))


def longest_run(pattern: tuple[int, ...]) -> int:
    runs = (range(first, last + 1) for first in pattern for last in pattern if first <= last)
    return max(len(run) for run in runs if set(run) <= set(pattern))


class PatternProgram:
    """All numbers of people by pattern that have the unions of given people: one variable per pattern."""

    def __init__(self, people: dict[tuple[int, ...], int], *, days: int) -> None:
        self.patterns = patterns(days)
        windows = [(a, b) for a in range(1, days + 1) for b in range(a, days + 1)]
        self.unions = np.array(
            [[any(a <= day <= b for day in p) for p in self.patterns] for a, b in windows], float
        )
        self.people = self.unions @ [people.get(pattern, 0) for pattern in self.patterns]

    def bounds(self, question) -> tuple[float, float]:
        cost = np.array([float(question(pattern)) for pattern in self.patterns])
        ends = [linprog(sign * cost, A_eq=self.unions, b_eq=self.people) for sign in (1, -1)]
        assert all(end.success for end in ends)
        return ends[0].fun, -ends[1].fun


def on_pattern(pattern: tuple[int, ...], *, days: int) -> Scenario:
    return on_days(days=days, present=pattern, absent=set(range(1, days + 1)) - set(pattern))


def crowds(days: int) -> st.SearchStrategy:
    return st.dictionaries(st.sampled_from(patterns(days)), st.integers(1, 30), min_size=1, max_size=12)
