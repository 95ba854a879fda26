"""A plan and the one before it: what changes, what needs a second person, what to expect, and its tables."""
# ruff: noqa: E501  (a table reads best with one row a line)

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial, reduce
from math import prod, sqrt
from typing import Any

import pytest

from reports.privacy.plan_changes import Direction, plan_changes, second_person_reasons
from reports.simulator.plan_effects import plan_effects
from reports.studies.studyfile import StudyDefinition, StudyFileError, VisitorRule, parse_study
from reports.studies.studyfile.redraft import Tables, read_tables, tables_of
from tests import demo_study
from tests.mobility.class_study import class_text
from tests.reports import map_factory, slot_factory
from tests.reports.studies.test_studyfile import edited

WEAKER, STRONGER, OTHER = Direction.WEAKER, Direction.STRONGER, Direction.OTHER
Edit = Callable[[StudyDefinition], StudyDefinition]


@pytest.fixture(scope="module")
def demo() -> StudyDefinition:
    return demo_study.parsed_study(demo_study.study_text())


def reasons(old: StudyDefinition | None, new: StudyDefinition, *, is_new_study: bool = False) -> list[str]:
    return second_person_reasons(old, new, is_new_study=is_new_study)


def plan(**changes: Any) -> Edit:
    return lambda study: replace(study, plan=replace(study.plan, **changes))


def study(**changes: Any) -> Edit:
    return lambda before: replace(before, **changes)


def asked(slug: str, **changes: Any) -> Edit:
    def changed(before: StudyDefinition) -> StudyDefinition:
        of = [replace(each, **changes) if each.slug == slug else each for each in before.indicators]
        return replace(before, indicators=tuple(of))

    return changed


gender, stay = partial(asked, "gender"), partial(asked, "visit_duration")


def both(*edits: Edit) -> Edit:
    return lambda before: reduce(lambda changed, edit: edit(changed), edits, before)


ANYBODY = VisitorRule(min_minutes=0, from_minute=0, to_minute=9)
LOOSE = both(plan(epsilon_profile=Decimal(9)), study(small_cell=50, min_publication=100))
NOISY = plan(presence_epsilon=Decimal(1), presence_days=7)


PLACES = study(location=map_factory.LOCATION)
SLOTS = replace(slot_factory.DEFINITION, slots_per_day=20, levels=())


def slots(**changes: Any) -> Edit:
    return lambda study: replace(study, slots=replace(SLOTS, **changes))


def joint(*parts: str) -> Edit:

    def added(before: StudyDefinition) -> StudyDefinition:
        one = next(each for each in before.indicators if each.slug == "gender")
        sizes = [len(each.categories) + 1 for each in before.indicators if each.slug in parts]
        names = tuple(map(str, range(prod(sizes))))
        combined = replace(one, slug="both", column=None, categories=names, categories_fr=None, parts=parts)
        return replace(before, indicators=(*before.indicators, combined))

    return added


