"""A number that is reported once by the square wave: from its tallies to pages, files, API and statement."""

import json
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

import ldp
from ldp.estimation.numbers.figures import number_mean
from ldp.estimation.simulation import Crowd
from reports.dpia import dpia_pack
from reports.dpia.markdown import to_markdown
from reports.estimates.loading import load
from reports.estimates.queries import Window
from reports.models import Study
from reports.numbers.queries import compare_means, number_report
from reports.numbers.report_choice import choice_words, report_choices
from reports.numbers.texts import figure_text
from reports.privacy.statement.document import privacy_statement
from reports.sharing import actions as access
from reports.simulator.model import Question, Setting, questions_of_study, simulate
from scripts.check_statement import check
from tests.reports import report_factory as factory
from tests.reports.page_texts import csv_rows, words

pytestmark = pytest.mark.django_db
PAGE = "/studies/fair-2024/size/"
WAVE = replace(factory.SCALE, report="wave")
SIZE = replace(factory.LENGTH, slug="size", kind="static", column="size", derive=None, scale=WAVE)
ONE_DAY = replace(factory.LENGTH, scale=WAVE, max_values=1)


@pytest.fixture
def study():
    return factory.published(SIZE, factory.GENDER, epsilon="2", n=6000)


def test_figures_are_those_of_the_library_and_near_the_truth(study) -> None:
    number = number_report(study.indicators.get(slug="size"), Window(1, 4))
    (loaded,) = load([study.indicators.get(slug="size")])
    codes = ldp.union(loaded.codes, first_day=1, last_day=4)
    mean = number_mean(codes, scale=WAVE, channel=loaded.channel, n_population=number.report.n_visitors)
    assert (number.mean.value, number.mean.ci_low) == (mean.value, mean.ci_low)
    people = factory.crowd(study, n=6000)
    levels = people.static["size"]
    true = np.array(WAVE.ends)[levels]
    assert abs(number.mean.value - true.mean()) < 4 * number.mean.std_error
    assert number.median is not None
    assert number.median.ci_low <= np.median(true) < (number.median.ci_high or np.inf)
    for cut, each in enumerate(number.report.estimates, start=1):
        assert each.ci_low - 0.05 < (levels >= cut).mean() < each.ci_high + 0.05
        assert each.reports == codes[cut + loaded.channel.half_width :].sum()
    falling = [each.consistent for each in number.report.estimates]
    assert falling == sorted(falling, reverse=True)


def test_pages_say_how_it_is_reported_and_which_figures_have_no_interval(reader, analyst, study) -> None:
    text = words(reader.get(f"{PAGE}?from=2024-05-30&to=2024-05-31&above=240&with_from=2024-06-01"))
    number = number_report(study.indicators.get(slug="size"), Window(1, 2))
    assert f"Mean {figure_text(number.mean.value, WAVE)} 95% interval" in text
    assert "of cases it is the person" in text
    assert "is asked about one threshold" not in text
    assert "no valid interval is known for them" in text
    statement = words(reader.get("/studies/fair-2024/statement/"))
    assert "square wave, SW" in statement
    assert "assigned one threshold" not in statement
    assert "(square wave, SW)" in to_markdown(dpia_pack(study))
    given = {"query": "", "days": 30, "note": "", "password": "", "by": analyst}
    _, link = access.create_link(study.indicators.get(slug="size"), Window(1, 2), **given)
    assert "of 100 answers on “Length” are near the true value" in words(reader.get(f"/shared/{link}/"))


