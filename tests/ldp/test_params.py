"""Plans: what is accepted, what is refused and with which words."""

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp import (
    IndicatorRequest,
    IndicatorSpec,
    InvalidBudgetError,
    InvalidDomainError,
    LdpError,
    PlanError,
    PlanSpec,
    build_plan,
)
from tests.ldp.exact import make_plan

GENDER = IndicatorSpec(slug="gender", kind="static", domain_size=3, epsilon=Fraction(1))
DURATION = IndicatorSpec(
    slug="visit_duration", kind="daily", domain_size=10, epsilon=Fraction(1, 2), max_values=4
)
PLAN = PlanSpec(mechanism="smp-grr", unit="profile", version=1, days=7, indicators=(GENDER, DURATION))


def test_decimals_become_exact_fractions() -> None:
    plan = build_plan(
        mechanism="smp-grr",
        unit="attribute",
        version=3,
        days=7,
        epsilon=Decimal("0.1"),
        indicators=[
            IndicatorRequest(slug="a", kind="static", domain_size=2),
            IndicatorRequest(slug="b", kind="daily", domain_size=9, epsilon=Decimal("2.50"), max_values=3),
        ],
    )
    assert plan.indicators == (
        IndicatorSpec(slug="a", kind="static", domain_size=2, epsilon=Fraction(1, 10)),
        IndicatorSpec(slug="b", kind="daily", domain_size=9, epsilon=Fraction(5, 2), max_values=3),
    )
    assert (plan.d, plan.index("b"), plan.is_sampled) == (2, 1, True)
    assert [plan.values_per_person(i) for i in range(2)] == [1, 3]


def test_splitting_shares_epsilon_exactly() -> None:
    plan = make_plan(*[("static", 3)] * 7, mechanism="spl-grr")
    assert {spec.epsilon for spec in plan.indicators} == {Fraction(1, 7)}
    assert not plan.is_sampled


def test_splitting_refuses_an_epsilon_of_its_own() -> None:
    requests = [IndicatorRequest(slug="a", kind="static", domain_size=2, epsilon=Decimal("0.5"))]
    with pytest.raises(PlanError, match=r"epsilon of a must be absent: spl-grr shares one, got 0\.5"):
        build_plan(
            mechanism="spl-grr", unit="profile", version=1, days=7, epsilon=Decimal(1), indicators=requests
        )


@pytest.mark.parametrize("epsilon", ["NaN", "sNaN", "Infinity", "-Infinity"])
def test_epsilon_must_be_a_number(epsilon: str) -> None:
    with pytest.raises(InvalidBudgetError, match=f"epsilon must be a finite number, got {epsilon}"):
        make_plan(("static", 2), epsilon=Decimal(epsilon))


@pytest.mark.parametrize("epsilon", ["0", "-1", "1e-7", "64.1"])
def test_epsilon_must_be_realisable(epsilon: str) -> None:
    with pytest.raises(InvalidBudgetError, match="epsilon of one answer must be in"):
        make_plan(("static", 2), epsilon=Decimal(epsilon))


@pytest.mark.parametrize("domain_size", [1, 65535])
def test_domain_size_must_fit(domain_size: int) -> None:
    with pytest.raises(InvalidDomainError, match=f"domain_size must be .* got {domain_size}"):
        make_plan(("static", domain_size))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mechanism": "smp-oue"}, "mechanism must be one of .* got 'smp-oue'"),
        ({"unit": "person"}, "unit must be one of .* got 'person'"),
        ({"version": 0}, r"version must be in \[1, 255\], got 0"),
        ({"version": 256}, r"version must be in \[1, 255\], got 256"),
        ({"days": 0}, r"days must be in \[1, 62\], got 0"),
        ({"days": 63}, r"days must be in \[1, 62\], got 63"),
        ({"days": 3}, r"max_values of visit_duration must be in \[1, 3\], got 4"),
        ({"indicators": ()}, r"number of indicators must be in \[1, 255\], got 0"),
        ({"indicators": (GENDER, GENDER)}, "slug of an indicator must be unique, got 'gender' twice"),
        (
            {"indicators": tuple(replace(GENDER, slug=f"i{i}") for i in range(256))},
            r"number of indicators must be in \[1, 255\], got 256",
        ),
    ],
)
def test_plan_that_contradicts_itself_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        replace(PLAN, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slug": ""}, "slug of an indicator must not be empty"),
        ({"kind": "weekly"}, "kind of gender must be one of .* got 'weekly'"),
        ({"max_values": 2}, "max_values of gender must be absent for a static indicator, got 2"),
    ],
)
def test_indicator_that_contradicts_itself_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        replace(GENDER, **changes)


def test_unknown_indicator_is_named() -> None:
    with pytest.raises(PlanError, match="indicator must be one of the plan's, got 'age'"):
        PLAN.index("age")


@given(
    mechanism=st.sampled_from(["smp-grr", "spl-grr"]),
    epsilon=st.decimals("0.1", "20", places=4),
    indicators=st.lists(
        st.tuples(st.sampled_from(["static", "daily"]), st.integers(2, 65534)), min_size=1, max_size=9
    ),
)
def test_json_round_trip_is_exact(
    mechanism: str, epsilon: Decimal, indicators: list[tuple[str, int]]
) -> None:
    plan = make_plan(*indicators, mechanism=mechanism, epsilon=epsilon, max_values=2)
    assert PlanSpec.from_json(json.loads(json.dumps(plan.to_json()))) == plan


@pytest.mark.parametrize(
    "change",
    [
        {"days": None},
        {"days": "7"},
        {"indicators": [{"slug": "a"}]},
        {"indicators": 5},
        {"indicators": [PLAN.to_json()["indicators"][0] | {"epsilon": "1/0"}]},
        {"indicators": [PLAN.to_json()["indicators"][0] | {"epsilon": "much"}]},
    ],
)
def test_json_of_another_shape_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="plan must be an object as to_json writes it"):
        PlanSpec.from_json(PLAN.to_json() | change)


def test_json_that_breaks_a_rule_names_the_rule() -> None:
    with pytest.raises(LdpError, match=r"version must be in \[1, 255\], got 300"):
        PlanSpec.from_json(PLAN.to_json() | {"version": 300})
