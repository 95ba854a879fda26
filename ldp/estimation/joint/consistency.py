"""Tables and margins from all views together: joint indicators, and the single ones, which others answered.

A table is a sum of residuals: of its total, which is 1, of each attribute, of each pair. The residual of some
attributes in a view is its margin over them, less all that fewer attributes explain. Views that hold the
set each estimate it, with a variance proportional to that of a cell times the cells that are added up. Their
mean by inverse variances is the best linear unbiased estimate: equal to generalised least squares where all
cells of a view have the same variance, and no covariance but that of their sum. Source: ReM, NeurIPS 2024.

The weights on the views are what is computed, so the variance is that of the exact linear questions. Each
visitor is asked one question only: drawing without replacement takes f (1 - f) / (N - 1) off.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from statistics import NormalDist
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ldp.estimation.estimators import ENDLESS, pure_variance
from ldp.estimation.joint.association import Margin
from ldp.estimation.joint.crosstab import CrossTable, Reports, Shares
from ldp.estimation.joint.linear import linear_variances

Floats = NDArray[np.float64]
_MAX_ROUNDS: Final = 2000
_CLOSE: Final = 1e-9  # of a share
Axes = tuple[int, ...]


class Source(Protocol):
    """Answers on some attributes.

    values : shares of all combinations, in the order of the axes
    cell_variance : of each of them, about
    """

    @property
    def values(self) -> Floats: ...
    @property
    def cell_variance(self) -> float: ...
    def variances(self, weights: Floats) -> Floats:
        """Variance of sums of the values with these weights, shape (n, n_values)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Combinations:
    """Source of a joint indicator."""

    reports: Reports

    @property
    def values(self) -> Floats:
        return self.reports.estimates.frequency

    @property
    def cell_variance(self) -> float:
        return _cell_variance(self.reports)

    def variances(self, weights: Floats) -> Floats:
        return _variances(self.reports, weights)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Single:
    """Source of a single indicator; its last value stands for people without one."""

    margin: Margin

    @property
    def values(self) -> Floats:
        has = self.margin.has_value
        return np.append(has * self.margin.reports.estimates.frequency, 1 - has)

    @property
    def cell_variance(self) -> float:
        return self.margin.has_value**2 * _cell_variance(self.margin.reports)

    def variances(self, weights: Floats) -> Floats:
        margin, of_values = self.margin, weights[:, :-1]
        apart = of_values @ margin.shares - weights[:, -1]
        noise = margin.has_value**2 * _variances(margin.reports, of_values)
        return noise + apart**2 * margin.has_value_variance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """A source and the attributes that it is about, as places in the list of sizes, in any order."""

    axes: Axes
    source: Source


def combined_table(
    views: Sequence[View], *, axes: tuple[int, int], sizes: Sequence[int], n_population: int, level: float
) -> CrossTable:
    """Table of two attributes and its margins, with normal intervals.

    Parameters
    ----------
    views : at least one holds both attributes
    axes : rows and columns
    sizes : number of values of each attribute
    n_population : int; visitors
    """
    rows, columns = axes
    shape = sizes[rows], sizes[columns]
    cells = np.eye(prod(shape)).reshape(-1, *shape)
    found = _combined(views, axes, sizes, cells, n_population=n_population, level=level)
    cells_found = Shares(**{name: getattr(found, name).reshape(shape) for name in Shares.__slots__})
    margins = [
        _combined(views, (axis,), sizes, np.eye(sizes[axis]), n_population=n_population, level=level)
        for axis in axes
    ]
    known = np.ones(1)
    whole = Shares(value=known, std_error=np.zeros(1), ci_low=known, ci_high=known)
    return CrossTable(cells=cells_found, rows=margins[0], columns=margins[1], whole=whole)


