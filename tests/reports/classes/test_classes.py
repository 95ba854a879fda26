"""Classes on pages, in files, in the API and in the statement; small cells, and what is not available yet."""

import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

import ldp
from ldp.estimation.classes import stratified_variance
from ldp.estimation.joint.association import Association
from reports.classes.queries import NoClassesError, by_class
from reports.compare.queries import (
    NotComparableError,
    Reason,
    Verdict,
    compare_baseline,
    compare_categories,
    compare_studies,
    compare_windows,
    windows_test,
)
from reports.dpia import dpia_pack
from reports.dpia.markdown import to_markdown
from reports.estimates.loading import ClassesError, load, tallies_of
from reports.estimates.notes import note_day
from reports.estimates.queries import Window, surely_present, window_report
from reports.exports.bundle import bundle_of
from reports.exports.errors import ExportError
from reports.forecasts.series import category_days
from reports.models import DayNote, Plan, Study
from reports.movement.figures import Show
from reports.movement.queries import movement
from reports.privacy.retention import retention
from reports.privacy.statement.document import class_protections, privacy_statement
from reports.scenario.population import PopulationError, synthesise
from reports.sharing.actions import create_link
from reports.studies.studyfile import StudyFileError
from reports.studies.studyfile.class_definition import ClassDefinition
from reports.studies.studyfile.definition import StudyDefinition
from reports.studies.studyfile.redraft import read_tables, tables_of
from reports.transfer.studies import create_study_rows, plan_hash
from scripts.check_statement import check
from tests.demo_study import parsed_study
from tests.mobility.class_study import class_text
from tests.reports import report_factory as factory
from tests.reports.kept import made_once

pytestmark = pytest.mark.django_db
EPSILONS = {"panel": "3", "standard": "1", "minor": "0.5"}
CLASSES = tuple(
    ClassDefinition(
        slug=slug, name=slug.capitalize(), name_fr=f"Classe {slug}", value=slug, epsilon=Decimal(each)
    )
    for slug, each in EPSILONS.items()
)
WHOLE = Window(1, 4)
SHARES = (0.1, 0.6, 0.3)


def class_definition(**changes):
    made = factory.definition(factory.GENDER, factory.STAY, epsilon="3", **changes)
    return replace(made, classes=CLASSES, plan=replace(made.plan, class_column="contract"))


@made_once
def published(*, n: int = 6000, few: int | None = None, unlike: bool = False, **changes) -> Study:
    """Classes with the same shares, or minors who all have the last value; `few` : people of the panel."""
    study = create_study_rows(class_definition(**changes), by="adam")
    people = factory.crowd(study, n=n)
    rng = np.random.default_rng(4)
    classes = rng.choice(3, n, p=SHARES)
    if few is not None:
        classes = np.where(classes == 0, 1, classes)
        classes[:few] = 0
    if unlike:
        people = replace(
            people, static={"gender": np.where(classes == 2, 2, people.static["gender"]).astype(np.int32)}
        )
    factory.publish(study, replace(people, classes=classes))
    return study


def gender(study):
    return study.indicators.get(slug="gender")


def test_shares_are_stratified_and_near_the_truth():
    study = published()
    people = factory.crowd(study, n=6000)
    report = window_report(gender(study), WHOLE)
    assert report.n_visitors == 6000
    assert report.n_reports == sum(each.reports for each in report.estimates)
    truth = np.bincount(people.static["gender"], minlength=3) / 6000
    for each, share in zip(report.estimates, truth.tolist(), strict=True):
        assert abs(each.frequency - share) < 4 * each.std_error
        assert each.ci_low < each.frequency < each.ci_high
    (loaded,) = load([gender(study)])
    expected = ldp.stratified([each.reports(WHOLE) for each in loaded.classes])
    assert [each.frequency for each in report.estimates] == expected.frequency.tolist()
    assert sum(each.reports(WHOLE).n_visitors for each in loaded.classes) == 6000
    with pytest.raises(ClassesError, match="gender has a channel for each class"):
        tallies_of(loaded)
    assert surely_present(report) is None


