"""From tallies to estimates, files and pages, of every mechanism: exact totals, errors, plain words."""

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from html import unescape
from typing import Any, get_args

import numpy as np
import pytest
from django.core.management import CommandError
from django.utils import timezone, translation

import ldp
from ldp.privacy.plans import Mechanism
from ldp.protocols.projective_space import value_counts
from reports.base import formats
from reports.base.version import software
from reports.estimates import queries
from reports.estimates import texts as estimates_texts
from reports.estimates.queries import UnionNotAvailableError, Window, WindowReport
from reports.exports.selection import select_window
from reports.models import Indicator, Plan, Study, Tally
from reports.studies import queries as studies_queries
from reports.studies import texts as studies_texts
from tests.reports import report_factory as factory
from tests.reports.page_texts import page, pdf_text, printed, text_of
from tests.reports.report_factory import render_file

pytestmark = pytest.mark.django_db
MECHANISMS = get_args(Mechanism)
export = partial(printed, "export_report")
REGION = factory.indicator("region", *(f"Region {letter}" for letter in "ABCDEFGHIJKLMNOPQR"))


def of(study: Study, slug: str) -> Indicator:
    return study.indicators.get(slug=slug)


def report_of(study: Study, slug: str, *days: int) -> WindowReport:
    return queries.window_report(of(study, slug), Window(*days))


def made(*indicators: Any, **changes: Any) -> tuple[Study, factory.People, ldp.Delta]:
    study = factory.create(*(indicators or (factory.GENDER, REGION, factory.STAY)), **changes)
    people = factory.crowd(study, n=6000)
    return study, people, factory.publish(study, people)


@pytest.mark.database
def test_visitors_of_every_window_are_exact() -> None:
    study, people, _ = made(days=3)
    windows = [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3)]
    assert queries.windows_of(study) == [Window(*days) for days in windows]
    unions = queries.visitor_unions(study)
    for days in windows:
        truth = np.count_nonzero(people.present(*days))
        assert unions[days] == report_of(study, "gender", *days).n_visitors == truth


def test_report_without_answers_has_zeros_and_a_report_names_its_plan() -> None:
    report = report_of(factory.create(), "gender", 1, 4)
    assert (report.n_visitors, report.n_reports) == (0, 0)
    zeros = [queries.Estimate(category=category, reports=0) for category in ("F", "M", "NR")]
    assert list(report.estimates) == zeros
    study = factory.create(slug="shared", mechanism="spl-grr", unit="attribute", epsilon="3")
    report = report_of(study, "age", 1, 1)
    plan = (report.plan_version, report.mechanism, report.unit, report.epsilon)
    assert plan == (1, "spl-grr", "attribute", 1.0)  # 3 shared by three indicators
    assert report.first_date == report.last_date == date(2024, 5, 30)


def test_unions_of_an_indicator_of_some_days_are_left_out_unless_asked_for_by_name() -> None:
    study, people, _ = made(factory.GENDER, factory.HALF_STAY)
    stay = of(study, "stay")
    assert queries.windows_of_indicator(stay) == [Window(day, day) for day in range(1, 5)]
    for language, words in (("en", "4 days. Requested: days 1 to 2"), ("fr", "doit être un seul jour")):
        with translation.override(language), pytest.raises(UnionNotAvailableError, match=words):
            queries.window_report(stay, Window(1, 2))
    left_out = queries.study_reports(list(study.indicators.all()), Window(1, 2))
    assert [report.indicator.slug for report in left_out] == ["gender"]
    assert [record["indicator"] for record in json.loads(export("fair-2024"))].count("stay") == 4
    window = ("--from", "2024-05-30", "--to", "2024-05-31")
    assert [record["indicator"] for record in json.loads(export("fair-2024", *window))] == ["gender"]
    with pytest.raises(CommandError, match="date range for stay must be a single day"):
        export("fair-2024", "--indicator", "stay", *window)
    there = people.daily["stay"][people.present(2, 2), 1]
    for estimate, n in zip(report_of(study, "stay", 2, 2).estimates, np.bincount(there), strict=True):
        assert abs(estimate.frequency - n / there.size) < 5 * estimate.std_error
    every_day = factory.create(replace(factory.HALF_STAY, max_values=4), slug="every-day")
    assert studies_queries.has_unions(of(every_day, "stay"))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_numbers_are_those_of_the_library_for_the_same_counts(mechanism) -> None:
    study, _, delta = made(mechanism=mechanism, market_share=Decimal("0.4"))
    spec = ldp.PlanSpec.from_json(study.plans.get().spec)
    reports = queries.study_reports(list(study.indicators.all()), Window(2, 3))
    for index, report in enumerate(reports):
        counts, n_reports, n_visitors = (
            ldp.union(tally, first_day=2, last_day=3)
            for tally in (delta.counts[index], delta.n_reports[index], delta.visitors)
        )
        sizes = {"n_reports": int(n_reports), "n_population": int(n_visitors)}
        channel = spec.channel(index)
        counts = value_counts(counts, channel=channel)
        expected = ldp.pure_frequencies(counts, **sizes, channel=channel)
        assert (report.n_reports, report.n_visitors) == (n_reports, n_visitors)
        assert [estimate.reports for estimate in report.estimates] == counts.tolist()
        for name in ("frequency", "std_error", "ci_low", "ci_high", "consistent"):
            values = getattr(expected, name)
            assert [getattr(estimate, name) for estimate in report.estimates] == values.tolist()
            scaled = {"frequency": "visitors", "ci_low": "visitors_ci_low", "ci_high": "visitors_ci_high"}
            if name in scaled:
                found = [getattr(estimate, scaled[name]) for estimate in report.estimates]
                assert found == pytest.approx(values * n_visitors / 0.4)
    # Everyone reports as the plan says.
    n_reports = [report.n_reports for report in reports]
    if mechanism == "smp-stream":  # people report on stay on some days, so there is no union
        assert [report.indicator.slug for report in reports] == ["gender", "region"]
    elif mechanism.startswith("smp"):
        assert sum(n_reports) == reports[0].n_visitors
    else:
        assert set(n_reports) == {reports[0].n_visitors}
    for report in reports:
        adds_up = sum(estimate.reports for estimate in report.estimates) == report.n_reports
        assert adds_up == (not report.is_unary)
        assert report.has_fakes == mechanism.startswith("rsfd")
    unary = {"grr": [False] * 3, "oue": [True] * 3, "ouez": [True] * 3}
    expected_unary = unary.get(mechanism.partition("-")[2], [False, True, False])
    assert [report.is_unary for report in reports] == expected_unary[: len(reports)]


