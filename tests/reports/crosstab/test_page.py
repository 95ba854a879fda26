"""The page of cross-tabulations, its files and links, and questions to the API."""

import json
import re
from dataclasses import replace
from html import unescape
from urllib.parse import urlencode

import numpy as np
import pytest
from django.http import QueryDict
from django.urls import reverse

from ldp import PlanSpec, linear_query
from ldp.estimation.joint.linear import NUMBERS
from reports.accounts.access_models import ShareLink
from reports.base import formats
from reports.base.status import Status
from reports.crosstab import queries
from reports.crosstab.joints import joint_indicators
from reports.crosstab.query import view_of
from reports.crosstab.texts import sentence
from reports.estimates.queries import Window, visitor_unions, window_report
from reports.ledger.models import LedgerKind
from reports.models import LedgerEntry, Study
from reports.studies.grant_models import StudyGrant
from tests.reports import report_factory as factory
from tests.reports.crosstab.conftest import AGE, GENDER, TOWN, published
from tests.reports.page_texts import Markup, check_document, csv_rows, shared, words

pytestmark = pytest.mark.django_db

PAGE = "/studies/fair-2024/crosstab/"
QUESTION = "only-age=0,1&only-town=0"
API = "/api/v1/studies/fair-2024/queries"
ASKED = {"indicator": "age_town", "where": {"age": ["<18", "18-24"], "town": ["Belfort"]}}


@pytest.fixture
def study():
    return published(AGE, TOWN, epsilon="6")


@pytest.fixture
def ask(token):
    headers = {"Authorization": f"Bearer {token()}"}

    def asking(client, body=ASKED, *, status=200):
        text = body if isinstance(body, str) else json.dumps(body)
        answer = client.post(API, text, content_type="application/json", headers=headers)
        assert answer.status_code == status, answer.content
        return answer.json()

    return asking


def test_an_estimate_above_all_visitors_is_said_to_be_noise(study) -> None:
    (joint,) = joint_indicators(study)
    measured = queries.measure(joint, Window(1, 1))
    figure = replace(measured.answer({0: [0]}), status=Status.OK, share=1.012, ci_low=0.9, ci_high=1.1)
    beyond = "The noise can push an estimate above 100%; read such an estimate as a large share."
    assert sentence(measured, figure, {0: [0]}).endswith(f"). {beyond}")
    assert beyond not in sentence(measured, replace(figure, share=1.0), {0: [0]})


def test_an_answer_that_is_not_reliable_is_its_question_and_its_interval(reader, client, ask) -> None:
    published(AGE, TOWN, epsilon="0.1")
    found = ask(client)
    low, high = (formats.percent(found[name]).removesuffix("%") for name in ("ci_low", "ci_high"))
    text = (
        "Thu 30 May 2024 to Sun 2 Jun 2024 (4 days), “Age: <18 or 18-24; Town: Belfort”: not reliable. "
        "The 95% interval spans more than 50 percentage points,"
    )
    assert found["status"] == "not_reliable" and found["sentence"].startswith(text)
    assert found["sentence"].endswith(f"The interval is {low} to {high}%.")
    assert found["sentence"] in unescape(words(reader.get(f"{PAGE}?{QUESTION}")))


def test_the_page_has_table_answer_and_a_link_to_the_answer(reader, study) -> None:
    text = words(reader.get(f"{PAGE}?{QUESTION}&values=unbiased"))
    found = re.search(
        r"Thu 30 May 2024 to Sun 2 Jun 2024 \(4 days\): an estimated ([\d.]+)% of visitors "
        r"\(95% interval [\d.]+ to [\d.]+%\) match “"
        r"Age: &lt;18 or 18-24; Town: Belfort”\.",
        text,
    )
    assert found, text
    markup = Markup(reader.get(f"{PAGE}?{QUESTION}&values=unbiased").content.decode())
    assert not markup.refused
    assert "values=unbiased" in next(link for link in markup.links if link.endswith("only-town=0#question"))
    permalink = next(link for link in markup.links if link.endswith("only-town=0#question"))
    assert found[0] in words(reader.get(PAGE + permalink.partition("#")[0]))
    french = words(reader.get(f"{PAGE}?{QUESTION}&shares=column", headers={"Accept-Language": "fr"}))
    for said in ("moins de 18 ou 18 à 24", "Tableau croisé", "chaque colonne"):
        assert said in french


