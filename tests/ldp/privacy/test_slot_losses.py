"""Losses of a person from counts by slot: by slot, day, week and study, and together with presence noise."""

from decimal import Decimal
from fractions import Fraction

import pytest

from ldp import IndicatorRequest, PlanError, build_plan
from ldp.privacy.accounting import certify_presence
from ldp.privacy.slot_losses import certify_slots
from ldp.privacy.slots import SlotSpec, zcdp_epsilon

DELTA = Fraction(1, 10**6)
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
