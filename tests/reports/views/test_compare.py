"""The page that compares: the address names the question, and every answer is in words."""

import json
import re
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from reports import compare, wording, wording_compare
from reports.models import Study
from reports.selectors import Window
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db

BUSY = {"from": "2024-05-31", "to": "2024-06-02"}
CALM = {"with_from": "2024-05-30", "with_to": "2024-05-31"}
WINDOWS = {"kind": "windows", **BUSY, **CALM}


def get(client: Client, slug: str = "age", **query: Any) -> Any:
    return client.get(reverse("reports:compare", args=["fair-2024", slug]), query)


def text_of(page: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.content.decode()))


def rows_of(page: Any) -> list[list[str]]:
    body = re.search(r"<tbody>(.*?)</tbody>", page.content.decode(), re.DOTALL).group(1)
    cells = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in body.split("</tr>")[:-1])
    return [[re.sub(r"[ \n]+", " ", re.sub(r"<[^>]+>", " ", cell)).strip() for cell in row] for row in cells]


def test_table_and_chart_show_the_differences(reader: Client, fair: Study) -> None:
    page = get(reader, **WINDOWS)
    expected = compare.compare_windows(
        fair.indicators.get(slug="age"), Window(2, 4), Window(1, 2), of="frequency"
    )
    for row, cells in zip(expected.rows, rows_of(page), strict=True):
        assert (
            cells[2]
            == f"{wording.percent(row.value.value)} {wording.percent_range(row.value.low, row.value.high)}"
        )
        assert cells[3].startswith(wording.percent(row.reference.value))
        assert (
            cells[1]
            == f"{wording_compare.change(row, 'frequency')} {wording_compare.change_range(row, 'frequency')}"
        )
        assert cells[4].endswith(wording_compare.verdict_word(row.alone))
        assert cells[5].endswith(wording_compare.verdict_word(row.held))
    assert wording_compare.summary(expected) in text_of(page)
    figure = json.loads(re.search(r'<script id="figure"[^>]*>(.*?)</script>', page.content.decode()).group(1))
    drawn = {place: x for trace in figure["data"] for place, x in zip(trace["y"], trace["x"], strict=True)}
    assert [drawn[place] for place in range(3)] == pytest.approx(
        [100 * row.difference for row in expected.rows], abs=1e-3
    )


def test_sentence_names_the_largest_difference(reader: Client) -> None:
    study = factory.create(epsilon="6")
    people = factory.crowd(study)
    people.static["gender"][factory.People.present(people, 4, 4)] = 1
    factory.publish(study, people)
    page = get(
        reader, "gender", kind="windows", **{"from": "2024-06-02", "to": "2024-06-02"}, with_from="2024-05-30"
    )
    assert re.search(
        r"(More M|Fewer F) than on Thu 30 May 2024: .\d+\.\d points \(.\d+\.\d to .\d+\.\d\)\. "
        r"It is the (largest of [23] differences|only difference of 3) that",
        text_of(page).replace("\u202f", " "),
    )
    assert "Fewer" in text_of(
        get(reader, "gender", **{"from": "2024-05-30"}, with_from="2024-06-02", category="")
    )


def test_no_difference_is_said_in_words(reader: Client, fair: Study) -> None:
    page = get(reader, "stay", kind="windows", **{"from": "2024-05-30", "with_from": "2024-05-31"})
    assert {cells[4] for cells in rows_of(page)} == {"\u2013 no difference can be shown"}
    assert "No difference can be shown in any of the 2 categories" in text_of(page)


def test_visitors_can_be_compared(reader: Client, fair: Study) -> None:
    page = get(reader, measure="visitors", **WINDOWS)
    assert page.context["comparison"].of == "visitors"
    assert all(re.fullmatch(r".*\d visitors .*", cells[1].replace("\u202f", "")) for cells in rows_of(page))


def test_categories_need_no_more_than_a_reference(reader: Client, fair: Study) -> None:
    page = get(reader, kind="categories", reference="0", **BUSY)
    assert [cells[0] for cells in rows_of(page)] == ["18-24", "25 &amp; older"]
    assert "come from the same reports" in text_of(page)
    one = get(reader, kind="categories", reference="0", category="2", **BUSY)
    assert [cells[0] for cells in rows_of(one)] == ["25 &amp; older"]
    assert len(rows_of(one)[0]) == 5  # a single row needs no correction
    assert "Holm" not in text_of(one)


