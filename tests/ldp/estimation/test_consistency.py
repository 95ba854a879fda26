"""Tables from several views: generalised least squares, exact variances, never worse than the table alone."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

import ldp
from ldp.estimation.joint.association import margin_of
from ldp.estimation.joint.consistency import (
    Combinations,
    Single,
    View,
    combined_table,
    nearest_table,
    view_weights,
)
from ldp.estimation.joint.crosstab import Reports
from ldp.estimation.joint.linear import linear_covariance_matrix, linear_variances
from ldp.keyed.choices import choose_indicator
from ldp.privacy.joint import joint_codes
from ldp.protocols.projective_space import value_counts
from tests.ldp.estimation.test_crosstab import CHANNELS, SIZES, K, shares

ALL = (0, 1, 2)


@dataclass
class Known:
    values: np.ndarray
    cell_variance: float

    def variances(self, weights):
        return self.cell_variance * (weights**2).sum(axis=1)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (0, 2), (1, 2), ALL])
def test_tables_are_those_of_generalised_least_squares(axes) -> None:
    """On 2 x 3 x 4, with views of one, two and three attributes."""
    sizes, rng = (2, 3, 4), np.random.default_rng(8)
    of_views = [(0,), (1,), (2,), (0, 1), (1, 2), ALL]
    views = [
        View(axes=each, source=Known(rng.normal(size=np.prod([sizes[a] for a in each])), rng.uniform(0.5, 2)))
        for each in of_views
    ]

    def margin(kept):
        parts = [np.eye(sizes[a]) if a in kept else np.ones((1, sizes[a])) for a in ALL]
        return np.kron(np.kron(parts[0], parts[1]), parts[2])

    # Cells are 1 / 24 and a combination of those whose sum is 0.
    free = np.linalg.qr(np.column_stack([np.ones(24), np.eye(24)[:, 1:]]))[0][:, 1:]
    rows = np.vstack([margin(v.axes) @ free / v.source.cell_variance**0.5 for v in views])
    equal = np.full(24, 1 / 24)
    apart = [(v.source.values - margin(v.axes) @ equal) / v.source.cell_variance**0.5 for v in views]
    cells = 1 / 24 + free @ np.linalg.lstsq(rows, np.concatenate(apart), rcond=None)[0]
    n = int(np.prod([sizes[a] for a in axes]))
    weights = np.eye(n).reshape(n, *(sizes[a] for a in axes))
    on_views = view_weights(views, axes=axes, sizes=sizes, weights=weights)
    found = 1 / n + sum(each @ view.source.values for each, view in zip(on_views, views, strict=True))
    assert found == pytest.approx(margin(axes) @ cells, abs=1e-13)


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
def test_variances_are_the_diagonal_of_the_covariances(channel) -> None:
    weights = np.random.default_rng(4).normal(size=(3, K))
    found = linear_variances(shares(), weights=weights, channel=channel, **SIZES)
    matrix = linear_covariance_matrix(shares(), weights=weights, channel=channel, **SIZES)
    assert found == pytest.approx(np.diag(matrix), rel=1e-12)


def test_errors_are_as_stated_and_smaller_than_those_of_the_table() -> None:
    rng, n, sizes, runs = np.random.default_rng(3), 9000, (3, 4), 300
    rows = rng.choice(3, n, p=[0.6, 0.3, 0.1]).astype(np.int32)
    columns = ((rows + rng.integers(0, 3, n)) % 4).astype(np.int32)
    rows[rng.random(n) < 0.2] = -1
    both = joint_codes([rows, columns], sizes=sizes)
    truth = np.bincount(both, minlength=20).reshape(4, 5) / n
    pseudonyms = np.arange(1, n + 1, dtype=np.uint64)
    channels = [ldp.grr_channel(epsilon=Fraction(2), domain_size=size) for size in sizes]
    channels.append(ldp.projective_channel(epsilon=Fraction(2), domain_size=20))
    found, errors, raw = [], [], []
    for key in range(runs):
        prf = ldp.KeyedPrf(key.to_bytes(16))
        asked = choose_indicator(pseudonyms, prf=prf, d=3)
        of_indicator = []
        for index, (values, channel) in enumerate(zip((rows, columns, both), channels, strict=True)):
            here = (asked == index) & (values >= 0)
            fields = {"prf": prf, "channel": channel, "indicator": index, "plan_version": 1}
            reports = ldp.oracle_answers(values[here], pseudonyms=pseudonyms[here], **fields)
            codes = np.bincount(reports, minlength=getattr(channel, "n_codes", channel.domain_size))
            known = {"n_reports": int(here.sum()), "n_population": n}
            estimates = ldp.pure_frequencies(value_counts(codes, channel=channel), channel=channel, **known)
            of_indicator.append(Reports(estimates=estimates, channel=channel, **known))
        views = [
            View(axes=(0,), source=Single(margin=margin_of(of_indicator[0], asked=1 / 3))),
            View(axes=(1,), source=Single(margin=margin_of(of_indicator[1], asked=1 / 3))),
            View(axes=(0, 1), source=Combinations(reports=of_indicator[2])),
        ]
        table = combined_table(views, axes=(0, 1), sizes=(4, 5), n_population=n, level=0.95)
        found.append(np.concatenate([table.cells.value.ravel(), table.rows.value, table.columns.value]))
        errors.append(
            np.concatenate([table.cells.std_error.ravel(), table.rows.std_error, table.columns.std_error])
        )
        raw.append(of_indicator[2].estimates.frequency)
    expected = np.concatenate([truth.ravel(), truth.sum(axis=1), truth.sum(axis=0)])
    spread = np.std(found, axis=0)
    assert np.abs(np.mean(found, axis=0) - expected).max() < 5.5 * (spread / runs**0.5).max()
    # A standard deviation of 300 runs is known to 4%.
    assert np.sqrt(np.mean(np.square(errors), axis=0)) / spread == pytest.approx(np.ones(29), abs=0.12)
    assert np.mean(np.sqrt(np.mean(np.square(errors), axis=0)) / spread) == pytest.approx(1, abs=0.03)
    assert (spread[:20] < 1.01 * np.std(raw, axis=0)).all()
    assert spread[20] < 0.7 * np.std(np.reshape(raw, (runs, 4, 5)).sum(axis=2), axis=0)[0]
    turned = combined_table(views, axes=(1, 0), sizes=(4, 5), n_population=n, level=0.95)
    assert pytest.approx(table.cells.ci_high) == turned.cells.ci_high.T


def test_errors_hold_where_many_have_no_value_and_answers_are_nearly_exact() -> None:
    rng, n, runs = np.random.default_rng(8), 4000, 1000
    rows = np.where(np.arange(n) < n // 2, rng.integers(0, 2, n), 2)
    both = 3 * rows + rng.integers(0, 3, n)
    channels = [ldp.grr_channel(epsilon=Fraction(20), domain_size=size) for size in (2, 9)]

    def reports(codes: np.ndarray, channel: ldp.GrrChannel) -> Reports:
        counts, known = np.bincount(codes, minlength=channel.domain_size), {"n_reports": len(codes)}
        known |= {"n_population": n, "channel": channel}
        return Reports(estimates=ldp.pure_frequencies(counts, **known), **known)

    found, errors = [], []
    for _ in range(runs):
        asked = rng.random(n) < 0.5
        margin = margin_of(reports(rows[asked & (rows < 2)], channels[0]), asked=0.5)
        views = [
            View(axes=(0,), source=Single(margin=margin)),
            View(axes=(0, 1), source=Combinations(reports=reports(both[~asked], channels[1]))),
        ]
        table = combined_table(views, axes=(0, 1), sizes=(3, 3), n_population=n, level=0.95)
        found.append(table.rows.value)
        errors.append(table.rows.std_error)
    # Within four standard errors of a spread, and not half of it.
    assert np.mean(errors, axis=0) / np.std(found, axis=0) == pytest.approx(np.ones(3), abs=0.09)


def test_the_nearest_table_has_its_margins_and_no_negative_cell() -> None:
    rng = np.random.default_rng(6)
    cells = rng.normal(1 / 20, 0.1, (4, 5))
    rows, columns = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.4, 0.3, 0.2, 0.1, 0.0])
    found = nearest_table(cells, rows=rows, columns=columns)
    assert found.min() == 0 and max(found[3].max(), found[:, 4].max()) < 1e-8
    assert found.sum(axis=1) == pytest.approx(rows, abs=1e-8)
    assert found.sum(axis=0) == pytest.approx(columns, abs=1e-8)
    heavy = 1e5 * np.vstack([np.kron(np.eye(4), np.ones(5)), np.kron(np.ones(4), np.eye(5))])
    sides = np.concatenate([cells.ravel(), 1e5 * rows, 1e5 * columns])
    expected, _ = optimize.nnls(np.vstack([np.eye(20), heavy]), sides)
    assert found.ravel() == pytest.approx(expected, abs=1e-4)
