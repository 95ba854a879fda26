"""Three indicators from their pairs: page, file and API mark the table as a model."""

import json
import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from ldp.privacy.joint import joint_codes
from reports.base.status import Status
from reports.crosstab.model import has_models, model_table, model_view, triples
from reports.estimates.queries import visitor_unions
from reports.studies.texts import status_reason
from tests.reports import report_factory as factory
from tests.reports.page_texts import check_document, csv_rows, words

pytestmark = pytest.mark.django_db
PAGE = "/studies/fair-2024/crosstab/model/"
AGE, GENDER = factory.AGE, factory.GENDER
WORK = factory.indicator("work", "yes", "no")
PAIRS = (factory.joint("ga", GENDER, AGE), factory.joint("aw", AGE, WORK))
DAYS = "from=2024-05-30&to=2024-06-02"


@pytest.fixture
def study():
    found = factory.create(GENDER, AGE, WORK, *PAIRS, epsilon="5")
    people = factory.crowd(found, n=12_000)
    values, sizes = people.static, {"gender": 3, "age": 3, "work": 2}
    # Work depends on the age, and on nothing else.
    values["work"] = (values["work"] * (values["age"] > 0)).astype(np.int32)
    for slug, parts in (("ga", ("gender", "age")), ("aw", ("age", "work"))):
        values[slug] = joint_codes([values[part] for part in parts], sizes=[sizes[part] for part in parts])
    factory.publish(found, people)
    found.people = people
    return found


def table(study, **query):
    view = model_view(query, triples(study), visitors=visitor_unions(study))
    return model_table(view)


def test_shares_are_near_those_of_the_people(study) -> None:
    found = table(study)
    assert [part.slug for part in found.view.triple.parts] == ["gender", "age", "work"]
    values, there = study.people.static, study.people.present(1, 4)
    for gender in range(3):
        for age in range(3):
            for work in range(2):
                is_one = (values["gender"] == gender) & (values["age"] == age) & (values["work"] == work)
                figure = found.cells[gender][age][work]
                assert abs(figure.share - is_one[there].mean()) < max(5 * figure.std_error, 0.004)
    assert sum(cell.share for row in found.cells for cells in row for cell in cells) == pytest.approx(1)


def numbers(found, name):
    """Return a number of all cells, by the categories of the parts in the order of the view."""
    return np.array([[[getattr(cell, name) for cell in cells] for cells in row] for row in found.cells])


def test_any_order_of_the_three_is_the_same_table(study) -> None:
    """Not only shares: the intervals of a combination do not depend on its place."""
    one, turned = table(study), table(study, rows="work", columns="gender", third="age")
    for name in ("share", "std_error", "ci_low", "ci_high"):
        assert numbers(turned, name) == pytest.approx(numbers(one, name).transpose(2, 0, 1), abs=1e-12), name


def test_pairs_in_a_circle_have_a_model_too() -> None:
    """Three joint indicators may start with a different one of three each; no order is common to all."""
    parts = {"ga": (GENDER, AGE), "aw": (AGE, WORK), "wg": (WORK, GENDER)}
    found = factory.create(
        GENDER, AGE, WORK, *(factory.joint(slug, *pair) for slug, pair in parts.items()), epsilon="5"
    )
    people = factory.crowd(found, n=12_000)
    values = people.static
    values["work"] = values["gender"] % 2  # nothing of it depends on the age
    values |= {
        slug: joint_codes([values[part.slug] for part in pair], sizes=[len(part.categories) for part in pair])
        for slug, pair in parts.items()
    }
    factory.publish(found, people)
    assert has_models(found)
    there = people.present(1, 4)
    errors = []
    for names in (("gender", "age", "work"), ("work", "gender", "age")):
        made = table(found, **dict(zip(("rows", "columns", "third"), names, strict=True)))
        shown = numbers(made, "share")
        errors.append(numbers(made, "std_error"))
        truth = np.zeros(shown.shape)
        np.add.at(truth, tuple(values[name][there] for name in names), 1 / there.sum())
        assert np.abs(shown - truth).max() < 0.03
    assert errors[1] == pytest.approx(errors[0].transpose(2, 0, 1), abs=1e-12)


def test_page_file_and_api_say_that_it_is_a_model(reader, client, token, study) -> None:
    page = reader.get(f"{PAGE}?{DAYS}&within=1")
    text = words(page)
    assert "This table is a model, not an estimate." in text
    assert "No one reports on all three indicators." in text
    assert "Gender by Age within Work: modelled shares of all visitors" in text
    rows = csv_rows(reader.get(f"{PAGE[:-1]}.csv?{DAYS}"))
    assert {row["model"] for row in rows} == {"maximum_entropy"}
    assert len(rows) == 4 * 4 * 3
    headers = {"Authorization": f"Bearer {token()}"}
    answer = client.get(f"/api/v1/studies/fair-2024/model?{DAYS}", headers=headers).json()
    assert answer["model"] == "maximum_entropy"
    assert "This is a model, not an estimate" in answer["explanation"]
    assert json.loads(reader.get(f"{PAGE[:-1]}.json?{DAYS}").content)["rows"] == answer["rows"]
    link = words(reader.get(f"/studies/fair-2024/crosstab/?{DAYS}"))
    assert "Three-way tables (model)" in link
    bad = reader.get(f"{PAGE}?rows=gender&columns=age&third=home")
    assert bad.status_code == 400
    assert "No model is available for these three indicators" in words(bad)
    assert reader.get(f"{PAGE}?within=3").status_code == 400


