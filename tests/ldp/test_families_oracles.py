"""Hashing, subsets, Hadamard response, noisy histograms, ADP: every report of every value, in rationals."""

from collections.abc import Callable, Hashable
from fractions import Fraction
from itertools import combinations, product
from math import comb, exp, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp import (
    GrrChannel,
    HadamardChannel,
    HashChannel,
    HistogramChannel,
    InvalidBudgetError,
    InvalidDomainError,
    LdpError,
    PureChannel,
    SubsetChannel,
    UnaryChannel,
    adp_channel,
    blh_channel,
    grr_channel,
    hadamard_channel,
    histogram_channel,
    histogram_frequencies,
    histogram_variance,
    olh_channel,
    oue_channel,
    pure_variance,
    subset_channel,
)
from ldp.channels import MAX_DOMAIN_SIZE, MAX_EPSILON, MIN_EPSILON, WORD, noise_at_zero
from tests.ldp.exact import VECTORS, exp_bounds

Law = dict[Hashable, Fraction]
Supports = Callable[[Any, int], bool]

PURE = {"BLH": blh_channel, "OLH": olh_channel, "SS": subset_channel, "HR": hadamard_channel}
MAKERS = PURE | {"SHE": histogram_channel, "ADP": adp_channel}
makers = pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
pure_makers = pytest.mark.parametrize("maker", PURE.values(), ids=PURE)


def law(value: int, channel: Any) -> tuple[Law, Supports]:
    """Probability of every report of a value, and which values a report supports."""
    k = channel.domain_size
    if isinstance(channel, HashChannel):
        g = channel.cells.domain_size
        hashes = list(product(range(g), repeat=k))
        p, q = channel.cells.p, channel.cells.q
        return {
            (h, y): (p if h[value] == y else q) / len(hashes) for h in hashes for y in range(g)
        }, lambda report, v: report[0][v] == report[1]
    if isinstance(channel, SubsetChannel):
        w = channel.subset_size
        inside, outside = channel.p / comb(k - 1, w - 1), (1 - channel.p) / comb(k - 1, w)
        return {s: inside if value in s else outside for s in combinations(range(k), w)}, lambda s, v: v in s
    columns = channel.n_columns
    shares = channel.sign.p * 2 / columns, channel.sign.q * 2 / columns
    return {y: shares[_minus(y, value)] for y in range(columns)}, lambda y, v: not _minus(y, v)


def _minus(column: int, value: int) -> int:
    return ((value + 1) & column).bit_count() % 2


@pure_makers
@pytest.mark.parametrize("epsilon", ["0.1", "1"])
@pytest.mark.parametrize("domain_size", [2, 3, 4])
def test_worst_report_of_all_has_the_stated_ratio(
    maker: Callable[..., PureChannel], domain_size: int, epsilon: str
) -> None:
    channel = maker(epsilon=Fraction(epsilon), domain_size=domain_size)
    laws = [law(value, channel)[0] for value in range(domain_size)]
    assert all(sum(entry.values()) == 1 for entry in laws)
    assert max(a[report] / b[report] for a, b in product(laws, repeat=2) for report in a) == channel.ratio
    for value, other in product(range(domain_size), repeat=2):
        entry, supports = law(value, channel)
        support = sum(p for report, p in entry.items() if supports(report, other))
        assert support == (channel.p if value == other else channel.q)


@makers
@given(epsilon=st.fractions(Fraction(1, 4), 8, max_denominator=1000), domain_size=st.integers(2, 400))
def test_ratio_never_exceeds_what_was_asked(maker: Any, epsilon: Fraction, domain_size: int) -> None:
    channel = maker(epsilon=epsilon, domain_size=domain_size)
    low, _ = exp_bounds(epsilon)
    assert channel.ratio <= low
    assert epsilon * Fraction(999_999, 10**6) <= channel.epsilon <= epsilon