@pytest.mark.parametrize("unlike", [False, True])
def test_shares_of_alike_classes_only_if_a_test_does_not_refuse(unlike):
    found = by_class(gender(published(n=20_000, unlike=unlike)), WHOLE)
    assert [each.protection.slug for each in found.rows] == list(EPSILONS)
    assert found.pooled is not None
    assert (found.pooled.test.p_value < 0.05, bool(found.alike)) == (unlike, not unlike)
    widths = [each.half_width for each in found.rows]
    assert min(widths) > 0
    if not unlike:
        report = window_report(gender(Study.objects.get()), WHOLE)
        for alike, weighted in zip(found.alike, report.estimates, strict=True):
            assert alike.std_error < weighted.std_error


def test_one_small_class_hides_the_window_because_its_numbers_would_follow():
    study = published(few=30, small_cell=40)
    found = by_class(gender(study), WHOLE)
    assert found.is_hidden
    assert {(each.n_visitors, each.n_reports, each.shares) for each in found.rows} == {(None, None, ())}
    assert found.pooled is None
    report = window_report(gender(study), WHOLE)
    assert (report.status, report.n_reports) == ("suppressed", None)
    assert {(each.reports, each.frequency, each.std_error) for each in report.estimates} == {(None,) * 3}
    seen = by_class(gender(published(few=30, small_cell=10, slug="shown")), WHOLE)
    assert (seen.is_hidden, seen.rows[0].n_visitors) == (False, 30)


def test_a_class_of_which_no_one_reported_leaves_no_estimate():
    study = published(few=1)
    reports = [window_report(each, WHOLE) for each in study.indicators.all()]
    assert sorted(each.status for each in reports) == ["not_reliable", "ok"]


def test_page_file_and_api_say_the_same(reader, client, token):
    study, headers = published(n=20_000), {"Authorization": f"Bearer {token()}"}
    page = reader.get(reverse("reports:indicator", args=[study.slug, "gender"])).content.decode()
    for text in ("Epsilon by class", "Panel", "All, assuming the same shares", "A test found no difference"):
        assert text in page
    french = reader.get(
        reverse("reports:indicator", args=[study.slug, "gender"]), HTTP_ACCEPT_LANGUAGE="fr"
    ).content.decode()
    assert "Classe minor" in french
    address = f"/studies/{study.slug}/gender/classes"
    rows = json.loads(reader.get(f"{address}.json").content)["rows"]
    assert [row["class"] for row in rows[::3]] == [*EPSILONS, None]
    assert reader.get(f"{address}.xlsx").content[:2] == b"PK"
    answer = client.get(f"/api/v1/studies/{study.slug}/indicators/gender/classes", headers=headers).json()
    assert [row["class"] for row in answer["rows"]] == [row["class"] for row in rows]
    other = factory.published(slug="plain")
    refused = client.get(f"/api/v1/studies/{other.slug}/indicators/gender/classes", headers=headers)
    assert refused.status_code == 422
    with pytest.raises(NoClassesError, match="study 'plain' has no classes"):
        by_class(gender(other), WHOLE)


def rows_of_shares(html):
    """Categories of the table of shares by class, in its order."""
    return re.findall(r'<tr><th scope="row">([^<]+)</th>', html.partition('id="class-shares"')[2])


def test_shares_by_class_stand_in_the_order_of_the_report(reader):
    study = published(n=20_000, unlike=True)
    address = reverse("reports:indicator", args=[study.slug, "gender"])
    found = {
        order: reader.get(f"{address}?order={order}").content.decode() for order in ("natural", "sorted")
    }
    assert rows_of_shares(found["natural"]) == list(gender(study).categories)
    shares = {each.category: each.frequency for each in window_report(gender(study), WHOLE).estimates}
    by_size = sorted(shares, key=lambda name: -shares[name])
    assert rows_of_shares(found["sorted"]) == by_size != list(gender(study).categories)


