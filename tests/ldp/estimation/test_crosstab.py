"""Tables of two attributes: sums of cells, exact covariances, and intervals of shares of a row."""

from fractions import Fraction

import numpy as np
import pytest

import ldp
from ldp.estimation.joint.crosstab import Reports, cross_table, shares_of
from ldp.estimation.joint.linear import linear_answer, linear_covariances, linear_variance
from ldp.protocols.projective_space import value_counts
from tests.ldp.protocols.test_families import law

ONE = Fraction(1)
K = 12  # values: 3 rows, 4 columns
CHANNELS = {
    "GRR": ldp.grr_channel(epsilon=ONE, domain_size=K),
    "PGR": ldp.projective_channel(epsilon=ONE, domain_size=K),
    "OUE": ldp.oue_channel(epsilon=ONE, domain_size=K),
}
SIZES = {"n_reports": 900, "n_population": 2500}
Z = 1.959963985
channels = pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
coded = pytest.mark.parametrize("channel", list(CHANNELS.values())[:2], ids=list(CHANNELS)[:2])
LAYOUT = np.arange(K).reshape(3, 4, 1)


def shares(seed: int = 3) -> np.ndarray:
    f = np.random.default_rng(seed).gamma(1.0, size=K)
    return f / f.sum()


def measured(channel, *, n: int = 900, population: int = 2500, seed: int = 5, f=None) -> Reports:
    rng = np.random.default_rng(seed)
    values = rng.choice(K, n, p=shares() if f is None else f).astype(np.int32)
    reports = ldp.oracle_answers(
        values, pseudonyms=np.arange(n, dtype=np.uint64), prf=ldp.KeyedPrf(seed.to_bytes(16)),
        channel=channel, indicator=0, plan_version=1,
    )  # fmt: skip
    codes = np.bincount(reports, minlength=getattr(channel, "n_codes", K))
    sizes = {"n_reports": n, "n_population": population}
    counts = value_counts(codes, channel=channel)
    return Reports(estimates=ldp.pure_frequencies(counts, channel=channel, **sizes), channel=channel, **sizes)


def by_hand(channel, f, weights) -> np.ndarray:
    p, q = float(channel.p), float(channel.q)
    noise = np.zeros(K)
    for value in range(K):
        probabilities, holds = law(value, channel)
        stood_for = np.array(
            [[(holds(report, v) - q) / (p - q) for v in range(K)] for report in probabilities]
        )
        chance = np.array([float(each) for each in probabilities.values()])
        means = np.eye(K)[value]
        noise += f[value] * (
            (chance[:, None] * stood_for * (stood_for @ weights)[:, None]).sum(axis=0)
            - means * weights[value]
        )
    n, population = SIZES["n_reports"], SIZES["n_population"]
    sampling = (np.diag(f) - np.outer(f, f)) @ weights * (population - n) / (population - 1)
    return (noise + sampling) / n


@coded
def test_covariances_are_those_of_all_reports_there_are(channel) -> None:
    f, weights = shares(), np.random.default_rng(1).normal(size=K)
    found = linear_covariances(f, weights=weights, channel=channel, **SIZES)
    assert found == pytest.approx(by_hand(channel, f, weights), rel=1e-9)


@channels
def test_covariance_of_two_answers_is_half_of_what_their_sum_varies_more(channel) -> None:
    f, rng = shares(), np.random.default_rng(2)
    u, w = rng.integers(0, 2, K).astype(float), rng.normal(size=K)

    def variance(weights) -> float:
        return linear_variance(f, weights=weights, channel=channel, **SIZES)

    together = linear_covariances(f, weights=w, channel=channel, **SIZES)
    assert u @ together == pytest.approx((variance(u + w) - variance(u) - variance(w)) / 2, rel=1e-9)
    assert w @ together == pytest.approx(variance(w), rel=1e-9)


