"""The page of movements: its numbers, its choices, and how it says what there is not."""

import json
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from reports import wording
from reports.models import DayNote, Study
from reports.movement import movement
from reports.movement_figures import Show
from tests.reports import report_factory as factory
from tests.reports.test_indicator_page import Markup, text_of

HALF_STAY = replace(factory.STAY, max_values=2)
MANY = factory.indicator("region", *(f"Region {letter}" for letter in "ABCDEFGHIJKL"))


def get(client: Client, slug: str = "age", **query: Any) -> Any:
    return client.get(reverse("reports:movement", args=["fair-2024", slug]), query)


def figure_of(page: str, name: str) -> dict[str, Any]:
    return json.loads(re.search(rf'<script id="{name}"[^>]*>(.*?)</script>', page).group(1))


def test_anonymous_visitor_signs_in(db: None) -> None:
    factory.create()
    assert "/sign-in/" in get(Client())["Location"]


def test_operator_finds_no_such_page(fair: Study, operator: Any) -> None:
    client = Client()
    client.force_login(operator)
    assert get(client).status_code == 404


@pytest.mark.parametrize("slug", ["nothing", "gender2"])
def test_unknown_indicator_is_not_found(reader: Client, fair: Study, slug: str) -> None:
    assert get(reader, slug).status_code == 404


@pytest.mark.parametrize("show", list(Show))
def test_table_and_chart_show_the_same_figures(reader: Client, fair: Study, show: Show) -> None:
    page = get(reader, show=show).content.decode()
    found = movement(fair.indicators.get(slug="age"), show=show)
    text = text_of(page)
    drawn = 0
    for code in range(3):
        for point in found.points:
            estimate = point.estimates[code]
            drawn += estimate.ci_low is not None
            if estimate.status != "ok":
                continue
            if show in (Show.BACK_WITHIN, Show.THERE_AGAIN):
                assert wording.percent_range(estimate.ci_low, estimate.ci_high) in text
            elif show == Show.DAYS_PRESENT:
                assert wording.decimal(estimate.value, decimals=2) in text
            else:
                assert wording.number(estimate.value) in text
                assert wording.number_range(estimate.ci_low, estimate.ci_high) in text
    traces = figure_of(page, "figure")["data"]
    axis = "x" if show in (Show.DAYS_PRESENT, Show.WINDOW) else "y"
    assert sum(value is not None for trace in traces for value in trace[axis]) == drawn
    for trace in traces:
        whiskers = trace[f"error_{axis}"]
        assert all(up >= 0 for up in whiskers["array"] + whiskers["arrayminus"])


def test_whiskers_end_at_the_interval_of_reliable_estimates(reader: Client, fair: Study) -> None:
    page = get(reader, show="arrivals").content.decode()
    points = movement(fair.indicators.get(slug="age"), show=Show.ARRIVALS).points
    assert {point.estimates[0].status for point in points} == {"ok", "not_reliable"}
    trace, alone = figure_of(page, "figure")["data"][:2]
    assert trace["name"] == alone["name"] == "&lt;18"
    for place, point in enumerate(points):
        estimate = point.estimates[0]
        if estimate.status == "not_reliable":
            assert trace["y"][place] is None
            high = alone["y"][place] + alone["error_y"]["array"][place]
            low = alone["y"][place] - alone["error_y"]["arrayminus"][place]
            assert (low, high) == pytest.approx((estimate.ci_low, estimate.ci_high), abs=1e-2)
            continue
        assert alone["y"][place] is None
        assert trace["y"][place] == pytest.approx(estimate.value, abs=1e-2)
        high = trace["y"][place] + trace["error_y"]["array"][place]
        low = trace["y"][place] - trace["error_y"]["arrayminus"][place]
        assert (low, high) == pytest.approx((estimate.ci_low, estimate.ci_high), abs=1e-2)


def test_totals_are_exact_and_say_so(reader: Client, fair: Study) -> None:
    page = get(reader).content.decode()
    text = text_of(page)
    assert "All visitors (exact)" in text
    found = movement(fair.indicators.get(slug="age"))
    for day in found.totals:
        row = " ".join(
            wording.number(n) for n in (day.coverage.visitors, day.arrivals, day.returning, day.departures)
        )
        assert row in text
    assert f"Days present, on average {wording.decimal(found.key.mean_days, decimals=2)}" in text
    bars = figure_of(page, "totals-figure")["data"]
    assert [bars[0]["y"][i] + bars[1]["y"][i] for i in range(4)] == [
        day.coverage.visitors for day in found.totals
    ]


def test_exact_intervals_and_bounds_are_told_apart(reader: Client, fair: Study) -> None:
    exact, bounds = (text_of(get(reader, show=s).content.decode()) for s in ("arrivals", "there_again"))
    assert "intervals are exact" in exact
    assert "at least 95 %" not in exact
    assert "holds the truth in at least 95 % of cases" in bounds
    assert bounds.count("at least 95 %") == 3  # the sentence, and the two days that are apart


def test_choices_stay_in_every_link(reader: Client, fair: Study) -> None:
    page = get(reader, show="back_within", day="2024-05-31", category="1").content.decode()
    links = [link for link in Markup(page).links if link.startswith("?")]
    assert len(links) == len(Show)
    for link in links:
        assert "day=2024-05-31" in link
        assert "category=1" in link
        assert get(reader, **dict(pair.split("=") for pair in link[1:].split("&"))).status_code == 200
    assert '<option value="2024-05-31" selected>' in page


