"""A table of three attributes from tables of their pairs: a model, since no one reports on all three.

Of all tables with the margins of the pairs, the one of maximum entropy has no further structure: what two
attributes do together does not depend on the third, beyond what its own pairs say. It is found by
iterative proportional fitting. If all three do something that no pair does, it is wrong, by an amount that
no report can tell.

Errors are those of the noise and of the sample alone, by a parametric bootstrap: reports are drawn from the
fitted table, and fitted again. From that table they are drawn once more, and the larger error counts: where
noise made a cell empty, the fitted table alone would give it too small an error.

Source: Qardaji, Yang, Li, SIGMOD 2014; Deming and Stephan 1940.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.estimators import project_simplex
from ldp.estimation.joint.crosstab import Reports, Shares
from ldp.estimation.joint.linear import CodeChannel, code_chances
from ldp.kernels.streams import KeyedStream
from ldp.protocols.projective_space import DesignChannel, sums_of_values

Floats = NDArray[np.float64]
MAX_CELLS: Final = 50_000  # fitted 200 times
REDRAWS: Final = 200
_ROUNDS: Final = 200
_CLOSE: Final = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pair:
    """Reports on two of the three attributes, with the places of both in the order of the reports."""

    axes: tuple[int, int]
    reports: Reports


def three_way(
    pairs: Sequence[Pair], *, sizes: Sequence[int], stream: KeyedStream, redraws: int = REDRAWS
) -> Shares:
    """Share of each combination of three attributes, by maximum entropy.

    Parameters
    ----------
    pairs : two or three, each of other attributes, which hold all three; reports are codes
    sizes : number of values of each attribute, with at most MAX_CELLS combinations
    stream : of the redraws

    Returns
    -------
    Shares, shape `sizes`; at least 0, with the sum 1. Intervals are approximate, within [0, 1]

    Raises
    ------
    LdpError : a parameter does not fit
    """
    held = {axis for pair in pairs for axis in pair.axes}
    if len({frozenset(pair.axes) for pair in pairs}) != len(pairs) or held != {0, 1, 2} or len(sizes) != 3:
        raise LdpError(f"pairs must differ and hold three attributes, got {[pair.axes for pair in pairs]}")
    if prod(sizes) > MAX_CELLS:
        raise LdpError(f"combinations must be at most {MAX_CELLS}, got {prod(sizes)}")
    (fitted,) = _fit(pairs, [[pair.reports.estimates.frequency for pair in pairs]], sizes)
    squares = np.zeros_like(fitted)
    most = max(MAX_CELLS // fitted.size, 1)  # at once: tables should stay in the cache of the processor
    for first in range(0, redraws, most):
        runs = range(first, min(first + most, redraws))
        drawn = [[_redrawn(pair, fitted, stream) for pair in pairs] for _ in runs]
        squares += ((_fit(pairs, drawn, sizes) - fitted) ** 2).sum(axis=0)
    std_error = np.sqrt(squares / redraws)
    low, high = _interval(fitted, std_error**2, level=pairs[0].reports.level)
    return Shares(value=fitted, std_error=std_error, ci_low=low, ci_high=high)


def _interval(value: Floats, variance: Floats, *, level: float) -> tuple[Floats, Floats]:
    """Normal below; above, up to the share whose own variance explains the fitted one.

    Where a fitted share came out too small, so did its variance: how much the variance grows with the share
    is a line through all cells.
    """
    slope = max(float(np.polyfit(value.ravel(), variance.ravel(), 1)[0]), 0.0)
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    above = (z2 * slope + np.sqrt((z2 * slope) ** 2 + 4 * z2 * variance)) / 2
    return np.maximum(value - np.sqrt(z2 * variance), 0.0), np.minimum(value + above, 1.0)


def _fit(pairs: Sequence[Pair], drawn: Sequence[Sequence[Floats]], sizes: Sequence[int]) -> Floats:
    """Tables of maximum entropy with the nearest possible tables of the pairs; one for each of `drawn`.

    All are fitted at once: one after the other, calls of NumPy on few cells would take most of the time.
    """
    shapes = [[sizes[axis] for axis in pair.axes] for pair in pairs]
    tables = [
        np.array([project_simplex(each) for each in of_pair]).reshape(-1, *shape)
        for shape, of_pair in zip(shapes, zip(*drawn, strict=True), strict=True)
    ]
    tables = [
        _raked(table, [_margin(axis, pairs, tables) for axis in pair.axes])
        for pair, table in zip(pairs, tables, strict=True)
    ]
    tables = [_turned(table, pair) for pair, table in zip(pairs, tables, strict=True)]
    whole = np.full((len(drawn), *sizes), 1 / prod(sizes))
    for _ in range(_ROUNDS):
        farthest = 0.0
        for pair, table in zip(pairs, tables, strict=True):
            (left,) = {0, 1, 2} - set(pair.axes)
            now = whole.sum(axis=1 + left)
            farthest = max(farthest, float(np.abs(now - table).max()))
            whole *= np.expand_dims(_over(table, now), 1 + left)
        if farthest < _CLOSE:
            break
    return np.asarray(whole / whole.sum(axis=(1, 2, 3), keepdims=True), np.float64)


def _turned(table: Floats, pair: Pair) -> Floats:
    """Turn the table of a pair from the order of its reports to rising places, or back."""
    return table if pair.axes[0] < pair.axes[1] else table.swapaxes(-1, -2)


def _margin(axis: int, pairs: Sequence[Pair], tables: Sequence[Floats]) -> Floats:
    """Margin of an attribute: the mean of those of its tables, by their reports."""
    own = [
        (pair.reports.n_reports, table.sum(axis=2 - pair.axes.index(axis)))
        for pair, table in zip(pairs, tables, strict=True)
        if axis in pair.axes
    ]
    total = sum(n for n, _ in own)
    return np.asarray(sum(n / total * margin for n, margin in own), np.float64)


def _raked(table: Floats, margins: Sequence[Floats]) -> Floats:
    """Return the tables with both margins; a row without anyone gets people like all others."""
    rows, columns = margins
    table = table + rows[:, :, np.newaxis] * columns[:, np.newaxis] * _CLOSE
    for _ in range(_ROUNDS):
        before = table
        table = table * _over(rows, table.sum(axis=2))[:, :, np.newaxis]
        table = table * _over(columns, table.sum(axis=1))[:, np.newaxis]
        if np.abs(table - before).max() < _CLOSE:
            break
    return table


def _over(wanted: Floats, now: Floats) -> Floats:
    return np.divide(wanted, now, out=np.zeros_like(now), where=now > 0)


def _redrawn(pair: Pair, fitted: Floats, stream: KeyedStream) -> Floats:
    """Frequencies from as many reports, drawn from the table; normal, with the covariance of counts."""
    (left,) = {0, 1, 2} - set(pair.axes)
    channel, n = pair.reports.channel, pair.reports.n_reports
    if not isinstance(channel, CodeChannel):
        raise LdpError(f"reports must be codes, got {type(channel).__name__}")
    chances = code_chances(_turned(fitted.sum(axis=left), pair).ravel(), channel=channel)
    noise = np.sqrt(chances / n) * _normal(stream, chances.size)
    shares = chances + noise - noise.sum() * chances
    p, q = float(channel.p), float(channel.q)
    support = sums_of_values(shares, channel=channel) if isinstance(channel, DesignChannel) else shares
    return np.asarray((support - q) / (p - q), np.float64)


def _normal(stream: KeyedStream, n: int) -> Floats:
    """Standard normal numbers (Box and Muller)."""
    first, second = ((stream.words(n) >> np.uint64(11)).astype(np.float64) for _ in range(2))
    radius = np.sqrt(-2 * np.log((first + 1) / 2**53))
    return np.asarray(radius * np.cos(2 * np.pi * second / 2**53), np.float64)