@pytest.mark.parametrize(
    ("before", "edit", "said"),
    [
        (LOOSE, joint("gender", "age"), "The indicator both was added, so the study asks one more question. both combines these indicators: gender, age."),
        (both(LOOSE, joint("gender", "age")), asked("both", parts=("age", "gender")), "both combines these indicators: age, gender."),
        (LOOSE, plan(epsilon=Decimal("1.1")), "Certified epsilon per profile rises"),
        (LOOSE, plan(epsilon=Decimal("1.1")), "gender: epsilon per answer rises from 1 to 1.1"),
        (LOOSE, gender(epsilon=Decimal("1.1")), "gender: epsilon per answer rises from 1 to 1.1"),
        (LOOSE, plan(epsilon_profile=Decimal(10)), "(epsilon_profile) rises from 9 to 10"),
        (LOOSE, plan(epsilon_profile=None), "(epsilon_profile) has been removed. It was 9"),
        (LOOSE, plan(unit="attribute"), "changes from profile to attribute"),
        (LOOSE, plan(mechanism="smp-oue"), "changes from smp-grr to smp-oue"),
        (LOOSE, study(small_cell=49), "Small-cell threshold (visitors) falls from 50 to 49"),
        (LOOSE, study(small_cell=0), "Small-cell threshold (visitors) falls from 50 to 0"),
        (LOOSE, study(min_publication=99), "Minimum subscribers per publication falls from 100 to 99"),
        (LOOSE, study(days=8), "Days of the study rises from 7 to 8"),
        (LOOSE, study(first_day=date(2018, 5, 31)), "first_day: previously 2017-05-31, now 2018-05-31."),
        (LOOSE, study(key_until=date(2018, 5, 31)), "key_until: previously nothing, now 2018-05-31."),
        (LOOSE, study(population="visitors"), "population: previously fimu-2017-synthetic, now visitors."),
        (both(LOOSE, NOISY), plan(presence_epsilon=Decimal(2)), "Presence epsilon rises from 1 to 2"),
        (both(LOOSE, NOISY), plan(presence_epsilon=None, presence_days=None), "Presence epsilon has been removed"),
        (both(LOOSE, NOISY), plan(presence_days=4), "(presence_days): previously 7, now 4."),
        (LOOSE, plan(tallies=("visits", "runs")), "The totals now also contain exact counts for: number of days present, length of stay."),
        (LOOSE, PLACES, "People now report places"),
        (LOOSE, gender(categories=("F", "NR")), "gender no longer has these categories: M"),
        (LOOSE, slots(), "People are now counted by time slot and zone"),
        (slots(), slots(epsilon_day=Decimal(2)), "Epsilon per person per day for counts by time slot rises from 1 to 2"),
        (slots(), slots(epsilon_day=None, delta=None), "counts by time slot has been removed. It was 1"),
        (slots(), slots(delta=Decimal("0.00001")), "slots.delta: previously 0.000001, now 0.00001"),
        (slots(), slots(slots_per_day=21), "Time slots counted per person per day rises from 20 to 21"),
        (slots(), slots(hold_minutes=30), "slots.hold_minutes: previously 60, now 30"),
        (LOOSE, study(visitor=ANYBODY), "visitor has changed"),
        (LOOSE, gender(categories=("F", "M", "NR", "X")), "gender has new categories: X"),
        (LOOSE, gender(categories=("F", "X", "NR")), "gender has new categories: X"),
        (LOOSE, gender(column="income"), "gender uses a different source"),
        (both(LOOSE, stay(max_values=1)), stay(max_values=2), "maximum number of answers per person rises from 1 to 2"),
        (both(LOOSE, stay(max_values=6)), stay(max_values=None), "per person rises from 6 to 7"),
    ],
)  # fmt: skip
def test_what_may_weaken_the_protection_needs_a_second_person(demo, before, edit, said) -> None:
    old = before(demo)
    found = reasons(old, edit(old))
    assert any(said in reason for reason in found), found


def test_lowering_needs_nobody_else(demo) -> None:
    old, lower = LOOSE(demo), Decimal("0.9")
    studies = study(small_cell=51), study(min_publication=101), study(days=6)
    others = {"market_share": Decimal("0.2"), "expected_subscribers": 7}
    renamed = study(name="Another", **others), gender(name="Sex"), study(name_fr="Autre")
    renamed += gender(name_fr="Sexe"), gender(categories_fr=("f", "h", "nr"))
    renamed += (gender(groups=(("known", ("F", "M")),)),)
    asked_less = stay(max_values=6), gender(categories=("NR", "F", "M")), gender(weight=Decimal(2))
    plans = plan(epsilon=lower), gender(epsilon=lower), plan(epsilon_profile=Decimal(8)), NOISY
    for edit in (*plans, *studies, *renamed, *asked_less):
        assert plan_changes(old, edit(old)), "a change that is not told"
        assert reasons(old, edit(old)) == []
    old = slots()(old)
    fewer = slots(slots_per_day=19), slots(close_after_minutes=5)
    for edit in (study(slots=None), slots(epsilon_day=lower), *fewer):
        assert (len(plan_changes(old, edit(old))), reasons(old, edit(old))) == (1, [])


def test_an_indicator_more_needs_a_second_person_and_one_less_does_not(demo) -> None:
    fewer = replace(demo, indicators=demo.indicators[1:])
    assert reasons(demo, fewer) == []
    assert [change.direction for change in plan_changes(demo, fewer)] == [STRONGER]
    assert reasons(fewer, demo) == [
        "The indicator visitor_category was added, so the study asks one more question."
    ]
    # where epsilon is shared the others take over what a dropped one had
    shared = plan(mechanism="spl-grr", epsilon=Decimal(7))(demo)
    found = reasons(shared, replace(shared, indicators=shared.indicators[1:]))
    assert any("epsilon per answer rises from 1 to 1.16" in reason for reason in found), found


