"""From epsilon to integer thresholds: never more than what was asked, never less than needed."""

from decimal import Decimal
from fractions import Fraction
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp import GrrChannel, InvalidBudgetError, InvalidDomainError, epsilon_of, grr_channel
from ldp.channels import MAX_DOMAIN_SIZE, MAX_EPSILON, MIN_EPSILON, WORD, exp_down
from tests.ldp.exact import VECTORS, exp_bounds

epsilons = st.fractions(Fraction(1, 1000), 8, max_denominator=1000)
domain_sizes = st.one_of(st.integers(2, 40), st.integers(2, MAX_DOMAIN_SIZE))
THRESHOLDS = [v for v in VECTORS["E_grr_thresholds"] if v["bits"] == 64]
REALISABLE = [v for v in THRESHOLDS if v["k"] <= MAX_DOMAIN_SIZE]


@pytest.mark.parametrize("vector", VECTORS["base"], ids=lambda v: f"{v['eps']}-{v['c']}")
def test_probabilities_are_those_of_the_vectors(vector: dict[str, str]) -> None:
    channel = grr_channel(epsilon=Fraction(vector["eps"]), domain_size=int(vector["c"]))
    assert float(channel.p) == pytest.approx(float(vector["p"]), rel=2e-15)
    assert float(channel.q) == pytest.approx(float(vector["q"]), rel=2e-15)
    assert channel.p + (channel.domain_size - 1) * channel.q == 1


@pytest.mark.parametrize("vector", REALISABLE, ids=lambda v: f"{v['eps']}-{v['k']}")
def test_thresholds_are_those_of_the_vectors(vector: dict[str, str]) -> None:
    channel = grr_channel(epsilon=Fraction(vector["eps"]), domain_size=int(vector["k"]))
    assert channel.threshold == int(vector["T"])
    numerator, denominator = vector["realised_unbiased"].split("/")
    assert channel.ratio == Fraction(int(numerator), int(denominator))
    gap = channel.epsilon - Decimal(vector["eps"])
    assert gap <= 0
    assert float(gap) == pytest.approx(float(vector["delta_unb"]), rel=1e-6)


def test_the_vectors_beyond_our_codes_are_refused() -> None:
    beyond = [v for v in THRESHOLDS if v not in REALISABLE]
    assert beyond and REALISABLE
    for vector in beyond:
        with pytest.raises(InvalidDomainError, match=f"domain_size must be <= 65534, got {vector['k']}"):
            grr_channel(epsilon=Fraction(vector["eps"]), domain_size=vector["k"])


@given(epsilon=epsilons, domain_size=domain_sizes)
def test_threshold_is_the_largest_that_keeps_the_promise(epsilon: Fraction, domain_size: int) -> None:
    channel = grr_channel(epsilon=epsilon, domain_size=domain_size)
    low, high = exp_bounds(epsilon)
    assert channel.ratio <= low
    assert GrrChannel(domain_size=domain_size, threshold=channel.threshold + 1).ratio > high
    assert channel.p > channel.q


@given(epsilon=epsilons)
def test_exponential_is_rounded_down_and_only_in_its_last_digits(epsilon: Fraction) -> None:
    low, _ = exp_bounds(epsilon)
    rounded = exp_down(epsilon)
    assert low * (1 - Fraction(1, 10**57)) < rounded <= low


@given(ratio=st.fractions(Fraction(1), Fraction(1_000_000)).filter(lambda r: r > 1))
def test_epsilon_of_rounds_up_in_the_thirtieth_digit(ratio: Fraction) -> None:
    epsilon = epsilon_of(ratio)
    step = Decimal(1).scaleb(epsilon.adjusted() - 29)
    low, _ = exp_bounds(Fraction(epsilon))
    assert low >= ratio
    _, below = exp_bounds(Fraction(epsilon) - Fraction(step))
    assert below < ratio


def test_epsilon_of_long_products_keeps_its_digits() -> None:
    channel = grr_channel(epsilon=Fraction(1, 7), domain_size=11)
    product = epsilon_of(*[channel.ratio] * 434)
    assert product == epsilon_of(channel.ratio**434)
    assert product <= 62
    assert abs(product - 434 * channel.epsilon) <= Decimal("1e-26")
    assert product <= 434 * channel.epsilon


def test_epsilon_of_no_loss_is_zero_and_less_than_none_is_refused() -> None:
    assert epsilon_of(Fraction(1)) == 0
    with pytest.raises(InvalidBudgetError, match="ratio must be >= 1, got 1/2"):
        epsilon_of(Fraction(1, 2))


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1), MIN_EPSILON / 2, MAX_EPSILON + 1])
def test_epsilon_out_of_range_is_refused(epsilon: Fraction) -> None:
    with pytest.raises(InvalidBudgetError, match=r"epsilon of one answer must be in \[0.000001, 64\], got"):
        grr_channel(epsilon=epsilon, domain_size=3)


@pytest.mark.parametrize("epsilon", [MIN_EPSILON, MAX_EPSILON])
@pytest.mark.parametrize("domain_size", [2, 3, MAX_DOMAIN_SIZE])
def test_the_ends_of_the_range_work(epsilon: Fraction, domain_size: int) -> None:
    channel = grr_channel(epsilon=epsilon, domain_size=domain_size)
    assert 0 < channel.epsilon <= epsilon
    assert channel.epsilon >= min(epsilon * Fraction(999_999, 10**6), 44)


@pytest.mark.parametrize("domain_size", [-1, 0, 1])
def test_domain_without_a_choice_is_refused(domain_size: int) -> None:
    with pytest.raises(InvalidDomainError, match=f"domain_size must be >= 2, got {domain_size}"):
        grr_channel(epsilon=Fraction(1), domain_size=domain_size)


@pytest.mark.parametrize("threshold", [0, WORD // 3, WORD])
def test_threshold_that_does_not_favour_the_truth_is_refused(threshold: int) -> None:
    with pytest.raises(InvalidBudgetError, match=f"threshold must be in .* got {threshold}"):
        GrrChannel(domain_size=3, threshold=threshold)


def test_every_domain_of_the_scan_stays_within_its_bound() -> None:
    scan = {v["eps"]: v for v in VECTORS["E_scan_k_le_65536"] if v["bits"] == 64 and v["mode"] == "unb"}
    assert scan
    for epsilon, bounds in scan.items():
        worst = min(
            float(grr_channel(epsilon=Fraction(epsilon), domain_size=k).epsilon - Decimal(epsilon))
            for k in {2, 37, 1024, 50_001, min(int(bounds["argmin_k"]), MAX_DOMAIN_SIZE)}
        )
        assert float(bounds["min_delta"]) * (1 + 1e-9) <= worst < 0, log2(-worst)
