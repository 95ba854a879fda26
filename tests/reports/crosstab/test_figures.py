"""Figures of joint indicators are those of the library, from the reports as they are stored."""

from decimal import Decimal

import numpy as np
import pytest
from django.http import QueryDict

import ldp
from ldp.estimation.joint.linear import linear_query, linear_variance
from ldp.privacy.joint import joint_codes
from reports.base.status import Status
from reports.crosstab.joints import joint_indicators
from reports.crosstab.queries import measure, table_of
from reports.crosstab.query import view_of
from reports.crosstab.texts import conditions
from reports.estimates.loading import load
from reports.estimates.queries import Window, WindowError, visitor_unions, window_report
from tests.reports import report_factory as factory
from tests.reports.crosstab.conftest import AGE, GENDER, TOWN, published

pytestmark = pytest.mark.django_db
DAYS = Window(2, 3)
QUERY = "from=2024-05-31&to=2024-06-01"


def view(study, query: str):
    return view_of(QueryDict(query), joint_indicators(study), visitors=visitor_unions(study))


def figures(study, query: str):
    """Stored reports by code, and what a page needs."""
    found = view(study, query)
    (loaded,) = load([found.joint.indicator])
    codes = ldp.union(loaded.codes, **found.window._asdict())
    return found, measure(found.joint, found.window), codes, loaded.channel


@pytest.fixture(params=["1", "4"], ids=["projective", "GRR"])
def study(request):
    made = published(AGE, TOWN, epsilon=request.param, market_share=Decimal("0.5"))
    (loaded,) = load([made.indicators.get(slug="age_town")])
    assert isinstance(loaded.channel, ldp.ProjectiveChannel if request.param == "1" else ldp.GrrChannel)
    return made


def test_a_question_has_the_answer_of_the_library_from_stored_codes(study) -> None:
    found, measured, codes, channel = figures(study, f"{QUERY}&only-age=0,1&only-town=2&only-town=3")
    weights = np.zeros((4, 7))
    weights[:2, 2:4] = 1
    sizes = {"n_reports": measured.report.n_reports, "n_population": measured.report.n_visitors}
    asked = linear_query(codes, weights=weights.ravel(), channel=channel, **sizes)
    figure = measured.answer(found.choice)
    assert (figure.share, figure.std_error) == pytest.approx((asked.value, asked.std_error))
    assert (figure.ci_low, figure.ci_high) == pytest.approx((asked.ci_low, asked.ci_high))
    assert figure.visitors == pytest.approx(asked.value * measured.report.n_visitors * 2)
    assert figure.status == Status.OK


def test_a_table_of_all_has_the_estimates_of_the_joint_indicator(study) -> None:
    found, measured, *_ = figures(study, f"{QUERY}&rows=age")
    table = table_of(measured, found)
    estimates = window_report(found.joint.indicator, DAYS).estimates
    flat = [figure for row in table.cells for figure in row]
    assert [(f.share, f.std_error, f.ci_low, f.visitors, f.status) for f in flat] == [
        (e.frequency, e.std_error, e.ci_low, e.visitors, e.status) for e in estimates
    ]
    assert [len(table.cells), len(table.cells[0])] == [4, 7]
    turned = table_of(measured, view(study, f"{QUERY}&rows=town"))
    assert [list(row) for row in zip(*turned.cells, strict=True)] == table.cells
    assert (turned.rows, turned.whole.share) == (table.columns, 1.0)


def test_shares_of_a_row_have_the_interval_of_the_combined_question(study) -> None:
    found, measured, _, channel = figures(study, f"{QUERY}&rows=age&shares=row")
    row = table_of(measured, found).cells[0]
    reports = measured.reports
    whole = np.repeat([1.0, 0], [7, 21])
    for column, figure in enumerate(row):
        for end in (figure.ci_low, figure.ci_high):
            weights = np.eye(28)[column] - end * whole
            variance = linear_variance(
                reports.estimates.consistent, weights=weights, channel=channel, **reports.sizes
            )
            assert (weights @ reports.estimates.frequency) ** 2 == pytest.approx(
                3.841459 * variance, rel=1e-4
            )
    assert sum(figure.share for figure in row) == pytest.approx(1)
    assert row[0].visitors is None  # it is not a share of all


def test_people_without_a_value_are_shown_where_there_surely_are_some() -> None:
    made = published(AGE, TOWN, epsilon="6", unknown={"age": 0.5})
    found, measured, *_ = figures(made, "rows=age")
    table = table_of(measured, found)
    assert (table.shown_rows, table.shown_columns) == ([0, 1, 2, 3], list(range(6)))
    asked = table_of(measured, view(made, "rows=age&no_value=1"))
    assert asked.shown_columns == list(range(7))
    assert asked.rows[3].share == pytest.approx(0.5, abs=0.1)


def test_a_third_part_is_added_up_or_fixed() -> None:
    made = published(GENDER, AGE, TOWN, epsilon="5")
    found, measured, *_ = figures(made, "rows=town&columns=age")
    assert (found.third_part.slug, found.within) == ("gender", None)
    added = table_of(measured, found)
    frequency = measured.reports.estimates.frequency.reshape(4, 4, 7)
    assert added.cells[5][1].share == pytest.approx(frequency[:, 1, 5].sum())
    assert added.whole.share == 1
    fixed = table_of(measured, view(made, "rows=town&columns=age&within=1"))
    assert fixed.cells[5][1].share == pytest.approx(frequency[1, 1, 5])
    assert fixed.whole.share == pytest.approx(frequency[1].sum())
    of_row = table_of(measured, view(made, "rows=town&columns=age&within=1&shares=row"))
    assert of_row.cells[0][2].share == pytest.approx(frequency[1, 2, 0] / frequency[1, :, 0].sum())
    assert sum(figure.share for figure in of_row.columns) == pytest.approx(1)