def test_each_class_says_its_epsilon_before_and_after() -> None:
    old = demo_study.parsed_study(class_text({"panel": 3, "standard": 1, "minor": 0.5}))
    panel, standard, minor = old.classes
    higher, lower = replace(minor, epsilon=Decimal(1)), replace(standard, epsilon=Decimal("0.25"))
    cases = [
        ((panel, standard, higher), "Epsilon of the class minor rises from 0.5 to 1.", WEAKER, True),
        ((panel, lower, minor), "Epsilon of the class standard falls from 1 to 0.25.", STRONGER, False),
        ((panel, standard), "The class minor (Class minor) was removed. Its epsilon was 0.5.", OTHER, True),
        ((*old.classes, replace(lower, slug="new")), "The class new (Class standard) was added, with epsilon 0.25.", OTHER, True),
        ((panel, standard, replace(minor, value="M")), "The class minor has another value in its column: previously MINOR, now M.", OTHER, True),
        ((panel, standard, replace(minor, name="Young")), "The class minor has a new name: Young.", OTHER, False),
        ((standard, panel, minor), "The classes are in a different order.", OTHER, False),
    ]  # fmt: skip
    for classes, *expected in cases:
        (change,) = plan_changes(old, replace(old, classes=classes))
        assert [change.text, change.direction, change.needs_second_person] == expected


def test_figures_of_a_plan_with_classes_name_those_that_lose_most(demo) -> None:
    old = demo_study.parsed_study(class_text({"panel": 3, "standard": 3, "minor": 0.5}))
    names = ["Class panel", "Class standard"]
    pairs = [(None, old), (old, demo), (demo, old), (demo, demo)]
    assert [plan_effects(*pair, visitors=100).largest for pair in pairs] == [names, names, names, []]


def test_the_same_plan_changes_nothing_but_a_new_study_always_needs_a_second_person(demo) -> None:
    assert (plan_changes(demo, demo), reasons(demo, demo)) == ((), [])
    assert all(row.is_same for row in plan_effects(demo, demo, visitors=10_000).rows)
    assert [len(reasons(old, demo, is_new_study=True)) for old in (None, demo)] == [1, 1]


def test_every_change_says_what_it_does(demo) -> None:
    old = LOOSE(demo)
    new = both(plan(epsilon=Decimal(2)), study(small_cell=80), gender(weight=Decimal(3)))(old)
    changes = plan_changes(old, new)
    assert {change.direction for change in changes} == {WEAKER, STRONGER, OTHER}
    assert all(change.text.endswith(".") for change in changes)


def test_half_of_epsilon_keeps_fewer_answers_and_widens_intervals(demo) -> None:
    found = plan_effects(demo, plan(epsilon=Decimal("0.5"))(demo), visitors=10_000)
    lost = [each.epsilon_attribute for each in (found.before, found.after)]
    assert lost == [pytest.approx(Decimal(1)), pytest.approx(Decimal("0.5"))]
    gender = next(row for row in found.rows if row.slug == "gender")
    # Of three categories: p = e / (e + 2) before.
    assert (gender.before.kept_of_100, gender.after.kept_of_100) == (58, 45)
    assert gender.before.half_width < gender.after.half_width
    # 1.96 sqrt((q(1-q) + f(p-q)(1-p-q)) / (n (p-q)^2) + f(1-f)/n (N-n)/(N-1)) at n = 10000 / 7, f = 1/3
    p, q, n, f = 0.57611688, 0.21194156, 10_000 / 7, 1 / 3
    noise = (q * (1 - q) + f * (p - q) * (1 - p - q)) / (n * (p - q) ** 2)
    sample = f * (1 - f) / n * (10_000 - n) / 9_999
    assert gender.before.half_width == pytest.approx(1.959964 * sqrt(noise + sample), rel=1e-5)