def test_baseline_is_named(reader: Client, fair: Study) -> None:
    page = get(reader, kind="baseline", **{"from": "2024-05-31"})
    assert "Days of the baseline: 30 May, 1 Jun, 2 Jun." in text_of(page)
    assert "Mean of 3 other days" in text_of(page)
    assert "interval, at least 95 %" in text_of(page)
    chosen = get(reader, kind="baseline", day=["1", "4"], **{"from": "2024-05-31"})
    assert "Days of the baseline: 30 May, 2 Jun." in text_of(chosen)
    assert chosen.content.decode().count(" checked") == 2


def other_study() -> Study:
    band = factory.indicator("band", "25 & older", "<18", "18-24")
    made = factory.create(band, slug="fair-2025", name="The next fair", first_day=date(2025, 5, 29), days=3)
    factory.publish(made, factory.crowd(made, seed=3), key=bytes(15) + b"\2")
    return made


def test_studies_with_the_same_categories_are_offered(reader: Client, fair: Study) -> None:
    assert "No other study has an indicator with the same categories" in text_of(get(reader, kind="studies"))
    other_study()
    asked = get(reader, kind="studies")
    assert asked.context["state"] == "ask"
    assert "The next fair: Band" in text_of(asked)
    page = get(reader, kind="studies", **BUSY, **{"with": "fair-2025/band", "with_from": "2025-05-30"})
    assert [cells[0] for cells in rows_of(page)] == ["&lt;18", "18-24", "25 &amp; older"]
    assert "The next fair, Fri 30 May 2025" in text_of(page)
    assert "People may be in both studies" in text_of(page)
    whole = get(reader, kind="studies", **BUSY, **{"with": "fair-2025/band"})
    assert whole.context["comparison"].reference.window == Window(1, 3)


@pytest.mark.parametrize("kind", ["windows", "categories", "baseline", "studies"])
def test_without_a_question_there_is_a_form(reader: Client, fair: Study, kind: str) -> None:
    page = get(reader, kind=kind)
    assert page.status_code == 200
    assert page.context["state"] == "ask"
    # Without another study there is nothing to press, and the form says so.
    assert ("Nothing compared yet" in text_of(page)) == (kind != "studies")


def test_form_shows_what_was_asked(reader: Client, fair: Study) -> None:
    page = get(reader, measure="visitors", **WINDOWS).content.decode()
    chosen = re.findall(r'<option value="([^"]*)" selected>', page)
    assert chosen == ["2024-05-31", "2024-06-02", "2024-05-30", "2024-05-31", "visitors"]


def test_other_kinds_keep_the_days_and_the_measure(reader: Client, fair: Study) -> None:
    page = get(reader, measure="visitors", **WINDOWS).content.decode()
    assert 'href="?kind=categories&amp;measure=visitors&amp;from=2024-05-31&amp;to=2024-06-02"' in page
    assert 'href="?kind=baseline&amp;measure=visitors"' in page  # a baseline is for a single day


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            {"kind": "windows", **BUSY, "with_from": "2024-05-31", "with_to": "2024-06-02"},
            "Both are the same days",
        ),
        ({"kind": "categories", **BUSY, "reference": "1", "category": "1"}, "Both are the same category"),
        ({"kind": "baseline", "from": "2024-05-31", "day": "2"}, "None of these other days has numbers"),
    ],
)
def test_what_has_no_difference_is_explained(
    reader: Client, fair: Study, query: dict[str, str], message: str
) -> None:
    page = get(reader, **query)
    assert page.status_code == 200
    assert message in text_of(page)


@pytest.mark.parametrize(
    "query",
    [
        {"kind": "windows", "from": "2024-05-31", "with_from": "2031-01-01"},
        {"kind": "windows", "from": "yesterday", "with_from": "2024-05-31"},
        {"kind": "categories", "from": "2024-05-31", "reference": "3"},
        {"kind": "categories", "from": "2024-05-31", "reference": "-1"},
        {"kind": "categories", "from": "2024-05-31", "reference": "0", "category": "\u0663"},
        {"kind": "categories", "from": "2024-05-31", "reference": "0", "category": "9" * 5000},
        {"kind": "baseline", "from": "2024-05-31", "day": "x"},
        {"kind": "baseline", **BUSY},
        {"kind": "studies", "from": "2024-05-31", "with": "fair-2024/gender"},
        {"kind": "studies", "from": "2024-05-31", "with": "fair-2025/band", "with_from": "2024-05-31"},
        {"kind": "studies", "from": "2024-05-31", "with": "\x00<script>"},
    ],
)
def test_nonsense_in_the_address_is_answered_in_words(
    reader: Client, fair: Study, query: dict[str, str]
) -> None:
    other_study()
    page = get(reader, **query)
    assert page.status_code == 400
    assert "This address cannot be read" in text_of(page)
    assert "<script>" not in page.content.decode().replace('<script id="', "")
    assert "Compare" in text_of(page)


