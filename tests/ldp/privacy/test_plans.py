"""Plans: what is accepted, what is refused and with which words."""

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ldp
from ldp.privacy.plans import Mechanism
from tests.ldp.exact import make_plan, refuses
from tests.ldp.privacy.test_accounting import indicators_st

FAKED = {"rsfd-grr": "grr", "rsfd-ouez": "ouez", "rsfd-adp": "adp"}
SIZES = (3, 8, 37)
STATIC = [("static", k) for k in SIZES]

GENDER = ldp.IndicatorSpec(slug="gender", kind="static", domain_size=3, epsilon=Fraction(1))
DURATION = ldp.IndicatorSpec(slug="stay", kind="daily", domain_size=10, epsilon=Fraction(1, 2), max_values=4)
PLAN = ldp.PlanSpec(mechanism="smp-grr", unit="profile", version=1, days=7, indicators=(GENDER, DURATION))


def built(*indicators: dict, **changes) -> ldp.PlanSpec:
    """Plan of indicators with three values each, "i0", "i1", ..., of which each may change some fields."""
    plain = {"kind": "static", "domain_size": 3}
    requests = [ldp.IndicatorRequest(**{"slug": f"i{i}"} | plain | each) for i, each in enumerate(indicators)]
    settings = {"mechanism": "smp-grr", "unit": "profile", "version": 1, "days": 7, "epsilon": Decimal(1)}
    return ldp.build_plan(**settings | changes, indicators=requests)


def test_decimals_become_exact_fractions() -> None:
    daily = {"kind": "daily", "domain_size": 9, "epsilon": Decimal("2.50"), "max_values": 3}
    plan = built({}, daily, epsilon=Decimal("0.1"))
    assert plan.indicators == (
        ldp.IndicatorSpec(slug="i0", kind="static", domain_size=3, epsilon=Fraction(1, 10)),
        ldp.IndicatorSpec(slug="i1", kind="daily", domain_size=9, epsilon=Fraction(5, 2), max_values=3),
    )
    assert (plan.d, plan.index("i1"), plan.is_sampled) == (2, 1, True)
    assert [plan.values_per_person(i) for i in range(2)] == [1, 3]


def weighted(*weights: str | None, mechanism: str = "smp-oue") -> ldp.PlanSpec:
    return built(*[{"weight": weight and Decimal(weight)} for weight in weights], mechanism=mechanism)


def test_weights_become_shares_that_add_up() -> None:
    plan = weighted("1.5", None, "0.5")
    assert plan.shares == (2**63, round(Fraction(2**64, 3)), round(Fraction(2**64, 6)))
    assert sum(plan.shares) == 2**64
    assert [plan.asked_share(i) for i in range(3)] == [Fraction(share, 2**64) for share in plan.shares]
    assert ldp.PlanSpec.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    assert ldp.certify(plan) == ldp.certify(replace(plan, shares=None))
    plain = weighted(None, None, None)
    assert (plain.shares, plain.asked_share(1)) == (None, Fraction(1, 3))
    for mechanism, share in (("rsfd-grr", Fraction(1, len(STATIC))), ("spl-grr", 1)):
        assert make_plan(*STATIC, mechanism=mechanism).asked_share(0) == share