def test_a_shared_report_has_the_classes_as_long_as_its_owner_may_and_none_is_small(analyst):
    study = published(n=6000, few=30, small_cell=10)
    given = {"query": "", "days": 30, "note": "", "password": "", "by": analyst}
    _, token = create_link(gender(study), WHOLE, **given, origins="https://town.example")
    for address in (f"/shared/{token}/", f"/shared/{token}/frame/"):
        page = Client().get(address).content.decode()
        assert "Epsilon by class" in page and "Shares by class" in page
        assert "classes.csv" not in page
    Study.objects.filter(pk=study.pk).update(small_cell=40)
    hidden = Client().get(f"/shared/{token}/").content.decode()
    assert "Nothing to show for these days" in hidden and "Epsilon by class" not in hidden
    Study.objects.filter(pk=study.pk).update(small_cell=10)
    assert "Epsilon by class" in Client().get(f"/shared/{token}/").content.decode()
    analyst.groups.clear()
    assert Client().get(f"/shared/{token}/").status_code == 404


def test_what_needs_one_channel_is_refused(reader):
    study = published()
    with pytest.raises(ExportError, match="No bundle is available"):
        bundle_of(study)
    with pytest.raises(PopulationError, match="classes answer with different epsilons"):
        synthesise(study, seed=1)
    page = reader.get(reverse("reports:study", args=[study.slug])).content.decode()
    assert "Report bundle" in page and "No bundle is available for this study yet" in page
    assert "Synthetic people are not available for this study yet" in page
    assert reverse("reports:bundle", args=[study.slug]) not in page
    for name in ("movement", "days", "forecast_indicator"):
        assert reader.get(reverse(f"reports:{name}", args=[study.slug, "gender"])).status_code == 200, name


def test_comparisons_weigh_each_class_by_its_visitors_and_fit_the_reports():
    """They differ from those of the reports by a part of the sampling error (parts weigh as visitors)."""
    study, other = published(n=20_000), published(n=10_000, slug="other", unlike=True)
    own, people = gender(study), factory.crowd(study, n=20_000)
    one, two = Window(1, 2), Window(3, 4)
    reports = [window_report(own, window) for window in (one, two)]
    found = compare_windows(own, two, one, of="frequency")
    assert found.is_exact and isinstance(found.overall, Association)
    for place, row in enumerate(found.rows):
        shares = [report.estimates[place].frequency for report in reports]
        assert row.difference == pytest.approx(shares[1] - shares[0], abs=row.std_error / 2)
        there = [people.static["gender"][people.present(*window)] == place for window in (one, two)]
        assert abs(row.difference - (there[1].mean() - there[0].mean())) < 4 * row.std_error
    assert 0.3 < found.rows[0].std_error / np.hypot(*[each.estimates[0].std_error for each in reports]) < 0.95
    values = compare_categories(own, WHOLE, reference=0, category=None, of="visitors")
    whole = window_report(own, WHOLE).estimates
    assert values.rows[0].difference == pytest.approx(whole[1].visitors - whole[0].visitors)
    day = compare_baseline(own, 2, baseline=None, of="frequency")
    assert day.baseline == (1, 3, 4) and not day.is_exact
    studies = compare_studies(own, WHOLE, other=gender(other), other_window=WHOLE, of="frequency")
    assert studies.rows[2].held == Verdict.LOWER
    assert windows_test(own, two, one)[2] == found.overall


def test_a_class_without_reports_leaves_nothing_to_compare():
    indicators = published(few=1).indicators.all()
    (silent,) = (each for each in indicators if window_report(each, WHOLE).status == "not_reliable")
    with pytest.raises(NotComparableError) as error:
        compare_windows(silent, WHOLE, Window(1, 3), of="frequency")
    assert error.value.reason == Reason.BLANK


