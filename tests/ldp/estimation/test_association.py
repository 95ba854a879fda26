"""The test of association: its tail, contrasts, and covariances of several answers."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import linalg, stats

import ldp
from ldp.errors import LdpError
from ldp.estimation.joint.association import (
    Margin,
    chi_square_tail,
    contrasts,
    departure,
    independence_test,
    margin_of,
)
from ldp.estimation.joint.crosstab import Reports
from ldp.estimation.joint.linear import linear_covariance_matrix, linear_variance
from tests.ldp.estimation.test_crosstab import CHANNELS, LAYOUT, SIZES, K, measured, shares


@pytest.mark.parametrize("degrees", [1, 4, 35, 396, 1000])
def test_the_tail_is_that_of_chi_square(degrees: int) -> None:
    for factor in (0.0, 0.2, 0.9, 1.0, 1.1, 1.5, 4.0):
        expected = stats.chi2.sf(factor * degrees, degrees)
        assert chi_square_tail(factor * degrees, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_contrasts_are_orthonormal_and_see_no_constant() -> None:
    found = contrasts(5)
    assert found @ found.T == pytest.approx(np.eye(4))
    assert found.sum(axis=1) == pytest.approx(np.zeros(4))


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
def test_covariances_of_answers_are_those_of_their_sums(channel) -> None:
    f, weights = shares(), np.random.default_rng(4).normal(size=(3, K))
    found = linear_covariance_matrix(f, weights=weights, channel=channel, **SIZES)
    for u in ([1, 0, 0], [1, 1, 0], [0, -1, 2]):
        sum_of = np.array(u) @ weights
        expected = linear_variance(f, weights=sum_of, channel=channel, **SIZES)
        assert np.array(u) @ found @ u == pytest.approx(expected, rel=1e-9)


def test_the_covariance_is_that_of_all_estimates_it_is_made_of() -> None:
    reports = measured(CHANNELS["PGR"], n=5000, population=9000)
    sizes = {"n_reports": 4000, "n_population": 20_000}
    margins = []
    for size, has_value in ((3, 0.9), (4, 0.7)):
        channel = ldp.grr_channel(epsilon=Fraction(1), domain_size=size)
        counts = np.linspace(1800, 200, size).astype(np.int64)
        estimates = ldp.pure_frequencies(counts, channel=channel, **sizes)
        single = Reports(estimates=estimates, channel=channel, **sizes)
        margins.append(Margin(reports=single, has_value=has_value, has_value_variance=1e-4))
    rows, columns = margins
    z, variance = departure(reports, layout=LAYOUT, rows=rows, columns=columns)
    both = rows.has_value * columns.has_value
    ends = np.cumsum([12, 3, 4, 1, 1])

    def at(x):
        cells, a, b, row, column = np.split(x, ends)[:-1]
        apart = cells.reshape(3, 4) - row * column * np.outer(a, b)
        return (contrasts(3) @ apart @ contrasts(4).T).ravel()

    singles = [each.reports for each in margins]
    known = [[rows.has_value], [columns.has_value]]
    seen = [each.estimates.frequency for each in (reports, *singles)]
    assert z == pytest.approx(at(np.concatenate([*seen, *known])))
    cells = both * np.outer(rows.shares, columns.shares).ravel()
    expected = np.concatenate([cells, rows.shares, columns.shares, *known])
    step = np.eye(21) * 1e-6
    slope = np.array([(at(expected + each) - at(expected - each)) / 2e-6 for each in step])
    f = ldp.project_simplex(cells)
    blocks = [
        linear_covariance_matrix(
            shares,
            weights=np.eye(shares.size),
            channel=each.channel,
            n_reports=each.n_reports,
            n_population=2**60,
        )
        for shares, each in zip((f, rows.shares, columns.shares), (reports, *singles), strict=True)
    ]
    together = linalg.block_diag(*blocks, 1e-4, 1e-4)
    assert variance == pytest.approx(slope.T @ together @ slope, rel=1e-6)


def test_a_table_of_another_shape_is_refused() -> None:
    reports = measured(CHANNELS["GRR"])
    margin = margin_of(reports, asked=0.5)
    with pytest.raises(LdpError, match="layout must have"):
        independence_test(reports, layout=np.arange(K).reshape(3, 4, 1), rows=margin, columns=margin)