def test_other_study_that_is_not_there_is_named(reader: Client, fair: Study) -> None:
    page = get(reader, kind="studies", **BUSY, **{"with": "gone/age"})
    assert page.status_code == 400
    assert "There is no other indicator gone/age with the same categories." in text_of(page)


def test_unknown_kind_means_windows(reader: Client, fair: Study) -> None:
    assert get(reader, kind="moons").context["kind"] == "windows"


def test_days_without_numbers_are_named(reader: Client) -> None:
    study = factory.create(days=4)
    factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
    page = get(reader, "gender", kind="windows", **{"from": "2024-06-01", "with_from": "2024-05-30"})
    assert "Sat 1 Jun 2024: not collected." in text_of(page)
    baseline = get(reader, "gender", kind="baseline", **{"from": "2024-05-30"})
    assert "Left out, since they have no numbers: 1 Jun." in text_of(baseline)


def test_study_without_data_has_nothing_to_compare(reader: Client) -> None:
    factory.create()
    for kind in ("windows", "categories", "baseline"):
        page = get(
            reader, "gender", kind=kind, reference="0", with_from="2024-05-31", **{"from": "2024-05-30"}
        )
        assert page.context["state"] == "not_comparable"


def test_union_of_an_indicator_with_few_answers_is_explained(reader: Client) -> None:
    study = factory.create(replace(factory.STAY, max_values=2))
    factory.publish(study, factory.crowd(study))
    page = get(reader, "stay", **WINDOWS)
    assert "No union of days for this indicator" in text_of(page)
    assert 'name="to"' not in page.content.decode()
    days = get(reader, "stay", kind="windows", **{"from": "2024-05-30", "with_from": "2024-05-31"})
    assert days.context["state"] == "result"


def test_report_page_links_here_with_its_days(reader: Client, fair: Study) -> None:
    page = reader.get(reverse("reports:indicator", args=["fair-2024", "age"]), BUSY).content.decode()
    assert (
        f'href="{reverse("reports:compare", args=["fair-2024", "age"])}?from=2024-05-31&amp;to=2024-06-02"'
        in page
    )


@pytest.mark.parametrize(("kind", "n"), [("windows", 9), ("categories", 9), ("baseline", 9), ("studies", 11)])
def test_number_of_queries_does_not_grow(
    reader: Client, fair: Study, django_assert_max_num_queries: DjangoAssertNumQueries, kind: str, n: int
) -> None:
    other_study()
    query = {"kind": kind, "from": "2024-05-31", "with_from": "2024-05-30", "reference": "0"}
    if kind == "studies":
        query |= {"with": "fair-2025/band", "with_from": "2025-05-30"}
    with django_assert_max_num_queries(n):
        assert get(reader, **query).context["state"] == "result"


def test_people_without_the_role_see_nothing(fair: Study, operator: User) -> None:
    address = reverse("reports:compare", args=["fair-2024", "age"])
    assert Client().get(address).status_code == 302
    client = Client()
    client.force_login(operator)
    assert client.get(address).status_code == 404


def test_unknown_study_or_indicator_is_not_found(reader: Client, fair: Study) -> None:
    assert get(reader, "shoes").status_code == 404
    assert reader.get(reverse("reports:compare", args=["fair", "age"])).status_code == 404


def test_what_is_not_reliable_has_its_interval_and_neither_number_nor_verdict(reader: Client) -> None:
    study = factory.create()
    factory.publish(study, factory.crowd(study, n=400))
    page = get(reader, "gender", kind="windows", **{"from": "2024-05-30", "to": "2024-06-02"}, **{
        "with_from": "2024-05-30", "with_to": "2024-05-30"
    })  # fmt: skip
    found = compare.compare_windows(
        study.indicators.get(slug="gender"), Window(1, 4), Window(1, 1), of="frequency"
    )
    assert "Not reliable: the intervals of one side at least" in text_of(page)
    for row, cells in zip(found.rows, rows_of(page), strict=True):
        assert cells[1] == f"? not reliable {wording_compare.change_range(row, 'frequency')}"
        assert cells[2].startswith(wording.percent(row.value.value))
        assert cells[4] == "? not reliable"
    text = page.content.decode()
    assert not any(wording_compare.change(row, "frequency") in text for row in found.rows)
    assert "Holm" not in text
    figure = json.loads(re.search(r'<script id="figure"[^>]*>(.*?)</script>', text).group(1))
    (trace,) = figure["data"]
    assert (trace["name"], trace["marker"]["color"]) == ("not reliable", "rgba(0,0,0,0)")
    assert all("not reliable" in words for words in trace["hovertext"])
