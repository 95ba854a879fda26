"""How a page shows its numbers: read from the address, kept by every link."""

import json
import re
from typing import Any

import pytest
from django.http import QueryDict
from django.test import Client
from django.urls import reverse

from reports import charts, selectors, wording
from reports.models import Study
from reports.options import CHOICES, ReportOptions, ordered, shown_value
from reports.selectors import Window, WindowReport
from tests.reports import report_factory as factory
from tests.reports.test_indicator_page import Markup

MANY = factory.indicator("region", *(f"Region {letter}" for letter in "ABCDEFGHIJKL"))
CHOSEN = {"view": "table", "order": "sorted", "measure": "visitors", "values": "consistent"}


def read(text: str) -> ReportOptions:
    return ReportOptions.from_query(QueryDict(text))


def report_of(study: Study, slug: str, *window: int) -> WindowReport:
    return selectors.window_report(study.indicators.get(slug=slug), Window(*window))


def get(client: Client, slug: str = "gender", **query: str) -> Any:
    return client.get(reverse("reports:indicator", args=["fair-2024", slug]), query)


def figure_of(page: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(re.search(r'<script id="figure"[^>]*>(.*?)</script>', page).group(1))
    return found


def test_address_without_options_has_the_defaults() -> None:
    assert read("from=2024-05-30") == ReportOptions()
    assert ReportOptions().query("from=a&to=b") == "from=a&to=b"


@pytest.mark.parametrize("name", list(CHOICES))
def test_every_choice_survives_the_address(name: str) -> None:
    for value in CHOICES[name]:
        assert read(ReportOptions(**{name: value}).query("")) == ReportOptions(**{name: value})


@pytest.mark.parametrize("text", ["view=pie", "order=", "values=Unbiased", "measure=frequency%00"])
def test_nonsense_is_the_default(text: str) -> None:
    assert read(text) == ReportOptions()


@pytest.mark.django_db
def test_sorted_is_largest_first_and_keeps_every_category() -> None:
    study = factory.create(MANY, epsilon="3")
    factory.publish(study, factory.crowd(study))
    report = report_of(study, "region", 1, 4)
    for values, attribute in (("unbiased", "frequency"), ("consistent", "consistent")):
        found = ordered(report, options=ReportOptions(order="sorted", values=values))
        sizes = [getattr(estimate, attribute) for estimate in found]
        assert sizes == sorted(sizes, reverse=True)
        assert {estimate.category for estimate in found} == {e.category for e in report.estimates}
    assert ordered(report, options=ReportOptions()) == report.estimates


@pytest.mark.django_db
def test_shown_values_are_those_of_the_report() -> None:
    study = factory.create(market_share="0.5")
    study.refresh_from_db()
    factory.publish(study, factory.crowd(study))
    report = report_of(study, "gender", 1, 4)
    estimate = report.estimates[0]
    for measure, values, expected in (
        ("frequency", "unbiased", estimate.frequency),
        ("frequency", "consistent", estimate.consistent),
        ("visitors", "unbiased", estimate.visitors),
        ("visitors", "consistent", estimate.consistent * report.n_visitors / 0.5),
    ):
        shown = shown_value(report, estimate, options=ReportOptions(measure=measure, values=values))
        assert shown.value == pytest.approx(expected)
        is_share = measure == "frequency"
        assert shown.low == (estimate.ci_low if is_share else estimate.visitors_ci_low)
        assert shown.high == (estimate.ci_high if is_share else estimate.visitors_ci_high)


def test_chart_shows_what_was_asked_for(reader: Client, fair: Study) -> None:
    report = report_of(fair, "age", 1, 4)
    figure = figure_of(get(reader, "age", measure="visitors", order="sorted").content.decode())
    visitors = sorted((estimate.visitors for estimate in report.estimates), reverse=True)
    assert figure["data"][0]["x"] == pytest.approx(visitors, abs=0.06)
    assert figure["data"][1]["text"][0].strip() == wording.number(visitors[0])
    consistent = charts.report_figure(report, options=ReportOptions(values="consistent"))
    assert sum(consistent["data"][0]["x"]) == pytest.approx(100, abs=1e-3)
    bars = consistent["data"][0]
    for place, estimate in enumerate(report.estimates):  # lines stay those of the unbiased estimates
        high = bars["x"][place] + bars["error_x"]["array"][place]
        assert high == pytest.approx(100 * estimate.ci_high, abs=1e-3)


def test_view_shows_chart_or_table_or_both(reader: Client, fair: Study) -> None:
    for view, has_chart, has_table in (("both", 1, 1), ("chart", 1, 0), ("table", 0, 1)):
        page = get(reader, view=view).content.decode()
        assert ('data-figure="figure"' in page, "Supporting reports" in page or ">Reports</th>" in page) == (
            bool(has_chart),
            bool(has_table),
        )
        assert "largest category" in page  # the summary in words is always there


def test_every_link_and_form_keeps_the_options(reader: Client, fair: Study) -> None:
    page = get(reader, **{"from": "2024-05-31", "to": "2024-06-01"}, **CHOSEN).content.decode()
    tail = "&order=sorted&measure=visitors&values=consistent"
    links = Markup(page).links
    for window in selectors.windows_of(fair):
        first, last = fair.date_of(window.first_day), fair.date_of(window.last_day)
        assert f"?from={first}&to={last}&view=table{tail}" in links
    other = reverse("reports:indicator", args=["fair-2024", "age"])
    assert f"{other}?from=2024-05-31&to=2024-06-01&view=table{tail}" in links
    assert f"?from=2024-05-31&to=2024-06-01{tail}" in links  # back to both views
    for name, value in CHOSEN.items():
        assert f'<input type="hidden" name="{name}" value="{value}">' in page


def test_consistent_values_say_that_they_have_no_error(reader: Client, fair: Study) -> None:
    assert "which have no error of their own" in get(reader, values="consistent").content.decode()
    assert "which have no error of their own" not in get(reader).content.decode()
