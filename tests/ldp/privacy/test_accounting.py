"""Certificates: computed from the thresholds, never above what was typed."""

from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp import PlanError, PlanSpec, certify, check_cap, epsilon_of
from ldp.privacy.plans import Mechanism
from ldp.protocols.channels import Unit
from tests.ldp.exact import largest_ratios, make_plan, refuses
from tests.ldp.fakes import chances, losses

FAKED = ("rsfd-grr", "rsfd-ouez", "rsfd-adp")

kinds_st = st.sampled_from(["static", "daily"])
indicators_st = st.lists(st.tuples(kinds_st, st.integers(2, 65534)), min_size=1, max_size=9)


@given(
    indicators=indicators_st,
    mechanism=st.sampled_from(get_args(Mechanism)),
    epsilon=st.decimals("0.01", "12", places=3),
    days=st.integers(3, 62),
    max_values=st.one_of(st.none(), st.integers(1, 3)),
)
def test_certified_never_exceeds_nominal(indicators, mechanism, epsilon, days, max_values) -> None:
    of_rounds = mechanism in ("smp-loloha", "smp-allomfree")
    of_two = mechanism == "smp-question" or of_rounds
    most = 512 if of_two else 65_534  # categories that 62 days of codes can distinguish
    sizes = [(kind, min(k, most)) for kind, k in indicators]
    plan = make_plan(*sizes, mechanism=mechanism, epsilon=epsilon, days=days, max_values=max_values)
    certificate = certify(plan)
    for entry, spec in zip(certificate.indicators, plan.indicators, strict=True):
        assert 0 < entry.epsilon <= entry.nominal == spec.epsilon
        assert entry.epsilon_attribute <= (entry.nominal if of_rounds else entry.epsilon)
        assert entry.slug == spec.slug
        n_values = 1 if spec.kind == "static" else spec.max_values or days
        assert entry.n_values == (min(n_values, 2) if of_two else n_values)
    assert certificate.epsilon_attribute <= certificate.nominal_attribute
    assert certificate.epsilon_profile <= certificate.nominal_profile
    if not (plan.hashes_values or plan.renews_reports):  # few of their reports lose less than all
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


def test_voided_day_that_is_answered_again_adds_a_value() -> None:
    plan = make_plan(("static", 3), ("daily", 10), days=3, max_values=2)
    certificate = certify(plan, extra_daily_values=1)
    assert [entry.n_values for entry in certificate.indicators] == [1, 3]
    assert certificate.nominal_profile == 3
    assert certificate.nominal_attribute == 1
    refuses("extra_daily_values must be >= 0, got -1", certify, plan, extra_daily_values=-1)


def test_cap_refuses_a_plan_that_certifies_above_it() -> None:
    plan = make_plan(("static", 3), ("daily", 10))
    check_cap(plan, Decimal(7))
    check_cap(plan, certify(plan).epsilon_profile)
    message = r"epsilon_profile must be >= the certified loss per profile 7, got 6\.9$"  # six digits, up
    refuses(message, check_cap, plan, Decimal("6.9"), error=PlanError)
    with pytest.raises(PlanError, match=r"certified loss per profile 8, got 7$"):
        check_cap(plan, Decimal(7), extra_daily_values=1)
    refuses("got NaN", check_cap, plan, Decimal("NaN"), error=PlanError)
    # The cap is on profiles, for plans of each unit: ln(2 e - 1) = 1.4899.
    faked = make_plan(("static", 3), ("static", 3), mechanism="rsfd-grr", unit="attribute")
    check_cap(faked, certify(faked).epsilon_profile)
    refuses(r"certified loss per profile 1\.4898\d*, got 1$", check_cap, faked, Decimal(1), error=PlanError)


def test_largest_plan_is_certified() -> None:
    plan = make_plan(*[("daily", 65534)] * 255, mechanism="spl-grr", epsilon=Decimal(255), days=62)
    certificate = certify(plan)
    assert certificate.nominal_profile == 255 * 62
    assert Decimal(15_809) < certificate.epsilon_profile <= 15_810


# --- against the realised channel, report by report ----------------------------------------------------


def answers_law(values: tuple[int, ...], channel) -> dict[tuple[object, ...], Fraction]:
    """Answers to the values of one indicator: equal values share one permanent answer."""
    rows, distinct = chances(channel), sorted(set(values))
    found = {}
    for kept in product(rows, repeat=len(distinct)):
        terms = (rows[y][value] for y, value in zip(kept, distinct, strict=True))
        found[tuple(kept[distinct.index(value)] for value in values)] = prod(terms, start=Fraction(1))
    return found


def profile_law(plan: PlanSpec, profile: tuple[tuple[int, ...], ...]) -> dict[tuple[object, ...], Fraction]:
    """Everything that leaves of a person, of whom each indicator has one value, or one per answered day."""
    laws = [answers_law(values, plan.answer_channel(i)) for i, values in enumerate(profile)]
    if plan.is_sampled:
        found = {(j, y): p / plan.d for j, law in enumerate(laws) for y, p in law.items()}
    else:
        found = {ys: prod(law[y] for law, y in zip(laws, ys, strict=True)) for ys in product(*laws)}
    assert sum(found.values()) == 1
    return found