def test_arrivals_and_departures_are_sums_over_classes_and_hide_a_few_of_one():
    study = published(n=20_000)
    people = factory.crowd(study, n=20_000)
    found = movement(gender(study), show=Show.ARRIVALS)
    assert found.available == (Show.ARRIVALS, Show.RETURNING, Show.WINDOW, Show.DEPARTURES)
    came = people.present(3, 3) & ~people.present(1, 2)
    assert found.points[2].total == came.sum()
    for code, each in enumerate(found.points[2].estimates):
        truth = (people.static["gender"][came] == code).sum()
        assert (
            each.ci_low - (each.ci_high - each.ci_low) < truth < each.ci_high + (each.ci_high - each.ci_low)
        )
    assert found.findings is not None
    assert movement(gender(study), show=Show.THERE_AGAIN).show == Show.ARRIVALS
    few = movement(gender(published(few=45, small_cell=20, slug="few")), show=Show.ARRIVALS)
    hidden = [point.status for point in few.points]
    assert hidden[0] == "ok" and "suppressed" in hidden[1:]


def test_pages_of_comparisons_and_movement_answer(reader):
    study = published(n=20_000)
    address = reverse("reports:compare", args=[study.slug, "gender"])
    days = [study.date_of(day).isoformat() for day in (1, 2, 3, 4)]
    query = f"?kind=windows&from={days[2]}&to={days[3]}&with_from={days[0]}&with_to={days[1]}"
    compared = reader.get(address + query).content.decode()
    assert '<p id="verdict">' in compared and "not available" not in compared
    moved = reader.get(reverse("reports:movement", args=[study.slug, "gender"])).content.decode()
    assert "Arrivals" in moved and "not available for this study" not in moved


def test_page_file_and_api_give_the_reason_why_a_scenario_has_no_categories(reader, client, token):
    study, reason = published(), "Scenarios by category are not available for this study yet"
    page = reader.get(reverse("reports:scenario", args=[study.slug, "gender"])).content.decode()
    assert reason in page and "Scenarios for all people" in page
    file = reader.get(f"/studies/{study.slug}/gender/scenario.csv")
    assert (file.status_code, reason in file.content.decode()) == (400, True)
    headers = {"Authorization": f"Bearer {token()}"}
    found = client.get(f"/api/v1/studies/{study.slug}/indicators/gender/scenario", headers=headers)
    assert (found.status_code, reason in found.json()["detail"]) == (422, True)
    of_all = client.get(f"/api/v1/studies/{study.slug}/scenario", headers=headers).json()
    assert (of_all["n_visitors"], of_all["rows"][0]["status"]) == (6000, "ok")


def test_a_study_of_one_day_promises_nothing_more_of_its_sums():
    assert "sums" in privacy_statement(factory.published(days=1))
    assert "sums" not in privacy_statement(published(days=1, slug="day"))


def test_statement_has_the_certificate_of_each_class_and_the_script_agrees():
    study = published()
    statement = json.loads(json.dumps(privacy_statement(study, with_names=True)))
    schema = json.loads((Path(__file__).parents[3] / "docs/statement.schema.json").read_text())
    jsonschema.validate(statement, schema)
    assert check(statement).texts == []
    losses = [Decimal(each["epsilon_profile"]) for each in statement["classes"]]
    assert [round(each, 6) for each in losses] == [12, 4, 2]
    assert max(losses) == Decimal(statement["guarantee"]["epsilon_profile"])
    assert "classes" in {each["name"] for each in statement["not_protected"]}
    assert "The two people must also be in the same class" in statement["guarantee"]["definition"]
    for name in ("epsilon_profile", "epsilon_attribute", "nominal_epsilon", "nominal_profile"):
        forged = json.loads(json.dumps(statement))
        forged["classes"][1][name] = "1.5" if "nominal" not in name else "3/2"
        assert any(text.startswith("class standard") for text in check(forged).texts), name
    forged = json.loads(json.dumps(statement))
    forged["classes"][2]["indicators"][0]["threshold"] = "1"
    assert check(forged).texts
    forged["plan"]["spec"]["classes"][0]["epsilon"] = "4/1"
    assert any(text.startswith("plan.spec, classes") for text in check(forged).texts)
    del forged["classes"]
    assert check(forged).texts