def test_files_and_the_api_have_the_same_rows(reader, study, token, client) -> None:
    query = "from=2024-05-30&to=2024-05-31&with_from=2024-06-01&with_to=2024-06-02"
    rows = csv_rows(reader.get(f"{PAGE}number.csv?{query}"))
    headers = {"Authorization": f"Bearer {token()}"}
    address = f"/api/v1/studies/fair-2024/indicators/size/number?{query}"
    answer = client.get(address, headers=headers).json()
    assert answer["report"] == "wave"
    assert [row["value"] for row in answer["rows"]] == [float(row["value"]) for row in rows]
    found = compare_means(study.indicators.get(slug="size"), Window(1, 2), Window(3, 4))
    apart = found.number.mean.value - found.reference.mean.value
    assert abs(found.difference.value - apart) < found.difference.std_error  # parts weigh as their visitors
    assert found.difference.is_exact
    for ending in ("xlsx", "sdmx.csv", "pdf"):
        assert reader.get(f"{PAGE}export.{ending}?from=2024-05-30").status_code == 200


@pytest.mark.parametrize("asked", [SIZE, ONE_DAY])
def test_the_statement_is_confirmed_and_changes_are_found(asked) -> None:
    factory.create(asked, factory.GENDER, epsilon="0.7", days=4)
    statement = json.loads(json.dumps(privacy_statement(Study.objects.get())))
    assert check(statement).texts == []
    number = statement["indicators"][0]
    assert (number["values_per_person"], number["protocol"], number["codes"]) == (1, "wave", 7)
    assert "crosses" not in str(statement)
    for key, value in (("cuts", [1, 2, 3, 4]), ("minimum", 1), ("half_width", 0), ("codes", 5)):
        changed = {**statement, "indicators": [{**number, key: value}, *statement["indicators"][1:]]}
        assert any(text.startswith("indicator") for text in check(changed).texts), key
    more_days = json.loads(json.dumps(statement))
    more_days["plan"]["spec"]["indicators"][0] |= {"kind": "daily", "max_values": 2}
    assert "plan.spec, scale: is not of a plan that can be kept" in check(more_days).texts


def test_a_day_without_reports_has_no_figures_and_one_that_is_undone_counts_again() -> None:
    study = factory.published(ONE_DAY, n=2)
    blank = number_report(study.indicators.get(slug="length"), Window(1, 1))
    assert (blank.mean.value, blank.quantiles) == (None, None) or blank.report.n_reports
    statement = json.loads(json.dumps(privacy_statement(study)))
    assert Decimal(statement["guarantee"]["epsilon_profile"]) <= 1
    factory.publish(study, factory.crowd(study, n=2), voided_days=1)
    undone = json.loads(json.dumps(privacy_statement(Study.objects.get())))
    assert undone["indicators"][0]["values_per_person"] == 2
    assert Decimal(undone["guarantee"]["epsilon_profile"]) > Decimal("1.99")
    assert check(undone).texts == []


def simulated(epsilon: str, *questions: Question, days: int = 4):
    setting = Setting(
        mechanism="smp-adp",
        unit="profile",
        epsilon=Decimal(epsilon),
        days=days,
        crowd=Crowd(visitors=20_000),
        questions=questions,
    )
    return report_choices(simulate(setting))


@pytest.mark.parametrize(
    ("epsilon", "asked", "expected"),
    [
        ("0.5", SIZE, "Threshold reports are recommended"),
        ("0.5", replace(SIZE, scale=factory.SCALE), "Threshold reports, which you chose, are recommended"),
        ("4", SIZE, "The square wave, which you chose, is recommended"),
        ("4", replace(SIZE, scale=factory.SCALE), "The square wave is recommended for this epsilon"),
    ],
)
def test_the_simulator_recommends_what_is_more_accurate(epsilon, asked, expected) -> None:
    questions = questions_of_study(factory.create(asked, factory.GENDER))
    (choice,) = simulated(epsilon, *questions)
    assert expected in choice_words(choice)
    assert choice.is_wave == (asked.scale is WAVE)
    assert choice.prefers_wave == (choice.ratio < 1)


def test_the_simulator_compares_nothing_where_a_person_reports_on_several_days() -> None:
    questions = questions_of_study(factory.create(factory.LENGTH, factory.GENDER))
    assert simulated("2", *questions) == []
    assert len(simulated("2", *questions, days=1)) == 1
