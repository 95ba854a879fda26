"""A synthetic population: people who do not exist, with the unions and about the shares that are published.

At each day arrivals and departures are matched at random, so every union agrees exactly. Attributes that stay
are raked over the patterns of presence (iterative proportional fitting: the maximum of entropy given the
patterns) and dealt out by systematic sampling. A row says nothing about a person: all is made of published
numbers.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.scenario.flows import Flows
from ldp.kernels.streams import KeyedStream

Bitmaps = NDArray[np.uint64]
Codes = NDArray[np.int32]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ABSENT = -1
_SETTLED = 1e-5  # raking ends when no share changes by more, as a fraction of itself


def synthetic_presence(flows: Flows, *, stream: KeyedStream) -> Bitmaps:
    """Days of each person, so that every union of the flows agrees exactly.

    Parameters
    ----------
    flows : Flows; in whole people (`whole_flows` makes them)
    stream : KeyedStream; which people there are, the same for a key

    Returns
    -------
    ndarray of uint64, shape (people,); bit t - 1 = day t

    Raises
    ------
    LdpError : the flows are not whole

    Notes
    -----
    O(person-days).
    """
    if not np.issubdtype(flows.edges.dtype, np.integer):
        raise LdpError("flows must be in whole people; use whole_flows for others")
    bitmaps = np.zeros(int(flows.total), np.uint64)
    arrived: list[list[Ints]] = [[] for _ in range(flows.days + 2)]
    arrived[0].append(np.arange(bitmaps.size))
    for p in range(flows.days + 1):
        people = stream.shuffled(np.concatenate(arrived[p])) if arrived[p] else np.zeros(0, np.int64)
        parts = np.split(people, np.cumsum(flows.edges[p, p + 1 : -1]))
        for t, part in enumerate(parts[:-1], start=p + 1):
            bitmaps[part] |= np.uint64(1 << (t - 1))
            arrived[t].append(part)
    return bitmaps


def synthetic_static(
    presence: Bitmaps, targets: Floats, *, stream: KeyedStream, max_rounds: int = 100
) -> Codes:
    """A value per person, so that the shares of each edge, and so of each window, are about the targets.

    Parameters
    ----------
    presence : of `synthetic_presence`
    targets : ndarray of float64, shape (categories, days + 2, days + 2); people of each category by edge, at
        least 0; only their shares count
    stream : KeyedStream
    max_rounds : int; of raking, at least 1

    Returns
    -------
    ndarray of int32, shape (people,)

    Raises
    ------
    LdpError : a target is below 0 or not finite, or has another shape

    Notes
    -----
    O(rounds x categories x days of all distinct patterns).
    """
    targets = _checked(presence, targets)
    days = targets.shape[-1] - 2
    patterns, group, sizes = np.unique(presence, return_inverse=True, return_counts=True)
    weights = np.outer(sizes, _shares(targets[:, 0].sum(axis=1)))
    steps = _steps(patterns, days=days)
    for _ in range(max_rounds):
        change = max((_rake(weights, targets, step) for step in steps), default=0.0)
        weights *= (sizes / weights.sum(axis=1))[:, np.newaxis]
        if change < _SETTLED:
            break
    return _dealt(group, weights, stream=stream)


def synthetic_daily(presence: Bitmaps, targets: Floats, *, stream: KeyedStream) -> Codes:
    """A value per person and day, so that the shares of each day's arrivals by previous day are the targets.

    Parameters, Raises : as of `synthetic_static`; targets by the value on the day at the end of the edge

    Returns
    -------
    ndarray of int32, shape (people, days); -1 where a person is absent
    """
    targets = targets.copy()
    targets[..., -1] = 0  # people who leave have no value of that day
    targets = _checked(presence, targets)
    days = targets.shape[-1] - 2
    codes = np.full((presence.size, days), ABSENT, np.int32)
    previous = np.zeros(presence.size, np.int64)
    for t in range(1, days + 1):
        people = np.flatnonzero(presence >> np.uint64(t - 1) & np.uint64(1))
        shares = np.array([_shares(targets[:, p, t]) for p in range(t)])
        codes[people, t - 1] = _dealt(previous[people], shares, stream=stream)
        previous[people] = t
    return codes


def people_tally(presence: Bitmaps, codes: Codes | None = None, *, days: int, n_codes: int = 1) -> Ints:
    """Gap tally of people, by the value of each person, or of each person and day.

    Parameters
    ----------
    presence : of `synthetic_presence`
    codes : of `synthetic_static` or `synthetic_daily`; None: all people are of one code, 0
    days : int; of the study
    n_codes : int; above every code

    Returns
    -------
    ndarray of int64, shape (n_codes, days + 1, days + 1)

    Notes
    -----
    O(person-days). Plain numpy: `ldp.tally_visitors` is compiled.
    """
    tally = np.zeros((n_codes, days + 1, days + 1), np.int64)
    previous = np.zeros(presence.size, np.int64)
    for t in range(1, days + 1):
        people = np.flatnonzero(presence >> np.uint64(t - 1) & np.uint64(1))
        values = np.zeros(people.size, np.int64)
        if codes is not None:
            values = (codes if codes.ndim == 1 else codes[:, t - 1])[people].astype(np.int64)
        cells = np.bincount(values * t + previous[people], minlength=n_codes * t)
        tally[:, :t, t] = cells.reshape(n_codes, t)
        previous[people] = t
    return tally


def error_rate(synthetic: NDArray[Any], published: NDArray[Any]) -> float:
    """Sum of absolute differences over the sum of published numbers; 0.01 = 1%. LdpError if that sum is 0.

    Definition 10 of the thesis, over the same windows and categories above and below.
    """
    if not (total := float(np.sum(published))) > 0:
        raise LdpError(f"published numbers must add up to more than 0, got {total:g}")
    return float(np.abs(np.asarray(synthetic) - published).sum()) / total


def _checked(presence: Bitmaps, targets: Floats) -> Floats:
    """Targets with those of the whole study for edges that have none."""
    nodes = targets.shape[-1]
    if targets.ndim != 3 or targets.shape[1] != nodes:
        raise LdpError(f"targets must have shape (categories, days + 2, days + 2), got {targets.shape}")
    if not (np.isfinite(targets).all() and targets.min() >= 0):
        raise LdpError("targets must be finite and at least 0; use edge_targets for estimates")
    if presence.size and int(presence.max()) >> (nodes - 2):
        raise LdpError(f"presence must be on days 1..{nodes - 2} of the targets, got a later day")
    everyone = targets[:, 0].sum(axis=1)[:, np.newaxis, np.newaxis]
    return np.where(targets.sum(axis=0) > 0, targets, everyone)


def _shares(people: Floats) -> Floats:
    """People by category as shares; equal ones of no one."""
    total = people.sum()
    return people / total if total > 0 else np.full(people.size, 1 / people.size)


def _steps(patterns: Bitmaps, *, days: int) -> list[tuple[int, Ints, Ints, Ints]]:
    """By node: the node, the patterns that reach it in the order of their previous day, where each of these
    begins, and which they are."""
    found = []
    previous = np.zeros(patterns.size, np.int64)
    for t in range(1, days + 2):
        there = np.arange(patterns.size)
        if t <= days:
            there = np.flatnonzero(patterns >> np.uint64(t - 1) & np.uint64(1))
        if there.size:
            there = there[np.argsort(previous[there], kind="stable")]
            which, starts = np.unique(previous[there], return_index=True)
            found.append((t, there, starts, which))
            previous[there] = t
    return found


def _rake(weights: Floats, targets: Floats, step: tuple[int, Ints, Ints, Ints]) -> float:
    """Fit the edges into one node, in place; the largest change of a share."""
    node, there, starts, which = step
    now = np.add.reduceat(weights[there], starts, axis=0)
    shares = np.array([_shares(targets[:, p, node]) for p in which])
    wanted = shares * now.sum(axis=1, keepdims=True)
    factor = np.divide(wanted, now, out=np.ones_like(now), where=now > 0)
    sizes = np.diff(np.append(starts, there.size))
    # A category that only other edges have keeps a trace, so that no pattern is left without any.
    weights[there] = np.maximum(weights[there] * np.repeat(factor, sizes, axis=0), 1e-12)
    return float(np.abs(wanted - now).sum() / max(now.sum(), 1e-12))


def _dealt(group: Ints, weights: Floats, *, stream: KeyedStream) -> Codes:
    """A category per person by the weights of her group: systematic sampling, one category at a time."""
    order = stream.permutation(group.size)
    order = order[np.argsort(group[order], kind="stable")]
    codes = np.full(group.size, weights.shape[1] - 1, np.int32)
    rest = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
    chances = np.divide(weights, rest, out=np.zeros_like(weights), where=rest > 0)
    for code in range(weights.shape[1] - 1):
        passed = np.floor(np.cumsum(chances[group[order], code]) + stream.words(1)[0] / 2.0**64)
        is_taken = np.diff(passed, prepend=0) >= 1
        codes[order[is_taken]] = code
        order = order[~is_taken]
    return codes