def test_each_cell_has_its_figure_and_those_that_may_be_zero_are_faded(reader) -> None:
    published(AGE, TOWN, epsilon="1")
    html = reader.get(f"{PAGE}?rows=age").content.decode()
    html = html[html.index('id="question"') :]
    body = html[html.index("<tbody>") : html.index("</tbody>")]
    assert len(re.findall(r'<td class="number crosstab-\d">', body)) == 3 * 6
    faded = re.findall(r'crosstab-0">[^<]*<br><span class="small">(\S+) to', body)
    coloured = re.findall(r'crosstab-[1-5]">[^<]*<br><span class="small">(\S+) to', body)
    assert faded and all(low.startswith(formats.MINUS) or low == "0.0" for low in faded)
    assert coloured and not any(low.startswith(formats.MINUS) for low in coloured)
    assert "People without a value for Town are not shown" in words(reader.get(f"{PAGE}?rows=age"))


def test_an_interval_below_zero_is_not_said_to_hold_it(reader, monkeypatch) -> None:
    published(AGE, TOWN, epsilon="1")
    margins = queries.figures_of_whole

    def below(*words_of, **facts):
        *shown, last = margins(*words_of, **facts)
        return [*shown, replace(last, ci_low=-0.2, ci_high=-0.1)]

    monkeypatch.setattr(queries, "figures_of_whole", below)
    text = words(reader.get(f"{PAGE}?rows=age"))
    assert "the estimate of their share is below zero (95% interval \u221220.0 to \u221210.0%)" in text


def test_days_and_layout_are_kept_by_links_and_forms(reader, study) -> None:
    html = reader.get(f"{PAGE}?from=2024-05-31&to=2024-06-01&shares=row&{QUESTION}").content.decode()
    assert html.count('name="only-age" value="0,1"') == 2  # hidden, in the forms of days and table
    assert html.index('id="windows"') < html.index('id="question"')  # the days are chosen in a menu above
    assert re.search(r'aria-current="page">Cross-tabulation</a>', html)
    assert 'name="shares" value="row"' in html and 'name="from" value="2024-05-31"' in html
    links = Markup(html).links
    asked = "indicator=age_town&rows=town&shares=row&only-age=0,1&only-town=0"
    assert f"?from=2024-06-01&to=2024-06-02&{asked}" in links
    assert any("rows=age" in link and "shares=row" in link for link in links)  # turned
    wrong = reader.get(f"{PAGE}?only-age=17")
    assert wrong.status_code == 400 and "Town by Age" in words(wrong)
    assert "“only-age” must be a number from 0 to 3, not “17”." in words(wrong)


def test_the_page_is_found_from_the_study_and_from_the_joint_indicator(reader, study) -> None:
    assert f'href="{PAGE}"' in reader.get("/studies/fair-2024/").content.decode()
    of_joint = reader.get("/studies/fair-2024/age_town/?from=2024-05-31").content.decode()
    assert f'href="{PAGE}?indicator=age_town&amp;from=2024-05-31&amp;to=2024-05-31"' in of_joint
    assert "Cross-tabulation" not in words(reader.get("/studies/fair-2024/age/"))


def test_a_third_part_has_a_table_for_each_of_its_categories(reader) -> None:
    published(GENDER, AGE, TOWN, epsilon="6")
    html = reader.get(f"{PAGE}?rows=town&columns=age&within=1&shares=row").content.decode()
    assert "Only visitors for whom Gender is M." in html and "All visitors in the table" in html
    assert any("within=2" in link for link in Markup(html).links)


def test_studies_without_figures_say_why(reader, analyst, study) -> None:
    Study.objects.update(small_cell=100_000)
    hidden = words(reader.get(PAGE))
    assert "suppressed" in hidden and "<table" not in hidden and "Data table" not in hidden
    assert "fewer than 100000 visitors" in reader.get("/studies/fair-2024/crosstab.csv").content.decode()
    other = factory.published(slug="other")
    StudyGrant.objects.create(user=analyst, study=other, granted_by="test")
    assert "No joint indicators" in words(reader.get("/studies/other/crosstab/"))
    answer = reader.get("/studies/other/crosstab.csv")
    assert answer.status_code == 400 and b"This study has no joint indicators, s" in answer.content