def test_what_is_new_or_gone_stands_alone(demo) -> None:
    fewer, slug = replace(demo, indicators=demo.indicators[1:]), demo.indicators[0].slug
    gone = plan_effects(demo, fewer, visitors=10_000).rows[-1]
    new = plan_effects(fewer, demo, visitors=10_000).rows[0]
    assert (gone.slug, gone.after, new.slug, new.before) == (slug, None, slug, None)
    few, many = (plan_effects(None, demo, visitors=n) for n in (1_000, 100_000))  # a new study
    assert few.before is None
    assert all(row.before is None and row.after is not None for row in few.rows)
    assert few.rows[0].after.half_width == pytest.approx(10 * many.rows[0].after.half_width, rel=0.01)


EVERYTHING = edited(
    "days = 3", "days = 3\nexpected_subscribers = 5000\nmarket_share = 0.25\nmin_publication = 20\nsmall_cell = 15",
    'timestamp = "time"', 'timestamp = "time"\ncell = "cell"\ndelimiter = "pipe"\ntimestamp_format = "%d/%m/%Y %H:%M"\nattributes = "subscribers"',
    "[plan]", '[subscribers]\nsubscriber = "person"\nmax_bad_share = 0.5\n[plan]',
    "epsilon = 1.0", "epsilon = 1.0\nepsilon_profile = 3",
    'column = "age"', 'column = "age"\nepsilon = 0.5\nweight = 2',
    'slug = "visit_duration"', 'slug = "slept_in"\nname = "Slept in"',
    'derive = "visit_duration"', 'derive = "night_zone"\nnight_from = "23:00"\nmax_values = 2',
)  # fmt: skip
EVERYTHING += (
    "[slots]\nminutes = 60\nslots_per_day = 4\nepsilon_day = 0.5\ndelta = 0.00001\nclose_after_minutes = 90\n"
    '[location]\nlevel = "ln 4"\nradius_m = 400\ngrid_m = 200\nmax_values = 2\n[area]\ncells = "cells.csv"\n'
)
CELLS = "cell_id,lon,lat,zone\nA,6.8,47.6,South\nB,6.9,47.7,Centre\n"


@pytest.fixture
def full() -> StudyDefinition:
    return parse_study(EVERYTHING.encode(), filename="s.toml", read=lambda _: CELLS.encode())


def problems(tables: Tables, *, like: StudyDefinition) -> list[str]:
    with pytest.raises(StudyFileError) as caught:
        read_tables(tables, like=like)
    return [f"{each.key}: {each.rule}" for each in caught.value.problems]


def test_everything_that_a_file_says_comes_back(full, demo) -> None:
    exact = replace(full, small_cell=0, slots=replace(full.slots, epsilon_day=None, delta=None))
    for each in (full, demo, exact):
        assert read_tables(tables_of(each), like=each) == each
        again = StudyDefinition.from_json(json.loads(json.dumps(each.to_json())))
        assert again == each
        assert [type(value) for value in (again.market_share, again.plan.epsilon)] == [Decimal, Decimal]


def test_a_change_is_read_by_the_rules_of_the_file(full) -> None:
    tables = tables_of(full)
    tables["plan"]["epsilon"] = Decimal("0.5")
    assert read_tables(tables, like=full).plan.epsilon == Decimal("0.5")
    capped = tables["plan"] | {"epsilon": Decimal(1), "epsilon_profile": Decimal("1.5")}
    (first, *_) = problems(tables | {"plan": capped}, like=full)
    assert first.startswith("plan.epsilon_profile: epsilon_profile must be >=")
    short = tables["slots"] | {"minutes": 120, "slots_per_day": 13}
    expected = ["slots.slots_per_day: must be a whole number from 1 to 12"]
    assert problems(tables | {"slots": short}, like=full) == expected
    tables["plan"]["epsilon"] = Decimal(21)
    tables["indicator"][0]["categories"] = ["F", "F"]
    assert problems(tables, like=full) == [
        "plan.epsilon: must be a number > 0 and <= 20 (above 20 an answer is as good as the raw value)",
        "indicator[age_band].categories[2]: must be unique in the indicator",
    ]


def test_places_do_not_outlive_the_days_that_they_were_laid_for(full) -> None:
    tables = tables_of(full)
    tables["indicator"][1]["max_values"] = 1
    few = "study.days: must be at least 2: the days on which a subscriber reports a place"
    for days, rule in ((1, few), (62, "must leave room for places")):
        tables["study"]["days"] = days
        assert any(rule in each for each in problems(tables, like=full))
