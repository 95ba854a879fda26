"""Questions about the days of a person: each is an automaton that reads her days in order.

`kind[p, t]` says which step the edge from p to t takes, and `steps[kind, state]` the state after it. A person
is counted if she ends in the state `counted`. So one program answers all questions, over pairs of day and
state.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.scenario.flows import MAX_DAYS

Ints = NDArray[np.int64]

_TO_DAY, _TO_END, _NEXT_DAY = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scenario:
    """A question about presence; make it with `on_days`, `exactly_days` or `days_in_a_row`.

    Parameters
    ----------
    days : int; of the study
    kind : ndarray of int64, shape (days + 2, days + 2)
    steps : ndarray of int64, shape (kinds, states)
    counted : int; state
    pattern : days of a person, if the question fixes every day; else None
    is_of_days : bool; whether it names days that must be in or out, so that a maximum flow answers it
    """

    days: int
    kind: Ints
    steps: Ints
    counted: int
    pattern: tuple[int, ...] | None = None
    is_of_days: bool = False

    @property
    def n_states(self) -> int:
        """States of the automaton: what the work grows with."""
        return int(self.steps.shape[1])


def on_days(*, days: int, present: Collection[int] = (), absent: Collection[int] = ()) -> Scenario:
    """People present on all of some days and on none of others; other days do not matter.

    Parameters
    ----------
    days : int; of the study, in [1, 62]
    present, absent : days from 1

    Raises
    ------
    LdpError : no day is named, a day is unknown, in both lists, or all days are absent
    """
    _check_days(days)
    wanted, left_out = set(present), set(absent)
    if not wanted | left_out:
        raise LdpError(f"present or absent must name a day in [1, {days}], got none")
    if unknown := sorted(day for day in wanted | left_out if not 1 <= day <= days):
        raise LdpError(f"days must be in [1, {days}], got {_listed(unknown)}")
    if both := sorted(wanted & left_out):
        raise LdpError(f"a day must be present or absent, not both; got {_listed(both)} in both")
    if len(left_out) == days:
        raise LdpError("at least one day must not be absent: tallies hold only people who came, got none")
    kind = np.zeros((days + 2, days + 2), np.int64)
    for p in range(days + 1):
        for t in range(p + 1, days + 2):
            kind[p, t] = t in left_out or any(p < day < t for day in wanted)
    return Scenario(
        days=days,
        kind=kind,
        steps=np.array([[0, 1], [1, 1]]),
        counted=0,
        pattern=tuple(sorted(wanted)) if len(wanted | left_out) == days else None,
        is_of_days=True,
    )


def exactly_days(k: int, *, days: int) -> Scenario:
    """People present on exactly k days, any of them; LdpError unless 1 <= k <= days <= 62."""
    _check_k(k, days=days)
    states = np.arange(k + 2)
    steps = np.array([np.minimum(states + 1, k + 1), states])
    return Scenario(days=days, kind=_kinds(days, next_day=_TO_DAY), steps=steps, counted=k)


def days_in_a_row(k: int, *, days: int) -> Scenario:
    """People present on at least k consecutive days; LdpError unless 1 <= k <= days <= 62."""
    _check_k(k, days=days)
    states = np.arange(k + 1)
    new_run = np.where(states == k, k, 1)
    steps = np.array([new_run, states, np.minimum(states + 1, k)])
    return Scenario(days=days, kind=_kinds(days, next_day=_NEXT_DAY), steps=steps, counted=k)


def _kinds(days: int, *, next_day: int) -> Ints:
    kind = np.full((days + 2, days + 2), _TO_DAY, np.int64)
    kind[np.arange(days + 1), np.arange(1, days + 2)] = next_day
    kind[:, -1] = _TO_END
    return kind


def _check_days(days: int) -> None:
    if not 1 <= days <= MAX_DAYS:
        raise LdpError(f"days must be in [1, {MAX_DAYS}], got {days}")


def _check_k(k: int, *, days: int) -> None:
    _check_days(days)
    if not 1 <= k <= days:
        raise LdpError(f"k must be in [1, {days}], the days of the study, got {k}")


def _listed(days: Iterable[int]) -> str:
    return ", ".join(str(day) for day in days)