def test_few_people_make_no_figures_and_wide_intervals_no_reliable_ones() -> None:
    made = published(AGE, TOWN, epsilon="1", n=60)
    found, measured, *_ = figures(made, "only-age=0&shares=row")
    assert measured.answer(found.choice).status == Status.NOT_RELIABLE
    table = table_of(measured, found)
    assert {figure.status for row in table.cells for figure in row} == {Status.NOT_RELIABLE}
    type(made).objects.update(small_cell=10_000)
    _, measured, *_ = figures(made, "only-age=0")
    assert (measured.reports, measured.report.n_visitors) == (None, None)
    hidden = measured.answer({0: (0,)})
    assert (hidden.status, hidden.share, hidden.visitors) == (Status.SUPPRESSED, None, None)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("indicator=age", "No joint indicator is called “age”. Joint indicators of this study: age_town."),
        ("rows=gender", "“rows” must be one of age, town, not “gender”."),
        ("rows=age&columns=age", "Choose different indicators for rows and columns."),
        ("shares=none", "“shares” must be one of all, row, column, not “none”."),
        ("only-age=4", "“only-age” must be a number from 0 to 3, not “4”."),
        ("only-age=1,x", "“only-age” must be a number from 0 to 3, not “x”."),
        ("only-town=-1", "“only-town” must be a number from 0 to 6, not “-1”."),
        ("from=2030-01-01", "The date range must lie between 2024-05-30"),
    ],
)
def test_what_an_address_names_wrongly_is_said(query: str, message: str) -> None:
    with pytest.raises(WindowError, match=f"^{message.replace('.', chr(92) + '.')}"):
        view(published(AGE, TOWN, n=10), query)


def test_the_address_of_a_view_leads_back_to_it() -> None:
    made = published(GENDER, AGE, TOWN, n=10)
    asked = "from=2024-05-31&to=2024-06-01&indicator=gender_age_town&rows=age&columns=town&within=3"
    asked += "&shares=column&no_value=1&only-gender=0,2&only-town=6"
    found = view(made, asked)
    assert found.query() == asked
    assert view(made, found.query()) == found
    sent_by_form = view(made, asked.replace("only-gender=0,2", "only-gender=2&only-gender=0"))
    assert sent_by_form == found
    everything = view(made, asked.replace("only-town=6", "only-town=0,1,2,3,4,5,6"))
    assert list(everything.choice) == [0]  # all categories are no choice


def test_codes_of_a_choice_are_those_of_the_values() -> None:
    (joint,) = joint_indicators(published(GENDER, AGE, TOWN, n=10))
    values = np.array([[0, 1, 5], [0, -1, 5], [2, 1, 5], [2, -1, 5]], np.int32).T
    codes = joint_codes(list(values), sizes=[3, 3, 6])
    assert joint.chosen({0: [0, 2], 1: [1, 3], 2: [5]}).tolist() == codes.tolist()
    assert joint.chosen({}).size == 4 * 4 * 7


def test_ranges_of_ordered_categories_add_up_their_cells() -> None:
    bands = factory.indicator("age", "<15", "15-24", "25-44", "45-64", "65 or older", "NR")
    made = published(bands, TOWN, epsilon="4", n=2000)
    found, measured, *_ = figures(made, "least-age=1&most-age=3&only-town=2")
    assert found.choice == {0: (1, 2, 3), 1: (2,)}
    assert "only-age=1,2,3" in found.query()
    frequency = measured.reports.estimates.frequency.reshape(7, 7)
    assert measured.answer(found.choice).share == pytest.approx(frequency[1:4, 2].sum())
    assert conditions(found.joint, found.choice) == "Age: 15-24 to 45-64; Town: Dole"
    open_end = view(made, "least-age=3")
    assert open_end.choice == {0: (3, 4)}
    assert (
        conditions(open_end.joint, {0: (0, 3, 4, 5, 6)})
        == "Age: <15 or 45-64 or 65 or older or NR or no value"
    )
    assert view(made, "most-age=1&only-age=4").choice == {0: (0, 1, 4)}
    assert [part.n_ordered for part in found.joint.parts] == [5, 0]


@pytest.mark.parametrize(
    ("names", "n_ordered"),
    [
        (["<18", "18-24", "25 & older", "26 & older"], 0),  # most are no intervals
        (["25-34", "15-24", "0-14"], 0),
        (["0 to 1 h", "1 to 4 h", "4 h or more"], 3),
        (["01 Ain", "02 Aisne", "03 Allier"], 0),
        (["not known", "0-14", "15-24"], 0),
    ],
)
def test_only_intervals_in_rising_order_are_ordered(names, n_ordered) -> None:
    made = published(factory.indicator("age", *names), TOWN, n=10)
    (joint,) = joint_indicators(made)
    assert joint.parts[0].n_ordered == n_ordered
