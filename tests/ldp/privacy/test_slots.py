"""Noise by slot: what is certified is never less than the truth, and adds up with presence noise."""

import math
import sys
from contextlib import redirect_stderr
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from ldp import IndicatorRequest, build_plan
from ldp.errors import InvalidBudgetError, PlanError
from ldp.privacy.accounting import certify_presence
from ldp.privacy.slot_losses import certify_slots
from ldp.privacy.slots import SlotNoise, SlotSpec, gaussian_epsilon, slot_noise, zcdp_epsilon, zcdp_order
from tests.ldp.exact import refuses

# Its logging keeps the error stream that it finds, and closes it with all handlers: not that of the tests.
with redirect_stderr(sys.__stderr__):
    from dp_accounting.dp_event import GaussianDpEvent, SelfComposedDpEvent
    from dp_accounting.pld.privacy_loss_distribution import from_discrete_gaussian_mechanism
    from dp_accounting.rdp import RdpAccountant

DELTA = Fraction(1, 10**6)


def noise(variance: str = "100", *, slots: int = 48, levels: int = 1, delta: Fraction = DELTA) -> SlotNoise:
    return SlotNoise(variance=Fraction(variance), slots_per_day=slots, levels=levels, delta=delta)


def exact_delta(variance: float, *, shift: int, epsilon: float) -> float:
    """Delta of one count that moves by `shift`, by summing the discrete Gaussian."""
    width = int(40 * math.sqrt(variance)) + shift
    law = {z: math.exp(-(z**2) / (2 * variance)) for z in range(-width, width + 1)}
    total = sum(law.values())
    excess = (law[z] - math.exp(epsilon) * law.get(z - shift, 0.0) for z in law)
    return sum(max(each, 0.0) for each in excess) / total


def test_losses_add_up_over_slots_levels_and_days() -> None:
    one = noise("200")
    assert one.rho(slots=1) == Fraction(1, 400)
    assert one.rho_of_days(1) == Fraction(48, 400)
    assert one.rho_of_days(7) == 7 * one.rho_of_days(1)
    assert noise("200", levels=2).rho_of_days(1) == 2 * one.rho_of_days(1)
    # Elsewhere instead of absent: one count less and another one more, at each level.
    assert one.rho(slots=1, is_moved=True) == 2 * one.rho(slots=1)
    assert one.epsilon(days=7) == zcdp_epsilon(one.rho_of_days(7), delta=DELTA)
    assert one.epsilon_of_slot() == zcdp_epsilon(Fraction(1, 400), delta=DELTA)
    assert one.epsilon(days=2) > one.epsilon(days=1) > one.epsilon_of_slot() > 0
    assert zcdp_epsilon(Fraction(0), delta=DELTA) == gaussian_epsilon(0.0, delta=1e-6) == 0


@pytest.mark.parametrize("variance", [0.25, 1, 4, 30])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_a_certificate_holds_for_the_exact_law(variance: float, shift: int) -> None:
    rho = Fraction(shift**2) / (2 * Fraction(variance))
    epsilon = float(zcdp_epsilon(rho, delta=DELTA))
    assert exact_delta(variance, shift=shift, epsilon=epsilon) <= float(DELTA)


@pytest.mark.parametrize("rho", ["1/10000", "1/100", "1/2", "3", "40"])
@pytest.mark.parametrize("delta", ["1/100", "1/1000000", "1/1000000000000"])
def test_a_certificate_lies_between_the_curve_and_the_simple_bound(rho: str, delta: str) -> None:
    loss, chance = Fraction(rho), Fraction(delta)
    certified = float(zcdp_epsilon(loss, delta=chance))
    simple = float(loss) + 2 * math.sqrt(float(loss) * math.log(1 / chance))
    assert gaussian_epsilon(float(loss), delta=float(chance)) <= certified + 1e-12 <= simple + 2e-12


@pytest.mark.parametrize("rho", [150.0, 450.0, 700.0, 70_000.0])
def test_the_curve_of_a_large_loss_is_close_to_its_certificate(rho: float) -> None:
    certified = float(zcdp_epsilon(Fraction(rho), delta=DELTA))
    assert 0.96 * certified < gaussian_epsilon(rho, delta=1e-6) < certified


@pytest.mark.parametrize(
    ("epsilon", "slots", "printed"), [("1/2", 48, 55.8), ("1", 48, 29.3), ("2", 48, 15.5), ("1", 336, 77.4)]
)
def test_the_curve_reproduces_the_noise_that_a_person_needs(epsilon: str, slots: int, printed: float) -> None:
    found = gaussian_epsilon(slots / (2 * printed**2), delta=1e-6)
    assert found == pytest.approx(float(Fraction(epsilon)), rel=0.005)


@pytest.mark.parametrize("slots", [1, 48])
@pytest.mark.parametrize("epsilon", ["1/1000", "1/2", "1", "20"])
def test_the_noise_of_a_plan_is_the_least_that_is_certified(epsilon: str, slots: int) -> None:
    asked = Fraction(epsilon)
    chosen = slot_noise(epsilon_day=asked, delta=DELTA, slots_per_day=slots, levels=2)
    assert chosen.epsilon(days=1) <= asked
    if chosen.variance > Fraction(1, 4):
        less = noise(str(chosen.variance - Fraction(1, 1000)), slots=slots, levels=2)
        assert less.epsilon(days=1) > asked


