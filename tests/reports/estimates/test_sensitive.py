"""Answers that hide sensitive categories only: study files, pages, statement, and what is not available."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from django.urls import reverse

import ldp
from ldp.errors import PlanError
from reports.compare.queries import NotComparableError, windows_test
from reports.dpia import dpia_pack
from reports.dpia.markdown import to_markdown
from reports.estimates.groups import report_by_group
from reports.estimates.loading import DisclosedError, load, tallies_of
from reports.estimates.queries import Window, indicator_reports, surely_present, window_report
from reports.forecasts.series import category_days
from reports.models import Study
from reports.privacy.plan_changes import Direction, plan_changes, second_person_reasons
from reports.privacy.statement.document import privacy_statement
from reports.simulator.model import questions_of_definition
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
PLACES = ("shop", "clinic", "park", "mosque", "church", "street")
HIDDEN = ("mosque", "clinic", "church")
GROUPS = (("faith", ("mosque", "church")), ("other", ("shop", "park")))
PLACE = replace(factory.indicator("place", *PLACES), protect="sensitive", sensitive=HIDDEN, groups=GROUPS)
TODAY = replace(PLACE, slug="today", name="Today", kind="daily", column=None, derive="main_zone")


def open_definition(*more, **changes) -> StudyDefinition:
    made = factory.definition(PLACE, *more, **changes)
    return replace(made, plan=replace(made.plan, discloses_values=True))


@made_once
def published(*more, n: int = 6000, **changes) -> Study:
    study = create_study_rows(open_definition(*more, **changes), by="adam")
    factory.publish(study, factory.crowd(study, n=n))
    return study


def place(study: Study):
    return study.indicators.get(slug="place")


def test_shares_are_near_the_truth_and_open_ones_hardly_have_noise():
    study = published()
    people, report = factory.crowd(study, n=6000), window_report(place(study), WHOLE)
    truth = np.bincount(people.static["place"], minlength=6) / 6000
    errors = [(each.frequency - f) / each.std_error for each, f in zip(report.estimates, truth, strict=True)]
    assert np.abs(errors).max() < 4
    (loaded,) = load([place(study)])
    sizes = {"n_reports": 6000, "n_population": 6000, "channel": loaded.channel}
    expected = np.sqrt(ldp.pure_variance(np.clip([e.frequency for e in report.estimates], 0, 1), **sizes))
    assert [each.std_error for each in report.estimates] == pytest.approx(expected.tolist())
    assert surely_present(report) is None
    assert report_by_group(report) is None
    with pytest.raises(DisclosedError, match="place discloses groups or categories"):
        tallies_of(loaded)


def test_few_people_whose_category_is_disclosed_hide_the_window():
    """Any number of sensitive categories is shown, since their reports come from all people."""
    for wanted, few in (("suppressed", 2), ("ok", 1)):
        study = create_study_rows(open_definition(small_cell=40, slug=f"few-{few}"), by="adam")
        values = np.full(3000, 5, np.int32)
        values[1000:2000] = 0
        values[:30] = few
        factory.publish(study, replace(factory.crowd(study, n=3000), static={"place": values}))
        assert window_report(place(study), WHOLE).status == wanted


def test_days_have_the_exact_variance_at_the_mean_share():
    study = published(TODAY)
    today = study.indicators.get(slug="today")
    reports = indicator_reports(today, [Window(day, day) for day in range(1, 5)])
    shares = np.array([[each.frequency for each in report.estimates] for report in reports])
    mean = np.clip(shares.mean(axis=0), 0, 1)
    (loaded,) = load([today])
    for place_of_day, report in enumerate(reports):
        sizes = {"n_reports": report.n_reports, "n_population": report.n_visitors}
        expected = ldp.pure_variance(mean, channel=loaded.channel, **sizes).tolist()
        found = [each.figures.variances[place_of_day] for each in category_days(today)]
        assert found == pytest.approx(expected)


def test_pages_say_what_is_not_protected(reader):
    study = published()
    address = reverse("reports:indicator", args=[study.slug, "place"])
    page = reader.get(address).content.decode()
    for text in (
        "Only sensitive categories are protected",
        "All other answers disclose the category",
        "Categories that are not sensitive are not protected",
    ):
        assert text in page
    assert "ne sont pas protégées" in reader.get(address, HTTP_ACCEPT_LANGUAGE="fr").content.decode()
    statement = reader.get(reverse("reports:statement", args=[study.slug])).content.decode()
    assert "For these categories, epsilon is infinite" in statement
    assert "uRR" in statement
    with pytest.raises(NotComparableError):
        windows_test(place(study), Window(1, 1), Window(2, 2))
    compare = reader.get(reverse("reports:compare", args=[study.slug, "place"])).content.decode()
    assert "disclose groups or categories" in compare


def test_statement_names_the_sensitive_categories_and_the_script_agrees():
    study = published(TODAY, factory.AGE)
    statement = json.loads(json.dumps(privacy_statement(study, with_names=True)))
    schema = json.loads((Path(__file__).parents[3] / "docs/statement.schema.json").read_text())
    jsonschema.validate(statement, schema)
    assert check(statement).texts == []
    entry = statement["indicators"][0]
    assert (entry["protocol"], entry["sensitive"]) == ("sensitive", ["clinic", "mosque", "church"])
    (limit,) = [each["text"] for each in statement["not_protected"] if each["name"] == "disclosed_values"]
    assert "epsilon is infinite" in limit
    assert "(Place, Today)" in limit
    assert "nothing is guaranteed" in statement["guarantee"]["definition"]
    forgeries = {
        "threshold": "1",
        "threshold_other": "1",
        "p": "1/3",
        "q": "1/3",
        "ratio": "2/1",
        "disclosed": "1/2",
        "sensitive": ["clinic", "mosque"],
    }
    for name, value in forgeries.items():
        forged = json.loads(json.dumps(statement))
        forged["indicators"][0][name] = value
        assert any(text.startswith("indicator place") for text in check(forged).texts), name
    forged = json.loads(json.dumps(statement))
    forged["not_protected"] = [each for each in forged["not_protected"] if each["name"] != "disclosed_values"]
    assert any(text.startswith("not_protected, disclosed_values") for text in check(forged).texts)
    forged["plan"]["spec"]["indicators"][0]["sensitive"] = [0, 1, 2, 3, 4, 5]
    assert any(text.startswith("plan.spec, regions") for text in check(forged).texts)


def test_sums_and_the_impact_assessment_promise_nothing_of_open_values():
    assert "sums" not in privacy_statement(published(n=30_000, days=1))
    text = to_markdown(dpia_pack(Study.objects.get()))
    row = next(line for line in text.splitlines() if line.startswith("| Place | 16.7%"))
    assert row.endswith("100.0% |")


def test_study_file_round_trips_and_names_what_is_not_possible():
    made = open_definition(factory.GENDER)
    assert StudyDefinition.from_json(made.to_json()) == made
    assert read_tables(tables_of(made), like=made) == made
    assert made.plan_spec().indicators[0].sensitive == (1, 3, 4)
    assert "discloses_values" not in factory.definition().to_json()["plan"]
    with pytest.raises(PlanError, match="sensitive of place must be categories, got 'school'"):
        _ = replace(PLACE, sensitive=("school",)).hidden

    def problems(**changes) -> str:
        tables = tables_of(made)
        for key, value in changes.items():
            table = tables["plan"] if key in ("mechanism", "discloses_values") else tables["indicator"][0]
            table = tables["study"] if key == "small_category" else table
            table[key] = value
        with pytest.raises(StudyFileError) as error:
            read_tables(tables, like=made)
        return str(error.value)

    cases = {
        'must be true: protect = "sensitive" (place)': {"discloses_values": False},
        "must be true or false": {"discloses_values": "yes"},
        'must be absent: only protect = "sensitive" has it': {"protect": "all"},
        "must not have all categories": {"sensitive": list(PLACES)},
        "must name each category once": {"sensitive": ["clinic", "clinic"]},
        'did you mean "shop"?': {"sensitive": ["school"]},
        "must be a list of categories": {"sensitive": "clinic"},
        "must be absent under smp-question": {"mechanism": "smp-question"},
        'must be absent with protect = "sensitive" (place)': {"small_category": 10},
    }
    for text, changes in cases.items():
        assert text in problems(**changes), text
    tables = tables_of(made)
    del tables["indicator"][0]["sensitive"]
    with pytest.raises(StudyFileError, match="sensitive: is missing"):
        read_tables(tables, like=made)
    del tables["indicator"][0]["protect"]
    with pytest.raises(StudyFileError, match="must be absent: no indicator has protect"):
        read_tables(tables, like=made)


def test_any_plan_that_discloses_values_needs_a_second_person():
    made = open_definition(factory.GENDER)
    lower = replace(made, plan=replace(made.plan, epsilon=Decimal("0.5")))
    always = "A second person must always approve this"
    assert any(always in each for each in second_person_reasons(made, lower, is_new_study=False))
    assert any(always in each for each in second_person_reasons(None, made, is_new_study=True))
    plain = factory.definition(replace(PLACE, protect=None, sensitive=()), factory.GENDER)
    assert all(always not in each for each in second_person_reasons(made, plain, is_new_study=False))
    changes = [each for each in plan_changes(plain, made) if "mosque, clinic, church" in each.text]
    assert [(each.direction, each.needs_second_person) for each in changes] == [(Direction.WEAKER, True)]
    fewer = replace(made, indicators=(replace(PLACE, sensitive=HIDDEN[:2]), factory.GENDER))
    assert any("are: mosque, clinic." in each.text for each in plan_changes(made, fewer))
    (question, _) = questions_of_definition(made)
    assert question.sensitive == (1, 3, 4)
    (row, _) = plan_effects(plain, made, visitors=50_000).rows
    assert row.after.half_width < row.before.half_width
