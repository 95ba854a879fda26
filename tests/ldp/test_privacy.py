"""The promise itself, by enumeration in exact rationals: every input, every output, the worst ratio.

`test_grr.py` shows that the kernel realises its channel exactly; here the channel's rationals go through all
that a plan adds: which indicator is asked, how many are answered, on how many days.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from fractions import Fraction
from itertools import chain, product
from math import prod

import pytest

from ldp import GrrChannel, PlanSpec, certify, epsilon_of, grr_channel
from tests.ldp.exact import make_plan

Law = dict[Hashable, Fraction]
Profile = tuple[tuple[int, ...], ...]  # per indicator its values: one, or one per day that is answered


def channels(plan: PlanSpec) -> list[GrrChannel]:
    return [grr_channel(epsilon=spec.epsilon, domain_size=spec.domain_size) for spec in plan.indicators]


def law_of_answers(values: tuple[int, ...], channel: GrrChannel) -> Law:
    """Answers to the values of one indicator: equal values share one permanent answer."""
    distinct = sorted(set(values))
    law: Law = {}
    for memo in product(range(channel.domain_size), repeat=len(distinct)):
        answer_of = dict(zip(distinct, memo, strict=True))
        p = prod(
            (channel.p if answer == value else channel.q for value, answer in answer_of.items()),
            start=Fraction(1),
        )
        law[tuple(answer_of[value] for value in values)] = p
    return law


def law_of_plan(profile: Profile, plan: PlanSpec) -> Law:
    """Everything that leaves the operator for one person."""
    laws = [law_of_answers(values, channel) for values, channel in zip(profile, channels(plan), strict=True)]
    law: Law = defaultdict(Fraction)
    if plan.is_sampled:
        for indicator, answers in enumerate(laws):
            for answer, p in answers.items():
                law[indicator, answer] += p / plan.d
    else:
        for joint in product(*(answers.items() for answers in laws)):
            law[tuple(answer for answer, _ in joint)] += prod((p for _, p in joint), start=Fraction(1))
    assert sum(law.values()) == 1
    return law


def worst_ratio(laws: Iterable[tuple[Law, Law]]) -> Fraction:
    return max(law.get(answer, Fraction(0)) / p for law, other in laws for answer, p in other.items())


def equality_pattern(values: tuple[int, ...]) -> tuple[int, ...]:
    """Which of the values are equal: whether a value changed is not protected, and not promised."""
    return tuple(values.index(value) for value in values)


def profiles(plan: PlanSpec) -> list[Profile]:
    per_indicator = [
        product(range(spec.domain_size), repeat=plan.values_per_person(index))
        for index, spec in enumerate(plan.indicators)
    ]
    return list(product(*per_indicator))


def worst_pair(plan: PlanSpec, *, differing: int | None = None) -> Fraction:
    """Over profiles with the same equality pattern; that differ in so many values, or in any number."""
    laws = {profile: law_of_plan(profile, plan) for profile in profiles(plan)}
    return worst_ratio(
        (laws[a], laws[b])
        for a, b in product(laws, repeat=2)
        if [equality_pattern(values) for values in a] == [equality_pattern(values) for values in b]
        and differing in {None, sum(x != y for x, y in zip(chain(*a), chain(*b), strict=True))}
    )


@pytest.mark.parametrize("mechanism", ["smp-grr", "spl-grr"])
@pytest.mark.parametrize(("domain_size", "days", "max_values"), [(3, 2, None), (2, 5, 2), (3, 4, 2)])
def test_daily_indicator_adds_up(mechanism: str, domain_size: int, days: int, max_values: int | None) -> None:
    plan = make_plan(
        ("daily", domain_size), ("static", 3), mechanism=mechanism, days=days, max_values=max_values
    )
    m = max_values or days
    certificate = certify(plan)
    worst = worst_pair(plan)
    daily, static = (channel.ratio for channel in channels(plan))
    assert worst == (max(daily**m, static) if plan.is_sampled else daily**m * static)
    assert epsilon_of(worst) == certificate.epsilon_profile
    if domain_size > m:  # else no single value can change without changing which values are equal
        assert epsilon_of(worst_pair(plan, differing=1)) == certificate.epsilon_attribute


def test_a_changed_value_is_not_hidden_and_not_promised() -> None:
    channel = grr_channel(epsilon=Fraction(1), domain_size=3)
    constant, changing = law_of_answers((0, 0), channel), law_of_answers((0, 1), channel)
    assert sum(p for (first, second), p in changing.items() if first != second) > 0
    assert all(first == second for first, second in constant)
