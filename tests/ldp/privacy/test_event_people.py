"""Plans that limit the events of a person: what all of them lose, by enumeration of values and answers."""

from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product
from math import prod
from typing import Any

import pytest

import ldp
from ldp.errors import PlanError
from ldp.privacy.plans import MAX_EVENTS, PlanSpec
from ldp.protocols.channels import epsilon_of
from tests.ldp.privacy.test_joint import law_of
from tests.ldp.privacy.test_plans import built

Law = dict[Any, Fraction]


def events(*sizes: int, **settings: Any) -> PlanSpec:
    asked = [{"domain_size": size} for size in sizes]
    return built(*asked, **{"events": True, "epsilon": Decimal("0.7")} | settings)


def law_of_event(plan: PlanSpec, values: tuple[int, ...]) -> Law:
    """Return the probabilities of all that leaves the vault of one answered event."""
    laws = [law_of(plan.answer_channel(index), value) for index, value in enumerate(values)]
    if plan.is_sampled:
        return {
            (index, y): plan.asked_share(index) * p
            for index, law in enumerate(laws)
            for y, p in enumerate(law)
        }
    return {
        ys: prod((law[y] for law, y in zip(laws, ys, strict=True)), start=Fraction(1))
        for ys in product(*(range(len(law)) for law in laws))
    }


def law_of_person(plan: PlanSpec, lives: tuple[tuple[int, ...], ...], answered: tuple[int, ...]) -> Law:
    """Return the probabilities of all that leaves the vault of a person: answers of some events."""
    laws = [law_of_event(plan, lives[event]) for event in answered]
    return {
        tuple(answer for answer, _ in each): prod((p for _, p in each), start=Fraction(1))
        for each in product(*(law.items() for law in laws))
    }


def worst_ratio(first: Law, second: Law) -> Fraction:
    return max(first[output] / second[output] for output in first)


@pytest.mark.parametrize("mechanism", ["smp-grr", "smp-adp", "spl-grr"])
@pytest.mark.parametrize(("sizes", "n", "most"), [((2,), 3, 1), ((2,), 3, 2), ((3,), 2, 2), ((2, 2), 2, 2)])
def test_all_events_of_a_person_lose_what_is_certified(mechanism, sizes, n, most) -> None:
    """All pairs of lives, of a person with more events than are answered; and any rule of which are."""
    plan = events(*sizes, mechanism=mechanism, max_events=most)
    values = list(product(*(range(size) for size in sizes)))
    of_event = max(
        worst_ratio(law_of_event(plan, one), law_of_event(plan, other))
        for one, other in product(values, repeat=2)
    )
    worst, worst_drawn = Fraction(0), Fraction(0)
    choices = list(combinations(range(n), most))
    for one, other in product(product(values, repeat=n), repeat=2):
        laws = [[law_of_person(plan, life, answered) for answered in choices] for life in (one, other)]
        worst = max(worst, *(worst_ratio(a, b) for a, b in zip(*laws, strict=True)))
        # As where several events have the same time: keys, which are like drawn ones, say which are first.
        mixed = [{output: sum(law[output] for law in of) / len(of) for output in of[0]} for of in laws]
        worst_drawn = max(worst_drawn, worst_ratio(*mixed))
    certificate = ldp.certify(plan)
    assert epsilon_of(of_event) == certificate.epsilon_profile
    assert worst_drawn <= worst == of_event**most
    assert certificate.epsilon_person is not None
    assert 0 <= certificate.epsilon_person - epsilon_of(worst) < Decimal("1e-27")
    assert certificate.nominal_person == most * certificate.nominal_profile >= certificate.epsilon_person


def test_one_more_event_would_lose_more() -> None:
    two, three = (ldp.certify(events(3, max_events=n)).epsilon_person for n in (2, 3))
    assert float(three / 3) == pytest.approx(float(two / 2))
    assert ldp.certify(events(3)).epsilon_person is None
    assert ldp.certify(events(3)).nominal_person is None


def test_the_limit_is_part_of_the_plan_and_absent_from_others() -> None:
    plan = events(3, max_events=MAX_EVENTS)
    assert PlanSpec.from_json(plan.to_json()) == plan
    assert "max_events" not in events(3).to_json()
    assert events(3).to_json() == {key: value for key, value in plan.to_json().items() if key != "max_events"}
    for wrong in (0, MAX_EVENTS + 1):
        with pytest.raises(PlanError, match=r"max_events must be in \[1, 1000\]"):
            events(3, max_events=wrong)
    with pytest.raises(PlanError, match="max_events must be absent in a plan of people"):
        events(3, events=False, max_events=2)
