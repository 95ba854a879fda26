"""A number from its tallies to pages, files, the API and its statement."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import ldp
from ldp.estimation.numbers.threshold import threshold_mean
from reports.dpia import dpia_pack
from reports.dpia.markdown import to_markdown
from reports.estimates.loading import load
from reports.estimates.queries import Window
from reports.forecasts.series import category_days
from reports.models import Study
from reports.numbers.queries import compare_means, number_report
from reports.numbers.texts import figure_text
from reports.privacy.statement.document import privacy_statement
from reports.scenario.population import synthesise
from reports.scenario.queries import refusal
from reports.sharing import actions as access
from scripts.check_statement import check
from tests.reports import report_factory as factory
from tests.reports.page_texts import csv_rows, words

pytestmark = pytest.mark.django_db
PAGE = "/studies/fair-2024/length/"
FIXED = replace(factory.LENGTH, slug="size", kind="static", column="size", derive=None)


@pytest.fixture
def study():
    return factory.published(factory.LENGTH, factory.GENDER, epsilon="2", n=6000)


@pytest.fixture
def ask(token, client):
    headers = {"Authorization": f"Bearer {token()}"}
    return lambda address: client.get(f"/api/v1/studies/fair-2024/indicators/{address}", headers=headers)


def test_the_mean_is_that_of_the_library_and_near_the_truth(study) -> None:
    number = number_report(study.indicators.get(slug="length"), Window(2, 2))
    (loaded,) = load([study.indicators.get(slug="length")])
    codes = ldp.union(loaded.codes, first_day=2, last_day=2)
    asked = {"channel": loaded.channel, "n_population": number.report.n_visitors}
    mean = threshold_mean(codes, scale=factory.SCALE, **asked)
    assert (number.mean.value, number.mean.ci_low) == (mean.value, mean.ci_low)
    people = factory.crowd(study, n=6000)
    there = people.present(2, 2)
    levels = people.daily["length"][there, 1]
    true = np.array([0, *factory.SCALE.cuts])[levels]
    assert abs(number.mean.value - true.mean()) < 4 * number.mean.std_error
    assert number.median is not None
    assert number.median.ci_low <= np.median(true) < (number.median.ci_high or np.inf)
    shares = [(each.frequency, each.ci_low, each.ci_high) for each in number.report.estimates]
    for cut, (_, low, high) in enumerate(shares, start=1):
        assert low - 0.1 < (levels >= cut).mean() < high + 0.1
    assert number.report.estimates[0].reports == codes[1]


def test_pages_show_mean_median_shares_and_differences(reader, study) -> None:
    text = words(reader.get(f"{PAGE}?from=2024-05-30&to=2024-05-31&above=240&with_from=2024-06-01"))
    number = number_report(study.indicators.get(slug="length"), Window(1, 2))
    assert f"Mean {figure_text(number.mean.value, factory.SCALE)} 95% interval" in text
    assert re.search(r"Median \d+ to less than \d+ min 95% interval", text)
    assert re.search(r"[\d.]+% of the visitors \(95% interval \S+ to [\d.]+%\)", text)
    assert "No difference detected between the means" in text or " higher than that of " in text
    assert "A value below the first threshold is rounded down to 0 min." in text
    assert "with the value from their first day in the range" in text
    assert "largest category" not in text
    days = words(reader.get(f"{PAGE}days/"))
    assert days.count(" to less than ") >= 4
    movement = reader.get(f"{PAGE}movement/")
    assert (movement.status_code, f"{PAGE}compare/" in movement.content.decode()) == (200, False)
    bad = words(reader.get(f"{PAGE}?from=2024-05-30&with_from=2024-05-30"))
    assert "Both date ranges are the same." in bad
    not_there = words(reader.get(f"{PAGE}?from=2024-05-30&above=77"))
    assert "“77” is not a threshold of this indicator. This is the share at or above " in not_there
    assert "is not a threshold" not in text


@pytest.mark.parametrize(
    ("asked", "days"),
    [
        ("kind=windows&from=2024-05-30&to=2024-05-30&with_from=2024-05-31&with_to=2024-05-31", None),
        ("", "from=2024-06-02&to=2024-06-02&with_from=2024-05-30&with_to=2024-05-30"),
        ("kind=studies&from=2024-05-30&to=2024-05-31&with=x/y&with_from=2023-01-01", None),
        ("kind=windows&from=1999-01-01", "from=1999-01-01"),
    ],
)
def test_comparing_a_number_opens_its_report_with_the_same_days(reader, study, asked, days) -> None:
    """The report compares means; days of another study are left out, and bad ones are named there."""
    if days is None:
        days = asked.partition("&")[2].partition("&with=")[0]
    answer = reader.get(f"{PAGE}compare/?{asked}")
    assert answer.headers["Location"] == f"{PAGE}?{days}#means"
    page = reader.get(answer.headers["Location"])
    assert page.status_code == (400 if "1999" in asked else 200)
    assert ("Mean of the other days" in words(page)) == ("with_from" in days)


def test_files_and_api_have_the_same_rows(reader, study, ask) -> None:
    query = "from=2024-05-30&to=2024-05-31&with_from=2024-06-01&with_to=2024-06-02"
    rows = csv_rows(reader.get(f"{PAGE}number.csv?{query}"))
    names = ["mean", *["quantile"] * 5, "reference_mean", "difference"]
    assert [row["statistic"] for row in rows] == names
    answer = ask(f"length/number?{query}").json()
    assert [row["value"] for row in answer["rows"]] == [float(row["value"]) for row in rows]
    assert json.loads(reader.get(f"{PAGE}number.json?{query}").content)["rows"] == answer["rows"]
    assert reader.get(f"{PAGE}number.xlsx?{query}").content[:2] == b"PK"
    for ending in ("xlsx", "sdmx.csv", "pdf"):
        assert reader.get(f"{PAGE}export.{ending}?from=2024-05-30").status_code == 200
    found = compare_means(study.indicators.get(slug="length"), Window(1, 2), Window(3, 4))
    assert rows[-1]["interval"] == ("exact" if found.difference.is_exact else "at_least")
    assert found.difference.value == pytest.approx(found.number.mean.value - found.reference.mean.value)
    assert ask("gender/number").status_code == 422
    estimates = ask("length/estimates?from=2024-05-30").json()["estimates"]
    assert [each["category"] for each in estimates] == list(factory.LENGTH.categories)
    falling = [each["consistent"] for each in estimates]
    assert falling == sorted(falling, reverse=True)
    assert len(category_days(study.indicators.get(slug="length"))) == 4


@pytest.mark.parametrize("asked", [factory.LENGTH, FIXED])
def test_the_statement_is_confirmed_and_changes_are_found(asked) -> None:
    factory.create(asked, factory.GENDER, epsilon="0.7", days=4)
    statement = json.loads(json.dumps(privacy_statement(Study.objects.get())))
    assert check(statement).texts == []
    number = statement["indicators"][0]
    assert number["values_per_person"] == (2 if asked.kind == "daily" else 1)
    assert number["protocol"] == "threshold"
    assert ("crosses" in str(statement) or "cross their threshold" in str(statement)) == (
        asked.kind == "daily"
    )
    for key, value in (("cuts", [1, 2, 3, 4]), ("minimum", 1), ("cut_shares", ["1"]), ("threshold", "5")):
        changed = {**statement, "indicators": [{**number, key: value}, *statement["indicators"][1:]]}
        assert any(text.startswith("indicator") for text in check(changed).texts), key


def test_few_visitors_are_not_shown_and_a_cut_without_reports_has_no_mean(reader) -> None:
    study = factory.published(factory.LENGTH, n=12, small_cell=100)
    assert "Mean and median" not in words(reader.get(f"{PAGE}?from=2024-05-30"))
    number = number_report(study.indicators.get(slug="length"), Window(1, 1))
    assert (number.mean.value, number.mean.status, number.quantiles) == (None, "suppressed", None)
    Study.objects.update(small_cell=0)
    few = factory.published(factory.LENGTH, n=3, slug="few")
    blank = number_report(few.indicators.get(slug="length"), Window(1, 1))
    assert (blank.mean.value, blank.report.status) == (None, "not_reliable")


def test_share_links_and_the_data_protection_pack_show_numbers(client, analyst, study) -> None:
    given = {"query": "", "days": 30, "note": "", "password": "", "by": analyst}
    _, text = access.create_link(study.indicators.get(slug="length"), Window(1, 2), **given)
    shown = words(client.get(f"/shared/{text}/"))
    assert "Mean and median" in shown
    assert "Compare the mean" not in shown
    assert "says whether the person's value is at or above this threshold" in to_markdown(dpia_pack(study))


def test_scenarios_and_synthetic_people_leave_numbers_out(study) -> None:
    fixed = factory.published(FIXED, factory.GENDER, slug="fixed").indicators.get(slug="size")
    assert "is a number, but scenarios count people by category" in refusal(fixed.study, fixed)
    assert synthesise(study).left_out == {"length": "is a number"}
