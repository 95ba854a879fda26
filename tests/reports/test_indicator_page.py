"""The page of one window: its numbers, its windows, and the ways in which there can be nothing."""

import json
import re
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from reports import selectors, wording
from reports.models import Study
from reports.selectors import Window
from tests.reports import report_factory as factory

HALF_STAY = replace(factory.STAY, max_values=2)


class Markup(HTMLParser):
    """Links, and whatever a strict content policy would refuse."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: dict[str, dict[str, str | None]] = {}
        self.refused: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "a":
            self.links[values["href"] or ""] = values
        is_data = values.get("type") == "application/json"
        if tag == "style" or (tag == "script" and "src" not in values and not is_data):
            self.refused.append(tag)
        self.refused += [name for name in values if name == "style" or name.startswith("on")]


def get(client: Client, slug: str = "gender", **query: str) -> Any:
    return client.get(reverse("reports:indicator", args=["fair-2024", slug]), query)


def figure_of(page: str) -> dict[str, Any]:
    return json.loads(re.search(r'<script id="figure"[^>]*>(.*?)</script>', page).group(1))


def text_of(page: str) -> str:
    return re.sub(r"[ \n]+", " ", re.sub(r"<[^>]+>", " ", page))


def test_table_chart_and_totals_show_the_estimates(reader: Client, fair: Study) -> None:
    page = get(reader, "age", **{"from": "2024-05-31", "to": "2024-06-01"}).content.decode()
    report = selectors.window_report(fair.indicators.get(slug="age"), Window(2, 3))
    text = text_of(page)
    assert f'id="n-visitors">{wording.number(report.n_visitors)}<' in page
    assert f'id="n-reports">{wording.number(report.n_reports)}<' in page
    assert "Fri 31 May 2024 to Sat 1 Jun 2024 (2 days)" in text
    for estimate in report.estimates:
        row = (
            f"{wording.percent(estimate.frequency)} {wording.share_range(estimate)} "
            f"{wording.number(estimate.visitors)} {wording.visitors_range(estimate)} "
            f"{wording.percent(estimate.consistent)} {wording.number(estimate.reports)}"
        )
        assert row in text
    shares = figure_of(page)["data"][0]["x"]
    assert shares == pytest.approx([100 * estimate.frequency for estimate in report.estimates], abs=1e-4)


def test_without_a_choice_the_window_is_the_whole_study(reader: Client, fair: Study) -> None:
    assert get(reader).context["report"].window == Window(1, 4)


def test_day_without_end_is_one_day(reader: Client, fair: Study) -> None:
    assert get(reader, **{"from": "2024-06-01"}).context["report"].window == Window(3, 3)


def test_days_in_the_wrong_order_mean_the_window_between(reader: Client, fair: Study) -> None:
    answer = get(reader, **{"from": "2024-06-02", "to": "2024-05-31"})
    assert answer.context["report"].window == Window(2, 4)


def test_every_window_is_one_link_with_its_days_and_visitors(reader: Client, fair: Study) -> None:
    links = Markup(get(reader).content.decode()).links
    unions = selectors.visitor_unions(fair)
    for window in selectors.windows_of(fair):
        first, last = fair.date_of(window.first_day), fair.date_of(window.last_day)
        link = links[f"?from={first}&to={last}"]
        visitors = wording.number(unions[window.first_day, window.last_day])
        assert link["title"] == f"{wording.window_title(first, last)}: {visitors} visitors"
        assert (
            reader.get(reverse("reports:indicator", args=["fair-2024", "gender"]) + link["href"]).status_code
            == 200
        )


def test_long_study_has_selects_instead_of_a_triangle(reader: Client) -> None:
    study = factory.create(days=15)
    factory.publish(study, factory.crowd(study))
    page = get(reader).content.decode()
    assert 'class="triangle"' not in page
    assert page.count("<option") == 30


def test_earlier_and_later_move_the_window(reader: Client, fair: Study) -> None:
    links = Markup(get(reader, **{"from": "2024-05-31", "to": "2024-06-01"}).content.decode()).links
    assert {"?from=2024-05-30&to=2024-05-31", "?from=2024-06-01&to=2024-06-02"} <= set(links)


def test_other_indicators_keep_the_window(reader: Client, fair: Study) -> None:
    links = Markup(get(reader, **{"from": "2024-05-31", "to": "2024-06-01"}).content.decode()).links
    assert f"{reverse('reports:indicator', args=['fair-2024', 'age'])}?from=2024-05-31&to=2024-06-01" in links


def test_each_page_of_an_indicator_leads_to_the_others(reader: Client, fair: Study) -> None:
    names = ("indicator", "days", "compare", "movement")
    addresses = {reverse(f"reports:{name}", args=["fair-2024", "age"]) for name in names}
    for address in addresses:
        row = reader.get(address).content.decode().split('<p class="row no-print">')[1].split("</p>")[0]
        found = {link.split("?")[0] for link in re.findall(r'href="([^"]+)"', row)}
        assert found == addresses - {address}


def test_privacy_is_said_with_the_certified_numbers(reader: Client, fair: Study) -> None:
    text = text_of(get(reader).content.decode())
    # a daily indicator of four days: 4 answers at epsilon 1
    assert "epsilon 1 for one answer" in text
    assert (
        "all values of a person in this study together are protected with epsilon 4 (unit: profile)" in text
    )
    assert "visitor totals are exact" in text
    assert "Of 100 answers, about 58 are the true one" in text
    assert "by a factor of at most 2.72" in text
    assert "by a factor of at most 54.60" in text
    assert "whether this daily value changed" not in text


def test_daily_indicator_says_that_changes_are_not_protected(reader: Client, fair: Study) -> None:
    text = text_of(get(reader, "stay").content.decode())
    assert "neither is whether this daily value changed" in text
    assert "gives up to 4 answers, one a day" in text


def test_union_of_a_daily_indicator_says_which_day_counts(reader: Client, fair: Study) -> None:
    rule = "with the value of the first day there"
    assert rule in text_of(get(reader, "stay").content.decode())
    assert rule not in text_of(get(reader, "stay", **{"from": "2024-05-31"}).content.decode())
    assert rule not in text_of(get(reader, "gender").content.decode())


def test_attribute_unit_is_named(reader: Client) -> None:
    study = factory.create(unit="attribute", epsilon="0.5")
    factory.publish(study, factory.crowd(study), voided_days=1)
    text = text_of(get(reader).content.decode())
    assert "each value of a person is protected with epsilon 0.5 (unit: attribute" in text
    assert "all values of a person together: 2.5)" in text  # 4 days and the voided one
    assert "1 published day was undone" in text


def test_market_share_is_explained(reader: Client) -> None:
    study = factory.create(market_share=Decimal("0.35"))
    factory.publish(study, factory.crowd(study))
    assert "the operator's market share is 35.0" in get(reader).content.decode().replace("&#x27;", "'")


@pytest.mark.parametrize(("n", "is_wide"), [(400, True), (40_000, False)])
def test_imprecise_reports_say_so(reader: Client, n: int, is_wide: bool) -> None:
    study = factory.create()
    factory.publish(study, factory.crowd(study, n=n))
    assert ("Imprecise:" in get(reader).content.decode()) is is_wide


def test_study_without_data_says_that_it_comes(reader: Client) -> None:
    factory.create()
    answer = get(reader)
    assert answer.context["state"] == "no_data"
    assert "No data yet" in answer.content.decode()


def test_window_without_visitors_is_not_a_study_without_data(reader: Client) -> None:
    study = factory.create()
    factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
    answer = get(reader, **{"from": "2024-06-01"})
    assert answer.context["state"] == "empty_window"
    assert "No visitors in these days" in answer.content.decode()


def test_visitors_without_answers_are_counted(reader: Client) -> None:
    study = factory.create()
    people = factory.crowd(study, n=200)
    unknown = {slug: values * 0 - 1 for slug, values in people.static.items()}
    factory.publish(study, replace(people, static=unknown))
    answer = get(reader)
    assert answer.context["state"] == "no_answers"
    assert "There were 200 visitors" in answer.content.decode()


def test_union_that_does_not_exist_is_explained(reader: Client) -> None:
    study = factory.create(factory.GENDER, HALF_STAY)
    factory.publish(study, factory.crowd(study))
    answer = get(reader, "stay", **{"from": "2024-05-30", "to": "2024-05-31"})
    assert answer.context["state"] == "union_not_available"
    assert "on 2 of the 4 days only" in answer.content.decode()
    assert answer.content.decode().count("<select") == 1
    assert get(reader, "stay").context["state"] == "report"  # without a choice: a day


@pytest.mark.parametrize("day", ["2024-07-01", "tomorrow", "2024-02-30"])
def test_days_outside_the_study_are_refused_with_help(reader: Client, fair: Study, day: str) -> None:
    answer = get(reader, **{"from": day})
    assert answer.status_code == 400
    page = answer.content.decode()
    assert "These days are not in the study" in page
    assert 'class="triangle"' in page


def test_pages_have_nothing_that_the_content_policy_refuses(reader: Client, fair: Study) -> None:
    addresses = [
        reverse("home"),
        reverse("reports:studies"),
        reverse("reports:study", args=["fair-2024"]),
        reverse("reports:indicator", args=["fair-2024", "gender"]),
        reverse("reports:days", args=["fair-2024", "stay"]),
        reverse("reports:statement", args=["fair-2024"]),
    ]
    for address in addresses:
        answer = reader.get(address)
        assert Markup(answer.content.decode()).refused == []
        assert "unsafe" not in answer["Content-Security-Policy"]


def test_markup_finds_what_a_policy_refuses() -> None:
    assert Markup('<p style="x"><script>1</script><a href="" onclick="y">').refused == [
        "style",
        "script",
        "onclick",
    ]
