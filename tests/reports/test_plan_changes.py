"""What a plan changes against the one before it, and what of it needs a second person."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from reports.plan_changes import Change, Direction, plan_changes, second_person_reasons
from reports.studyfile import StudyDefinition, VisitorRule, parse_study

DEMO = Path(__file__).parents[2] / "mobility" / "demo"
WEAKER, STRONGER, OTHER = Direction.WEAKER, Direction.STRONGER, Direction.OTHER
Edit = Callable[[StudyDefinition], StudyDefinition]


@pytest.fixture(scope="module")
def demo() -> StudyDefinition:
    text = (DEMO / "study.toml").read_bytes()
    return parse_study(text, filename="study.toml", read=lambda name: (DEMO / name).read_bytes())


def plan(**changes: Any) -> Edit:
    return lambda study: replace(study, plan=replace(study.plan, **changes))


def study(**changes: Any) -> Edit:
    return lambda before: replace(before, **changes)


def asked(slug: str, **changes: Any) -> Edit:
    return lambda before: replace(
        before,
        indicators=tuple(
            replace(each, **changes) if each.slug == slug else each for each in before.indicators
        ),
    )


def gender(**changes: Any) -> Edit:
    return asked("gender", **changes)


def stay(**changes: Any) -> Edit:
    return asked("visit_duration", **changes)


def both(*edits: Edit) -> Edit:
    def edit(before: StudyDefinition) -> StudyDefinition:
        for each in edits:
            before = each(before)
        return before

    return edit


ANYBODY = VisitorRule(min_minutes=0, from_minute=0, to_minute=9)
LOOSE = both(plan(epsilon_profile=Decimal(9)), study(small_cell=50, min_publication=100))
NOISY = plan(presence_epsilon=Decimal(1), presence_days=7)


@pytest.mark.parametrize(
    ("before", "edit", "said"),
    [
        (LOOSE, plan(epsilon=Decimal("1.1")), "Certified epsilon per profile rises"),
        (LOOSE, plan(epsilon=Decimal("1.1")), "gender: epsilon of an answer rises from 1 to 1.1"),
        (LOOSE, gender(epsilon=Decimal("1.1")), "gender: epsilon of an answer rises from 1 to 1.1"),
        (LOOSE, plan(epsilon_profile=Decimal(10)), "(epsilon_profile) rises from 9 to 10"),
        (LOOSE, plan(epsilon_profile=None), "(epsilon_profile) is taken away; it was 9"),
        (LOOSE, plan(unit="attribute"), "changes from profile to attribute"),
        (LOOSE, plan(mechanism="smp-oue"), "changes from smp-grr to smp-oue"),
        (LOOSE, study(small_cell=49), "(small cells) falls from 50 to 49"),
        (LOOSE, study(small_cell=0), "(small cells) falls from 50 to 0"),
        (LOOSE, study(min_publication=99), "Least subscribers in a publication falls from 100 to 99"),
        (LOOSE, study(days=8), "Days of the study rises from 7 to 8"),
        (LOOSE, study(first_day=date(2018, 5, 31)), "first_day: 2017-05-31, now 2018-05-31."),
        (LOOSE, study(key_until=date(2018, 5, 31)), "key_until: nothing, now 2018-05-31."),
        (LOOSE, study(population="visitors"), "population: subscribers, now visitors."),
        (both(LOOSE, NOISY), plan(presence_epsilon=Decimal(2)), "Epsilon of presence rises from 1 to 2"),
        (both(LOOSE, NOISY), plan(presence_epsilon=None, presence_days=None), "of presence is taken away"),
        (both(LOOSE, NOISY), plan(presence_days=4), "(presence_days): 7, now 4."),
        (LOOSE, study(visitor=ANYBODY), "visitor is not what it was"),
        (LOOSE, gender(categories=("F", "M", "NR", "X")), "gender has new categories: X"),
        (LOOSE, gender(categories=("F", "X", "NR")), "gender has new categories: X"),
        (LOOSE, gender(column="income"), "gender asks something else"),
        (both(LOOSE, stay(max_values=1)), stay(max_values=2), "most answers of a person rises from 1 to 2"),
        (both(LOOSE, stay(max_values=6)), stay(max_values=None), "of a person rises from 6 to 7"),
    ],
)  # fmt: skip
def test_what_may_weaken_the_protection_needs_a_second_person(
    demo: StudyDefinition, before: Edit, edit: Edit, said: str
) -> None:
    old = before(demo)
    reasons = second_person_reasons(old, edit(old), is_new_study=False)
    assert any(said in reason for reason in reasons), reasons


@pytest.mark.parametrize(
    "edit",
    [
        plan(epsilon=Decimal("0.9")),
        gender(epsilon=Decimal("0.9")),
        plan(epsilon_profile=Decimal(8)),
        NOISY,
        study(small_cell=51),
        study(min_publication=101),
        study(days=6),
        study(name="Another", market_share=Decimal("0.2"), expected_subscribers=7),
        stay(max_values=6),
        gender(name="Sex"),
        gender(categories=("NR", "F", "M")),
        gender(weight=Decimal(2)),
    ],
)
def test_lowering_needs_nobody_else(demo: StudyDefinition, edit: Edit) -> None:
    old = LOOSE(demo)
    assert plan_changes(old, edit(old)), "a change that is not told"
    assert second_person_reasons(old, edit(old), is_new_study=False) == []


def test_an_indicator_more_needs_a_second_person_and_one_less_does_not(demo: StudyDefinition) -> None:
    fewer = replace(demo, indicators=demo.indicators[1:])
    assert second_person_reasons(demo, fewer, is_new_study=False) == []
    assert [change.direction for change in plan_changes(demo, fewer)] == [STRONGER]
    assert second_person_reasons(fewer, demo, is_new_study=False) == [
        "The indicator visitor_category is new: people are asked one more thing."
    ]


def test_a_dropped_indicator_raises_the_share_of_the_others_where_epsilon_is_shared(
    demo: StudyDefinition,
) -> None:
    """Under spl-grr the others take over what it had."""
    shared = plan(mechanism="spl-grr", epsilon=Decimal(7))(demo)
    reasons = second_person_reasons(
        shared, replace(shared, indicators=shared.indicators[1:]), is_new_study=False
    )
    assert any("epsilon of an answer rises from 1 to 1.16" in reason for reason in reasons), reasons


def test_the_same_plan_changes_nothing(demo: StudyDefinition) -> None:
    assert plan_changes(demo, demo) == ()
    assert second_person_reasons(demo, demo, is_new_study=False) == []


def test_a_new_study_always_needs_a_second_person(demo: StudyDefinition) -> None:
    assert len(second_person_reasons(None, demo, is_new_study=True)) == 1
    assert len(second_person_reasons(demo, demo, is_new_study=True)) == 1


def test_every_change_says_what_it_does(demo: StudyDefinition) -> None:
    old = LOOSE(demo)
    new = both(plan(epsilon=Decimal(2)), study(small_cell=80), gender(weight=Decimal(3)))(old)
    told = {change.direction for change in plan_changes(old, new)}
    assert told == {WEAKER, STRONGER, OTHER}
    assert all(isinstance(change, Change) and change.text.endswith(".") for change in plan_changes(old, new))
