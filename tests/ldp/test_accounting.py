"""Certificates: computed from the thresholds, never above what was typed."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp import LdpError, PlanError, certify, check_cap, grr_channel
from tests.ldp.exact import make_plan

indicators_st = st.lists(
    st.tuples(st.sampled_from(["static", "daily"]), st.integers(2, 65534)), min_size=1, max_size=8
)


@given(
    indicators=indicators_st,
    mechanism=st.sampled_from(["smp-grr", "spl-grr"]),
    epsilon=st.decimals("0.01", "12", places=3),
    days=st.integers(3, 62),
    max_values=st.one_of(st.none(), st.integers(1, 3)),
)
def test_certified_never_exceeds_nominal(
    indicators: list[tuple[str, int]], mechanism: str, epsilon: Decimal, days: int, max_values: int | None
) -> None:
    plan = make_plan(*indicators, mechanism=mechanism, epsilon=epsilon, days=days, max_values=max_values)
    certificate = certify(plan)
    for entry, spec in zip(certificate.indicators, plan.indicators, strict=True):
        assert 0 < entry.epsilon <= entry.nominal == spec.epsilon
        assert entry.slug == spec.slug
        assert entry.n_values == (1 if spec.kind == "static" else max_values or days)
    assert certificate.epsilon_attribute <= certificate.nominal_attribute
    assert certificate.epsilon_profile <= certificate.nominal_profile
    assert certificate.epsilon_profile >= certificate.nominal_profile * Fraction(999_999, 10**6)
    if all(kind == "static" for kind, _ in indicators):
        assert certificate.nominal_profile == Fraction(epsilon)


def test_sampled_profile_loses_the_largest_and_split_profile_the_sum() -> None:
    indicators = [("static", 3), ("daily", 10), ("static", 37)]
    sampled = certify(make_plan(*indicators))
    assert (sampled.nominal_profile, sampled.nominal_attribute) == (7, 1)
    assert Decimal("6.999999999") < sampled.epsilon_profile <= 7
    split = certify(make_plan(*indicators, mechanism="spl-grr"))
    assert (split.nominal_profile, split.nominal_attribute) == (Fraction(9, 3), Fraction(1, 3))
    assert Decimal("2.999999999") < split.epsilon_profile <= 3


def test_ratio_is_that_of_the_threshold() -> None:
    plan = make_plan(("static", 3), epsilon=Decimal("0.3"))
    entry = certify(plan).indicators[0]
    assert entry.ratio == grr_channel(epsilon=Fraction(3, 10), domain_size=3).ratio


def test_voided_day_that_is_answered_again_adds_a_value() -> None:
    plan = make_plan(("static", 3), ("daily", 10), days=3, max_values=2)
    certificate = certify(plan, extra_daily_values=1)
    assert [entry.n_values for entry in certificate.indicators] == [1, 3]
    assert certificate.nominal_profile == 3
    assert certificate.nominal_attribute == 1
    with pytest.raises(LdpError, match="extra_daily_values must be >= 0, got -1"):
        certify(plan, extra_daily_values=-1)


def test_cap_refuses_a_plan_that_certifies_above_it() -> None:
    plan = make_plan(("static", 3), ("daily", 10))
    check_cap(plan, Decimal(7))
    check_cap(plan, certify(plan).epsilon_profile)
    message = r"epsilon_profile must be >= the certified loss per profile 6\.99999\d*, got 6\.9$"
    with pytest.raises(PlanError, match=message):
        check_cap(plan, Decimal("6.9"))
    with pytest.raises(PlanError, match=r"certified loss per profile 7\.99999\d*, got 7$"):
        check_cap(plan, Decimal(7), extra_daily_values=1)
    with pytest.raises(PlanError, match="got NaN"):
        check_cap(plan, Decimal("NaN"))


def test_largest_plan_is_certified() -> None:
    plan = make_plan(*[("daily", 65534)] * 255, mechanism="spl-grr", epsilon=Decimal(255), days=62)
    certificate = certify(plan)
    assert certificate.nominal_profile == 255 * 62
    assert Decimal(15_809) < certificate.epsilon_profile <= 15_810