def test_noisy_counts_have_no_tables(study) -> None:
    Study.objects.update(presence={"epsilon": "1"})
    (joint,) = joint_indicators(Study.objects.get())
    with pytest.raises(queries.NoCrosstabError, match="presence noise"):
        queries.measure(joint, queries.Window(1, 4))


def test_a_table_that_is_too_large_leaves_the_question(reader, study, monkeypatch) -> None:
    monkeypatch.setattr(queries, "MAX_CELLS", 27)
    text = words(reader.get(f"{PAGE}?{QUESTION}"))
    assert "Table too large" in text and "an estimated" in text
    assert reader.get("/studies/fair-2024/crosstab.csv").status_code == 400


def test_files_have_all_cells_and_totals_with_their_errors(reader, study) -> None:
    rows = csv_rows(reader.get("/studies/fair-2024/crosstab.csv?rows=age&shares=row"))
    assert len(rows) == 4 * 7 + 4 + 7 + 1
    cell = rows[1]
    assert (cell["row_category"], cell["column_category"], cell["share_of"]) == ("<18", "Colmar", "row")
    assert (cell["row_indicator"], cell["column_indicator"]) == ("age", "town")
    assert float(cell["ci_low"]) < float(cell["frequency"]) < float(cell["ci_high"])
    assert cell["visitors"] == ""
    assert {row["row_category"] for row in rows} == {"<18", "18-24", "25 & older", "no value", ""}
    whole = [rows[-1][name] for name in ("row_category", "column_category", "frequency")]
    assert whole == ["", "", "1.0"]
    found = json.loads(reader.get("/studies/fair-2024/crosstab.json?rows=age").content)
    assert found["rows"][1]["frequency"] * found["n_visitors"] == pytest.approx(found["rows"][1]["visitors"])
    assert reader.get("/studies/fair-2024/crosstab.xlsx").content[:2] == b"PK"
    assert LedgerEntry.objects.filter(kind=LedgerKind.EXPORT_MADE).count() == 3
    html = reader.get(f"{PAGE}?rows=age&shares=row").content.decode()
    assert "crosstab.csv?rows=age&amp;shares=row" in html


def test_figures_are_those_that_the_report_shows_by_default(reader) -> None:
    """At this epsilon noise makes some shares negative."""
    study = published(AGE, TOWN, epsilon="1.5")
    (joint,) = joint_indicators(study)
    measured = queries.measure(joint, Window(1, 4))
    report = window_report(joint.indicator, Window(1, 4))
    table = queries.table_of(measured, view_of(QueryDict(), [joint], visitors=visitor_unions(study)))
    shown = table.shown("consistent")
    codes = joint.codes.transpose(table.view.rows, table.view.columns)
    for row, cells in zip(codes, shown.cells, strict=True):
        for code, figure in zip(row, cells, strict=True):
            estimate = report.estimates[code]
            assert figure.share == pytest.approx(estimate.consistent)
            assert figure.visitors == pytest.approx(estimate.consistent * report.scale)
            assert (figure.ci_low, figure.ci_high) == pytest.approx((estimate.ci_low, estimate.ci_high))
    assert min(each.share for row in table.cells for each in row) < 0
    assert shown.whole.share == pytest.approx(1) == sum(each.share for each in shown.rows)
    assert table.shown("unbiased") == table
    by_row = queries.table_of(measured, replace(table.view, base="row")).shown("consistent")
    for row, cells in zip(shown.cells, by_row.cells, strict=True):
        total = sum(each.share for each in row)
        assert [each.share for each in cells] == pytest.approx([each.share / total for each in row])
    page, other = (words(reader.get(f"{PAGE}{query}")) for query in ("", "?values=unbiased"))
    assert "Consistent shares are the estimates" in page and "Unbiased shares can be" not in page
    assert "Unbiased shares can be negative" in other and "\u2212" in other
    assert all(formats.percent(each.share) in page for each in (*shown.cells[0], *shown.rows[:-1]))


GROUPED = replace(TOWN, groups=(("East", ("Colmar", "Belfort")), ("West", ("Dole", "Gray"))))


