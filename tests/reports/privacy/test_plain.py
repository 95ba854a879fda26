"""Privacy in plain words on shared pages: the picture, and why the total is what it is."""

import pytest

from reports.privacy.statement.document import protections
from reports.privacy.total_texts import total_words
from reports.studies.queries import current_plan
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db
TOTAL = "All answers of one person together have at most epsilon "


@pytest.mark.parametrize(
    ("indicators", "changes", "expected"),
    [
        ((factory.GENDER, factory.STAY), {"days": 7}, "7, for 7 daily answers of epsilon 1 on “Stay”."),
        ((factory.GENDER, factory.AGE), {}, "1, for 1 answer of epsilon 1 on “Gender”."),
        ((factory.GENDER, factory.LENGTH), {}, "2, for 2 different answers of epsilon 1 on “Length”."),
        (
            (factory.GENDER, factory.STAY),
            {"mechanism": "spl-grr", "epsilon": "5"},
            "12.5, the sum of all answers: 2.5 + 4 \u00d7 2.5.",
        ),
        (
            (factory.GENDER, factory.AGE),
            {"mechanism": "rsfd-grr"},
            "1, because only the reports on one indicator are real.",
        ),
    ],
)
def test_the_total_is_explained_by_the_answers_that_it_adds_up(indicators, changes, expected) -> None:
    study = factory.create(*indicators, **changes)
    assert total_words(current_plan(study)) == TOTAL + expected


def test_undone_days_count_and_the_picture_has_as_many_dots_as_answers_are_true() -> None:
    plan = current_plan(factory.create(factory.GENDER, factory.STAY))
    plan.voided_days = 2
    assert total_words(plan) == TOTAL + "6, for 6 daily answers of epsilon 1 on “Stay”."
    gender = protections(plan)["gender"]  # e / (e + 2) = 0.576
    assert sum(dot.is_true for dot in gender.dots) == gender.kept_of_100 == 58
    assert len({(dot.x, dot.y) for dot in gender.dots}) == 100
