"""Linear questions, tables and tests of joint indicators: exact variances, covariances and intervals."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy import linalg, optimize, stats

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
from ldp.estimation.joint.consistency import (
    Combinations,
    Single,
    View,
    combined_table,
    nearest_table,
    view_weights,
)
from ldp.estimation.joint.crosstab import Reports, cross_table, shares_of
from ldp.estimation.joint.linear import (
    code_chances,
    frequency_covariances,
    linear_answer,
    linear_covariance_matrix,
    linear_covariances,
    linear_noise,
    linear_query,
    linear_variance,
    linear_variances,
)
from ldp.keyed.choices import choose_indicator
from ldp.privacy.joint import joint_codes
from ldp.protocols import projective_space
from ldp.protocols.channels import noise_at_zero
from ldp.protocols.projective_space import (
    is_orthogonal,
    sums_of_codes,
    sums_of_values,
    support_of,
    value_counts,
)
from tests.ldp.exact import refuses
from tests.ldp.protocols.test_families import law

ONE = Fraction(1)
K = 12  # values: 3 rows, 4 columns
CHANNELS = {
    "GRR": ldp.grr_channel(epsilon=ONE, domain_size=K),
    "PGR": ldp.projective_channel(epsilon=ONE, domain_size=K),
    "OUE": ldp.oue_channel(epsilon=ONE, domain_size=K),
    "SS": ldp.subset_channel(epsilon=ONE, domain_size=K),
    "OLH": ldp.olh_channel(epsilon=ONE, domain_size=K),
    "RS+FD": ldp.FakedChannel(
        answer=ldp.oue_channel(epsilon=ONE, domain_size=K), fake="any value", share=Fraction(1, 3)
    ),
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
    of_all = cross_table(reports, layout=LAYOUT, base="all")
    assert table.rows.value.sum() == pytest.approx(of_all.rows.value.sum())


@coded
def test_columns_are_the_rows_of_the_turned_table_and_layers_add_up(channel) -> None:
    reports = measured(channel, n=9000, population=20_000)
    by_column = cross_table(reports, layout=LAYOUT, base="column")
    by_row = cross_table(reports, layout=LAYOUT.swapaxes(0, 1), base="row")
    assert by_column.cells.ci_high == pytest.approx(by_row.cells.ci_high.T, nan_ok=True)
    assert by_column.rows.value.tolist() == by_row.columns.value.tolist()
    summed = cross_table(reports, layout=np.arange(K).reshape(3, 2, 2), base="all")
    asked = {"weights": np.repeat([0.0, 1, 0], [2, 2, 8]), "channel": channel} | reports.sizes
    cell = linear_answer(reports.estimates, **asked)
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


@pytest.mark.parametrize("degrees", [1, 4, 35, 396, 1000])
def test_the_tail_is_that_of_chi_square(degrees: int) -> None:
    for factor in (0.0, 0.2, 0.9, 1.0, 1.1, 1.5, 4.0):
        expected = stats.chi2.sf(factor * degrees, degrees)
        assert chi_square_tail(factor * degrees, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_contrasts_are_orthonormal_and_see_no_constant() -> None:
    found = contrasts(5)
    assert found @ found.T == pytest.approx(np.eye(4))
    assert found.sum(axis=1) == pytest.approx(np.zeros(4))


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
    blocks = []
    for shares, each in zip((f, rows.shares, columns.shares), (reports, *singles), strict=True):
        asked = {"channel": each.channel, "n_reports": each.n_reports, "n_population": 2**60}
        blocks.append(frequency_covariances(shares, **asked))
    together = linalg.block_diag(*blocks, 1e-4, 1e-4)
    assert variance == pytest.approx(slope.T @ together @ slope, rel=1e-6)


def test_a_table_of_another_shape_is_refused() -> None:
    reports = measured(CHANNELS["GRR"])
    margin = margin_of(reports, asked=0.5)
    with pytest.raises(LdpError, match="layout must have"):
        independence_test(reports, layout=np.arange(K).reshape(3, 4, 1), rows=margin, columns=margin)


FIVE = {
    "GRR": ldp.grr_channel(epsilon=ONE, domain_size=5),
    "PGR": ldp.projective_channel(epsilon=ONE, domain_size=5),
    "PGR-wide": ldp.projective_channel(epsilon=Fraction(2), domain_size=96),
    "OUE": ldp.oue_channel(epsilon=ONE, domain_size=5),
    "SS": ldp.SubsetChannel(domain_size=5, subset_size=3, threshold=2**64 * 3 // 4),
    "SS-two": ldp.subset_channel(epsilon=ONE, domain_size=2),
    "OLH": ldp.olh_channel(epsilon=ONE, domain_size=5),
}
FAKES = {
    f"RS+FD {fake}": ldp.FakedChannel(answer=FIVE[name], fake=fake, share=Fraction(2, 5))
    for name, fake in (("GRR", "code"), ("OUE", "no value"), ("OUE", "any value"))
}
fives = pytest.mark.parametrize("channel", FIVE.values(), ids=FIVE)


def weights_of(channel) -> np.ndarray:
    return np.random.default_rng(7).integers(-3, 4, channel.domain_size).astype(float)


def mixed_law(value: int, channel):
    """Law of a report, which may be a fake."""
    if not isinstance(channel, ldp.FakedChannel):
        return law(value, channel)
    answer, k, p, q = channel.answer, channel.domain_size, channel.answer.p, channel.answer.q
    laws = [law(v, answer)[0] for v in range(k)]
    holds = law(value, answer)[1]
    if channel.fake == "no value":
        fakes = {y: of * (q / p if holds(y, 0) else (1 - q) / (1 - p)) for y, of in laws[0].items()}
    else:
        fakes = {y: sum(each[y] for each in laws) / k for y in laws[0]}
    share = channel.share
    return {y: share * of + (1 - share) * fakes[y] for y, of in laws[value].items()}, holds


@pytest.mark.parametrize("channel", (FIVE | FAKES).values(), ids=FIVE | FAKES)
def test_noise_of_one_report_is_that_of_all_reports_there_are(channel) -> None:
    weights = weights_of(channel)
    noise = linear_noise(weights, channel=channel)
    p, q = float(channel.p), float(channel.q)
    for value in range(channel.domain_size):
        chances, holds = mixed_law(value, channel)
        stood_for = np.array(
            [sum(w * (holds(report, v) - q) for v, w in enumerate(weights)) / (p - q) for report in chances]
        )
        probability = np.array([float(chance) for chance in chances.values()])
        assert probability @ stood_for == pytest.approx(weights[value], abs=1e-9)
        assert noise[value] == pytest.approx(probability @ stood_for**2 - weights[value] ** 2, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "domain_size", "prime", "codes", "noise"),
    [
        (1, 96, 3, 121, 3.690), (1, 407, 3, 1093, 3.761), (1, 3844, 3, 9841, 3.769),
        (2, 96, 11, 133, 0.7121), (2, 407, 7, 2801, 0.7308), (2, 3844, 7, 19608, 0.7318),
        (3, 96, 19, 381, 0.2151), (3, 407, 23, 553, 0.2164), (3, 3844, 23, 12720, 0.2208),
    ],
)  # fmt: skip
def test_space_with_the_least_noise_is_chosen(epsilon, domain_size, prime, codes, noise) -> None:
    channel = ldp.code_channel(epsilon=Fraction(epsilon), domain_size=domain_size)
    assert isinstance(channel, ldp.ProjectiveChannel)
    assert (channel.prime, channel.n_codes) == (prime, codes)
    assert float(noise_at_zero(channel)) == pytest.approx(noise, abs=0.0006)


def test_few_values_or_few_codes_are_left_to_grr() -> None:
    assert isinstance(ldp.code_channel(epsilon=ONE, domain_size=3), ldp.GrrChannel)
    assert isinstance(ldp.code_channel(epsilon=ONE, domain_size=96, max_codes=96), ldp.GrrChannel)
    assert ldp.projective_channel(epsilon=ONE, domain_size=96, max_codes=127).n_codes <= 127
    few = {"epsilon": ONE, "domain_size": 96, "max_codes": 96}
    refuses("no projective space has 96 to 96 points", ldp.projective_channel, **few)
    given = {"domain_size": 8, "prime": 2, "dimension": 3, "threshold": 2**63}
    refuses("points must be 8 to 65534, got 7", ldp.ProjectiveChannel, **given)
    refuses("prime a prime, got 3, 4", ldp.ProjectiveChannel, **given | {"prime": 4})
    refuses("threshold must be in", ldp.ProjectiveChannel, **given | {"domain_size": 7, "threshold": 2**62})


@pytest.mark.parametrize("by_lists", [False, True])
@pytest.mark.parametrize(("prime", "dimension"), [(2, 4), (3, 3), (5, 3)])
def test_sums_over_points_are_those_of_the_products(
    prime: int, dimension: int, by_lists: bool, monkeypatch
) -> None:
    monkeypatch.setattr(projective_space, "LISTED_PER_VECTOR", 1000 if by_lists else 0)
    size = (prime**dimension - 1) // (prime - 1)
    channel = ldp.ProjectiveChannel(
        domain_size=size - 2, prime=prime, dimension=dimension, threshold=2**64 - 2**60
    )
    holds = np.array([[law(v, channel)[1](y, v) for y in range(size)] for v in range(size - 2)])
    counts = np.random.default_rng(prime).integers(0, 1000, size)
    assert support_of(counts, channel=channel).tolist() == (holds @ counts).tolist()
    weights = np.stack([counts % 3 - 0.5, counts % 5])
    assert sums_of_values(weights, channel=channel) == pytest.approx(weights @ holds.T)
    assert sums_of_codes(weights[:, 2:], channel=channel) == pytest.approx(weights[:, 2:] @ holds)


def test_one_value_has_the_interval_of_its_frequency() -> None:
    for channel in (FIVE["GRR"], FIVE["OUE"], FIVE["SS"], FIVE["OLH"], *FAKES.values()):
        p, q = float(channel.p), float(channel.q)
        counts = np.rint(1000 * (q + (p - q) * np.array([0.3, 0.1, 0.25, 0.2, 0.15]))).astype(np.int64)
        sizes = {"n_reports": 1000, "n_population": 3000}
        alone = ldp.pure_frequencies(counts, channel=channel, **sizes)
        found = linear_query(counts, weights=np.eye(5)[2], channel=channel, **sizes)
        assert found.ci_low == pytest.approx(alone.ci_low[2])
        assert found.ci_high == pytest.approx(alone.ci_high[2])
        weights = np.array([1.0, 0, 1, 0, 1])
        found = linear_query(counts, weights=weights, channel=channel, **sizes)
        for end in (found.ci_low, found.ci_high):
            f = weights / 3 * end + (1 - weights) / 2 * (1 - end)
            variance = linear_variance(f, weights=weights, channel=channel, **sizes)
            assert (found.value - end) ** 2 == pytest.approx(1.959964**2 * variance, rel=1e-5)


def test_questions_that_do_not_fit_are_refused() -> None:
    sizes = {"n_reports": 10, "n_population": 10}
    counts, channel = np.full(5, 2), FIVE["GRR"]
    columns = ldp.hadamard_channel(epsilon=ONE, domain_size=5)
    prior = (2**62, 2**62, 2**61, 2**61, 2**62)
    favoured = ldp.PriorFakedChannel(answer=channel, share=Fraction(1, 2), prior=prior)
    for message, n, asked in (
        ("weights must be finite with shape \\(5,\\)", 4, channel),
        ("counts must have shape \\(7, ...\\)", 5, FIVE["PGR"]),
        ("channel must be one of .*: two values of a Hadamard report", 5, columns),
        ("channel must be one of .*: fakes of RS\\+RFD favour some values", 5, favoured),
    ):
        refuses(message, linear_query, counts, weights=np.ones(n), channel=asked, **sizes)


ALL = (0, 1, 2)


@dataclass
class Known:
    values: np.ndarray
    cell_variance: float

    def variances(self, weights):
        return self.cell_variance * (weights**2).sum(axis=1)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (0, 2), (2, 1), ALL, (2, 0, 1)])
@pytest.mark.parametrize(
    "of_pairs", [((0, 1), (1, 2), ALL), ((1, 0), (2, 1), (1, 2, 0))], ids=["up", "mixed"]
)
def test_tables_are_those_of_generalised_least_squares(axes, of_pairs) -> None:
    """On 2 x 3 x 4, with views of one, two and three attributes, in any order."""
    sizes, rng = (2, 3, 4), np.random.default_rng(8)
    of_views = [(0,), (1,), (2,), *of_pairs]
    views = [
        View(axes=each, source=Known(rng.normal(size=np.prod([sizes[a] for a in each])), rng.uniform(0.5, 2)))
        for each in of_views
    ]

    def margin(kept):
        others = [a for a in ALL if a not in kept]
        turned = np.eye(24).reshape(*sizes, 24).transpose(*kept, *others, 3)
        return turned.reshape(np.prod([sizes[a] for a in kept]), -1, 24).sum(axis=1)

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
    of_values = frequency_covariances(shares(), channel=channel, **SIZES)
    assert weights @ of_values @ weights.T == pytest.approx(matrix, rel=1e-12, abs=1e-15)


BY_CODE = {
    "GRR": CHANNELS["GRR"],
    "PGR": CHANNELS["PGR"],
    "PGR-lines-of-3": ldp.projective_channel(epsilon=Fraction(1, 4), domain_size=40),
    "PGR-wide": FIVE["PGR-wide"],
    "PGR-listed": ldp.projective_channel(epsilon=Fraction(4), domain_size=60),
    "question": ldp.question_channel(epsilon=ONE, domain_size=20),
    "question-hashed": ldp.hash_channel(epsilon=Fraction(3), first=ONE, domain_size=20),
}


@pytest.mark.parametrize("channel", BY_CODE.values(), ids=BY_CODE)
def test_covariances_of_frequencies_are_those_over_all_codes(channel) -> None:
    k = channel.domain_size
    f = np.random.default_rng(8).dirichlet(np.ones(k))
    p, q = float(channel.p), float(channel.q)
    adds = (code_sets(channel) - q) / (p - q)  # of a report of each code, to each value
    chances = code_chances(f, channel=channel)
    noise = (adds.T * chances) @ adds - np.diag(f)
    spread = (np.diag(f) - np.outer(f, f)) * (2500 - 900) / 2499
    found = frequency_covariances(f, channel=channel, **SIZES)
    assert found == pytest.approx((noise + spread) / 900, rel=1e-12, abs=1e-15)


def code_sets(channel) -> np.ndarray:
    """1 where a code supports a value, else 0; shape (n_codes, domain_size)."""
    if isinstance(channel, ldp.GrrChannel):
        return np.eye(channel.domain_size)
    values = range(channel.domain_size)
    return np.stack([is_orthogonal(value, channel=channel) for value in values], axis=1).astype(float)


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
