"""Moves between places, or visits to them, from reports that name one item of a day (`ldp.privacy.moves`).

A visitor-day has n moves, c of them along one edge. Its report is about that edge with probability
pi = c / max(n, l), so the share f of such reports estimates the mean of pi, and l f the mean of
c min(1, l / n): moves per visitor-day, where a day of n > l moves counts each of them l / n times. That is
the only bias. Places and pairs of them are in a day's set once or not at all: l f estimates the share of the
visitors of the day with an item, where those with n > l items count l / n times. There is no such bias where
l is at least the number of items there are.

Of R reports of a simple random sample of V visitors, with s the mean of pi**2,

    Var(f) = noise + (f - s) / R + (s - f**2) / R (V - R) / (V - 1),

for the noise, the choice of a move and that of visitors. No report tells what s is. It is at least f**2,
where the last two terms are largest, f (1 - f) / R: as if visitors were `ENDLESS`. So a variance is too
large by less than f / R, which next to the noise is little. Where no day has more than l items, a set has
s = f / l.

Each day has fresh bits: the noise of several days is independent, also of people who repeat their moves. The
same people are asked on all days, so samples of days may err alike. How far is unknown, and counted in full.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.estimators import ENDLESS, project_simplex, pure_frequencies
from ldp.estimation.joint.crosstab import Codes, Floats, Reports, Shares
from ldp.estimation.joint.linear import NUMBERS
from ldp.privacy.moves import MoveSpec
from ldp.protocols.projective import CodeChannel

_MAX_ROUNDS: Final = 1000
_CLOSE: Final = 1e-8  # of a share


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MoveDay:
    """Reports on the moves of one day.

    Parameters
    ----------
    reports : Reports; of people drawn from `ENDLESS` ones
    n_visitors : int; of the day
    """

    reports: Reports
    n_visitors: int

    @property
    def sampling(self) -> float:
        """Factor of f (1 - f) in the variance that comes from asking some visitors only, at most."""
        n = self.reports.n_reports
        return (self.n_visitors - n) / max(self.n_visitors - 1, 1) / n


def move_day(
    counts: NDArray[np.int64], *, channel: CodeChannel, n_reports: int, n_visitors: int, level: float = 0.95
) -> MoveDay:
    """Take the counts of a day.

    Parameters
    ----------
    counts : ndarray of int64, shape (size,); reports that support each code of a move
    channel, n_reports : as of `pure_frequencies`
    n_visitors : int; of the day, at least n_reports

    Raises
    ------
    LdpError : counts do not fit
    """
    if n_visitors < n_reports:
        raise LdpError(f"n_visitors must be >= n_reports = {n_reports}, got {n_visitors}")
    sizes = {"n_reports": n_reports, "n_population": ENDLESS}
    found = pure_frequencies(counts, channel=channel, level=level, **sizes)
    reports = Reports(estimates=found, channel=channel, level=level, **sizes)
    return MoveDay(reports=reports, n_visitors=n_visitors)


def moves_of_values(days: Sequence[MoveDay], *, spec: MoveSpec) -> Shares:
    """Moves of all visitors along each edge, or visits, by code, shape (size,); `days` is one or more.

    The entries of "no move", and of a place to itself, mean nothing.
    """
    found = [day.reports.estimates for day in days]
    columns = [np.stack([f.frequency, f.std_error, f.ci_low, f.ci_high]) for f in found]
    return _summed(days, columns, spec=spec)


def moves_of_sets(days: Sequence[MoveDay], sets: Sequence[Codes], *, spec: MoveSpec) -> Shares:
    """Moves of all visitors along any edge of each set, shape (len(sets),): arrivals at a place, for one."""
    answers = [[NUMBERS(day.reports.answer(codes)) for codes in sets] for day in days]
    columns = [np.array(each, np.float64).reshape(-1, 4).T for each in answers]
    return _summed(days, columns, spec=spec)


def balanced_moves(days: Sequence[MoveDay], *, spec: MoveSpec) -> Floats:
    """Nearest moves that are possible: as many arrive at each place as leave it, and none are negative.

    Returns
    -------
    ndarray of float64, shape (size,); in moves of all visitors; biased, without an interval

    Notes
    -----
    Everyone starts and ends the day outside. In squares of the shares, with "no move" as one of them and the
    sum 1: projections on the balance and on the simplex in turn (Dykstra). The first one takes
    (d_i - d_j) / (2 N) off the move from i to j, with d the surplus of those who leave each of N places.
    """
    weights = _weights(days, spec)
    total = sum(w * day.reports.estimates.frequency for w, day in zip(weights, days, strict=True))
    n_places = spec.places + 1
    is_edge = ~np.eye(n_places, dtype=np.bool_).ravel()
    is_possible = is_edge.copy()
    is_possible[spec.nothing] = True
    table = np.where(is_possible, np.asarray(total) / weights.sum(), 0.0)
    lifted = np.zeros(is_possible.sum())
    for _ in range(_MAX_ROUNDS):
        square = (table * is_edge).reshape(n_places, n_places)
        surplus = (square.sum(axis=1) - square.sum(axis=0)) / (2 * n_places)
        table -= np.where(is_edge, np.subtract.outer(surplus, surplus).ravel(), 0.0)
        raised = table[is_possible] + lifted
        table[is_possible] = project_simplex(raised)
        lifted = raised - table[is_possible]
        if np.abs(surplus).max() < _CLOSE:
            break
    return np.asarray(table * weights.sum(), np.float64)


def _weights(days: Sequence[MoveDay], spec: MoveSpec) -> Floats:
    """Moves that a share of 1 stands for on each day."""
    return np.array([spec.per_day * day.n_visitors for day in days], np.float64)


def _summed(days: Sequence[MoveDay], columns: Sequence[Floats], *, spec: MoveSpec) -> Shares:
    """Add up shares of days with their errors, shape (4, n): noise as squares, samples in full."""
    weights = _weights(days, spec)
    of_days = np.stack(columns) * weights[:, np.newaxis, np.newaxis]
    value, error, low, high = of_days.swapaxes(0, 1)
    share = np.clip(value / weights[:, np.newaxis], 0, 1)
    samplings = np.array([day.sampling for day in days])[:, np.newaxis]
    sampled = weights[:, np.newaxis] * np.sqrt(share * (1 - share) * samplings)
    together = np.maximum(sampled.sum(axis=0) ** 2 - (sampled**2).sum(axis=0), 0)
    z2 = NormalDist().inv_cdf((1 + days[0].reports.level) / 2) ** 2
    total = value.sum(axis=0)
    return Shares(
        value=total,
        std_error=np.sqrt((error**2).sum(axis=0) + together),
        ci_low=total - np.sqrt(((value - low) ** 2).sum(axis=0) + z2 * together),
        ci_high=total + np.sqrt(((high - value) ** 2).sum(axis=0) + z2 * together),
    )
