"""Do two attributes go together? A chi-square test of a joint indicator against its single indicators.

If they do not, a cell g_ij is s a_i b_j: both shares among the visitors with a value, and s the share with
both values. The margins a, b come from the reports on the single indicators, which other people gave. Those
of the table itself would need its noise twice: the test then rejects far too often. With orthonormal
contrasts U of the rows and of the columns

    z = U_A' (g - s a b') U_B,   Var(z) = Var(U_A' g U_B) + s^2 [Var(U_A' a) x b b' + a a' x Var(U_B' b)]
                                          + Var(s) (a x b)(a x b)',

with b, a in contrasts, and z' Var(z)^-1 z is chi-square with (c_A - 1)(c_B - 1) degrees of freedom. All
covariances are exact at the margins, not those of independent cells: then no redraws are needed up to
12 x 37 categories. Source: Gaboardi and Rogers, ICML 2018 (tests under local privacy). The visitors are taken
as a sample of people like them: among exactly these, no two attributes are independent to the last person.
"""

from dataclasses import dataclass
from math import exp, lgamma, log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.estimators import ENDLESS, project_simplex
from ldp.estimation.joint.crosstab import Codes, Reports
from ldp.estimation.joint.linear import frequency_covariances, linear_covariance_matrix

Floats = NDArray[np.float64]
MAX_TESTED_CELLS: Final = 1000  # the covariances of more take seconds
_SMALLEST: Final = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Margin:
    """Reports on a single indicator, and how many visitors have a value.

    Parameters
    ----------
    reports : Reports; on the indicator that is a part of the joint one
    has_value : float; share of the visitors with a value, above 0; may exceed 1
    has_value_variance : float; of its estimate
    """

    reports: Reports
    has_value: float
    has_value_variance: float

    @property
    def shares(self) -> Floats:
        """Shares among those with a value, made consistent."""
        return self.reports.estimates.consistent


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """Result of a test of independence.

    statistic : chi-square
    degrees : degrees of freedom
    p_value : chance of a statistic as large or larger if both attributes are independent
    """

    statistic: float
    degrees: int
    p_value: float


def margin_of(reports: Reports, *, asked: float, has_all: bool = False) -> Margin:
    """A margin, with the share of visitors with a value from how many of those who were asked have reported.

    Parameters
    ----------
    asked : float; chance that a visitor is asked this indicator, and on this day, in (0, 1]
    has_all : all visitors are known to have a value
    """
    if has_all:
        return Margin(reports=reports, has_value=1.0, has_value_variance=0.0)
    expected = reports.n_population * asked
    has_value = reports.n_reports / expected  # not limited to 1: that would make it too small on average
    # Of visitors who are a sample themselves, as all variances of a margin are.
    variance = has_value * (1 - asked * has_value) / expected
    return Margin(reports=reports, has_value=has_value, has_value_variance=variance)


def independence_test(reports: Reports, *, layout: Codes, rows: Margin, columns: Margin) -> Association:
    """Test whether two parts of a joint indicator are independent.

    Parameters
    ----------
    reports : Reports; on the joint indicator
    layout : ndarray of int64, shape (n_rows, n_columns, n); values of each cell; not those of people without
        a value of a part
    rows, columns : Margin; of the single indicators, with n_rows and n_columns values

    Raises
    ------
    LdpError : the shapes differ, or the table has more than `MAX_TESTED_CELLS` cells
    """
    z, variance = departure(reports, layout=layout, rows=rows, columns=columns)
    statistic = float(z @ np.linalg.solve(variance, z))
    return Association(statistic=statistic, degrees=z.size, p_value=chi_square_tail(statistic, z.size))


