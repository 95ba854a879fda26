"""Tables from all answers on their parts: page, file, and when there is none."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from django.http import QueryDict

from ldp import project_simplex
from ldp.estimation.joint.association import independence_test, margin_of
from ldp.privacy.joint import joint_codes
from reports.crosstab.association import verdict_of
from reports.crosstab.combined import combined, projected
from reports.crosstab.joints import joint_indicators
from reports.crosstab.queries import measure, reports_of, table_of
from reports.crosstab.query import view_of
from reports.estimates.queries import reports_with_tallies, visitor_unions
from tests.reports import report_factory as factory
from tests.reports.crosstab.conftest import AGE, GENDER, TOWN, published
from tests.reports.page_texts import words

pytestmark = pytest.mark.django_db
PAGE = "/studies/fair-2024/crosstab/"


def measured_view(study, query: str):
    joint = joint_indicators(study)[0]
    view = view_of(QueryDict(query), [joint], visitors=visitor_unions(study))
    return measure(joint, view.window), view


def test_combined_totals_are_more_accurate_and_raw_shares_stay_in_files(reader) -> None:
    study = published(AGE, TOWN, epsilon="2")
    measured, view = measured_view(study, "rows=age&combined=1")
    found = combined(measured, view)
    raw = table_of(measured, view)
    assert (found.rows.std_error < 0.6 * np.array([each.std_error for each in raw.rows])).all()
    assert found.cells.value.sum() == pytest.approx(1) and found.cells.value.min() < 0
    assert found.cells.value.sum(axis=1) == pytest.approx(found.rows.value)
    shown = table_of(measured, view, found=projected(found))
    cells = np.array([[each.share for each in row] for row in shown.cells])
    assert cells.min() == 0 and cells.sum(axis=0) == pytest.approx([each.share for each in shown.columns])
    margin = [each.share for each in shown.rows]
    assert margin == pytest.approx(project_simplex(found.rows.value))
    assert margin == pytest.approx(cells.sum(axis=1), abs=1e-6)
    page = words(reader.get(f"{PAGE}?rows=age&combined=1"))
    assert "These shares combine the answers" in page and "Use only the answers on this table" in page
    assert "Combine with the single indicators" in words(reader.get(f"{PAGE}?rows=age"))
    text = reader.get("/studies/fair-2024/crosstab.csv?rows=age&combined=1").content.decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert float(rows[1]["frequency"]) == pytest.approx(raw.cells[0][1].share)
    assert float(rows[1]["combined"]) == pytest.approx(found.cells.value[0, 1])
    assert float(rows[28]["combined_std_error"]) == pytest.approx(found.rows.std_error[0])
    assert rows[-1]["combined"] == "1.0"
    assert reader.get("/studies/fair-2024/crosstab.xlsx?rows=age&combined=1").content[:2] == b"PK"


def test_other_joint_indicators_tell_about_it_too() -> None:
    pair = factory.joint("gender_age", GENDER, AGE)
    three = published(GENDER, AGE, TOWN, epsilon="2", others=[pair])
    measured, view = measured_view(three, "indicator=gender_age_town&rows=gender&columns=age")
    with_pair = combined(measured, view).cells.std_error
    raw = np.array([[each.std_error for each in row] for row in table_of(measured, view).cells])
    assert (with_pair < 0.6 * raw).all()


def test_those_who_answer_on_other_days_are_not_without_a_value() -> None:
    """Answers on two of four days: half of those who are asked answer on a day, and all have a value."""
    stay, day_zone = factory.HALF_STAY, factory.indicator("place", "A", "B", "C", kind="daily", column=None)
    pair = factory.joint("pair", stay, day_zone, kind="daily")
    study = factory.create(stay, day_zone, pair, epsilon="6")
    people = factory.crowd(study, n=6000)
    parts = [people.daily[each.slug] for each in (stay, day_zone)]
    daily = people.daily | {"pair": joint_codes(parts, sizes=[2, 3])}
    factory.publish(study, replace(people, daily=daily))
    measured, view = measured_view(study, f"rows=stay&from={study.date_of(2)}&to={study.date_of(2)}")
    rows = combined(measured, view).rows
    assert (view.window.days, rows.value.size) == (1, 3)
    assert abs(rows.value[-1]) < 5 * rows.std_error[-1]
    (stay_row, place_row) = (study.indicators.get(slug=slug) for slug in ("stay", "place"))
    loaded = reports_with_tallies([stay_row, place_row], [[view.window]] * 2)
    shares = [
        margin_of(reports_of(r, t), asked=a) for ((r,), t), a in zip(loaded, (1 / 6, 1 / 3), strict=True)
    ]
    layout = np.arange(12).reshape(3, 4, 1)[:2, :3]
    expected = independence_test(measured.reports, layout=layout, rows=shares[0], columns=shares[1])
    assert verdict_of(measured, view).found.p_value == pytest.approx(expected.p_value)


def test_shares_of_a_row_or_of_one_category_are_not_combined() -> None:
    three = published(GENDER, AGE, TOWN, epsilon="2", n=1000)
    for query in ("rows=gender&columns=age&within=1", "rows=gender&columns=age&shares=row"):
        assert combined(*measured_view(three, query)) is None
