"""Answers to scenarios: bars that hold the truth, sentences without a bare number, and refusals that help."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from django.http import QueryDict
from django.utils import translation

from ldp.privacy.plans import PRESENCE_TALLIES
from reports.base.status import Status
from reports.estimates.queries import WindowError
from reports.exports.findings.scenarios import scenario_record
from reports.scenario import texts
from reports.scenario.queries import Answer, Bar, NoScenarioError, Prepared, answer, refusal
from reports.scenario.query import Question, question_of
from reports.studies.models import Study
from tests.reports import report_factory as factory
from tests.reports.kept import made_once

pytestmark = pytest.mark.django_db


def asked(study: Study, query: str) -> Question:
    return question_of(QueryDict(query), study=study)


@made_once
def published(people: dict[int, int], **changes: Any) -> Study:
    study = factory.create(factory.GENDER, **changes)
    factory.publish(study, factory.of_days(study, people))
    return study


def days_of(bitmap: int) -> tuple[int, ...]:
    return tuple(day for day in range(1, 5) if bitmap >> (day - 1) & 1)


def longest_run(days: tuple[int, ...]) -> int:
    return max(b - a + 1 for a in days for b in days if b >= a and set(range(a, b + 1)) <= set(days))


QUESTIONS = {
    "present=2024-05-30,2024-06-01": lambda days: {1, 3} <= set(days),
    "present=2024-05-30&absent=2024-05-31": lambda days: 1 in days and 2 not in days,
    "absent=2024-05-31": lambda days: 2 not in days,
    "exactly=2": lambda days: len(days) == 2,
    "in_a_row=3": lambda days: longest_run(days) >= 3,
    "nights=1": lambda days: longest_run(days) >= 2,
    "": lambda days: len(days) == 4,
}


# Those that the further tallies of presence make exact; in four days no one has two stays of two days.
EXACT = {"present=2024-05-30&absent=2024-05-31", "exactly=2", "in_a_row=3", "nights=1", ""}


@pytest.mark.parametrize("tallies", [(), PRESENCE_TALLIES])
@pytest.mark.parametrize("query", QUESTIONS)
def test_each_question_has_a_bar_that_holds_the_people_and_a_sentence_with_both_ends(query, tallies) -> None:
    people = {bitmap: 20 + 7 * bitmap % 50 for bitmap in range(1, 16)}
    study = published(people, tallies=tallies)
    question = asked(study, query)
    found = answer(question)
    assert found.people is not None
    truth = sum(n for bitmap, n in people.items() if QUESTIONS[query](days_of(bitmap)))
    assert found.people.least <= truth <= found.people.most
    assert found.people.least <= found.people.estimate <= found.people.most
    assert found.people.is_determined or not (tallies and query in EXACT)
    rows = scenario_record(question, None, found)["rows"]
    stays = [row["most"] for row in rows if (row["figure"], row["interval"]) == ("stays", "count")]
    k = question.in_a_row
    lengths = {bitmap: [len(run) for run in f"{bitmap:b}".split("0")] for bitmap in people}
    counted = sum(n * lengths[bitmap].count(k) for bitmap, n in people.items())
    assert stays == ([counted] if k and tallies else [])
    said = texts.sentence(question, found)
    if found.people.least < found.people.most:
        assert said.startswith(f"Between {found.people.least} and {found.people.most} people ")
    else:
        assert "the only number that is consistent" in said
    assert (f"in a row: {counted} (exact count)." in said) == bool(stays)
    assert Answer.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert asked(study, question.query) == question


def test_a_link_holds_any_question_about_62_days() -> None:
    study = factory.create(days=62)
    for present, absent, query in (
        (range(1, 62, 2), range(2, 63, 2), "present=1,3,5"),
        ([*range(1, 20), 62], range(21, 30), "present=1-19,62&absent=21-29"),
        (range(1, 63), (), "present=1-62"),
        ((1, 62), (9,), "present=2024-05-30,2024-07-30&absent=2024-06-07"),
    ):
        question = Question(study=study, days=62, present=tuple(present), absent=tuple(absent))
        assert question.query.startswith(query) and len(question.query) < 200
        assert asked(study, question.query) == question
        with_dates = {"present": question.dates(question.present), "absent": question.dates(question.absent)}
        old = "&".join(f"{name}={','.join(map(str, days))}" for name, days in with_dates.items())
        assert asked(study, old) == question


def test_sentences_are_whole_in_both_languages_and_hide_an_estimate_of_few() -> None:
    study = factory.published()
    people = Bar(least=0, most=9233, estimate=280.4)
    numbers = Answer(status=Status.OK, total=9, is_noisy=False, people=people)
    assert "The best estimate is 280," in texts.sentence(asked(study, ""), numbers)
    with translation.override("fr"):
        said = texts.sentence(asked(study, ""), numbers)
    assert said.startswith("Entre 0 et 9\u202f233 personnes sont venues les 4 jours. ")
    none = replace(numbers, is_noisy=True, people=Bar(least=0, most=0, estimate=0))
    assert texts.sentence(asked(study, ""), none).startswith("With 95% confidence, between 0 and 0 people ")
    hidden = replace(numbers, people=Bar(least=0, most=19, estimate=None))
    assert "280" not in texts.sentence(asked(study, "nights=1"), hidden)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("exactly=5", "The number of days must be from 1 to 4, not “5”."),
        ("exactly=0", "The number of days must be from 1 to 4, not “0”."),
        ("in_a_row=x", "The number of days must be from 1 to 4, not “x”."),
        ("nights=4", "The number of nights must be from 1 to 3, not “4”."),
        ("present=2024-07-01", "Days must be from 2024-05-30 to 2024-06-02, not 2024-07-01."),
        ("present=0-2", "Days must be from 2024-05-30 to 2024-06-02, not 0-2."),
        ("present=5", "Days must be from 2024-05-30 to 2024-06-02, not 5."),
        ("absent=never", "“never” is not a valid day. Enter a date such as 2017-05-31."),
        ("present=", "Mark at least one day as present or absent, or enter a number of days."),
        ("present=,", "Mark at least one day as present or absent, or enter a number of days."),
        ("present=2024-05-30&absent=2024-05-30", "Choose one for 2024-05-30."),
        (
            "absent=2024-05-30,2024-05-31,2024-06-01,2024-06-02",
            "You cannot mark a person as absent on every day",
        ),
        ("exactly=1&nights=1", "Ask one question at a time"),
    ],
)
def test_questions_that_cannot_be_answered_are_refused_with_what_works(query: str, text: str) -> None:
    study = factory.create()
    with pytest.raises(WindowError) as caught:
        asked(study, query)
    assert text in str(caught.value)


def test_studies_and_indicators_without_scenarios_are_refused_with_what_works() -> None:
    study = factory.published(factory.GENDER, factory.HALF_STAY, replace(factory.STAY, slug="daily"))
    half, daily, gender = (study.indicators.get(slug=slug) for slug in ("stay", "daily", "gender"))
    assert "all people" in refusal(study, daily)
    assert "from day to day" in refusal(study, half)
    assert refusal(study, gender) == refusal(study) == ""
    with pytest.raises(NoScenarioError):
        answer(asked(study, ""), daily)
    short = factory.create(slug="short", days=1)
    assert "only one day" in refusal(short)


def test_with_presence_noise_only_published_days_count_and_bounds_have_a_confidence() -> None:
    study = factory.create_noisy(presence_epsilon="4")
    assert "two published days" in refusal(study)
    people = factory.crowd(study, n=4000)
    factory.close(study, people, first=1, last=3)
    question = asked(study, "")
    assert question.days == 3
    found = answer(question, study.indicators.get(slug="gender"))
    truth = int(((people.bitmaps & np.uint64(7)) == 7).sum())
    assert found.is_noisy and found.total is None
    assert found.people.least <= truth <= found.people.most
    assert len(found.categories) == 3
    assert texts.sentence(question, found).startswith("With 95% confidence")
    capped = factory.create_noisy(presence_days=2, slug="capped")
    factory.close(capped, people, first=1, last=3)
    assert "on at most 2 of them" in refusal(capped)


def test_categories_hold_the_truth_and_are_scaled_by_the_market_share() -> None:
    study = factory.published(factory.GENDER, epsilon="4")
    gender = study.indicators.get(slug="gender")
    people = factory.crowd(study)
    question = asked(study, "in_a_row=2")
    found = answer(question, gender)
    chosen = np.array([longest_run(days_of(int(bitmap))) >= 2 for bitmap in people.bitmaps])
    truth = np.bincount(people.static["gender"][chosen], minlength=3)
    for number, bar in zip(truth, found.categories, strict=True):
        assert bar.least <= number <= bar.most
    Study.objects.update(market_share="0.5")
    gender.study.refresh_from_db()
    study.refresh_from_db()
    half = answer(asked(study, "in_a_row=2"), gender)
    assert [bar.most for bar in half.categories] == [2 * bar.most for bar in found.categories]
    assert half.people == found.people


def test_long_questions_are_known_before_they_are_computed() -> None:
    week = factory.create(days=7)
    long = factory.create(days=62, slug="long")
    for study, query, least, most in (
        (week, "exactly=3", 0, 0.3),
        (long, "", 0, 0),
        (long, "exactly=20", 1, 99),
    ):
        assert least <= Prepared.of(asked(study, query), None).seconds <= most