def test_a_question_may_name_groups(reader) -> None:
    published(AGE, GROUPED, epsilon="6")
    text = words(reader.get(f"{PAGE}?group-town=0&only-town=4"))
    assert "match “Town: East or Lure”" in text
    alike = words(reader.get(f"{PAGE}?only-town=0,1,4"))
    assert re.search("an estimated .*? match", text)[0] == re.search("an estimated .*? match", alike)[0]
    html = reader.get(PAGE).content.decode()
    assert html.count('name="group-town"') == 2 and 'name="group-age"' not in html
    refused = reader.get(f"{PAGE}?group-town=2")
    assert refused.status_code == 400 and "must be a number from 0 to 1" in words(refused)
    without = reader.get(f"{PAGE}?group-age=0")
    assert without.status_code == 400
    assert "“group-age” cannot be used, because Age has no groups." in words(without)
    assert reader.get(f"{PAGE}?group-age=&group-town=").status_code == 200


class TestQuestions:
    @pytest.mark.parametrize(
        ("asked", "names"),
        [
            ({"ranges": {"town": {"from": "Colmar", "to": "Gray"}}}, ["Colmar", "Dole", "Gray"]),
            ({"ranges": {"town": {"to": "Colmar"}}}, ["Belfort", "Colmar"]),
            ({"ranges": {"town": {"from": "Vesoul"}}, "where": {"town": ["Dole"]}}, ["Dole", "Vesoul"]),
            ({"groups": {"town": ["West", "East"]}}, ["Belfort", "Colmar", "Dole", "Gray"]),
        ],
    )
    def test_ranges_and_groups_stand_for_their_categories(self, client, ask, asked, names) -> None:
        published(AGE, GROUPED, epsilon="6")
        found = ask(client, {"indicator": "age_town"} | asked)
        assert found["where"] == {"town": names}
        assert found == ask(client, {"indicator": "age_town", "where": found["where"]})

    def test_an_answer_is_that_of_the_page(self, reader, client, study, ask) -> None:
        found = ask(client)
        assert found["sentence"] in words(reader.get(f"{PAGE}?{QUESTION}&values=unbiased")).replace(
            "&lt;", "<"
        )
        assert found["ci_low"] < found["frequency"] < found["ci_high"]
        assert found["visitors"] == pytest.approx(found["frequency"] * found["n_visitors"])
        assert (found["status"], found["plan_version"], found["where"]) == ("ok", 1, ASKED["where"])
        assert 0 < found["n_reports"] < found["n_visitors"] and 0 < found["std_error"] < 0.1
        one_day = ask(client, ASKED | {"from": "2024-06-01"})
        assert (one_day["first_day"], one_day["last_day"]) == ("2024-06-01", "2024-06-01")
        facts = LedgerEntry.objects.filter(kind=LedgerKind.EXPORT_MADE).latest("number").facts
        assert (facts["what"], facts["indicator"], facts["from"]) == ("queries", "age_town", "2024-06-01")
        unknown = ask(client, ASKED | {"where": {"age": [None]}})
        assert unknown["frequency"] == pytest.approx(0, abs=0.1)

    @pytest.mark.parametrize(
        ("change", "field", "detail"),
        [
            ({"indicator": "home"}, "indicator", "“home” is not available here."),
            ({"indicator": "age", "where": {"age": [None]}}, "where.age.0", "age has no category or group"),
            ({"indicator": "age"}, "where.town", "“town” is not the indicator in this question. Use “age”"),
            (
                {"indicator": "age", "where": {"age": []}},
                "where.age",
                "Specify at least one category of “age”.",
            ),
            ({"indicator": "age", "where": {}}, "where", "Specify at least one category of “age”."),
            ({"indicator": 5}, "indicator", "Input should be a valid string"),
            ({"where": {"gender": ["F"]}}, "where.gender", "“gender” is not a part of this indicator."),
            ({"where": {"age": ["F"]}}, "where.age.0", "age has no category or group “F”."),
            ({"where": {"age": ["<18", 7]}}, "where.age.1", "Input should be a valid string"),
            ({"where": {"age": []}}, "where.age", "Specify at least one category of “age”. To allow any"),
            (
                {"ranges": {"town": {"from": "Gray", "to": "Dole"}}},
                "ranges.town",
                "“Gray” comes after “Dole” in the order of the plan. Swap",
            ),
            ({"ranges": {"town": {"to": "X"}}}, "ranges.town", "town has no category or group “X”."),
            ({"groups": {"town": ["X"]}}, "groups.town.0", "town has no category or group “X”."),
            ({"where": {}}, "where", "Specify categories for at least one part"),
            ({"where": None}, "where", "Input should be a valid dictionary"),
            ({"from": "soon"}, "from", "a day must be a date such as 2017-05-31"),
            ({"from": "2030-01-01"}, "from", "The date range must lie between"),
            ({"form": "2024-06-01"}, "form", "Extra inputs are not permitted"),
        ],
    )
    def test_a_wrong_field_is_named(self, client, study, ask, change, field, detail) -> None:
        problem = ask(client, ASKED | change, status=400)
        (error,) = problem["errors"]
        assert error["parameter"] == field
        assert error["detail"].startswith(detail)

    def test_what_is_no_question_is_refused_and_hidden_figures_are_null(self, client, study, ask) -> None:
        assert ask(client, "{", status=400)["status"] == 400
        assert ask(client, "[]", status=400)["errors"]
        answer = client.get(API)
        assert (answer.status_code, answer["Allow"]) == (405, "POST")
        assert client.post(API, "{}", content_type="application/json").status_code == 401
        Study.objects.update(small_cell=100_000)
        found = ask(client)
        nothing = [found[name] for name in ("frequency", "ci_low", "visitors", "n_visitors", "n_reports")]
        assert (found["status"], nothing) == ("suppressed", [None] * 5)

    @pytest.mark.parametrize(
        ("days", "first"),
        [({"from": "2024-06-01", "to": "2024-05-31"}, "2024-05-31"), ({"to": "2024-06-01"}, "2024-05-30")],
    )
    def test_days_are_those_of_the_page(self, reader, client, study, ask, days, first) -> None:
        """In any order, and without the first one from the first day of the study."""
        found = ask(client, ASKED | days)
        assert (found["first_day"], found["last_day"]) == (first, "2024-06-01")
        assert found["sentence"] in unescape(
            words(reader.get(f"{PAGE}?{QUESTION}&values=unbiased&{urlencode(days)}"))
        )

    def test_answers_are_as_the_document_says(self, client, study, ask, reader) -> None:
        asked = ASKED | {"from": "2024-06-01", "where": {"age": [None, "<18"]}}
        path = "/api/v1/studies/{study}/queries"
        check_document(reader, path, method="post", answer=ask(client), body=asked)