def test_old_plans_are_read_as_they_were_stored_and_the_newest_is_used() -> None:
    study = factory.published(factory.GENDER)
    old = Plan.objects.get(study=study)
    spec = ldp.PlanSpec.from_json(old.spec)
    assert "epsilon" not in old.spec  # of the unit
    assert (spec.epsilon, report_of(study, "gender", 1, 1).epsilon) == (None, 1.0)
    Plan.objects.filter(pk=old.pk).update(superseded_at=timezone.now())
    newer = replace(spec, version=2)
    asked = {"mechanism": "smp-grr", "unit": "profile", "epsilon": 1}
    new = Plan.objects.create(study=study, version=2, **asked, spec=newer.to_json(), spec_hash="x")
    zero = ldp.Delta.zero(newer)
    tallies = {"counts": zero.counts[0].tobytes(), "n_reports": zero.n_reports[0].tobytes()}
    Tally.objects.create(plan=new, indicator=of(study, "gender"), **tallies)
    assert studies_queries.current_plan(study) == new
    report = report_of(study, "gender", 1, 1)
    assert (report.plan_version, report.n_reports) == (2, 0)


def test_summaries_are_newest_first_and_all_reports_take_three_queries(django_assert_num_queries) -> None:
    factory.published(slug="old", first_day=date(2020, 1, 1), n=100)
    factory.create(slug="new", first_day=date(2021, 1, 1))
    summaries = queries.study_summaries(Study.objects.all())
    found = [(each.study.slug, each.n_visitors, each.n_indicators) for each in summaries]
    assert found == [("new", 0, 3), ("old", 100, 3)]
    fresh = Study.objects.get(pk=factory.published(n=50).pk)
    with django_assert_num_queries(3):  # indicators; tallies with plans and visitors; notes
        reports = queries.study_reports(list(fresh.indicators.all()), None)
    assert len(reports) == 30


@pytest.mark.parametrize("mechanism", ["smp-grr", "smp-question", "smp-allomfree", "rsfd-ouez"])
def test_pages_say_what_a_report_is(reader, mechanism) -> None:
    made(mechanism=mechanism)
    text = text_of(page(reader, "indicator", "region"))
    is_unary = mechanism in {"smp-oue", "rsfd-ouez", "smp-adp", "rsfd-adp", "smp-allomfree"}
    marks_several = is_unary or mechanism in {"smp-question", "smp-loloha"}  # answers are sets of categories
    has_fakes = mechanism.startswith("rsfd")
    for words, is_said in (
        ("Answers that mark the category", marks_several),
        ("mark the true category", is_unary),
        ("Of 100 reports on this indicator, about 33 are real answers", has_fakes),
    ):
        assert (words in text) == is_said, words
    text = text_of(page(reader, "study"))
    assert f"version 1, {mechanism}" in text
    assert studies_texts.plan_words(ldp.PlanSpec.from_json(Plan.objects.get().spec)) in unescape(text)