def test_variances_of_days_are_at_the_mean_share_and_not_at_the_noise_of_each_day():
    study = published()
    days = [Window(day, day) for day in range(1, 5)]
    shares = [[each.frequency for each in window_report(gender(study), day).estimates] for day in days]
    mean = np.clip(np.mean(shares, axis=0), 0, 1)
    (loaded,) = load([gender(study)])
    classes = [[each.reports(day) for each in loaded.classes] for day in days]
    expected = [stratified_variance([mean] * 3, classes=of_day) for of_day in classes]
    found = [each.figures.variances for each in category_days(gender(study))]
    np.testing.assert_allclose(np.transpose(found), expected, rtol=1e-12)


def test_an_outage_and_a_wide_interval_are_said_of_each_class():
    study = published(n=100)
    found = by_class(gender(study), WHOLE)
    assert (found.report.status, found.pooled is None) == ("not_reliable", False)
    note_day(study, day=study.date_of(1), kind=DayNote.Kind.OUTAGE, text="down", by="adam")
    of_day = by_class(gender(Study.objects.get()), Window(1, 1))
    assert {each.status for row in of_day.rows for each in row.shares} == {"outage"}
    assert of_day.pooled is None


@pytest.mark.parametrize("has_classes", [True, False])
def test_retention_and_dpia_name_the_class_that_is_kept_and_read(has_classes):
    study = create_study_rows(class_definition() if has_classes else factory.definition(), by="adam")
    kept = {
        each["name"] for each in retention(study) if "includes the class of the subscriber" in each["text"]
    }
    assert kept == ({"day_state", "presence"} if has_classes else set())
    assert (
        "the column with the class of the subscriber is read" in to_markdown(dpia_pack(study))
    ) == has_classes


def test_plans_without_classes_are_what_they_were():
    plan = Plan.objects.get(study=factory.published())
    assert plan.spec_hash == plan_hash(ldp.PlanSpec.from_json(plan.spec))
    assert "classes" not in plan.spec
    assert class_protections(plan) == []
    plain = factory.definition()
    assert not {"classes", "class_column"} & {*plain.to_json(), *plain.to_json()["plan"]}
    statement = privacy_statement(Study.objects.get())
    assert "classes" not in statement
    assert "class" not in statement["guarantee"]["definition"]


def test_study_file_round_trips_and_names_what_is_not_possible():
    made = parsed_study(class_text())
    assert StudyDefinition.from_json(json.loads(json.dumps(made.to_json()))) == made
    assert read_tables(tables_of(made), like=made) == made
    assert (made.classes[0].value, made.classes[0].epsilon) == ("PANEL", Decimal(20))
    text = class_text()
    cases = {
        "plan.epsilon": text.replace("epsilon = 20\n[[indicator]]", "epsilon = 19\n[[indicator]]", 1),
        "class[minor].value": text.replace('value = "MINOR"', 'value = "PANEL"'),
        "plan.class_column": text.replace('class_column = "contract"\n', ""),
        "study.small_category": class_text(study="small_category = 5\n"),
        "plan.presence_epsilon": class_text(more="presence_epsilon = 1\npresence_days = 1\n"),
        "extract.attributes": text.replace("[extract]\n", '[extract]\nattributes = "subscribers"\n'),
        "class": text[: text.index("[[class]]")],
        "plan.mechanism": class_text(mechanism="spl-grr"),
        "indicator[colour].groups": text.replace('"blue"]\n', '"blue"]\ngroups = { Warm = ["red"] }\n'),
        "class[minor].epsilon": text.replace("epsilon = 18", "epsilon = 0"),
    }
    for key, changed in cases.items():
        assert changed != text, key
        with pytest.raises(StudyFileError) as error:
            parsed_study(changed)
        assert key in {each.key for each in error.value.problems}