def test_weights_shares_and_epsilons_that_cannot_be_are_refused() -> None:
    for weight in ("0", "-1", "NaN", "Infinity"):
        refuses(f"weight of i1 must be > 0, got {weight}", weighted, None, weight)
    message = "weight of i1 must be absent: spl-grr asks all alike"
    refuses(message, weighted, None, "2", mechanism="spl-grr")
    split = make_plan(*STATIC, mechanism="spl-grr")
    refuses("shares of a spl-grr plan must be absent", replace, split, shares=(2**64 // 3,) * 3)
    for shares in ((2**64,), (2**64, 0), (2**63, 2**63 - 1)):
        refuses(f"shares must be 2 positive integers with sum {2**64}", replace, PLAN, shares=shares)
    for epsilon in ("NaN", "sNaN", "Infinity", "-Infinity"):
        message = f"epsilon must be a finite number, got {epsilon}"
        refuses(message, make_plan, ("static", 2), epsilon=Decimal(epsilon), error=ldp.InvalidBudgetError)
    faked = make_plan(*STATIC, mechanism="rsfd-ouez")
    other = (*faked.indicators[:2], replace(faked.indicators[2], epsilon=Fraction(1, 2)))
    refuses("epsilon of the indicators must be one under rsfd-ouez, got", replace, faked, indicators=other)


@pytest.mark.parametrize(("mechanism", "why"), [("spl-grr", "shares one"), ("rsfd-adp", "has one for all")])
def test_an_epsilon_of_an_indicator_is_refused_where_there_is_one_for_all(mechanism: str, why: str) -> None:
    with pytest.raises(ldp.PlanError, match=rf"epsilon of i0 must be absent: {mechanism} {why}, got 0\.5"):
        built({"epsilon": Decimal("0.5")}, mechanism=mechanism)


def test_channel_of_an_answer_is_that_of_the_oracle() -> None:
    for name in ("grr", "oue", "adp"):
        mechanism, oracle = f"smp-{name}", getattr(ldp, f"{name}_channel")
        own = [{}, {"epsilon": Decimal("0.5")}, {"epsilon": Decimal(2)}]
        sizes = [{"domain_size": k} for k in SIZES]
        plan = built(*[one | size for one, size in zip(own, sizes, strict=True)], mechanism=mechanism)
        assert (plan.is_sampled, plan.has_fakes, plan.epsilon) == (True, False, None)
        for index, (k, epsilon) in enumerate(zip(SIZES, (1, Fraction(1, 2), 2), strict=True)):
            channel = oracle(epsilon=Fraction(epsilon), domain_size=k)
            assert plan.channel(index) == plan.answer_channel(index) == channel
        with pytest.raises(ldp.PlanError, match=f"needs a mechanism with fake data, got {mechanism}"):
            _ = plan.fake_data


@pytest.mark.parametrize("mechanism", FAKED)
@pytest.mark.parametrize("unit", ["profile", "attribute"])
def test_plan_with_fake_data_promises_epsilon_for_its_unit(mechanism: str, unit: str) -> None:
    plan = make_plan(*STATIC, mechanism=mechanism, unit=unit)
    protocol = FAKED[mechanism]
    answers = ldp.hidden_epsilon(protocol, epsilon=Fraction(1), unit=unit, domain_sizes=SIZES)
    assert plan.epsilon == 1
    assert {spec.epsilon for spec in plan.indicators} == {answers}
    assert (answers == 1) == (unit == "profile")
    expected = ldp.fake_data_channel(protocol, epsilon=Fraction(1), unit=unit, domain_sizes=SIZES)
    assert plan.fake_data == expected
    for index, report in enumerate(expected.reports):
        assert type(plan.channel(index)) is ldp.FakedChannel
        assert (plan.channel(index), plan.answer_channel(index)) == (report, report.answer)
    assert (plan.is_sampled, plan.has_fakes) == (False, True)
    if mechanism != "rsfd-adp":
        assert [plan.is_unary(i) for i in range(3)] == [mechanism == "rsfd-ouez"] * 3


@pytest.mark.parametrize("mechanism", FAKED)
def test_fake_data_that_hide_a_value_refuse_values_that_change(mechanism: str) -> None:
    message = f"kind of i1 must be static: under {mechanism} with the unit attribute .* got 'daily'"
    indicators = [("static", 3), ("daily", 10)]
    refuses(message, make_plan, *indicators, error=ldp.PlanError, mechanism=mechanism, unit="attribute")
    by_profile = make_plan(*indicators, mechanism=mechanism)
    refuses(message, replace, by_profile, error=ldp.PlanError, unit="attribute")
    assert [by_profile.values_per_person(i) for i in range(2)] == [1, 7]


def test_fake_data_that_keep_less_than_promised_are_refused() -> None:
    for unit, changes, message in (
        ("profile", {"epsilon": None}, "epsilon of a rsfd-grr plan must be present, got None"),
        ("profile", {"epsilon": Fraction(1, 2)}, "epsilon of the answers must be 1/2, got 1"),
        ("profile", {"epsilon": Fraction(2)}, "epsilon of the answers must be 2, got 1"),
        ("attribute", {"epsilon": Fraction(1, 2)}, "epsilon of the answers must keep 1/2 per attribute, got"),
        ("attribute", {"unit": "profile"}, "epsilon of the answers must be 1, got"),
    ):
        plan = make_plan(*STATIC, mechanism="rsfd-grr", unit=unit)
        refuses(message, replace, plan, error=ldp.PlanError, **changes)


def test_plan_that_contradicts_itself_is_refused() -> None:
    for changes, message in (
        ({"mechanism": "smp-olh"}, "mechanism must be one of .* got 'smp-olh'"),
        ({"epsilon": Fraction(1)}, "epsilon of a smp-grr plan must be absent, got 1"),
        ({"unit": "person"}, "unit must be one of .* got 'person'"),
        ({"version": 0}, r"version must be in \[1, 255\], got 0"),
        ({"version": 256}, r"version must be in \[1, 255\], got 256"),
        ({"days": 0}, r"days must be in \[1, 62\], got 0"),
        ({"days": 63}, r"days must be in \[1, 62\], got 63"),
        ({"days": 3}, r"max_values of stay must be in \[1, 3\], got 4"),
        ({"indicators": ()}, r"number of indicators must be in \[1, 255\], got 0"),
        ({"indicators": (GENDER, GENDER)}, "slug of an indicator must be unique, got 'gender' twice"),
        ({"indicators": tuple(replace(GENDER, slug=f"i{i}") for i in range(256))}, "number of .*, got 256"),
    ):
        refuses(message, replace, PLAN, error=ldp.PlanError, **changes)


def test_indicator_that_contradicts_itself_is_refused() -> None:
    for changes, message in (
        ({"slug": ""}, "slug of an indicator must not be empty"),
        ({"kind": "weekly"}, "kind of gender must be one of .* got 'weekly'"),
        ({"max_values": 2}, "max_values of gender must be absent for a static indicator, got 2"),
    ):
        refuses(message, replace, GENDER, error=ldp.PlanError, **changes)
        refuses("indicator must be one of the plan's, got 'age'", PLAN.index, "age", error=ldp.PlanError)


@pytest.mark.parametrize("mechanism", get_args(Mechanism))
@pytest.mark.parametrize("unit", ["profile", "attribute"])
def test_plan_of_nothing_is_refused(mechanism: str, unit: str) -> None:
    refuses(r"number of indicators must be|must hold an indicator", make_plan, mechanism=mechanism, unit=unit)


@given(
    mechanism=st.sampled_from(get_args(Mechanism)),
    epsilon=st.decimals("0.1", "20", places=4),
    indicators=indicators_st,
)
def test_json_round_trip_is_exact(mechanism, epsilon, indicators) -> None:
    # Categories that codes of hashes can distinguish, and for which reports renewed each day have bits.
    most = {"smp-loloha": 32_768, "smp-allomfree": 1920}.get(mechanism, 65_534)
    sizes = [(kind, min(k, most)) for kind, k in indicators]
    plan = make_plan(*sizes, mechanism=mechanism, epsilon=epsilon, max_values=2)
    assert ldp.PlanSpec.from_json(json.loads(json.dumps(plan.to_json()))) == plan


@pytest.mark.parametrize("mechanism", FAKED)
def test_json_round_trip_keeps_what_is_promised_and_what_answers_have(mechanism: str) -> None:
    plan = make_plan(*STATIC, mechanism=mechanism, unit="attribute", epsilon=Decimal("0.7"))
    stored = json.loads(json.dumps(plan.to_json()))
    assert stored["epsilon"] == "7/10"
    assert ldp.PlanSpec.from_json(stored) == plan
    del stored["epsilon"]
    refuses("must be present", ldp.PlanSpec.from_json, stored, error=ldp.PlanError)


def test_json_of_plans_without_fake_data_is_as_it_was() -> None:
    indicator = {"slug": "gender", "kind": "static", "domain_size": 3, "epsilon": "1/1", "max_values": None}
    stored = {"mechanism": "smp-grr", "unit": "profile", "version": 1, "days": 7, "indicators": [indicator]}
    plan = replace(PLAN, indicators=(GENDER,))
    assert plan.to_json() == stored
    assert ldp.PlanSpec.from_json(stored) == plan


def test_json_of_another_shape_is_refused() -> None:
    stored = PLAN.to_json()["indicators"][0]
    asked = [5, [{"slug": "a"}], [stored | {"epsilon": "1/0"}], [stored | {"epsilon": "much"}]]
    wrong = [{"epsilon": "much"}, {"epsilon": None}, {"days": None}, {"days": "7"}]
    for change in (*wrong, *({"indicators": each} for each in asked)):
        with pytest.raises(ldp.PlanError, match="plan must be an object as to_json writes it"):
            ldp.PlanSpec.from_json(PLAN.to_json() | change)