def nearest_table(cells: Floats, *, rows: Floats, columns: Floats) -> Floats:
    """Nearest table (Euclidean) without negative cells that has given margins.

    Parameters
    ----------
    cells : ndarray of float64, shape (n_rows, n_columns)
    rows, columns : ndarray of float64, shapes (n_rows,), (n_columns,); at least 0, with the same sum

    Notes
    -----
    Alternating projections (Dykstra); the margins are exact, cells up to 1e-9 below 0 become 0.
    """
    n_rows, n_columns = cells.shape
    table, lifted = cells, np.zeros(cells.shape)
    for _ in range(_MAX_ROUNDS):
        missing_rows, missing_columns = rows - table.sum(axis=1), columns - table.sum(axis=0)
        table = table + missing_rows[:, np.newaxis] / n_columns + missing_columns / n_rows
        table = table - missing_rows.sum() / (n_rows * n_columns)
        if table.min() > -_CLOSE:
            break
        raised = np.maximum(table - lifted, 0)
        lifted = raised - (table - lifted)
        table = raised
    return np.asarray(np.maximum(table, 0), np.float64)


def view_weights(views: Sequence[View], *, axes: Axes, sizes: Sequence[int], weights: Floats) -> list[Floats]:
    """Weights on the values of each view that estimate sums over a table, less those of equal shares.

    Parameters
    ----------
    weights : ndarray of float64, shape (n, size of each axis)

    Returns
    -------
    list of ndarray of float64, shapes (n, number of values of the view)
    """
    found = [np.zeros((len(weights), *(sizes[axis] for axis in view.axes))) for view in views]
    for subset in _subsets(axes):
        precisions = [_precision(view, subset, sizes) for view in views]
        if not any(precisions):
            continue
        residual = _centred(weights, axes=axes, subset=subset)
        residual = residual.reshape(-1, *(sizes[axis] for axis in subset))
        for place, (view, precision) in enumerate(zip(views, precisions, strict=True)):
            if precision:
                order = [subset.index(axis) + 1 for axis in view.axes if axis in subset]
                shape = [sizes[axis] if axis in subset else 1 for axis in view.axes]
                turned = residual.transpose(0, *order).reshape(-1, *shape)
                found[place] += precision / sum(precisions) * turned
    return [each.reshape(len(weights), -1) for each in found]


def _combined(
    views: Sequence[View],
    axes: Axes,
    sizes: Sequence[int],
    weights: Floats,
    *,
    n_population: int,
    level: float,
) -> Shares:
    on_views = view_weights(views, axes=axes, sizes=sizes, weights=weights)
    value = weights.reshape(len(weights), -1).mean(axis=1)
    variance = np.zeros(len(weights))
    for view, each in zip(views, on_views, strict=True):
        value = value + each @ view.source.values
        variance += view.source.variances(each)
    share = np.clip(value, 0, 1)
    std_error = np.sqrt(np.maximum(variance - share * (1 - share) / max(n_population - 1, 1), 0))
    half = NormalDist().inv_cdf((1 + level) / 2) * std_error
    return Shares(value=value, std_error=std_error, ci_low=value - half, ci_high=value + half)


def _subsets(axes: Axes) -> Iterator[Axes]:
    for size in range(1, len(axes) + 1):
        yield from combinations(axes, size)


def _precision(view: View, subset: Axes, sizes: Sequence[int]) -> float:
    """Inverse variance of the residuals of some attributes in a view; 0 if it does not hold them."""
    if not set(subset) <= set(view.axes):
        return 0.0
    return 1 / (view.source.cell_variance * prod(sizes[axis] for axis in view.axes if axis not in subset))


def _centred(weights: Floats, *, axes: Axes, subset: Axes) -> Floats:
    """Means over the other attributes, less what fewer attributes explain."""
    left = tuple(place for place, axis in enumerate(axes, start=1) if axis not in subset)
    found = weights.mean(axis=left, keepdims=True)
    for place, axis in enumerate(axes, start=1):
        if axis in subset:
            found = found - found.mean(axis=place, keepdims=True)
    return np.asarray(found, np.float64)


def _cell_variance(reports: Reports) -> float:
    equal = 1 / reports.channel.domain_size
    return float(
        pure_variance(equal, n_reports=reports.n_reports, n_population=ENDLESS, channel=reports.channel)
    )


def _variances(reports: Reports, weights: Floats) -> Floats:
    return linear_variances(
        reports.estimates.consistent,
        weights=weights,
        channel=reports.channel,
        n_reports=reports.n_reports,
        n_population=ENDLESS,
    )