@pytest.mark.parametrize("query", ["indicator=age&only-age=0,1,2", "only-town=0,1,2,3,4,5,6", ""])
def test_a_choice_of_all_categories_is_said_to_be_all_visitors(reader, study, query) -> None:
    text = words(reader.get(f"{PAGE}?{query}"))
    assert "All visitors are included, because no category is excluded." in text


FILE = f"{PAGE[:-1]}/selection"


@pytest.mark.parametrize(
    ("query", "asked", "selected"),
    [
        (QUESTION, ASKED, "age: <18 or 18-24; town: Belfort"),
        (
            "indicator=age&only-age=0,2",
            {"indicator": "age", "where": {"age": ["<18", "25 & older"]}},
            "age: <18 or 25 & older",
        ),
        (
            "only-age=3",
            {"indicator": "age_town", "where": {"age": [None]}},
            "age: no value",
        ),
    ],
)
def test_files_of_selected_categories_have_the_answer(
    reader, client, study, ask, query, asked, selected
) -> None:
    found = ask(client, asked | {"from": "2024-05-30", "to": "2024-06-02"})
    (row,) = csv_rows(reader.get(f"{FILE}.csv?{query}"))
    assert row["selected_categories"] == selected and row["indicator"] == asked["indicator"]
    names = ("frequency", "std_error", "ci_low", "ci_high", "visitors")
    assert [float(row[name]) for name in names] == [found[name] for name in names]
    (same,) = json.loads(reader.get(f"{FILE}.json?{query}").content)["rows"]
    assert same["selected_categories"] == selected and same["status"] == found["status"]
    assert reader.get(f"{FILE}.xlsx?{query}").content[:2] == b"PK"
    page = reader.get(f"{PAGE}?{query}").content.decode()
    assert f'href="{FILE}.csv?{query}"' in unescape(page)


