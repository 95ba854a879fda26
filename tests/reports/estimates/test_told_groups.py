"""Answers that tell the group of a category: study files, pages, statement, and what is not available."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from django.urls import reverse

from ldp.errors import PlanError
from ldp.estimation.partial.regions import region_variance
from reports.compare.queries import NotComparableError, windows_test
from reports.dpia import dpia_pack
from reports.dpia.markdown import to_markdown
from reports.estimates.groups import report_by_group
from reports.estimates.loading import DisclosedError, load, tallies_of
from reports.estimates.queries import Window, indicator_reports, surely_present, window_report
from reports.exports.bundle import bundle_of
from reports.exports.errors import ExportError
from reports.forecasts.series import category_days
from reports.models import Plan, Study
from reports.privacy.plan_changes import Direction, plan_changes
from reports.privacy.statement.document import privacy_statement
from reports.scenario.population import PopulationError, synthesise
from reports.simulator.model import questions_of_definition, questions_of_study
from reports.simulator.plan_effects import plan_effects
from reports.studies.studyfile import StudyFileError
from reports.studies.studyfile.definition import StudyDefinition
from reports.studies.studyfile.redraft import read_tables, tables_of
from reports.transfer.studies import create_study_rows
from scripts.check_statement import check
from tests.reports import report_factory as factory
from tests.reports.kept import made_once

pytestmark = pytest.mark.django_db
WHOLE = Window(1, 4)
LETTERS = "ABCDEFGHIJKLMNOPQRST"
GROUPS = (("North", ("A", "C", "E")), ("South", ("B", "D")), ("Isles", tuple(LETTERS[5:])))
ZONE = replace(factory.indicator("zone", *LETTERS), groups=GROUPS, protect="in_groups")
DAILY = replace(ZONE, slug="today", name="Today", kind="daily", column=None, derive="main_zone")


def told_definition(*more, **changes) -> StudyDefinition:
    return factory.definition(ZONE, *more, **changes)


@made_once
def published(*more, n: int = 6000, **changes) -> Study:
    study = create_study_rows(told_definition(*more, **changes), by="adam")
    factory.publish(study, factory.crowd(study, n=n))
    return study


def zone(study: Study):
    return study.indicators.get(slug="zone")


def says(client, name: str, study: Study, *, language: str = "en") -> str:
    address = reverse(f"reports:{name}", args=[study.slug, "zone"])
    return client.get(address, HTTP_ACCEPT_LANGUAGE=language).content.decode()


def test_shares_are_near_the_truth_and_groups_are_exact():
    study = published()
    people, report = factory.crowd(study, n=6000), window_report(zone(study), WHOLE)
    truth = np.bincount(people.static["zone"], minlength=20) / 6000
    errors = [(each.frequency - f) / each.std_error for each, f in zip(report.estimates, truth, strict=True)]
    assert np.abs(errors).max() < 4
    by_group = report_by_group(report)
    assert by_group is not None
    of_groups = [sum(truth[LETTERS.index(each)] for each in members) for _, members in GROUPS]
    assert [each.category for each in by_group.estimates] == [name for name, _ in GROUPS]
    # Everyone is asked this one indicator: what is left is rounding.
    assert [each.frequency for each in by_group.estimates] == pytest.approx(of_groups)
    assert [each.reports for each in by_group.estimates] == [round(6000 * share) for share in of_groups]
    assert {each.std_error for each in by_group.estimates} == {0}
    assert surely_present(report) is None
    (loaded,) = load([zone(study)])
    with pytest.raises(DisclosedError, match="zone discloses groups or categories"):
        tallies_of(loaded)


def test_a_sample_has_the_error_of_the_sample_in_its_groups():
    study = published(factory.GENDER)
    report = window_report(zone(study), WHOLE)
    shares = [each.frequency for each in report_by_group(report).estimates]
    errors = [each.std_error for each in report_by_group(report).estimates]
    n, people = report.n_reports, report.n_visitors
    expected = np.sqrt(np.array(shares) * (1 - np.array(shares)) * (people - n) / (people - 1) / n)
    assert errors == pytest.approx(expected.tolist())
    assert sum(shares) == pytest.approx(1)


def test_one_small_group_hides_the_window_because_it_is_told():
    study = create_study_rows(told_definition(small_cell=40), by="adam")
    people = factory.crowd(study, n=3000)
    values = np.where(people.static["zone"] % 2 == 1, 5, people.static["zone"])
    values[np.isin(values, (1, 3))] = 5
    values[:30] = 1
    factory.publish(study, replace(people, static={"zone": values.astype(np.int32)}))
    report = window_report(zone(study), WHOLE)
    assert (report.status, report.n_reports, report.n_visitors) == ("suppressed", None, None)
    assert {(each.reports, each.frequency) for each in report.estimates} == {(None, None)}
    assert report_by_group(report) is None


def test_days_have_the_exact_variance_at_the_mean_share():
    study = published(DAILY)
    days = [Window(day, day) for day in range(1, 5)]
    reports = indicator_reports(study.indicators.get(slug="today"), days)
    shares = np.array([[each.frequency for each in report.estimates] for report in reports])
    mean = np.clip(shares.mean(axis=0), 0, 1)
    (loaded,) = load([study.indicators.get(slug="today")])
    figures = category_days(study.indicators.get(slug="today"))
    for place, report in enumerate(reports):
        sizes = {"n_reports": report.n_reports, "n_population": report.n_visitors}
        expected = region_variance(mean, channel=loaded.channel, **sizes)
        assert [each.figures.variances[place] for each in figures] == pytest.approx(expected.tolist())


def test_pages_say_that_the_group_is_not_protected(reader):
    study = published()
    page = says(reader, "indicator", study)
    for text in (
        "the group of each subscriber is not protected",
        "This limit applies only to guesses about categories of the same group",
    ):
        assert text in page
    assert "de chaque abonné" in says(reader, "indicator", study, language="fr")
    statement = reader.get(reverse("reports:statement", args=[study.slug])).content.decode()
    assert "The group of each subscriber is not protected" in statement
    assert "PCE" in statement
    grouped = reader.get(reverse("reports:indicator", args=[study.slug, "zone"]), {"group": "groups"})
    assert "Isles" in grouped.content.decode()


def test_what_needs_one_channel_is_refused_in_words(reader):
    study = published()
    with pytest.raises(NotComparableError):
        windows_test(zone(study), Window(1, 1), Window(2, 2))
    with pytest.raises(ExportError, match="disclose groups or categories"):
        bundle_of(study)
    with pytest.raises(PopulationError, match="disclose groups or categories"):
        synthesise(study, seed=1)
    for name in ("movement", "compare", "scenario"):
        assert "disclose groups or categories" in says(reader, name, study), name
    for name in ("days", "forecast_indicator"):
        assert reader.get(reverse(f"reports:{name}", args=[study.slug, "zone"])).status_code == 200, name


def test_statement_has_each_group_and_the_script_agrees():
    study = published(DAILY, factory.AGE)
    statement = json.loads(json.dumps(privacy_statement(study, with_names=True)))
    schema = json.loads((Path(__file__).parents[3] / "docs/statement.schema.json").read_text())
    jsonschema.validate(statement, schema)
    assert check(statement).texts == []
    entry = statement["indicators"][0]
    assert entry["protocol"] == "groups"
    assert [(each["name"], each["protocol"]) for each in entry["groups"]] == [
        ("North", "grr"),
        ("South", "grr"),
        ("Isles", "projective"),
    ]
    assert "groups" not in statement["indicators"][2]
    (limit,) = [each["text"] for each in statement["not_protected"] if each["name"] == "groups"]
    assert "The group of each subscriber is not protected" in limit
    assert "(Zone, Today)" in limit
    assert "must be in the same groups" in statement["guarantee"]["definition"]
    for name in ("threshold", "p", "q", "ratio"):
        forged = json.loads(json.dumps(statement))
        forged["indicators"][0]["groups"][1][name] = "1" if name == "threshold" else "1/3"
        assert any("group South" in text for text in check(forged).texts), name
    forged = json.loads(json.dumps(statement))
    forged["indicators"][0]["groups"][0]["categories"][0] = "B"
    assert check(forged).texts
    forged = json.loads(json.dumps(statement))
    forged["not_protected"] = [each for each in forged["not_protected"] if each["name"] != "groups"]
    assert any(text.startswith("not_protected, groups") for text in check(forged).texts)
    forged = json.loads(json.dumps(statement))
    forged["plan"]["spec"]["indicators"][0]["regions"][1] = 2
    assert any(text.startswith("plan.spec, regions") for text in check(forged).texts)


def test_sums_of_one_day_promise_no_more_because_a_person_hides_in_a_group_only():
    assert "sums" in privacy_statement(factory.published(n=30_000, days=1, slug="plain"))
    statement = json.loads(json.dumps(privacy_statement(published(n=30_000, days=1))))
    assert "sums" not in statement
    assert check(statement).texts == []


def test_the_impact_assessment_promises_nothing_between_groups():
    text = to_markdown(dpia_pack(published()))
    row = next(line for line in text.splitlines() if line.startswith("| Zone | 5.0%"))
    assert row.endswith("100.0% |")
    assert "The group of each subscriber is not protected" in text


def test_studies_without_told_groups_are_what_they_were():
    study = factory.published()
    assert "groups" not in privacy_statement(study)["indicators"][0]
    assert "groups" not in {each["name"] for each in privacy_statement(study)["not_protected"]}
    plain = factory.definition()
    assert not any({"protect", "regions"} & {*each} for each in plain.to_json()["indicators"])
    assert "regions" not in json.dumps(plain.plan_spec().to_json())
    grouped = replace(factory.MANY, groups=(("x", ("Region A", "Region B")),))
    assert "regions" not in json.dumps(factory.definition(grouped).plan_spec().to_json())


def test_study_file_round_trips_and_names_what_is_not_possible():
    made = told_definition(factory.GENDER)
    assert StudyDefinition.from_json(made.to_json()) == made
    assert read_tables(tables_of(made), like=made).indicators == made.indicators
    assert made.plan_spec().indicators[0].regions == (0, 1, 0, 1, 0, *[2] * 15)
    with pytest.raises(PlanError, match="groups of zone must have each category, 'B' is in none"):
        _ = replace(ZONE, groups=GROUPS[:1]).regions

    def problems(**changes) -> str:
        tables = tables_of(made)
        for key, value in changes.items():
            table = tables["plan"] if key in ("mechanism", "presence_epsilon", "presence_days") else None
            table = tables["study"] if key in ("small_category", "category_shares") else table
            (tables["indicator"][0] if table is None else table)[key] = value
        with pytest.raises(StudyFileError) as error:
            read_tables(tables, like=made)
        return str(error.value)

    groups = {name: list(members) for name, members in GROUPS}
    cases = {
        "must have each category": {"groups": groups | {"North": ["A", "C"]}},
        "must have two categories or more": {"groups": groups | {"South": ["B"], "North": [*"ACDE"]}},
        "must be two groups or more": {"groups": {"All": list(LETTERS)}},
        "is missing": {"groups": {}},
        "must be absent under smp-question": {"mechanism": "smp-question"},
        'must be absent with protect = "in_groups" (zone)': {"small_category": 10},
        "must be one of": {"protect": "some"},
    }  # fmt: skip
    for text, changes in cases.items():
        assert text in problems(**changes), text
    tables = tables_of(made)
    tables["indicator"].append({"slug": "both", "kind": "static", "parts": ["zone", "gender"]})
    with pytest.raises(StudyFileError, match="must not name an indicator whose answers disclose"):
        read_tables(tables, like=made)
    tables = tables_of(made)
    tables["indicator"][0]["protect"] = "all"
    assert read_tables(tables, like=made).indicators[0].protect is None


def test_changes_of_told_groups_need_a_second_person():
    plain = factory.definition(replace(ZONE, protect=None), factory.GENDER)
    told = told_definition(factory.GENDER)
    (change, *_) = [each for each in plan_changes(plain, told) if "not protected" in each.text]
    assert (change.direction, change.needs_second_person) == (Direction.WEAKER, True)
    assert "North, South, Isles" in change.text
    back = [
        each for each in plan_changes(told, plain) if "no longer disclose groups or categories" in each.text
    ]
    assert [each.needs_second_person for each in back] == [False]
    moved = (("North", ("A", "C", "E", "B", "D")), GROUPS[2])
    others = plan_changes(told, replace(told, indicators=(replace(ZONE, groups=moved), factory.GENDER)))
    assert any(each.needs_second_person and "North, Isles" in each.text for each in others)
    added = plan_changes(factory.definition(factory.GENDER), told)
    assert any("asks one more question" in each.text and "not protected" in each.text for each in added)


def test_the_simulator_knows_the_groups():
    made = told_definition(factory.GENDER, epsilon="1")
    (question, _) = questions_of_definition(made)
    assert question.regions == made.plan_spec().indicators[0].regions
    assert not question.has_size
    study = published(factory.GENDER)
    assert questions_of_study(study)[0].regions == question.regions
    plain = factory.definition(replace(ZONE, protect=None), factory.GENDER)
    (row, _) = plan_effects(plain, made, visitors=50_000).rows
    assert row.after.half_width < row.before.half_width
    assert Plan.objects.get(study=study).epsilon == Decimal(1)