@given(epsilon=st.fractions(Fraction(1, 1000), 8, max_denominator=1000), domain_size=st.integers(2, 400))
def test_subset_threshold_is_the_largest_that_keeps_the_promise(epsilon: Fraction, domain_size: int) -> None:
    channel = subset_channel(epsilon=epsilon, domain_size=domain_size)
    _, high = exp_bounds(epsilon)
    tighter = SubsetChannel(
        domain_size=domain_size, subset_size=channel.subset_size, threshold=channel.threshold + 1
    )
    assert tighter.ratio > high


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "3", "4"])
@pytest.mark.parametrize("domain_size", [2, 3, 8, 12, 37, 64])
def test_subset_size_is_the_best_of_all(domain_size: int, epsilon: str) -> None:
    channel = subset_channel(epsilon=Fraction(epsilon), domain_size=domain_size)
    e = exp(float(epsilon))

    def variance(w: int) -> float:
        p = w * e / (w * e + domain_size - w)
        q = (w - p) / (domain_size - 1)
        return q * (1 - q) / (p - q) ** 2

    best = min(variance(w) for w in range(1, domain_size))
    assert float(noise_at_zero(channel)) == pytest.approx(best, rel=1e-12)
    assert variance(channel.subset_size) == pytest.approx(best, rel=1e-12)


def test_subsets_of_one_value_are_randomised_response() -> None:
    subset, grr = (maker(epsilon=Fraction(3), domain_size=8) for maker in (subset_channel, grr_channel))
    assert subset.subset_size == 1
    assert (subset.threshold, subset.q, subset.ratio) == (grr.threshold, grr.q, grr.ratio)


@pytest.mark.parametrize("epsilon", ["0.001", "0.3", "1", "1.5", "2", "3", "4.25", "7"])
def test_cells_of_olh_are_the_best_of_all(epsilon: str) -> None:
    channel = olh_channel(epsilon=Fraction(epsilon), domain_size=9)
    e = exp(float(epsilon))
    best = min((e + g - 1) ** 2 / ((e - 1) ** 2 * (g - 1)) for g in range(2, 5000))
    g = channel.cells.domain_size
    assert (e + g - 1) ** 2 / ((e - 1) ** 2 * (g - 1)) == pytest.approx(best, rel=1e-12)
    assert float(noise_at_zero(channel)) == pytest.approx(best, rel=1e-10)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2"])
def test_binary_hashing_and_hadamard_response_have_the_published_variance(epsilon: str) -> None:
    e = exp(float(epsilon))
    for maker in (blh_channel, hadamard_channel):
        channel = maker(epsilon=Fraction(epsilon), domain_size=37)
        variance = 500 * pure_variance(0.0, n_reports=500, n_population=500, channel=channel)
        assert variance == pytest.approx(((e + 1) / (e - 1)) ** 2, rel=1e-13)


@pytest.mark.parametrize(
    ("domain_size", "columns"), [(2, 4), (3, 4), (4, 8), (7, 8), (8, 16), (32767, 32768)]
)
def test_hadamard_matrix_is_the_smallest_with_a_row_for_each_value(domain_size: int, columns: int) -> None:
    assert hadamard_channel(epsilon=Fraction(1), domain_size=domain_size).n_columns == columns


@pytest.mark.parametrize("vector", VECTORS["base"], ids=lambda v: f"{v['eps']}-{v['c']}")
def test_adaptive_choice_is_that_of_the_vectors(vector: dict[str, Any]) -> None:
    channel = adp_channel(epsilon=Fraction(vector["eps"]), domain_size=int(vector["c"]))
    assert vector["adp"] in {"GRR", "OUE"}
    assert isinstance(channel, GrrChannel if vector["adp"] == "GRR" else UnaryChannel)


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "4"])
def test_adaptive_choice_changes_at_its_published_size(epsilon: str) -> None:
    last = int(3 * exp(float(epsilon)) + 2)
    assert isinstance(adp_channel(epsilon=Fraction(epsilon), domain_size=last), GrrChannel)
    assert isinstance(adp_channel(epsilon=Fraction(epsilon), domain_size=last + 1), UnaryChannel)


def test_adaptive_choice_of_equals_is_randomised_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldp.families.adaptive.noise_at_zero", lambda _: Fraction(1))
    assert isinstance(adp_channel(epsilon=Fraction(1), domain_size=1000), GrrChannel)