def test_no_file_of_selected_categories_without_any(reader, study) -> None:
    for query in ("", "indicator=age", "indicator=age&only-age=0,1,2"):
        refused = reader.get(f"{FILE}.csv?{query}")
        assert refused.status_code == 400 and b"Select only some of the categories of Age" in refused.content
        assert f"{FILE}.csv" not in reader.get(f"{PAGE}?{query}").content.decode()
    Study.objects.update(small_cell=100_000)
    hidden = reader.get(f"{FILE}.csv?indicator=age&only-age=0")
    assert hidden.status_code == 400 and "fewer than 100000 visitors" in hidden.content.decode()


class TestSingleIndicators:
    ADDRESS = f"{PAGE}?indicator=age"

    def test_page_and_program_have_the_answer_of_the_library(self, reader, client, study, ask) -> None:
        """The page adds up what the report on the indicator shows, with its exact error."""
        window = Window(2, 3)
        report = window_report(study.indicators.get(slug="age"), window)
        channel = PlanSpec.from_json(report.plan.spec).channel(0)
        counts = np.array([each.reports for each in report.estimates])
        sizes = {"n_reports": report.n_reports, "n_population": report.n_visitors}
        expected = linear_query(counts, weights=np.array([1.0, 0, 1]), channel=channel, **sizes)
        days = {"from": "2024-05-31", "to": "2024-06-01"}
        found = ask(client, days | {"indicator": "age", "where": {"age": ["<18", "25 & older"]}})
        numbers = [found[name] for name in ("frequency", "std_error", "ci_low", "ci_high")]
        assert numbers == pytest.approx(list(NUMBERS(expected)))
        page = reader.get(f"{self.ADDRESS}&only-age=0,2&from=2024-05-31&to=2024-06-01")
        text = unescape(words(page))
        assert found["sentence"] in text and "Selected categories: Age" in text
        assert "People who have no value for this indicator do not report." in text
        assert "<table" not in page.content.decode().split('id="windows"')[0]

    def test_the_link_to_the_answer_leads_back_to_it(self, reader, study) -> None:
        page = reader.get(f"{self.ADDRESS}&least-age=0&most-age=1&from=2024-06-01&to=2024-06-01")
        link = re.search(r'href="(\?[^"]*)#question">Link to this result', page.content.decode())[1]
        again = words(reader.get(PAGE + unescape(link)))
        assert "only-age=0,1" in link
        assert "values=unbiased" in page.content.decode()  # the switch of all reports
        sentence = re.search(r"an estimated .*? people \([^)]*\)\.", words(page))[0]
        assert sentence in again

    def test_days_may_be_changed_and_categories_stay(self, reader, study) -> None:
        page = reader.get(f"{self.ADDRESS}&only-age=1").content.decode()
        assert '<input type="hidden" name="only-age" value="1">' in page
        assert 'name="from"' in page and 'name="rows"' not in page

    def test_the_report_links_to_the_selection(self, reader, study) -> None:
        report = reader.get("/studies/fair-2024/age/").content.decode()
        assert "/studies/fair-2024/crosstab/?indicator=age&amp;from=" in report

    def test_a_link_shows_the_answer_to_anyone(self, reader, study) -> None:
        address = f"{PAGE}?from=2024-05-31&to=2024-06-01&indicator=age&only-age=0,2"
        _, html = shared(reader, address)
        answer = re.search(r"an estimated [\d.]+% of visitors \(95% interval [^)]*\)", html)[0]
        assert answer in words(reader.get(address))
        assert "Selected categories: Age" in html and "<table" not in html
        assert not Markup(html).refused

    def test_hidden_categories_hide_the_sum(self, reader, client, ask) -> None:
        made = published(AGE, TOWN, epsilon="6", small_category=600)
        hidden = {
            each.category
            for each in window_report(made.indicators.get(slug="town"), Window(1, 4)).estimates
            if each.is_hidden
        }
        assert hidden and "Belfort" not in hidden
        asked = {"indicator": "town", "from": "2024-05-30", "to": "2024-06-02"}
        sums = ask(client, asked | {"where": {"town": ["Belfort", min(hidden)]}})
        assert (sums["status"], sums["frequency"], sums["visitors"]) == ("suppressed", None, None)
        assert ask(client, asked | {"where": {"town": ["Belfort", "Colmar"]}})["frequency"] > 0

    def test_renewed_reports_of_combinations_and_of_their_parts_have_it(self, reader, client, ask) -> None:
        """Codes, bits and codes of hashes: also the test of all cells, which knows their covariances."""
        both = factory.joint("both", factory.GENDER, factory.MANY)
        study = factory.published(
            factory.GENDER, factory.MANY, both, n=6000, epsilon="4", mechanism="smp-allomfree"
        )
        for query in ("", "?from=2024-05-30&to=2024-05-30"):
            assert reader.get(f"{PAGE}{query}").status_code == 200
        region = study.indicators.get(slug="region").categories
        for slug, chosen in (("gender", ["F"]), ("region", region[:3])):
            found = ask(client, {"indicator": slug, "where": {slug: chosen}})
            report = window_report(study.indicators.get(slug=slug), Window(1, 4))
            of_category = {each.category: each.frequency for each in report.estimates}
            assert found["frequency"] == pytest.approx(sum(of_category[each] for each in chosen))

    @pytest.mark.parametrize("mechanism", ["smp-loloha", "rsfd-ouez"])
    def test_studies_without_joint_indicators_have_it_too(self, reader, client, ask, mechanism) -> None:
        factory.published(GENDER, TOWN, epsilon="5", mechanism=mechanism)
        assert "No joint indicators" in words(reader.get(PAGE))
        assert "Selected categories: Town" in words(reader.get(f"{PAGE}?indicator=town&only-town=0,1"))
        found = ask(client, {"indicator": "town", "where": {"town": ["Belfort", "Colmar"]}})
        assert abs(found["frequency"] - 20 / 36) < 5 * found["std_error"]

    def test_an_indicator_of_single_days_says_so(self, reader, client, ask) -> None:
        factory.published(factory.HALF_STAY)
        asked = {"indicator": "stay", "where": {"stay": ["long"]}}
        for days, field in (({"from": "2024-05-30", "to": "2024-06-01"}, "to"), ({}, "from")):
            (error,) = ask(client, asked | days, status=400)["errors"]
            assert error["parameter"] == field and "must be a single day" in error["detail"]
        assert ask(client, asked | {"from": "2024-05-31"})["frequency"] is not None
        several = reader.get(f"{PAGE}?indicator=stay&from=2024-05-30&to=2024-06-01")
        assert several.status_code == 400 and "must be a single day" in words(several)
        assert "Selected categories: Stay" in words(several)
        file = reader.get(f"{FILE}.csv?indicator=stay&only-stay=1&from=2024-05-30&to=2024-06-01")
        assert file.status_code == 400 and "must be a single day" in file.content.decode()

    def test_numbers_have_no_categories(self, reader, client, ask) -> None:
        factory.published(factory.LENGTH)
        refused = ask(client, {"indicator": "length", "where": {}}, status=422)
        assert "no indicator with categories to select" in refused["detail"]
        assert "No joint indicators" in words(reader.get(f"{PAGE}?indicator=length"))


