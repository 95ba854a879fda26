"""Holm by intervals: the same as by p-values, and few false differences among many."""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ldp.multiple import excludes_zero, holm


class Bounds(NamedTuple):
    ci_low: np.ndarray
    ci_high: np.ndarray


def around(values: np.ndarray, level: float) -> Bounds:
    """Intervals of values with standard error 1."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    return Bounds(values - z, values + z)


def by_p_values(values: np.ndarray, *, alpha: float) -> list[bool]:
    p = [2 * NormalDist().cdf(-abs(value)) for value in values]
    order = sorted(range(len(p)), key=lambda place: p[place])
    found = [False] * len(p)
    for rank, place in enumerate(order):
        if p[place] >= alpha / (len(p) - rank):
            break
        found[place] = True
    return found


@given(values=st.lists(st.floats(-5, 5), min_size=1, max_size=12), alpha=st.sampled_from([0.01, 0.05, 0.3]))
def test_intervals_find_what_p_values_find(values: list[float], alpha: float) -> None:
    numbers = np.array(values)
    found = holm(lambda level: around(numbers, level), rows=np.ones(len(values), bool), level=1 - alpha)
    assert found.tolist() == by_p_values(numbers, alpha=alpha)


def test_later_steps_are_less_strict() -> None:
    """Of two, the second needs 2.24 standard errors at first, and 1.96 after the first has been found."""
    rows = np.ones(2, bool)
    assert holm(lambda level: around(np.array([3.0, 2.1]), level), rows=rows).tolist() == [True, True]
    assert holm(lambda level: around(np.array([2.1, -2.1]), level), rows=rows).tolist() == [False, False]
    assert excludes_zero(around(np.array([2.1, -2.1]), 0.95)).tolist() == [True, True]


def test_rows_that_are_not_looked_at_cost_nothing() -> None:
    values = np.array([2.1, 0.0, 0.0, 9.0])
    found = holm(lambda level: around(values, level), rows=np.array([True, False, False, False]))
    assert found.tolist() == [True, False, False, False]


def test_false_differences_are_rare_in_a_whole_table() -> None:
    """Twelve rows, nine of them without a difference: any false one in at most 5 % of the tables."""
    rng = np.random.default_rng(3)
    truth = np.array([3.0, 6.0, -4.0, *[0.0] * 9])
    runs = 4000
    false_alone = false_held = 0
    for noise in rng.normal(size=(runs, truth.size)):
        values = truth + noise
        false_alone += bool(excludes_zero(around(values, 0.95))[3:].any())
        held = holm(lambda level, values=values: around(values, level), rows=np.ones(truth.size, bool))
        false_held += bool(held[3:].any())
    standard_error = np.sqrt(0.05 * 0.95 / runs)
    assert 0.02 < false_held / runs < 0.05 + 4 * standard_error
    assert false_alone / runs > 0.3
