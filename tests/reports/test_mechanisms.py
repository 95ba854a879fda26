"""Every mechanism of the study file, from reports to estimates, files and pages in plain words."""

import csv
import io
import json
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

import ldp
from ldp.params import Mechanism
from reports import selectors
from reports.models import Study
from reports.selectors import Window, WindowReport
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db

MECHANISMS = get_args(Mechanism)
REGION = factory.indicator("region", *(f"Region {letter}" for letter in "ABCDEFGHIJKLMNOPQR"))
INDICATORS = (factory.GENDER, REGION, factory.STAY)
UNARY = {"smp-oue": {"gender", "region", "stay"}, "rsfd-ouez": {"gender", "region", "stay"}}


def fair_of(mechanism: str, **changes: Any) -> tuple[Study, factory.People, ldp.Delta]:
    study = factory.create(*changes.pop("indicators", INDICATORS), mechanism=mechanism, **changes)
    people = factory.crowd(study, n=6000)
    return study, people, factory.publish(study, people)


def report_of(study: Study, slug: str, window: Window) -> WindowReport:
    return selectors.window_report(study.indicators.get(slug=slug), window)


def export(*args: str) -> str:
    out = io.StringIO()
    call_command("export_report", *args, stdout=out)
    return out.getvalue()


def text_of(client: Client, name: str, *args: str) -> str:
    answer = client.get(reverse(f"reports:{name}", args=args))
    assert answer.status_code == 200
    return re.sub(r"[ \n]+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


# --- numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_estimates_lie_within_their_errors_of_the_truth(mechanism: str) -> None:
    study, people, _ = fair_of(mechanism, epsilon="4")
    for window in selectors.windows_of(study):
        present = people.present(window.first_day, window.last_day)
        for slug in ("gender", "region"):
            report = report_of(study, slug, window)
            assert report.n_visitors == np.count_nonzero(present)
            truth = np.bincount(people.static[slug][present], minlength=18) / np.count_nonzero(present)
            for estimate, true in zip(report.estimates, truth, strict=False):
                assert abs(estimate.frequency - true) < 5 * estimate.std_error
                assert estimate.ci_low < estimate.frequency < estimate.ci_high
            assert sum(estimate.consistent for estimate in report.estimates) == pytest.approx(1)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_daily_estimates_are_those_of_the_first_day_in_the_window(mechanism: str) -> None:
    study, people, _ = fair_of(mechanism, epsilon="4")
    first = np.array([next(day for day in range(4) if int(b) >> day & 1) for b in people.bitmaps])
    truth = people.daily["stay"][np.arange(first.size), first].mean()
    long = report_of(study, "stay", Window(1, 4)).estimates[1]
    assert abs(long.frequency - truth) < 5 * long.std_error


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_numbers_are_those_of_the_library_for_the_same_counts(mechanism: str) -> None:
    study, _, delta = fair_of(mechanism)
    spec = ldp.PlanSpec.from_json(study.plans.get().spec)
    for index, slug in enumerate(("gender", "region", "stay")):
        report = report_of(study, slug, Window(2, 3))
        counts, n_reports, n_visitors = (
            ldp.union(tally, first_day=2, last_day=3)
            for tally in (delta.counts[index], delta.n_reports[index], delta.visitors)
        )
        expected = ldp.pure_frequencies(
            counts, n_reports=int(n_reports), n_population=int(n_visitors), channel=spec.channel(index)
        )
        assert (report.n_reports, report.n_visitors) == (n_reports, n_visitors)
        assert [estimate.reports for estimate in report.estimates] == counts.tolist()
        assert [estimate.frequency for estimate in report.estimates] == expected.frequency.tolist()
        assert [estimate.ci_low for estimate in report.estimates] == expected.ci_low.tolist()
        assert [estimate.std_error for estimate in report.estimates] == expected.std_error.tolist()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_everyone_reports_as_the_plan_says(mechanism: str) -> None:
    study, _, _ = fair_of(mechanism)
    reports = selectors.study_reports(list(study.indicators.all()), Window(1, 4))
    n_reports = [report.n_reports for report in reports]
    n_visitors = reports[0].n_visitors
    if mechanism.startswith("smp"):
        assert sum(n_reports) == n_visitors
    else:
        assert set(n_reports) == {n_visitors}
    for report in reports:
        adds_up = sum(estimate.reports for estimate in report.estimates) == report.n_reports
        assert adds_up == (not report.is_unary)
        assert report.has_fakes == mechanism.startswith("rsfd")
    if mechanism in UNARY:
        assert all(report.is_unary for report in reports)


def test_adaptive_plan_has_reports_of_both_kinds() -> None:
    study, _, _ = fair_of("smp-adp")
    assert [report_of(study, slug, Window(1, 1)).is_unary for slug in ("gender", "region")] == [False, True]


# --- files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_files_have_the_same_names_for_every_mechanism(mechanism: str) -> None:
    study, _, _ = fair_of(mechanism)
    records = json.loads(export("fair-2024"))
    assert len(records) == 30
    for record in records:
        assert (record["mechanism"], record["unit"]) == (mechanism, "profile")
        assert record["epsilon"] == pytest.approx(1 / 3 if mechanism == "spl-grr" else 1)
        report = report_of(
            study,
            record["indicator"],
            Window(
                *(
                    study.day_of(type(study.first_day).fromisoformat(record[key]))
                    for key in ("first_day", "last_day")
                )
            ),
        )
        assert (record["n_reports"], record["n_visitors"]) == (report.n_reports, report.n_visitors)
        assert [row["reports"] for row in record["estimates"]] == [e.reports for e in report.estimates]
    rows = list(csv.DictReader(io.StringIO(export("fair-2024", "--format", "csv"))))
    assert len(rows) == sum(len(record["estimates"]) for record in records)


def test_epsilon_in_files_is_that_of_an_answer() -> None:
    fair_of("rsfd-ouez", unit="attribute", indicators=(factory.GENDER, REGION))
    answers = ldp.hidden_epsilon("ouez", epsilon=Fraction(1), unit="attribute", domain_sizes=[3, 18])
    assert {record["epsilon"] for record in json.loads(export("fair-2024"))} == {float(answers)}
    assert float(answers) == pytest.approx(np.log(2 * np.e - 1))


# --- pages ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_pages_say_what_a_report_is(reader: Client, mechanism: str) -> None:
    fair_of(mechanism)
    text = text_of(reader, "indicator", "fair-2024", "region")
    is_unary = mechanism in {*UNARY, "smp-adp", "rsfd-adp"}
    assert ("Supporting reports" in text) == is_unary
    assert ("It supports any number of categories" in text) == is_unary
    assert ("mark the true category" in text) == is_unary
    has_fakes = mechanism.startswith("rsfd")
    assert ("or one that is made up to hide which is the answer" in text) == has_fakes
    assert ("of 100 reports on this one, about 33 are answers" in text) == has_fakes
    assert "(unit: profile)" in text
    days = text_of(reader, "days", "fair-2024", "region")
    assert ("of 100 reports on this one, about 33 are answers" in days) == has_fakes


@pytest.mark.parametrize(
    ("mechanism", "unit", "said", "not_said"),
    [
        ("smp-grr", "profile", ["one of the 2 indicators", "randomised (GRR)"], ["made-up", "unary"]),
        ("spl-grr", "profile", ["answers all 2 indicators", "share the epsilon"], ["made-up", "unary"]),
        ("smp-oue", "profile", ["one of the 2 indicators", "one mark per category"], ["made-up", "GRR"]),
        ("smp-adp", "profile", ["the more exact of two methods"], ["made-up"]),
        (
            "rsfd-grr",
            "attribute",
            ["sends made-up reports on the others", "hides a single value", "lose more than is promised"],
            ["that hides nothing"],
        ),
        ("rsfd-ouez", "attribute", ["one mark per category", "hides a single value"], ["GRR"]),
        ("rsfd-adp", "profile", ["the more exact of two", "that hides nothing"], ["hides a single value"]),
    ],
)
def test_pages_say_what_the_plan_does_and_does_not_hide(
    reader: Client, mechanism: str, unit: str, said: list[str], not_said: list[str]
) -> None:
    fair_of(mechanism, unit=unit, indicators=(factory.GENDER, REGION))
    text = text_of(reader, "study", "fair-2024")
    for words in said:
        assert words in text
    for words in not_said:
        assert words not in text
    assert f"version 1, {mechanism}" in text


def test_attribute_promise_of_fake_data_is_said_with_all_its_numbers(reader: Client) -> None:
    """Two indicators at epsilon 1: answers and profiles have ln(2 e - 1) = 1.4898."""
    fair_of("rsfd-ouez", unit="attribute", indicators=(factory.GENDER, REGION))
    text = text_of(reader, "indicator", "fair-2024", "gender")
    assert "each value of a person is protected with epsilon 1 (unit: attribute" in text
    assert "all values of a person together: 1.4899)" in text
    assert "a guess about that person by a factor of at most 4.44" in text
    assert "this value alone, by somebody who knows all others: by a factor of at most 2.72" in text
    assert "about 50 mark the true category, and about 18 any one other" in text
    statement = text_of(reader, "statement", "fair-2024")
    assert "Each single value of a person (the unit: attribute) is protected with epsilon 1." in statement
    assert "Epsilon, certified per profile 1.4899" in statement
    assert "Epsilon, certified per attribute 1 " in statement
    assert "All values of a person together lose the epsilon per profile" in statement
    assert "Odds change by at most, if all other values are known" in statement
    channel = ldp.PlanSpec.from_json(Study.objects.get().plans.get().spec).answer_channel(0)
    for threshold in (channel.threshold_p, channel.threshold_q):  # type: ignore[union-attr]
        assert str(threshold) in statement


def test_old_plans_are_read_as_they_were_stored() -> None:
    """Their JSON has no epsilon of the unit."""
    study, _, _ = fair_of("smp-grr")
    plan = study.plans.get()
    assert "epsilon" not in plan.spec
    assert ldp.PlanSpec.from_json(plan.spec) == replace(ldp.PlanSpec.from_json(plan.spec), epsilon=None)
    assert report_of(study, "gender", Window(1, 1)).epsilon == 1.0