def test_the_noise_of_a_plan_is_certified_to_the_last_digit_of_what_is_asked() -> None:
    asked = Fraction(noise("300").epsilon(days=1)) - Fraction(1, 10**30)
    with localcontext(prec=3):  # the context of a caller decides nothing
        chosen = slot_noise(epsilon_day=asked, delta=DELTA, slots_per_day=48, levels=1)
    assert chosen.variance == Fraction("300.001")
    # Where 1/4 suffices, it is the least.
    assert slot_noise(epsilon_day=Fraction(20), delta=DELTA, slots_per_day=1, levels=1).variance == 0.25


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"variance": "1/5"}, InvalidBudgetError, "variance must be >= 1/4, got 0.2"),
        ({"slots": 0}, PlanError, r"slots_per_day must be in \[1, 96\], got 0"),
        ({"slots": 97}, PlanError, "got 97"),
        ({"levels": 0}, PlanError, "levels must be >= 1, got 0"),
        ({"delta": Fraction(0)}, InvalidBudgetError, "delta must be in"),
        ({"delta": Fraction(1, 2)}, InvalidBudgetError, "got 0.5"),
    ],
)
def test_values_out_of_range_are_refused(change, error, words) -> None:
    refuses(words, noise, error=error, **change)
    for epsilon in (Fraction(1, 1001), Fraction(21)):
        asked = {"epsilon_day": epsilon, "delta": DELTA, "slots_per_day": 48, "levels": 1}
        refuses("epsilon_day must be in", slot_noise, error=InvalidBudgetError, **asked)


# The least noise, a little, and that of epsilon 1 for a day, a day at two levels, and a week.
NOISES = [("1/4", 1), ("4", 48), ("858", 48), ("1970.77", 96), ("6000", 336)]


@pytest.mark.parametrize(("variance", "slots"), NOISES)
@pytest.mark.parametrize("delta", ["1/1000", "1/1000000"])
def test_a_certificate_is_never_below_what_dp_accounting_computes(variance, slots, delta) -> None:
    spread, chance = math.sqrt(Fraction(variance)), Fraction(delta)
    rho = Fraction(slots) / (2 * Fraction(variance))
    certified = float(zcdp_epsilon(rho, delta=chance))
    # The exact discrete law, composed and rounded up by their accountant.
    exact = from_discrete_gaussian_mechanism(spread, value_discretization_interval=1e-4).self_compose(slots)
    assert certified >= exact.get_epsilon_for_delta(float(chance)) > 0
    # Their bound at our order is ours.
    theirs = RdpAccountant(orders=[float(zcdp_order(rho, delta=chance))])
    theirs.compose(SelfComposedDpEvent(GaussianDpEvent(spread), slots))
    assert certified == pytest.approx(theirs.get_epsilon(float(chance)), rel=1e-9)


NOISY = SlotSpec(minutes=30, slots_per_day=48, levels=2, variance=Fraction(2000), delta=DELTA)
EXACT = SlotSpec(minutes=30, slots_per_day=48, levels=2)
HIDDEN = {"presence_epsilon": Decimal(1), "presence_days": 3}


def plan(slots=NOISY, *, days=10, **hidden):
    asked = IndicatorRequest(slug="gender", kind="static", domain_size=2)
    return build_plan(
        mechanism="smp-grr", unit="profile", version=1, days=days, epsilon=Decimal(1), indicators=[asked],
        slots=slots, **hidden,
    )  # fmt: skip


def test_losses_are_listed_by_unit_and_each_doubles_for_who_was_elsewhere():
    certificate = certify_slots(plan())
    assert [(row.unit, row.slots) for row in certificate.rows] == [
        ("slot", 1), ("day", 48), ("week", 336), ("study", 480)
    ]  # fmt: skip
    for row in certificate.rows:
        # Two counts of variance 2000 in each slot: of the zone, and of the one that holds it.
        assert row.absent.rho == Fraction(2 * row.slots, 2 * 2000) == row.moved.rho / 2
        for loss in (row.absent, row.moved):
            assert loss.epsilon == zcdp_epsilon(loss.rho, delta=DELTA)
            assert 0 < loss.tight < loss.epsilon < 2 * loss.tight
    assert [row.unit for row in certify_slots(plan(days=7)).rows] == ["slot", "day", "study"]


def test_presence_noise_and_slots_add_up_at_the_delta_of_the_slots():
    hidden = plan(**HIDDEN)
    presence, slots = certify_presence(hidden), certify_slots(hidden)
    assert slots.epsilon - presence.epsilon == pytest.approx(slots.study.absent.epsilon)
    assert slots.epsilon_moved - presence.epsilon_moved == pytest.approx(slots.study.moved.epsilon)
    assert slots.epsilon_replaced - presence.epsilon_replaced == pytest.approx(slots.study.moved.epsilon)
    alone = certify_slots(plan())
    assert (alone.epsilon, alone.epsilon_moved, alone.epsilon_replaced) == (None, None, None)


def test_exact_counts_have_no_certificate_and_would_undo_presence_noise():
    assert certify_slots(plan(EXACT)) is certify_slots(plan(None)) is None
    with pytest.raises(PlanError, match='noise of slots must be "gaussian" with presence_epsilon'):
        plan(EXACT, **HIDDEN)
