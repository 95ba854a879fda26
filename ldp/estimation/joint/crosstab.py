"""Tables of two attributes from the reports on their combinations: shares of all, of a row or of a column.

A cell, a row and a column are sets of values, so all are linear questions about the same reports. A share of
a row is the ratio of two such answers, of which one contains the other. Its interval holds all ratios r for
which `part - r whole` is within z standard deviations of 0 (Fieller), with the exact covariance of both.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ldp.estimation.estimators import Estimates, pure_frequencies, pure_variance
from ldp.estimation.joint.linear import (
    LinearChannel,
    LinearEstimate,
    linear_answer,
    linear_covariances,
    linear_variance,
)

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Base = Literal["all", "row", "column"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reports:
    """Answers on combinations in one window.

    Parameters
    ----------
    estimates : Estimates; of all values, by `pure_frequencies`
    channel : LinearChannel; as used for the reports
    n_reports, n_population : int; reports, at least 1, and visitors, at least as many
    level : float; of every interval, in (0, 1)
    """

    estimates: Estimates
    channel: LinearChannel
    n_reports: int
    n_population: int
    level: float = 0.95

    @classmethod
    def of_counts(
        cls, counts: Codes, *, channel: LinearChannel, n_reports: int, n_population: int, level: float = 0.95
    ) -> "Reports":
        """Return the answers behind counts of reports that support each value, shape (domain_size,)."""
        sizes = {"n_reports": n_reports, "n_population": n_population}
        estimates = pure_frequencies(counts, channel=channel, level=level, **sizes)
        return cls(estimates=estimates, channel=channel, level=level, **sizes)

    @property
    def sizes(self) -> dict[str, int]:
        return {"n_reports": self.n_reports, "n_population": self.n_population}

    def weights(self, codes: Codes) -> Floats:
        """Weights of a set of values."""
        weights = np.zeros(self.channel.domain_size)
        weights[codes] = 1
        return weights

    def answer(self, codes: Codes) -> LinearEstimate:
        """Share of the visitors who have one of these values."""
        return linear_answer(
            self.estimates,
            weights=self.weights(codes),
            channel=self.channel,
            level=self.level,
            **self.sizes,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """Shares with their errors, all of one shape.

    Parameters
    ----------
    value : ndarray of float64; may leave [0, 1]; nan where the whole may be none
    std_error : same shape; nan there
    ci_low, ci_high : same shape; they hold `value`; 0 and 1 where nothing is known
    """

    value: Floats
    std_error: Floats
    ci_low: Floats
    ci_high: Floats

    def __getitem__(self, place: int) -> "Shares":
        return Shares(
            value=self.value[place],
            std_error=self.std_error[place],
            ci_low=self.ci_low[place],
            ci_high=self.ci_high[place],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CrossTable:
    """Cells of a table and its margins.

    Parameters
    ----------
    cells : Shares, shape (n_rows, n_columns); of all visitors, of those in the row, or in the column
    rows, columns : Shares, shapes (n_rows,), (n_columns,); where cells are shares of all, of all visitors;
        else of those in the table
    whole : Shares, shape (1,); of the visitors in the table among all
    """

    cells: Shares
    rows: Shares
    columns: Shares
    whole: Shares


def cross_table(reports: Reports, *, layout: Codes, base: Base) -> CrossTable:
    """Estimate a table.

    Parameters
    ----------
    layout : ndarray of int64, shape (n_rows, n_columns, n); the values that each cell adds up, each once
    base : what a cell is a share of: "all" visitors, those in its "row", or in its "column"
    """
    if base == "column":
        turned = cross_table(reports, layout=layout.swapaxes(0, 1), base="row")
        cells = _stacked([turned.cells[column] for column in range(layout.shape[1])], axis=1)
        return CrossTable(cells=cells, rows=turned.columns, columns=turned.rows, whole=turned.whole)
    n_rows, n_columns, n = layout.shape
    whole = _answers(reports, [layout.ravel()])
    if base == "row":
        cells = _stacked([shares_of(reports, parts=row) for row in layout])
    elif n == 1:
        cells = _of_values(reports.estimates, layout[:, :, 0])
    else:
        cells = _stacked([_answers(reports, row) for row in layout])
    row_codes, column_codes = layout.reshape(n_rows, -1), layout.swapaxes(0, 1).reshape(n_columns, -1)
    # Where the table has everyone, both are the same.
    if base == "all" or layout.size == reports.channel.domain_size:
        rows, columns = _answers(reports, row_codes), _answers(reports, column_codes)
    else:
        rows, columns = shares_of(reports, parts=row_codes), shares_of(reports, parts=column_codes)
    return CrossTable(cells=cells, rows=rows, columns=columns, whole=whole)


def shares_of(reports: Reports, *, parts: Codes) -> Shares:
    """Share of each part among all of them together.

    Parameters
    ----------
    parts : ndarray of int64, shape (n_parts, n); the values of each part, all different
    """
    f, weights = reports.estimates.consistent, reports.weights(parts.ravel())
    together = linear_covariances(f, weights=weights, channel=reports.channel, **reports.sizes)
    frequency = reports.estimates.frequency
    return _ratios(
        frequency[parts].sum(axis=1),
        float(weights @ frequency),
        of_part=_variances(reports, parts),
        of_whole=float(weights @ together),
        of_both=together[parts].sum(axis=1),
        z=NormalDist().inv_cdf((1 + reports.level) / 2),
    )


def _ratios(
    part: Floats, whole: float, *, of_part: Floats, of_whole: float, of_both: Floats, z: float
) -> Shares:
    """part / whole, given both variances and the covariance; the roots of a quadratic in the ratio."""
    a = whole**2 - z**2 * of_whole
    if whole <= 0 or a <= 0:  # the whole may be none
        nothing = np.full(part.shape, np.nan)
        low, high = np.zeros(part.shape), np.ones(part.shape)
        return Shares(value=nothing, std_error=nothing, ci_low=low, ci_high=high)
    ratio = part / whole
    variance = np.maximum(of_part - 2 * ratio * of_both + ratio**2 * of_whole, 0)
    centre = (part * whole - z**2 * of_both) / a
    half = np.sqrt(np.maximum(centre**2 - (part**2 - z**2 * of_part) / a, 0))
    return Shares(
        value=ratio,
        std_error=np.sqrt(variance) / whole,
        ci_low=np.minimum(centre - half, ratio),
        ci_high=np.maximum(centre + half, ratio),
    )


def _variances(reports: Reports, parts: Codes) -> Floats:
    """Variance of the frequency of each part, at the estimated frequencies."""
    f, channel = reports.estimates.consistent, reports.channel
    if parts.shape[1] == 1:
        return pure_variance(f[parts[:, 0]], channel=channel, **reports.sizes)
    return np.array(
        [
            linear_variance(f, weights=reports.weights(part), channel=channel, **reports.sizes)
            for part in parts
        ]
    )


def _answers(reports: Reports, sets: Iterable[Codes]) -> Shares:
    found = [reports.answer(codes) for codes in sets]
    columns = zip(*((each.value, each.std_error, each.ci_low, each.ci_high) for each in found), strict=True)
    return Shares(**dict(zip(Shares.__slots__, map(np.array, columns), strict=True)))


def _of_values(estimates: Estimates, codes: Codes) -> Shares:
    return Shares(
        value=estimates.frequency[codes],
        std_error=estimates.std_error[codes],
        ci_low=estimates.ci_low[codes],
        ci_high=estimates.ci_high[codes],
    )


def _stacked(shares: list[Shares], *, axis: int = 0) -> Shares:
    names = Shares.__slots__
    return Shares(**{name: np.stack([getattr(each, name) for each in shares], axis=axis) for name in names})
