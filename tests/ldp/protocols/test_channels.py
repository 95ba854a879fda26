"""From epsilon to integer thresholds: never more than what was asked, never less than needed."""

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ldp import GrrChannel, InvalidBudgetError, InvalidDomainError, epsilon_of, grr_channel
from ldp.protocols.channels import MAX_DOMAIN_SIZE, WORD, exp_down
from tests.ldp.exact import VECTORS, exp_bounds, refuses

epsilons = st.fractions(Fraction(1, 1000), 8, max_denominator=1000)
domain_sizes = st.one_of(st.integers(2, 40), st.integers(2, MAX_DOMAIN_SIZE))
THRESHOLDS = [v for v in VECTORS["E_grr_thresholds"] if v["bits"] == 64]
REALISABLE = [v for v in THRESHOLDS if v["k"] <= MAX_DOMAIN_SIZE]


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
    assert low * (1 - Fraction(1, 10**57)) < exp_down(epsilon) <= low


@example(ratio=1 + Fraction(11, 11063142418977204222652009413997))
@example(ratio=1 + Fraction(1, 3 * 10**40))
@example(ratio=1 + Fraction(1, 2**300))
@example(ratio=Fraction(5**400 + 3**400, 5**400))
@example(ratio=Fraction(3 * 5**400 + 1, 5**400))
@given(ratio=st.fractions(Fraction(1), Fraction(1_000_000)).filter(lambda r: r > 1))
def test_epsilon_of_rounds_up_in_the_thirtieth_digit(ratio: Fraction) -> None:
    epsilon = epsilon_of(ratio)
    step = Decimal(1).scaleb(epsilon.adjusted() - 29)
    low, _ = exp_bounds(Fraction(epsilon))
    assert low >= ratio
    _, below = exp_bounds(Fraction(epsilon) - Fraction(step))
    assert below < ratio


@pytest.mark.parametrize("excess", [Fraction(1, 3 * 10**40), Fraction(1, 2**300), Fraction(1, 2**300 - 1)])
def test_epsilon_of_a_tiny_loss_is_no_smaller_than_it(excess: Fraction) -> None:
    """ln(1 + x) > x - x**2 / 2: what is beyond 60 digits is much of it, or all."""
    least = map(Decimal, (excess - excess**2).as_integer_ratio())
    assert epsilon_of(1 + excess) >= Context(prec=60).divide(*least)


@pytest.mark.parametrize("epsilon", [Decimal(1), Decimal(2), Decimal("3.5")])
def test_epsilon_of_a_ratio_just_above_that_of_thirty_digits_is_the_next_one(epsilon: Decimal) -> None:
    """The nearest logarithm of 60 digits is the lower one: only the step up from it is not below the loss."""
    ratio = Context(prec=60, rounding=ROUND_CEILING).plus(Context(prec=90).exp(epsilon))
    assert Context(prec=60).ln(ratio) == epsilon
    assert Fraction(ratio) > exp_bounds(Fraction(epsilon))[1]
    assert epsilon_of(Fraction(ratio)) > epsilon


@pytest.mark.parametrize("epsilon", [Decimal(1), Decimal("3e-20"), Decimal("1e-30")])
def test_epsilon_of_a_quotient_without_end_is_no_smaller_than_its_logarithm(epsilon: Decimal) -> None:
    assert epsilon_of(exp_bounds(Fraction(epsilon))[1]) > epsilon


def test_epsilon_of_long_products_keeps_its_digits() -> None:
    channel = grr_channel(epsilon=Fraction(1, 7), domain_size=11)
    product = epsilon_of(*[channel.ratio] * 434)
    assert product == epsilon_of(channel.ratio**434)
    assert product <= 62
    assert abs(product - 434 * channel.epsilon) <= Decimal("1e-26")
    assert product <= 434 * channel.epsilon


def test_epsilon_of_no_loss_is_zero_and_less_than_none_is_refused() -> None:
    assert epsilon_of(Fraction(1)) == 0
    refuses("ratio must be >= 1, got 1/2", epsilon_of, Fraction(1, 2), error=InvalidBudgetError)


@pytest.mark.parametrize("threshold", [0, WORD // 3, WORD])
def test_threshold_that_does_not_favour_the_truth_is_refused(threshold: int) -> None:
    with pytest.raises(InvalidBudgetError, match=f"threshold must be in .* got {threshold}"):
        GrrChannel(domain_size=3, threshold=threshold)