def departure(reports: Reports, *, layout: Codes, rows: Margin, columns: Margin) -> tuple[Floats, Floats]:
    """Contrasts of a table less those of independent parts, and their covariances if they are.

    Parameters, Raises : as of `independence_test`

    Returns
    -------
    ndarrays of float64, shapes (m,), (m, m), m = (n_rows - 1)(n_columns - 1)
    """
    shape = (rows.shares.size, columns.shares.size)
    if layout.shape[:2] != shape or np.prod(shape) > MAX_TESTED_CELLS:
        raise LdpError(f"layout must have {shape} cells, at most {MAX_TESTED_CELLS}, got {layout.shape[:2]}")
    of_rows, of_columns = contrasts(shape[0]), contrasts(shape[1])
    both = rows.has_value * columns.has_value
    a, b = (of_rows @ rows.reports.estimates.frequency, of_columns @ columns.reports.estimates.frequency)
    cells = reports.estimates.frequency[layout].sum(axis=2)
    z = (of_rows @ cells @ of_columns.T - both * np.outer(a, b)).ravel()
    # At the margins made consistent, as the hypothesis has them.
    a, b = of_rows @ rows.shares, of_columns @ columns.shares
    relative = sum(each.has_value_variance / each.has_value**2 for each in (rows, columns))
    variance = (
        _table_covariance(reports, layout, rows, columns)
        + both**2 * np.kron(_margin_covariance(rows, of_rows), np.outer(b, b))
        + both**2 * np.kron(np.outer(a, a), _margin_covariance(columns, of_columns))
        + both**2 * relative * np.outer(np.kron(a, b), np.kron(a, b))
    )
    return z, variance


def contrasts(n: int) -> Floats:
    """Orthonormal contrasts: orthogonal rows of length 1 with the sum 0; shape (n - 1, n)."""
    found = np.tril(np.ones((n, n)), -1)[1:] * -1.0
    place = np.arange(1, n)
    found[place - 1, place] = place
    return np.asarray(found / np.sqrt(place * (place + 1))[:, np.newaxis], np.float64)


def chi_square_tail(statistic: float, degrees: int) -> float:
    """Chance that a chi-square variable is larger; series or continued fraction of the incomplete gamma."""
    a, x = degrees / 2, statistic / 2
    if x <= 0:
        return 1.0
    front = exp(a * log(x) - x - lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while term > total * 1e-16:
            n += 1
            term *= x / n
            total += term
        return max(1 - front * total, 0.0)
    b = x + 1 - a
    c, d = 1 / _SMALLEST, 1 / b
    fraction, change, i = d, 0.0, 0
    while abs(change - 1) > 1e-15:
        i += 1
        factor = -i * (i - a)
        b += 2
        d = 1 / (factor * d + b or _SMALLEST)
        c = b + factor / c or _SMALLEST
        change = c * d
        fraction *= change
    return front * fraction


def _table_covariance(reports: Reports, layout: Codes, rows: Margin, columns: Margin) -> Floats:
    """Covariances of the contrasts of the cells, at the frequencies of the hypothesis."""
    n_rows, n_columns, n = layout.shape
    cells = rows.has_value * columns.has_value * np.outer(rows.shares, columns.shares)
    f = np.zeros(reports.channel.domain_size)
    # Of the values of a cell, and of people without a value, only the sums matter much.
    f[layout] = np.repeat(cells[:, :, np.newaxis] / n, n, axis=2)
    left = np.setdiff1d(np.arange(f.size), layout)
    f[left] = max(1 - f.sum(), 0.0) / max(left.size, 1)
    f = project_simplex(f)
    asked: Any = {"channel": reports.channel, "n_reports": reports.n_reports, "n_population": ENDLESS}
    of_rows, of_columns = contrasts(n_rows), contrasts(n_columns)
    if n > 1:  # of many values, too many to keep the covariances of each two
        pairs = np.kron(of_rows, of_columns)
        weights = np.zeros((len(pairs), f.size))
        weights[:, layout.reshape(-1, n)] = pairs[:, :, np.newaxis]
        return linear_covariance_matrix(f, weights=weights, **asked)
    of_cells = frequency_covariances(f, **asked)[np.ix_(layout.ravel(), layout.ravel())]
    # The contrasts of one axis after the other: those of all cells at once are a far larger product.
    return _contrasted(_contrasted(of_cells, of_rows, of_columns).T, of_rows, of_columns)


def _contrasted(of_cells: Floats, of_rows: Floats, of_columns: Floats) -> Floats:
    """Contrasts of the cells, which are in the first axis."""
    table = of_cells.reshape(of_rows.shape[1], of_columns.shape[1], -1)
    by_row = np.tensordot(of_rows, table, axes=1)
    return np.asarray(of_columns @ by_row, np.float64).reshape(-1, table.shape[2])


def _margin_covariance(margin: Margin, of_values: Floats) -> Floats:
    reports = margin.reports
    sizes = {"n_reports": reports.n_reports, "n_population": ENDLESS}
    of_shares = frequency_covariances(margin.shares, channel=reports.channel, **sizes)
    return np.asarray(of_values @ of_shares @ of_values.T, np.float64)