@coded
def test_cells_add_up_to_rows_and_columns_and_rows_to_all(channel) -> None:
    reports = measured(channel)
    table = cross_table(reports, layout=LAYOUT, base="all")
    assert table.cells.value.sum(axis=1) == pytest.approx(table.rows.value)
    assert table.cells.value.sum(axis=0) == pytest.approx(table.columns.value)
    assert (table.whole.value, table.whole.std_error) == (1.0, 0.0)  # everyone is in the table
    # A cell has the figures of its value, and those of the same question.
    assert table.cells.ci_low[1, 2] == pytest.approx(reports.estimates.ci_low[6])
    found = linear_answer(reports.estimates, weights=np.eye(K)[6], channel=channel, **reports.sizes)
    cell = [getattr(table.cells, name)[1, 2] for name in ("value", "std_error", "ci_low", "ci_high")]
    assert cell == pytest.approx([found.value, found.std_error, found.ci_low, found.ci_high])
    part = cross_table(reports, layout=LAYOUT[:, :2], base="all")
    assert part.whole.value[0] == pytest.approx(part.cells.value.sum())


@coded
def test_a_share_of_a_row_is_a_ratio_with_the_interval_of_fieller(channel) -> None:
    reports = measured(channel, n=9000, population=20_000)
    table = cross_table(reports, layout=LAYOUT, base="row")
    frequency, f = reports.estimates.frequency, reports.estimates.consistent
    whole = np.zeros(K)
    whole[:4] = 1
    for column in range(4):
        part, found = np.eye(K)[column], table.cells[0]
        assert found.value[column] == pytest.approx(frequency[column] / frequency[:4].sum())
        for end in (found.ci_low[column], found.ci_high[column]):
            weights = part - end * whole
            variance = linear_variance(f, weights=weights, channel=channel, **reports.sizes)
            assert (weights @ frequency) ** 2 == pytest.approx(Z**2 * variance, rel=1e-6)
    assert table.cells.value.sum(axis=1) == pytest.approx(np.ones(3))
    assert table.rows.value.sum() == pytest.approx(
        cross_table(reports, layout=LAYOUT, base="all").rows.value.sum()
    )


@coded
def test_columns_are_the_rows_of_the_turned_table_and_layers_add_up(channel) -> None:
    reports = measured(channel, n=9000, population=20_000)
    by_column = cross_table(reports, layout=LAYOUT, base="column")
    by_row = cross_table(reports, layout=LAYOUT.swapaxes(0, 1), base="row")
    assert by_column.cells.ci_high == pytest.approx(by_row.cells.ci_high.T, nan_ok=True)
    assert by_column.rows.value.tolist() == by_row.columns.value.tolist()
    summed = cross_table(reports, layout=np.arange(K).reshape(3, 2, 2), base="all")
    cell = linear_answer(
        reports.estimates, weights=np.repeat([0.0, 1, 0], [2, 2, 8]), channel=channel, **reports.sizes
    )
    assert (summed.cells.value[0, 1], summed.cells.ci_low[0, 1]) == pytest.approx((cell.value, cell.ci_low))
    within = cross_table(reports, layout=np.arange(K).reshape(3, 2, 2)[:, :, :1], base="row")
    frequency = reports.estimates.frequency
    of_rows = frequency[[0, 4, 8]] + frequency[[2, 6, 10]]
    assert within.rows.value == pytest.approx(of_rows / of_rows.sum())


def test_of_a_row_that_may_be_empty_nothing_is_known() -> None:
    f = np.repeat([0.0, 1 / 8], [4, 8])
    reports = measured(CHANNELS["GRR"], f=f)
    row = shares_of(reports, parts=LAYOUT[0])
    assert np.isnan(row.value).all() and np.isnan(row.std_error).all()
    assert (row.ci_low.tolist(), row.ci_high.tolist()) == ([0] * 4, [1] * 4)


@coded
def test_intervals_of_shares_of_a_row_hold_the_truth_as_often_as_they_say(channel) -> None:
    runs, f = 400, np.repeat([0.3, 0.1, 0.2, 0.05, 0.35 / 8], [1, 1, 1, 1, 8])
    held = []
    for seed in range(runs):
        row = shares_of(measured(channel, n=4000, population=10**9, seed=seed + 1, f=f), parts=LAYOUT[0])
        truth = f[:4] / f[:4].sum()
        held.append((row.ci_low <= truth) & (truth <= row.ci_high))
    assert np.mean(held, axis=0) == pytest.approx(0.95, abs=5 * np.sqrt(0.95 * 0.05 / runs))