def test_three_that_are_asked_together_and_few_visitors_have_no_model(reader, study) -> None:
    type(study).objects.update(small_category=4000)
    study.refresh_from_db()
    assert "Models are not available because this study hides small categories." in words(
        reader.get(f"{PAGE}?{DAYS}")
    )
    type(study).objects.update(small_cell=100_000, small_category=0)
    study.refresh_from_db()
    assert table(study).cells is None
    assert "modelled shares" not in words(reader.get(f"{PAGE}?{DAYS}"))
    assert reader.get(f"{PAGE[:-1]}.csv?{DAYS}").status_code == 400
    all_three = factory.joint("gaw", GENDER, AGE, WORK)
    whole = factory.create(GENDER, AGE, WORK, *PAIRS, all_three, slug="whole")
    assert triples(whole) == []
    one = factory.create(GENDER, AGE, WORK, PAIRS[0], slug="one")
    assert triples(one) == []
    assert "No model for three indicators" in words(reader.get("/studies/one/crosstab/model/"))


def test_a_pair_without_unions_limits_the_page_to_single_days(reader) -> None:
    place = factory.indicator(
        "place", "in", "out", kind="daily", column=None, derive="main_zone", max_values=1
    )
    pairs = factory.joint("ga", GENDER, AGE), factory.joint("ap", AGE, place, kind="daily", max_values=2)
    study = factory.create(GENDER, AGE, place, *pairs, epsilon="5")
    factory.publish(study, factory.crowd(study, n=3_000))
    assert "modelled shares" in words(reader.get(PAGE))
    for address in (f"{PAGE}?{DAYS}", f"/studies/fair-2024/crosstab/?indicator=ap&{DAYS}"):
        refused = reader.get(address)
        assert refused.status_code == 400
        assert "must be a single day" in words(refused)


def test_each_pair_has_its_reports_and_epsilon(reader, client, token) -> None:
    """Pairs may differ in both: neither is taken for the other."""
    one, other = PAIRS
    found = factory.published(
        GENDER, AGE, WORK, one, replace(other, epsilon=Decimal(3)), epsilon="5", n=12_000
    )
    made = table(found)
    reports = [report.n_reports for report in made.pairs]
    assert len({*reports}) == 2
    headers = {"Authorization": f"Bearer {token()}"}
    answer = client.get(f"/api/v1/studies/fair-2024/model?{DAYS}", headers=headers).json()
    assert answer["pairs"] == ["ga", "aw"] and answer["pairs_n_reports"] == reports
    assert (answer["pairs_epsilon"], answer["epsilon"]) == ([5.0, 3.0], 5.0)
    assert answer["n_reports"] == sum(reports)
    check_document(reader, "/api/v1/studies/{study}/model", answer=answer)
    (row, *_) = csv_rows(reader.get(f"{PAGE[:-1]}.csv?{DAYS}"))
    assert row["pairs"] == "ga aw" and row["pairs_n_reports"] == " ".join(map(str, reports))
    text = words(reader.get(f"{PAGE}?{DAYS}"))
    for name, n, epsilon in (("Ga", reports[0], 5), ("Aw", reports[1], 3)):
        assert re.search(f"{name} {n:,} {epsilon}", text), text


def test_a_voided_day_has_no_model_and_is_told_as_on_other_pages(reader, client, token) -> None:
    daily = {"kind": "daily", "column": None}
    when = factory.indicator("when", "am", "pm", derive="visit_duration", **daily)
    pairs = (factory.joint("ga", GENDER, AGE), factory.joint("gw", GENDER, when, kind="daily"))
    study = factory.published(GENDER, AGE, when, *pairs, epsilon="5")
    factory.void(study, day=2)
    day = "from=2024-05-31&to=2024-05-31"
    blank, other = (words(reader.get(f"{page}?{day}")) for page in (PAGE, "/studies/fair-2024/crosstab/"))
    reason = status_reason(Status.NOT_COLLECTED, study)
    assert reason in blank and reason in other
    headers = {"Authorization": f"Bearer {token()}"}
    assert client.get(f"/api/v1/studies/fair-2024/model?{day}", headers=headers).json()["rows"] == []
    assert reader.get(f"{PAGE[:-1]}.csv?{day}").status_code == 400
    assert "The uploads for 1 published day were undone." in words(
        reader.get(f"{PAGE}?from=2024-05-30&to=2024-05-30")
    )