TINY = HistogramChannel(domain_size=3, weights=tuple(w * WORD // 64 for w in (9, 27, 18, 10)))


def count_law(channel: HistogramChannel) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    """Of one noisy count: absent, present."""
    absent = {channel.lowest + i: Fraction(w, WORD) for i, w in enumerate(channel.weights)}
    return absent, {1 - y: p for y, p in absent.items()}


@pytest.mark.parametrize(
    "channel", [TINY, histogram_channel(epsilon=Fraction(12), domain_size=2)], ids=["tiny", "epsilon 12"]
)
def test_worst_histogram_of_all_has_the_stated_ratio(channel: HistogramChannel) -> None:
    absent, present = count_law(channel)
    assert sum(absent.values()) == sum(present.values()) == 1
    k = channel.domain_size
    worst = Fraction(0)
    for counts in product(absent, repeat=k):
        laws = [prod((present if v == j else absent)[y] for j, y in enumerate(counts)) for v in range(k)]
        worst = max(worst, max(laws) / min(laws))
    assert worst == channel.ratio


def test_moments_of_a_histogram_by_enumeration() -> None:
    absent, present = count_law(TINY)
    for truth, entry in enumerate((absent, present)):
        mean = sum(y * p for y, p in entry.items())
        assert mean == TINY.offset + truth * TINY.slope
        assert sum(y * y * p for y, p in entry.items()) - mean**2 == TINY.noise


@pytest.mark.parametrize(
    ("truth", "population", "n"), [(0, 3, 2), (1, 3, 2), (2, 4, 2), (3, 3, 3), (1, 2, 1)]
)
def test_histogram_estimate_is_unbiased_and_its_variance_exact(truth: int, population: int, n: int) -> None:
    absent, present = count_law(TINY)
    mean = square = Fraction(0)
    people = [present] * truth + [absent] * (population - truth)
    for chosen in combinations(people, n):
        for counts in product(absent, repeat=n):
            weight = prod(entry[y] for entry, y in zip(chosen, counts, strict=True))
            weight /= comb(population, n)
            estimate = (Fraction(sum(counts), n) - TINY.offset) / TINY.slope
            mean += weight * estimate
            square += weight * estimate**2
    assert mean == Fraction(truth, population)
    formula = histogram_variance(truth / population, n_reports=n, n_population=population, channel=TINY)
    assert float(formula) == pytest.approx(float(square - mean**2), rel=1e-12)


def test_histogram_frequencies_undo_the_mean() -> None:
    sums = np.array([800, -30, 5])
    sizes = {"n_reports": 1000, "n_population": 5000, "channel": TINY}
    estimates = histogram_frequencies(sums, **sizes)
    exact = [(Fraction(int(s), 1000) - TINY.offset) / TINY.slope for s in sums]
    assert estimates.frequency == pytest.approx([float(f) for f in exact], rel=1e-14)
    assert estimates.std_error[0] ** 2 == pytest.approx(float(histogram_variance(min(exact[0], 1), **sizes)))
    assert np.all((estimates.ci_low < estimates.frequency) & (estimates.frequency < estimates.ci_high))


@pytest.mark.parametrize("vector", VECTORS["G_geometric"], ids=lambda v: f"{v['delta1']}-{v['eps']}")
def test_noise_is_the_geometric_one_of_the_vectors(vector: dict[str, Any]) -> None:
    """One histogram loses the epsilon of a sensitivity of 2."""
    epsilon = 2 * Fraction(vector["eps"]) / int(vector["delta1"])
    channel = histogram_channel(epsilon=epsilon, domain_size=2)
    assert channel.weights[-channel.lowest] / WORD == pytest.approx(float(vector["P0"]), rel=1e-11)
    assert float(channel.noise) == pytest.approx(float(vector["variance"]), rel=1e-8)
    step = channel.weights[-channel.lowest + 1] / channel.weights[-channel.lowest]
    assert step == pytest.approx(float(vector["alpha"]), rel=1e-11)


@pytest.mark.parametrize("sums", [[0, 0, 2001], [0, -1001, 0]])
def test_sums_that_cannot_be_are_refused(sums: list[int]) -> None:
    with pytest.raises(LdpError, match=r"sums must be in \[-1000, 2000\], got"):
        histogram_frequencies(np.array(sums), n_reports=1000, n_population=1000, channel=TINY)


@pytest.mark.parametrize(
    "weights",
    [(WORD // 2, WORD // 2 - 1), (WORD,), (WORD, 0), (WORD - 2, 1, 1)],
    ids=["sum", "one", "0", "3"],
)
def test_weights_that_are_no_probabilities_are_refused(weights: tuple[int, ...]) -> None:
    with pytest.raises(InvalidBudgetError, match="weights must be an even number of positive integers"):
        HistogramChannel(domain_size=3, weights=weights)


def test_table_is_frozen() -> None:
    """Another one would give everybody a second, dependent report."""
    weights = histogram_channel(epsilon=Fraction(1), domain_size=3).weights
    assert (len(weights), weights[0], weights[40], weights[-1]) == (112, 13089782, 2498808572251157, 7939355)


def test_weights_may_be_as_small_as_one() -> None:
    assert HistogramChannel(domain_size=3, weights=(WORD - 1, 1)).ratio == (WORD - 1) ** 2


def test_weights_that_do_not_favour_the_truth_are_refused() -> None:
    with pytest.raises(InvalidBudgetError, match="mean of an absent value must be < 1/2, got"):
        HistogramChannel(domain_size=3, weights=(WORD // 2, WORD // 2))


@makers
@pytest.mark.parametrize("epsilon", [Fraction(0), MIN_EPSILON / 2, MAX_EPSILON + 1])
def test_epsilon_out_of_range_is_refused(maker: Any, epsilon: Fraction) -> None:
    with pytest.raises(InvalidBudgetError, match="epsilon of one answer must be in"):
        maker(epsilon=epsilon, domain_size=3)


def test_epsilon_below_the_reach_of_a_histogram_is_refused() -> None:
    with pytest.raises(InvalidBudgetError, match=r"noisy histogram must be in \[0.01, 64\], got 0.009"):
        histogram_channel(epsilon=Fraction(9, 1000), domain_size=3)


@makers
@pytest.mark.parametrize("domain_size", [1, MAX_DOMAIN_SIZE + 1])
def test_domain_out_of_range_is_refused(maker: Any, domain_size: int) -> None:
    with pytest.raises(InvalidDomainError, match=f"domain_size must be .* got {domain_size}"):
        maker(epsilon=Fraction(1), domain_size=domain_size)


@makers
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), MAX_EPSILON])
@pytest.mark.parametrize("domain_size", [2, 3, 32767])
def test_the_ends_of_the_range_work(maker: Any, epsilon: Fraction, domain_size: int) -> None:
    assert 0 < maker(epsilon=epsilon, domain_size=domain_size).epsilon <= epsilon


def test_parts_that_do_not_fit_are_refused() -> None:
    grr = grr_channel(epsilon=Fraction(1), domain_size=3)
    with pytest.raises(InvalidDomainError, match="domain_size of sign must be 2, got 3"):
        HadamardChannel(domain_size=3, sign=grr)
    with pytest.raises(InvalidDomainError, match="domain_size must be <= 32767, got 32768"):
        hadamard_channel(epsilon=Fraction(1), domain_size=32768)
    for size in (0, 5):
        with pytest.raises(InvalidDomainError, match=rf"subset_size must be in \[1, 4\], got {size}"):
            SubsetChannel(domain_size=5, subset_size=size, threshold=WORD - 1)
    for threshold in (WORD * 2 // 5, WORD):
        with pytest.raises(InvalidBudgetError, match=f"threshold must be in .* got {threshold}"):
            SubsetChannel(domain_size=5, subset_size=2, threshold=threshold)


def test_best_oracle_for_many_values_is_not_randomised_response() -> None:
    """What the choice is for: subsets never lose to GRR, and OUE, OLH meet for large domains."""
    sizes = {"epsilon": Fraction(1), "domain_size": 100}
    grr, subset, oue, olh = (
        noise_at_zero(maker(**sizes)) for maker in (grr_channel, subset_channel, oue_channel, olh_channel)
    )
    assert subset < oue < olh < grr
    assert float(olh / oue) == pytest.approx(1, abs=0.01)