REPORT_KEYS = [
    "study", "indicator", "first_day", "last_day", "plan_version", "mechanism", "epsilon", "unit",
    "n_visitors", "n_reports", "estimates", "status", "ci_level", "timezone", "software_version",
]  # fmt: skip
ESTIMATE_KEYS = [
    "category", "reports", "frequency", "std_error", "ci_low", "ci_high", "consistent", "visitors",
    "visitors_ci_low", "visitors_ci_high", "status",
]  # fmt: skip


def test_json_and_csv_have_the_agreed_names_in_plan_order(fair) -> None:
    records = json.loads(export("fair-2024"))
    assert [list(record) for record in records] == [REPORT_KEYS] * 30
    assert [record["indicator"] for record in records] == ["gender"] * 10 + ["age"] * 10 + ["stay"] * 10
    days = [(record["first_day"], record["last_day"]) for record in records[:10]]
    assert (days, days[0]) == (sorted(days), ("2024-05-30", "2024-05-30"))
    assert all(list(each) == ESTIMATE_KEYS for record in records for each in record["estimates"])
    assert [estimate["category"] for estimate in records[10]["estimates"]] == ["<18", "18-24", "25 & older"]
    header = export("fair-2024", "--format", "csv").split()[0]
    assert header.split(",") == REPORT_KEYS[:10] + ESTIMATE_KEYS + REPORT_KEYS[12:]


def test_values_are_those_of_the_selectors(fair) -> None:
    asked = ("--indicator", "age", "--from", "2024-05-31", "--to", "2024-06-01")
    (record,) = json.loads(export("fair-2024", *asked))
    report = report_of(fair, "age", 2, 3)
    estimates = [{name: getattr(each, name) for name in ESTIMATE_KEYS} for each in report.estimates]
    told = {"study": "fair-2024", "indicator": "age", "first_day": "2024-05-31", "last_day": "2024-06-01"}
    told |= {"plan_version": 1, "mechanism": "smp-grr", "epsilon": 1.0, "unit": "profile", "status": "ok"}
    told |= {"n_visitors": report.n_visitors, "n_reports": report.n_reports, "ci_level": 0.95}
    told |= {"timezone": "Europe/Paris", "software_version": software()["version"]}
    assert record == told | {"estimates": estimates}


def test_errors_name_what_is_wrong(fair) -> None:
    for args, message in (
        (["nope"], r"STUDY must be the slug of a study \(fair-2024\), got nope"),
        (["fair-2024", "--indicator", "nope"], "--indicator must be one of gender, age, stay, got nope"),
        (["fair-2024", "--from", "2024-05-30"], "--from and --to must be given together"),
        (["fair-2024", "--from", "x", "--to", "2024-05-30"], "--from must be a date such as .*, got x"),
        (["fair-2024", "--from", "2024-05-30", "--to", "2024-06-03"], "must lie between 2024-05-30 and"),
        (["fair-2024", "--format", "xml"], "invalid choice"),
    ):
        with pytest.raises(CommandError, match=message):
            export(*args)


def test_words_name_the_categories_that_someone_is_in_for_certain() -> None:
    found = report_of(factory.published(), "gender", 1, 4)
    n, first = found.n_reports, found.estimates[0].category

    def words(*counts: int, **changes: Any) -> str:
        rows = zip(found.estimates, counts, strict=True)
        changed = tuple(each._replace(reports=count) for each, count in rows)
        return estimates_texts.present_words(replace(found, estimates=changed, **changes))

    assert f"There are visitors in at least 1 of 3 categories: {first}." in words(n, 0, 0)
    assert "The noise is too large" in words(0, 0, 0)
    assert words(n, n, n) == words(n, 0, 0, status=queries.Status.OUTAGE) == ""


def test_words_pages_and_pdf_name_the_scaled_number_and_the_totals_that_are_not(reader) -> None:
    fifth = factory.published(market_share=Decimal("0.8"))  # four fifths of those who were there
    report = report_of(fifth, "gender", 1, 4)
    seen = report.n_visitors
    assert report.scale == pytest.approx(seen / 0.8)
    assert formats.number(seen / 0.8) in estimates_texts.report_summary(report)
    for name, word in {"indicator": "Visitors", "days": "Visitors", "movement": "All visitors"}.items():
        words, text = f"{word} (exact, not scaled)", text_of(page(reader, name, "gender"))
        assert (words in text, "Visitors (exact)" in text) == (True, False)
    text = pdf_text(render_file(select_window(of(fifth, "gender"), Window(1, 4)), ending="pdf"))
    assert ("Visitors (exact, not scaled)" in text, "Visitors (exact)" in text) == (True, False)
