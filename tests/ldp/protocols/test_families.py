"""Channels of one answer: every report of every value, in rationals, and the parameters of the sheet."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from math import comb, exp, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import laplace

import ldp
from ldp.protocols.channels import MAX_DOMAIN_SIZE, MAX_EPSILON, MIN_EPSILON, WORD, noise_at_zero
from tests.ldp.exact import VECTORS, exp_bounds, refuses
from tests.ldp.fakes import as_report, chances, supports

Law = dict[Hashable, Fraction]
Supports = Callable[[Any, int], bool]

UNARY = {"SUE": ldp.sue_channel, "OUE": ldp.oue_channel, "THE": ldp.the_channel}
PURE = UNARY | {"GRR": ldp.grr_channel, "BLH": ldp.blh_channel, "OLH": ldp.olh_channel}
PURE |= {"SS": ldp.subset_channel, "HR": ldp.hadamard_channel, "PGR": ldp.projective_channel}
MAKERS = PURE | {"SHE": ldp.histogram_channel, "ADP": ldp.adp_channel}
makers = pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
pure_makers = pytest.mark.parametrize("maker", PURE.values(), ids=PURE)


def law(value: int, channel) -> tuple[Law, Supports]:
    k = channel.domain_size
    if isinstance(channel, ldp.GrrChannel | ldp.UnaryChannel):
        return {y: row[value] for y, row in chances(channel).items()}, partial(supports, as_report(channel))
    if isinstance(channel, ldp.HashChannel):
        g = channel.cells.domain_size
        hashes = list(product(range(g), repeat=k))
        p, q = channel.cells.p, channel.cells.q
        return {
            (h, y): (p if h[value] == y else q) / len(hashes) for h in hashes for y in range(g)
        }, lambda report, v: report[0][v] == report[1]
    if isinstance(channel, ldp.SubsetChannel):
        w = channel.subset_size
        inside, outside = channel.p / comb(k - 1, w - 1), (1 - channel.p) / comb(k - 1, w)
        return {s: inside if value in s else outside for s in combinations(range(k), w)}, lambda s, v: v in s
    if isinstance(channel, ldp.ProjectiveChannel):
        return projective_law(value, channel)
    columns = channel.n_columns
    shares = channel.sign.p * 2 / columns, channel.sign.q * 2 / columns
    return {y: shares[_minus(y, value)] for y in range(columns)}, lambda y, v: not _minus(y, v)


def projective_law(value: int, channel: ldp.ProjectiveChannel) -> tuple[Law, Supports]:
    points = projective_points(channel.prime, channel.dimension)

    def holds(report: int, v: int) -> bool:
        return sum(a * b for a, b in zip(points[report], points[v], strict=True)) % channel.prime == 0

    inside = [holds(y, value) for y in range(len(points))]
    assert (len(points), sum(inside)) == (channel.n_codes, channel.support_size)
    shares = (1 - channel.p) / inside.count(False), channel.p / inside.count(True)
    return {y: shares[is_inside] for y, is_inside in enumerate(inside)}, holds


def projective_points(prime: int, dimension: int) -> list[tuple[int, ...]]:
    """All vectors whose first coordinate that is not 0 is 1, those with fewer free coordinates first."""
    vectors = product(range(prime), repeat=dimension)
    return [vector for vector in vectors if next((x for x in vector if x), 0) == 1]


def _minus(column: int, value: int) -> int:
    return ((value + 1) & column).bit_count() % 2


@pure_makers
@pytest.mark.parametrize("epsilon", ["0.1", "1"])
@pytest.mark.parametrize("domain_size", [2, 3, 4])
def test_worst_report_of_all_has_the_stated_ratio(maker, domain_size, epsilon) -> None:
    channel = maker(epsilon=Fraction(epsilon), domain_size=domain_size)
    laws = [law(value, channel)[0] for value in range(domain_size)]
    assert all(sum(entry.values()) == 1 for entry in laws)
    assert max(a[report] / b[report] for a, b in product(laws, repeat=2) for report in a) == channel.ratio
    for value, other in product(range(domain_size), repeat=2):
        entry, holds = law(value, channel)
        support = sum(p for report, p in entry.items() if holds(report, other))
        assert support == (channel.p if value == other else channel.q)


@makers
@given(epsilon=st.fractions(Fraction(1, 4), 8, max_denominator=1000), domain_size=st.integers(2, 400))
@settings(max_examples=30)
def test_ratio_never_exceeds_what_was_asked(maker, epsilon: Fraction, domain_size: int) -> None:
    channel = maker(epsilon=epsilon, domain_size=domain_size)
    low, _ = exp_bounds(epsilon)
    assert channel.ratio <= low
    reached = 0 if maker is ldp.the_channel else epsilon * Fraction(999_999, 10**6)
    assert reached < channel.epsilon <= epsilon


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "3", "4"])
@pytest.mark.parametrize("domain_size", [2, 3, 8, 12, 37, 64])
def test_subset_size_is_the_best_of_all(domain_size: int, epsilon: str) -> None:
    channel = ldp.subset_channel(epsilon=Fraction(epsilon), domain_size=domain_size)
    e = exp(float(epsilon))

    def variance(w: int) -> float:
        p = w * e / (w * e + domain_size - w)
        q = (w - p) / (domain_size - 1)
        return q * (1 - q) / (p - q) ** 2

    best = min(variance(w) for w in range(1, domain_size))
    assert float(noise_at_zero(channel)) == pytest.approx(best, rel=1e-12)
    assert variance(channel.subset_size) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("epsilon", ["0.001", "0.3", "1", "1.5", "2", "3", "4.25", "7"])
def test_cells_of_olh_are_the_best_of_all(epsilon: str) -> None:
    channel = ldp.olh_channel(epsilon=Fraction(epsilon), domain_size=9)
    e = exp(float(epsilon))
    best = min((e + g - 1) ** 2 / ((e - 1) ** 2 * (g - 1)) for g in range(2, 5000))
    g = channel.cells.domain_size
    assert (e + g - 1) ** 2 / ((e - 1) ** 2 * (g - 1)) == pytest.approx(best, rel=1e-12)
    assert float(noise_at_zero(channel)) == pytest.approx(best, rel=1e-10)


@pytest.mark.parametrize(("k", "columns"), [(2, 4), (3, 4), (4, 8), (7, 8), (8, 16), (32767, 32768)])
def test_hadamard_matrix_is_the_smallest_with_a_row_for_each_value(k: int, columns: int) -> None:
    assert ldp.hadamard_channel(epsilon=Fraction(1), domain_size=k).n_columns == columns


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "4"])
def test_adaptive_choice_changes_at_its_published_size(epsilon: str) -> None:
    last = int(3 * exp(float(epsilon)) + 2)
    assert isinstance(ldp.adp_channel(epsilon=Fraction(epsilon), domain_size=last), ldp.GrrChannel)
    assert isinstance(ldp.adp_channel(epsilon=Fraction(epsilon), domain_size=last + 1), ldp.UnaryChannel)


def test_adaptive_choice_of_equals_is_randomised_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldp.protocols.adaptive.noise_at_zero", lambda _: Fraction(1))
    assert isinstance(ldp.adp_channel(epsilon=Fraction(1), domain_size=1000), ldp.GrrChannel)


@pytest.mark.parametrize(
    ("maker", "better"),
    [
        (ldp.subset_channel, {"threshold": 1}),
        (ldp.oue_channel, {"threshold_q": -1}),
        (ldp.sue_channel, {"threshold_p": 1, "threshold_q": -1}),
    ],
)
@given(epsilon=st.fractions(Fraction(1, 1000), 8, max_denominator=1000), domain_size=st.integers(2, 400))
def test_thresholds_are_the_best_that_keep_the_promise(maker, better, epsilon, domain_size) -> None:
    channel = maker(epsilon=epsilon, domain_size=domain_size)
    low, high = exp_bounds(epsilon)
    assert channel.ratio <= low
    assert replace(channel, **{name: getattr(channel, name) + x for name, x in better.items()}).ratio > high


THRESHOLDS = [v for v in VECTORS["E_ue_thresholds"] if v["bits"] == 64 and "floor" not in v["round"]]


@pytest.mark.parametrize("vector", THRESHOLDS, ids=lambda v: f"{v['proto']}-{v['eps']}")
def test_thresholds_are_those_of_the_vectors(vector: dict[str, Any]) -> None:
    channel = UNARY[vector["proto"]](epsilon=Fraction(vector["eps"]), domain_size=5)
    assert (channel.threshold_p, channel.threshold_q) == (int(vector["Tp"]), int(vector["Tq"]))
    numerator, denominator = vector["ratio"].split("/")
    assert channel.ratio == Fraction(int(numerator), int(denominator))


@pytest.mark.parametrize("theta", [Fraction(1, 2), Fraction(5, 8), Fraction(1)])
def test_thresholding_has_the_probabilities_of_laplace_noise(theta: Fraction) -> None:
    epsilon = Fraction(3, 2)
    channel = ldp.the_channel(epsilon=epsilon, domain_size=3, theta=theta)
    noise = laplace(scale=2 / float(epsilon))
    assert float(channel.p) == pytest.approx(noise.sf(float(theta) - 1), rel=1e-15)
    assert float(channel.q) == pytest.approx(noise.sf(float(theta)), rel=1e-15)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "4", "12", "40"])
def test_default_threshold_has_the_smallest_variance(epsilon: str) -> None:
    theta = ldp.best_theta(Fraction(epsilon))

    def variance(theta: float) -> float:
        miss = np.exp(float(epsilon) / 2 * (theta - 1)) / 2
        q = np.exp(-float(epsilon) / 2 * theta) / 2
        return float(q * (1 - q) / (1 - miss - q) ** 2)

    best = minimize_scalar(variance, bounds=(0.5, 1), method="bounded", options={"xatol": 1e-9})
    assert variance(float(theta)) <= best.fun * (1 + 1e-11)
    assert min(variance(t) for t in np.linspace(0.5, 1, 2001)) >= variance(float(theta)) * (1 - 1e-12)
    assert float(theta) == pytest.approx(best.x, abs=1e-3)
    default = ldp.the_channel(epsilon=Fraction(epsilon), domain_size=4)
    assert default == ldp.the_channel(epsilon=Fraction(epsilon), domain_size=4, theta=theta)


def test_default_theta_is_frozen() -> None:
    """Another one would give everyone a second, independent report."""
    assert [ldp.best_theta(Fraction(epsilon)) * 2**20 for epsilon in (1, 4)] == [648600, 855298]


TINY = ldp.HistogramChannel(domain_size=3, weights=tuple(w * WORD // 64 for w in (9, 27, 18, 10)))


def count_law(channel: ldp.HistogramChannel) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    absent = {channel.lowest + i: Fraction(w, WORD) for i, w in enumerate(channel.weights)}
    return absent, {1 - y: p for y, p in absent.items()}


@pytest.mark.parametrize("channel", [TINY, ldp.histogram_channel(epsilon=Fraction(12), domain_size=2)])
def test_worst_histogram_of_all_has_the_stated_ratio(channel: ldp.HistogramChannel) -> None:
    absent, present = count_law(channel)
    assert sum(absent.values()) == sum(present.values()) == 1
    k = channel.domain_size
    worst = Fraction(0)
    for counts in product(absent, repeat=k):
        laws = [prod((present if v == j else absent)[y] for j, y in enumerate(counts)) for v in range(k)]
        worst = max(worst, max(laws) / min(laws))
    assert worst == channel.ratio


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
    formula = ldp.histogram_variance(truth / population, n_reports=n, n_population=population, channel=TINY)
    assert float(formula) == pytest.approx(float(square - mean**2), rel=1e-12)


def test_histogram_frequencies_undo_the_mean() -> None:
    sums = np.array([800, -30, 5])
    sizes = {"n_reports": 1000, "n_population": 5000, "channel": TINY}
    estimates = ldp.histogram_frequencies(sums, **sizes)
    exact = [(Fraction(int(s), 1000) - TINY.offset) / TINY.slope for s in sums]
    assert estimates.frequency == pytest.approx([float(f) for f in exact], rel=1e-14)
    variance = ldp.histogram_variance(min(exact[0], 1), **sizes)
    assert estimates.std_error[0] ** 2 == pytest.approx(float(variance))
    assert np.all((estimates.ci_low < estimates.frequency) & (estimates.frequency < estimates.ci_high))


@pytest.mark.parametrize("vector", VECTORS["G_geometric"], ids=lambda v: f"{v['delta1']}-{v['eps']}")
def test_noise_is_the_geometric_one_of_the_vectors(vector: dict[str, Any]) -> None:
    """One histogram loses the epsilon of a sensitivity of 2."""
    epsilon = 2 * Fraction(vector["eps"]) / int(vector["delta1"])
    channel = ldp.histogram_channel(epsilon=epsilon, domain_size=2)
    assert channel.weights[-channel.lowest] / WORD == pytest.approx(float(vector["P0"]), rel=1e-11)
    assert float(channel.noise) == pytest.approx(float(vector["variance"]), rel=1e-8)
    step = channel.weights[-channel.lowest + 1] / channel.weights[-channel.lowest]
    assert step == pytest.approx(float(vector["alpha"]), rel=1e-11)


def test_table_is_frozen() -> None:
    """Another one would give everyone a second, dependent report."""
    weights = ldp.histogram_channel(epsilon=Fraction(1), domain_size=3).weights
    assert (len(weights), weights[0], weights[40], weights[-1]) == (112, 13089782, 2498808572251157, 7939355)


@makers
@pytest.mark.parametrize("domain_size", [2, 3, 32767])
def test_the_ends_of_the_range_work(maker, domain_size: int) -> None:
    for epsilon in (Fraction(1, 100) if maker is ldp.histogram_channel else MIN_EPSILON, MAX_EPSILON):
        assert 0 < maker(epsilon=epsilon, domain_size=domain_size).epsilon <= epsilon


def test_what_cannot_be_a_channel_is_refused() -> None:
    one, grr = Fraction(1), ldp.grr_channel(epsilon=Fraction(1), domain_size=3)
    for maker in MAKERS.values():
        for epsilon in (Fraction(0), MIN_EPSILON / 2, MAX_EPSILON + 1):
            refuses("epsilon of one answer must be in", maker, epsilon=epsilon, domain_size=3)
        for k in (1, MAX_DOMAIN_SIZE + 1):
            refuses(f"domain_size must be .* got {k}", maker, epsilon=one, domain_size=k)
    message = "noisy histogram must be in .*, got 0.009"
    refuses(message, ldp.histogram_channel, epsilon=one * 9 / 1000, domain_size=3)
    refuses("domain_size must be <= 32767, got 32768", ldp.hadamard_channel, epsilon=one, domain_size=32768)
    refuses("domain_size of sign must be 2, got 3", ldp.HadamardChannel, domain_size=3, sign=grr)
    for theta in (Fraction(49, 100), Fraction(101, 100)):
        refuses(r"theta must be in \[1/2, 1\], got", ldp.the_channel, epsilon=one, domain_size=3, theta=theta)
    for p, q in ((5, 5), (5, 6), (5, 0), (WORD, 5)):
        refuses(f"must hold, got {q} and {p}", ldp.UnaryChannel, domain_size=3, threshold_p=p, threshold_q=q)
    subset = partial(ldp.SubsetChannel, domain_size=5)
    for size in (0, 5):
        refuses(rf"subset_size must be in \[1, 4\], got {size}", subset, subset_size=size, threshold=WORD - 1)
    for threshold in (WORD * 2 // 5, WORD):
        refuses(f"threshold must be in .* got {threshold}", subset, subset_size=2, threshold=threshold)
    histogram = partial(ldp.HistogramChannel, domain_size=3)
    for weights in ((WORD // 2, WORD // 2 - 1), (WORD,), (WORD, 0), (WORD - 2, 1, 1)):
        refuses("weights must be an even number of positive integers", histogram, weights=weights)
    refuses("mean of an absent value must be < 1/2, got", histogram, weights=(WORD // 2, WORD // 2))


def test_counts_that_cannot_be_are_refused() -> None:
    oue = ldp.oue_channel(epsilon=Fraction(1), domain_size=3)
    estimate = partial(ldp.pure_frequencies, n_reports=10, n_population=10, channel=oue)
    refuses("counts must be <= n_reports = 10, got 11", estimate, np.array([1, 2, 11]))
    refuses("counts must be >= 0, got -1", estimate, np.array([1, 2, -1]))
    refuses(r"counts must have shape \(3,\), got \(2,\)", estimate, np.array([1, 2]))
    estimate = partial(ldp.histogram_frequencies, n_reports=1000, n_population=1000, channel=TINY)
    for sums in ([0, 0, 2001], [0, -1001, 0]):
        refuses(r"sums must be in \[-1000, 2000\], got", estimate, np.array(sums))
    some = ldp.bit_flip_channel(epsilon=Fraction(2), domain_size=3, sampled=1)
    estimate = partial(ldp.pure_frequencies, np.array([1, 2, 3]), n_population=9, channel=some)
    refuses("n_reports must be >= 1, got 0", estimate, n_reports=np.array([3, 0, 3]))
    refuses("counts must be <= n_reports", estimate, n_reports=np.array([3, 1, 3]))
    refuses("n_population must be >= n_reports", estimate, n_reports=np.array([3, 10, 3]))