def test_day_and_window_are_taken_from_the_address(reader: Client, fair: Study) -> None:
    found = get(reader, show="there_again", day="2024-06-01").context["found"]
    assert (found.cohort, len(found.points)) == (3, 1)
    found = get(reader, show="window", **{"from": "2024-06-02", "to": "2024-05-31"}).context["found"]
    assert (found.window.first_day, found.window.last_day) == (2, 4)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"show": "profit"}, "no figure with the name “profit”"),
        ({"show": "there_again", "day": "2024-06-02"}, "before its last one, got 2024-06-02"),
        ({"show": "there_again", "day": "tomorrow"}, "got “tomorrow”"),
        ({"show": "window", "from": "2024-05-30", "to": "2024-05-31"}, "begin after its first one"),
        ({"show": "window", "from": "2024-05-31", "to": "2025-05-31"}, "lie within the study"),
        ({"show": "window", "from": "31/05"}, "A day must be a date"),
    ],
)
def test_nonsense_in_the_address_is_explained(
    reader: Client, fair: Study, query: dict[str, str], words: str
) -> None:
    answer = get(reader, **query)
    assert answer.status_code == 400
    assert words in answer.content.decode()
    assert answer.context["found"].points  # and the page has something to go on with


def test_daily_indicator_says_why_it_has_less(reader: Client, fair: Study) -> None:
    text = text_of(get(reader, "stay").content.decode())
    assert "cannot be told per value" in text
    assert "Departures" not in text
    assert get(reader, "stay", show="departures").status_code == 400


def test_indicator_of_some_days_says_why_it_has_totals_only(reader: Client) -> None:
    study = factory.create(factory.GENDER, HALF_STAY)
    factory.publish(study, factory.crowd(study))
    text = text_of(get(reader, "stay").content.decode())
    assert "on 2 of the 4 days only" in text
    assert "All visitors (exact)" in text


def test_study_of_one_day_has_nobody_who_comes_back(reader: Client) -> None:
    study = factory.create(days=1)
    factory.publish(study, factory.crowd(study))
    assert "nobody can come back" in text_of(get(reader).content.decode())


def test_study_without_data_says_that_it_comes(reader: Client) -> None:
    factory.create()
    page = get(reader).content.decode()
    assert "No data yet" in page
    assert "plotly" not in page


def test_visitors_without_answers_have_a_table_of_blanks(reader: Client) -> None:
    study = factory.create()
    people = factory.crowd(study, n=200)
    unknown = {slug: values * 0 - 1 for slug, values in people.static.items()}
    factory.publish(study, replace(people, static=unknown))
    text = text_of(get(reader).content.decode())
    assert "There are no answers to draw" in text
    assert "not collected" in text


def test_outage_is_a_word_and_explained(reader: Client) -> None:
    study = factory.create()
    factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
    DayNote.objects.create(study=study, day=3, kind="outage", text="mast down", by="olga")
    text = text_of(get(reader).content.decode())
    assert "outage" in text
    assert "may count as arriving later or leaving earlier" in text


def test_market_share_is_explained(reader: Client) -> None:
    study = factory.create(market_share=Decimal("0.35"))
    factory.publish(study, factory.crowd(study))
    assert "market share is 35" in text_of(get(reader).content.decode())
    assert "market share is 35" not in text_of(get(reader, show="back_within").content.decode())


def test_closed_study_has_no_days_to_come(reader: Client, fair: Study) -> None:
    still_open = "Last time: so far."
    assert still_open in get(reader).content.decode()
    Study.objects.update(state="closed", closed_at="2024-07-01T00:00:00Z")
    assert still_open not in get(reader).content.decode()


def test_categories_of_the_chart_can_be_chosen(reader: Client) -> None:
    study = factory.create(MANY)
    factory.publish(study, factory.crowd(study))
    traces = figure_of(get(reader, "region").content.decode(), "figure")["data"]
    assert len({trace["name"] for trace in traces}) == 5
    page = get(reader, "region", category=["2", "11", "99", "x"]).content.decode()
    names = [trace["name"] for trace in figure_of(page, "figure")["data"] if trace.get("showlegend", True)]
    assert names == ["Region C", "Region L"]
    assert page.count('<tr><th scope="row">Region') == 12  # the table has all of them


def test_page_of_a_long_study_stays_light(reader: Client) -> None:
    many = factory.indicator("region", *(f"Region {code}" for code in range(100)))
    study = factory.create(many, days=62)
    factory.publish(study, factory.crowd(study, n=5000))
    for show in Show:
        answer = get(reader, "region", show=show)
        assert len(answer.content) < 500_000
        assert ("too many cells" in answer.content.decode()) == (show not in (Show.DAYS_PRESENT, Show.WINDOW))


def test_other_indicators_and_the_report_link_here(reader: Client, fair: Study) -> None:
    address = reverse("reports:movement", args=["fair-2024", "age"])
    report = reader.get(reverse("reports:indicator", args=["fair-2024", "age"])).content.decode()
    assert address in Markup(report).links
    assert address in Markup(get(reader, "gender").content.decode()).links


def test_page_has_nothing_that_the_content_policy_refuses(reader: Client, fair: Study) -> None:
    for show in Show:
        answer = get(reader, show=show)
        assert Markup(answer.content.decode()).refused == []
        assert "unsafe" not in answer["Content-Security-Policy"]


def test_page_takes_few_queries(reader: Client, fair: Study, django_assert_num_queries) -> None:
    get(reader)
    # session, account, roles (twice: access, navigation); study, indicators, notes (twice), tally, plan,
    # and what the statement needs of it
    with django_assert_num_queries(10):
        get(reader, show="there_again")
