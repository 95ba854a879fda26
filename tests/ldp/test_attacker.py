"""Success of the best guess: against exact enumeration of all reports."""

from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp import GrrChannel, LdpError, fake_data_channel, grr_channel, oue_channel
from ldp.attacker import guess_success, largest_success
from ldp.families.faked_reports import FakedChannel
from ldp.params import ReportChannel
from tests.ldp.exact import make_plan

EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(3)]
weights = st.lists(st.integers(0, 20), min_size=2, max_size=5).filter(any)


def likelihoods(channel: ReportChannel) -> list[list[Fraction]]:
    """Probability of each possible report, for each value: written out, from p and q of an answer."""
    answer = channel.answer if isinstance(channel, FakedChannel) else channel
    share = channel.share if isinstance(channel, FakedChannel) else Fraction(1)
    k, p, q = answer.domain_size, answer.p, answer.q
    if isinstance(answer, GrrChannel):
        return [
            [share * (p if y == x else q) + (1 - share) * Fraction(1, k) for x in range(k)] for y in range(k)
        ]
    rows = []
    for bits in product((0, 1), repeat=k):
        row = []
        for value in [*range(k), None]:
            chance = Fraction(1)
            for place, bit in enumerate(bits):
                one = p if place == value else q
                chance *= one if bit else 1 - one
            row.append(chance)
        fake = row.pop()
        rows.append([share * chance + (1 - share) * fake for chance in row])
    return rows


def by_enumeration(channel: ReportChannel, prior: list[Fraction]) -> Fraction:
    return sum(
        (max(b * chance for b, chance in zip(prior, row, strict=True)) for row in likelihoods(channel)),
        start=Fraction(0),
    )


def channels(k: int, epsilon: Fraction) -> list[ReportChannel]:
    faked = [
        fake_data_channel(protocol, epsilon=epsilon, unit="profile", domain_sizes=[k, 3]).reports[0]
        for protocol in ("grr", "ouez")
    ]
    return [
        grr_channel(epsilon=epsilon, domain_size=k),
        oue_channel(epsilon=epsilon, domain_size=k),
        *[each for each in faked if isinstance(each, FakedChannel)],
    ]


@given(counts=weights, epsilon=st.sampled_from(EPSILONS))
def test_best_guess_is_right_as_often_as_by_enumeration(counts: list[int], epsilon: Fraction) -> None:
    prior = [Fraction(count, sum(counts)) for count in counts]
    tested = channels(len(counts), epsilon)
    assert len(tested) == 4
    for channel in tested:
        found = guess_success(channel, prior=[float(each) for each in prior])
        assert found == pytest.approx(float(by_enumeration(channel, prior)), rel=1e-12)


def test_with_nothing_known_a_code_is_the_best_guess() -> None:
    channel = grr_channel(epsilon=Fraction(1), domain_size=8)
    assert guess_success(channel, prior=[1 / 8] * 8) == pytest.approx(float(channel.p), rel=1e-12)


def test_an_answer_that_cannot_change_the_best_guess_is_worth_nothing() -> None:
    channel = oue_channel(epsilon=Fraction(1), domain_size=3)
    assert guess_success(channel, prior=[0.9, 0.05, 0.05]) == pytest.approx(0.9, rel=1e-12)


@pytest.mark.parametrize("epsilon", [Decimal("0.5"), Decimal(2)])
@pytest.mark.parametrize("mechanism", ["smp-grr", "smp-oue", "rsfd-grr", "rsfd-ouez"])
def test_no_guess_is_better_than_the_promise_allows(mechanism: str, epsilon: Decimal) -> None:
    plan = make_plan(("static", 5), ("static", 12), mechanism=mechanism, epsilon=epsilon)
    for index, spec in enumerate(plan.indicators):
        even = 1 / spec.domain_size
        most = largest_success(float(epsilon.exp()), prior=even)
        found = guess_success(plan.channel(index), prior=[even] * spec.domain_size)
        assert even < found <= most * (1 + 1e-12)


def test_grr_with_even_priors_reaches_the_bound() -> None:
    channel = grr_channel(epsilon=Fraction(2), domain_size=6)
    found = guess_success(channel, prior=[1 / 6] * 6)
    assert found == pytest.approx(largest_success(float(channel.ratio), prior=1 / 6), rel=1e-12)


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.5, 0.5, 0.5], [1.5, -0.5, 0.0], [0.5, 0.5, float("nan")]])
def test_a_prior_is_a_distribution_of_the_values(prior: list[float]) -> None:
    with pytest.raises(LdpError, match="prior must"):
        guess_success(grr_channel(epsilon=Fraction(1), domain_size=3), prior=prior)


def test_fakes_that_encode_values_are_refused() -> None:
    channel = fake_data_channel("ouer", epsilon=Fraction(1), unit="profile", domain_sizes=[4, 4]).reports[0]
    with pytest.raises(LdpError, match="fakes must be codes or of no value"):
        guess_success(channel, prior=[0.25] * 4)


@pytest.mark.parametrize(("ratio", "prior"), [(0.9, 0.5), (2.0, 1.5), (float("nan"), 0.5)])
def test_bound_needs_a_ratio_and_a_probability(ratio: float, prior: float) -> None:
    with pytest.raises(LdpError, match="ratio must"):
        largest_success(ratio, prior=prior)