SHARED = "from=2024-05-31&to=2024-06-01&indicator=age_town&rows=age&only-age=0,1"


def made(reader, query: str, slug: str = "age_town"):
    address = reverse("access:new_share", args=["fair-2024", slug])
    return reader.post(f"{address}?crosstab=on&{query}", {"note": "", "days": 30, "password": ""})


def test_a_link_shows_the_answer_and_the_table_to_anyone(reader) -> None:
    published(AGE, TOWN, epsilon="6")
    page = unescape(reader.get(f"{PAGE}?{SHARED}").content.decode()).split('id="question"')[1]
    _, html = shared(reader, f"{PAGE}?{SHARED}")
    for pattern in (r"an estimated [\d.]+% of visitors \(95% interval [^)]*\)", r"(?s)<tbody>.*?</tbody>"):
        assert re.search(pattern, html)[0] == re.search(pattern, page)[0]
    assert "Consistent shares are the estimates" in html
    days = [day.isoformat() for day in ShareLink.objects.get().days]
    assert days == ["2024-05-31", "2024-06-01"]


def test_what_is_no_table_gets_no_link(reader) -> None:
    published(GENDER, AGE, TOWN, epsilon="6", n=100)
    for query, slug in (("rows=town&columns=town", "gender_age_town"), ("", "age")):
        assert made(reader, query, slug).status_code == 302
    assert not ShareLink.objects.exists()