def pattern(profile: tuple[tuple[int, ...], ...]) -> list[list[int]]:
    return [[values.index(value) for value in values] for values in profile]


def worst(plan: PlanSpec) -> dict[tuple[int, ...], Fraction]:
    if plan.has_fakes:
        return losses(plan.fake_data)
    ones = list(enumerate(plan.indicators))
    values = [list(product(range(one.domain_size), repeat=plan.values_per_person(i))) for i, one in ones]
    laws = {profile: profile_law(plan, profile) for profile in product(*values)}

    def differing(one: tuple[tuple[int, ...], ...], other: tuple[tuple[int, ...], ...]) -> Any:
        if pattern(one) != pattern(other):
            return None
        return tuple(i for i, pairs in enumerate(map(zip, one, other)) for x, y in pairs if x != y)

    return largest_ratios(laws, alike=differing)


@pytest.mark.parametrize("mechanism", ["smp-grr", "spl-grr"])
@pytest.mark.parametrize(("domain_size", "days", "max_values"), [(3, 2, None), (2, 5, 2), (3, 4, 2)])
def test_daily_indicator_adds_up(mechanism: str, domain_size: int, days: int, max_values: int | None) -> None:
    kinds = (("daily", domain_size), ("static", 3))
    plan = make_plan(*kinds, mechanism=mechanism, days=days, max_values=max_values)
    m, found, certificate = max_values or days, worst(plan), certify(plan)
    daily, static = (plan.answer_channel(i).ratio for i in range(2))
    assert max(found.values()) == (max(daily**m, static) if plan.is_sampled else daily**m * static)
    assert epsilon_of(max(found.values())) == certificate.epsilon_profile
    if domain_size > m:  # else no single value can change without changing which values are equal
        assert epsilon_of(max(found[(i,)] for i in range(2))) == certificate.epsilon_attribute


@pytest.mark.parametrize("mechanism", get_args(Mechanism))
@pytest.mark.parametrize("unit", get_args(Unit))
@pytest.mark.parametrize(
    ("sizes", "epsilon"),
    [((2, 3), "0.4"), ((2, 2, 3), "0.4"), pytest.param((2, 6), "0.1", id="both oracles")],
)
def test_certificate_is_the_worst_of_all_reports_of_all_people(mechanism, unit, sizes, epsilon) -> None:
    indicators, epsilon = [("static", k) for k in sizes], Decimal(epsilon)
    # Reports of several days that differ: test_renewed.
    days = {"days": 1} if mechanism == "smp-allomfree" else {}
    plan = make_plan(*indicators, mechanism=mechanism, unit=unit, epsilon=epsilon, **days)
    certificate = certify(plan)
    found = worst(plan)
    assert certificate.epsilon_profile == epsilon_of(max(found.values()))
    by_attribute = [epsilon_of(found[(i,)]) for i in range(plan.d)]
    assert [entry.epsilon_attribute for entry in certificate.indicators] == by_attribute
    assert certificate.epsilon_attribute == max(by_attribute) <= certificate.nominal_attribute
    assert getattr(certificate, f"epsilon_{unit}") <= epsilon


@pytest.mark.parametrize("mechanism", FAKED)
def test_daily_values_add_up_under_fake_data_too(mechanism: str) -> None:
    plan = make_plan(("static", 3), ("daily", 10), days=7, max_values=3, mechanism=mechanism)
    certificate = certify(plan, extra_daily_values=1)
    assert [entry.n_values for entry in certificate.indicators] == [1, 4]
    assert (certificate.nominal_profile, certificate.nominal_attribute) == (4, 1)
    assert Decimal("3.999999") < certificate.epsilon_profile <= 4
    # Nothing is taken off for what fakes hide: a report that changes is the answer.
    assert certificate.epsilon_attribute == max(entry.epsilon for entry in certificate.indicators) <= 1


def daily_law(plan: PlanSpec, values: tuple[int, ...]) -> dict[tuple[object, ...], Fraction]:
    """Reports of two days on a static and a daily indicator; fakes stay, as the same value's answer does."""
    static, first, second = values
    channels = [plan.answer_channel(i) for i in range(2)]
    codes, bands = (range(channel.domain_size) for channel in channels)
    law: dict[tuple[object, ...], Fraction] = {}
    for x, y, z in product(codes, bands, bands):
        answer = chances(channels[0])[x][static]
        one, two = chances(channels[1])[y][first], chances(channels[1])[z][second]
        days = one * two if first != second else one * (y == z)
        fake_days = Fraction(y == z, len(bands))
        law[x, y, z] = (answer * fake_days + Fraction(1, len(codes)) * days) / 2
    return law


def test_two_days_under_fake_data_lose_no_more_than_certified() -> None:
    plan = make_plan(("static", 2), ("daily", 3), days=2, mechanism="rsfd-grr", epsilon=Decimal("0.4"))
    people = list(product(range(2), range(3), range(3)))
    laws = {person: daily_law(plan, person) for person in people}

    def changes_alike(one: tuple[int, ...], other: tuple[int, ...]) -> bool | None:
        # Whether a value changes is not protected.
        return ((one[1] == one[2]) == (other[1] == other[2])) or None

    (worst_of_all,) = largest_ratios(laws, alike=changes_alike).values()
    assert epsilon_of(worst_of_all) == certify(plan).epsilon_profile <= Decimal("0.8")
