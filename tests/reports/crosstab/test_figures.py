"""Figures of joint indicators from stored reports: those of the library, combined ones, and the test."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from django.http import QueryDict

import ldp
from ldp import project_simplex
from ldp.estimation.joint.association import independence_test, margin_of
from ldp.estimation.joint.crosstab import Reports, Shares
from ldp.estimation.joint.linear import linear_query, linear_variance
from ldp.privacy.joint import joint_codes
from ldp.protocols.projective import ProjectiveChannel
from reports.base.status import Status
from reports.crosstab.association import verdict_of
from reports.crosstab.combined import NotCombinedError, combined, projected
from reports.crosstab.joints import joint_indicators
from reports.crosstab.queries import measure, reports_of, table_of, with_errors_of_shown
from reports.crosstab.query import view_of
from reports.crosstab.texts import conditions
from reports.estimates.loading import load
from reports.estimates.queries import Window, WindowError, reports_with_tallies, visitor_unions, window_report
from reports.exports.findings.crosstabs import crosstab_findings
from tests.reports import report_factory as factory
from tests.reports.crosstab.conftest import AGE, GENDER, TOWN, published
from tests.reports.page_texts import csv_rows, words

pytestmark = pytest.mark.django_db

DAYS = Window(2, 3)
QUERY = "from=2024-05-31&to=2024-06-01"


def view(study, query: str):
    return view_of(QueryDict(query), joint_indicators(study), visitors=visitor_unions(study))


def figures(study, query: str):
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
    values = np.array([[0, 1, 5], [0, -1, 5], [2, 1, 5], [2, -1, 5]], np.int32).T
    codes = joint_codes(list(values), sizes=[3, 3, 6])
    assert found.joint.chosen({0: [0, 2], 1: [1, 3], 2: [5]}).tolist() == codes.tolist()
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
        ("indicator=age", "“age” is not available here. Choose one of these indicators: age_town."),
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
    words = conditions(open_end.joint, {0: (0, 3, 4, 5, 6)})
    assert words == "Age: <15 or 45-64 or 65 or older or NR or no value"
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
    apart = "The share of selected categories above uses only the answers for this table"
    assert apart not in page
    for query, is_said in (("&combined=1", True), ("", False)):
        assert (apart in words(reader.get(f"{PAGE}?rows=age&only-age=0{query}"))) == is_said
    assert "These shares combine the answers" in page and "Use only the answers for this combination" in page
    assert "Also use the answers for the individual indicators" in words(reader.get(f"{PAGE}?rows=age"))
    rows = csv_rows(reader.get("/studies/fair-2024/crosstab.csv?rows=age&combined=1"))
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


def test_the_order_of_the_parts_of_another_joint_indicator_does_not_matter() -> None:
    """Equal totals of (age, work) and of (work, age) give equal estimates and errors."""
    work = factory.indicator("work", "yes", "no")
    asked = AGE, TOWN, work, factory.joint("age_town", AGE, TOWN)
    one, turned = (
        factory.create(*asked, factory.joint("other", *parts), epsilon="4", slug=slug)
        for slug, parts in (("one", (AGE, work)), ("turned", (work, AGE)))
    )
    people = factory.crowd(one)
    values = [people.static[each.slug] for each in asked[:3]]
    both = {
        "age_town": joint_codes(values[:2], sizes=[3, 6]),
        "other": joint_codes(values[::2], sizes=[3, 2]),
    }
    delta = factory.publish(one, replace(people, static=people.static | both))
    *counts, other = delta.counts
    days = other.shape[1:]
    other = other.reshape(4, 3, *days).swapaxes(0, 1).reshape(12, *days)  # a code is a value: it is GRR
    factory.apply(turned, turned.plans.get(), replace(delta, counts=(*counts, other)))
    expected, found = (combined(*measured_view(study, "rows=age")) for study in (one, turned))
    for name in ("cells", "rows", "columns"):
        for number in Shares.__slots__:
            wanted, given = (getattr(getattr(table, name), number) for table in (expected, found))
            assert given == pytest.approx(wanted)


def test_those_who_answer_on_other_days_are_not_without_a_value() -> None:
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


@pytest.mark.parametrize(
    ("query", "changes", "reason"),
    [
        ("within=1", {}, "for a table of some visitors only"),
        ("shares=row", {}, "only for shares of all visitors"),
        ("", {"small_category": 900}, "this study hides small categories"),
    ],
)
def test_tables_that_are_not_combined_say_why(reader, query, changes, reason) -> None:
    three = published(GENDER, AGE, TOWN, epsilon="2", n=1000, **changes)
    measured, view = measured_view(three, f"rows=gender&columns=age&combined=1&{query}")
    with pytest.raises(NotCombinedError, match=reason):
        combined(measured, view)
    assert reason in crosstab_findings(measured, table_of(measured, view)).words[-1]
    asked = f"{PAGE}?rows=gender&columns=age&combined=1&{query}"
    assert reason in words(reader.get(asked))
    rows = csv_rows(reader.get(asked.replace("/?", ".csv?")))
    assert "combined" not in rows[0]


def test_errors_of_sums_tell_nothing_about_hidden_categories() -> None:
    study = published(AGE, TOWN, epsilon="1.5", small_category=60, n=9000, unknown={"town": 0.3})
    (joint,) = joint_indicators(study)
    measured = measure(joint, Window(1, 4))
    hidden = np.array([each.is_hidden for each in measured.report.estimates])
    assert 2 < hidden.sum() < hidden.size - 2
    pair, rest = np.flatnonzero(~hidden)[:2], np.flatnonzero(hidden)
    of_shares = []
    for order in (rest, rest[::-1]):
        counts = measured.counts.copy()
        counts[rest] = counts[order]
        sizes = {"n_reports": measured.report.n_reports, "n_population": measured.report.n_visitors}
        all_of_them = Reports.of_counts(counts, channel=measured.reports.channel, **sizes)
        of_shares.append((all_of_them.answer(pair), with_errors_of_shown(all_of_them, hidden).answer(pair)))
    assert isinstance(measured.reports.channel, ProjectiveChannel)
    assert of_shares[0][0].std_error != of_shares[1][0].std_error
    assert of_shares[0][1] == of_shares[1][1] == measured.reports.answer(pair)
    assert of_shares[0][1].std_error == pytest.approx(of_shares[0][0].std_error, rel=0.02)


def test_a_table_of_many_cells_or_days_is_not_combined(reader, monkeypatch) -> None:
    days = factory.indicator("place", "A", "B", kind="daily", column=None, derive="main_zone")
    study = factory.published(AGE, days, factory.joint("both", AGE, days, kind="daily"), epsilon="5")
    several = words(reader.get(f"{PAGE}?from={study.date_of(1)}&to={study.date_of(2)}"))
    assert "Other answers can be used for single days only" in several
    day = f"{PAGE}?combined=1&from={study.date_of(1)}&to={study.date_of(1)}"
    assert "These shares combine the answers" in words(reader.get(day))
    monkeypatch.setattr("reports.crosstab.combined.MAX_TESTED_CELLS", 11)
    assert "because this table has 12 cells. The limit is 11." in words(reader.get(day))


def test_lasting_answers_tell_about_a_table_of_a_day() -> None:
    """On one day, those who were asked for their age make the ages of a daily table more accurate."""
    place = factory.indicator("place", "A", "B", kind="daily", column=None, derive="main_zone")
    study = factory.create(AGE, place, factory.joint("both", AGE, place, kind="daily"), epsilon="3")
    people = factory.crowd(study, n=9000)
    ages, places = people.static["age"], people.daily["place"]
    both = joint_codes([np.repeat(ages[:, np.newaxis], 4, axis=1), places], sizes=[3, 2])
    factory.publish(study, replace(people, daily=people.daily | {"both": both}))
    measured, view = measured_view(study, f"rows=age&from={study.date_of(2)}&to={study.date_of(2)}")
    rows = combined(measured, view).rows
    truth = np.bincount(ages[people.present(2, 2)], minlength=4) / people.present(2, 2).sum()
    assert (np.abs(rows.value - truth) < 5 * rows.std_error).all()
    raw = np.array([each.std_error for each in table_of(measured, view).rows])
    assert (rows.std_error < 0.75 * raw).all()


API = "/api/v1/studies/fair-2024/indicators/age_town/association"


def verdict(study, query: str = ""):
    return verdict_of(*measured_view(study, query))


def test_page_file_and_api_have_the_result_of_the_library(reader, client, analyst) -> None:
    study = published(AGE, TOWN, epsilon="3", unknown={"age": 0.2})
    (joint,) = joint_indicators(study)
    window = Window(1, 4)
    indicators = [study.indicators.get(slug=slug) for slug in ("age", "town")]
    loaded = reports_with_tallies(indicators, [[window], [window]])
    age, town = (margin_of(reports_of(report, tallies), asked=1 / 3) for ((report,), tallies) in loaded)
    assert age.has_value == pytest.approx(0.8, abs=0.1)
    layout = np.arange(28).reshape(4, 7, 1)[:3, :6]
    expected = independence_test(measure(joint, window).reports, layout=layout, rows=age, columns=town)
    found = verdict(study, "rows=age")
    assert found.found == expected and expected.degrees == 2 * 5
    page = words(reader.get(f"{PAGE}?rows=age"))
    assert found.sentence in page and found.limits in page
    rows = csv_rows(reader.get("/studies/fair-2024/crosstab.csv?rows=age"))
    found_in_file = {(row["association"], float(row["association_p_value"])) for row in rows}
    assert found_in_file == {(found.sentence, expected.p_value)}
    client.force_login(analyst)
    answer = client.get(f"{API}?rows=age").json()
    assert (answer["sentence"], answer["p_value"]) == (found.sentence, expected.p_value)
    assert answer["go_together"] == (expected.p_value < 0.05)
    refused = (f"{API}?rows=gender", API.replace("age_town", "age"))
    assert [client.get(address).status_code for address in refused] == [422, 422]


def test_what_goes_together_is_said_and_what_may_not_too() -> None:
    apart = verdict(published(AGE, TOWN, epsilon="6", n=2000))
    assert apart.is_together is False
    assert "No association between Town and Age was detected (p = 0." in apart.sentence
    # Missing towns depend on nothing; people of one age live in one town.
    together = verdict(published(AGE, TOWN, epsilon="6", n=2000, slug="other", bound={"town": "age"}))
    assert together.is_together is True and together.sentence.endswith("are associated (p < 0.001).")


def test_without_answers_for_it_there_is_no_test_and_the_reason() -> None:
    three = published(GENDER, AGE, TOWN, epsilon="6", n=3000)
    assert verdict(three, "rows=town&columns=age").found.degrees == 5 * 2
    fixed = verdict(three, "rows=town&columns=age&within=1")
    assert (fixed.found, fixed.is_together) == (None, None)
    assert fixed.sentence.startswith("The test for Town and Age is not available for groups of visitors")
    type(three).objects.update(small_cell=100_000)
    assert verdict(three).sentence.startswith(
        "This test is possible only if, on these days, some people answered only the question on "
    )
