"""All days of an indicator: daily or cumulated, lines or small charts, and no work per category."""

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from reports import charts, selectors, wording
from reports.models import DayNote, Study
from reports.selectors import Window
from reports.services.notes import note_day
from reports.templatetags.wording import share_cell, total_cell
from reports.views import days
from tests.reports import report_factory as factory
from tests.reports.test_indicator_page import Markup

MANY = factory.indicator("region", *(f"Region {letter}" for letter in "ABCDEFGHIJKL"))
HALF_STAY = replace(factory.STAY, max_values=2)


def page(client: Client, slug: str = "age", query: str = "") -> str:
    answer = client.get(reverse("reports:days", args=["fair-2024", slug]) + query)
    assert answer.status_code == 200
    return answer.content.decode()


def figures(text: str) -> dict[str, dict[str, Any]]:
    found = re.findall(r'<script id="(figure[^"]*)"[^>]*>(.*?)</script>', text)
    return {name: json.loads(data) for name, data in found}


def test_cumulated_days_are_the_unions_from_the_first_day(reader: Client, fair: Study) -> None:
    text = page(reader, query="?show=cumulative")
    unions = [Window(1, day) for day in range(1, 5)]
    reports = selectors.indicator_reports(fair.indicators.get(slug="age"), unions)
    line = figures(text)["figure"]["data"][1]
    assert line["x"] == [1, 2, 3, 4]
    assert line["y"] == pytest.approx([100 * r.estimates[0].frequency for r in reports], abs=1e-3)
    for report in reports:
        assert f">{wording.number(report.n_visitors)}</td>" in text
        assert f"?from=2024-05-30&amp;to={report.last_date}" in text


def test_indicator_without_unions_says_so_and_shows_its_days(reader: Client) -> None:
    study = factory.create(factory.GENDER, HALF_STAY)
    factory.publish(study, factory.crowd(study))
    text = page(reader, "stay", "?show=cumulative")
    assert "Days cannot be cumulated here" in text
    assert "on 2 of the 4 days only" in text
    assert "?from=2024-05-31&amp;to=2024-05-31" in text
    assert "Days cannot be cumulated here" not in page(reader, "stay")


def test_small_charts_have_one_scale_and_all_categories(reader: Client) -> None:
    study = factory.create(MANY)
    factory.publish(study, factory.crowd(study))
    text = page(reader, "region", "?form=multiples")
    found = figures(text)
    assert list(found) == [f"figure-{code}" for code in range(12)]
    assert len({tuple(figure["layout"]["yaxis"]["range"]) for figure in found.values()}) == 1
    low, high = found["figure-0"]["layout"]["yaxis"]["range"]
    ends = [y for figure in found.values() for trace in figure["data"] for y in trace["y"] if y is not None]
    assert low <= min(ends) and max(ends) <= high
    assert text.count('role="img"') == 12
    assert Markup(text).refused == []


def test_visitors_are_drawn_and_tabled(reader: Client, fair: Study) -> None:
    text = page(reader, query="?measure=visitors")
    reports = selectors.indicator_reports(fair.indicators.get(slug="age"), selectors.single_days_of(fair))
    line = figures(text)["figure"]["data"][1]
    assert line["y"] == pytest.approx([report.estimates[0].visitors for report in reports], abs=0.06)
    for report in reports:
        assert wording.visitors_range(report.estimates[0]) in text


def test_links_keep_options_and_categories(reader: Client, fair: Study) -> None:
    links = Markup(page(reader, query="?category=2&show=cumulative&measure=visitors")).links
    assert "?category=2&show=cumulative&form=multiples&measure=visitors" in links
    other = reverse("reports:days", args=["fair-2024", "gender"])
    assert f"{other}?show=cumulative&measure=visitors" in links


def test_a_large_table_comes_in_parts_that_keep_what_was_asked_for(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(days, "CELLS_SHOWN", 4 * 10)  # ten categories of four days
    study = factory.create(MANY)
    factory.publish(study, factory.crowd(study))
    first = page(reader, "region", "?category=2&measure=visitors")
    assert "The same numbers, categories 1 to 10 of 12" in first
    assert first.count('<th scope="row">Region') == 10
    address = "?category=2&measure=visitors&page=2#numbers-title"
    assert address in Markup(first).links
    last = page(reader, "region", address.partition("#")[0])
    assert "categories 11 to 12 of 12" in last
    assert "?category=2&measure=visitors&page=1#numbers-title" in Markup(last).links
    assert page(reader, "region", "?page=nonsense").count('<th scope="row">Region') == 10


def test_notes_stand_above_the_chart(reader: Client, fair: Study) -> None:
    note_day(fair, day=date(2024, 6, 1), kind=DayNote.Kind.EVENT, text="Fireworks & music", by="adam")
    for query in ("", "?show=cumulative"):
        assert page(reader, query=query).count("Fireworks &amp; music") == 1


def test_cells_are_escaped_and_name_their_blank(fair: Study) -> None:
    report = selectors.window_report(fair.indicators.get(slug="age"), Window(1, 1))
    cell = share_cell(report.estimates[0])
    assert cell == (
        f"{wording.percent(report.estimates[0].frequency)}<br>"
        f'<span class="muted small">{wording.share_range(report.estimates[0])}</span>'
    )
    assert "&lt;</span>suppressed" in total_cell(None, "suppressed")
    assert total_cell(0, "ok") == "0"


@pytest.mark.django_db
def test_work_does_not_grow_with_the_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    """62 days cost as many calls of numpy's reductions for 100 categories as for three."""
    wide = factory.indicator("place", *(f"Place {n}" for n in range(100)))
    study = factory.create(factory.GENDER, wide, days=62)
    factory.publish(study, factory.crowd(study, n=200))
    calls: Counter[str] = Counter()

    def counted(name: str) -> None:
        original = getattr(selectors, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            calls[name] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(selectors, name, call)

    counted("union")
    counted("pure_frequencies")
    seen = []
    for slug in ("gender", "place"):
        calls.clear()
        reports = selectors.indicator_reports(
            study.indicators.get(slug=slug), selectors.single_days_of(study)
        )
        charts.days_figure(reports, shown=charts.largest_categories(reports))
        assert len(reports) == 62
        seen.append(dict(calls))
    assert seen[0] == seen[1]
    assert 0 < seen[1]["pure_frequencies"] <= 62
    assert seen[1]["union"] <= 3 * 62


def test_totals_of_a_day_without_data_are_blanks_and_every_cell_names_its_day(reader: Client) -> None:
    study = factory.create()
    factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
    page = reader.get(reverse("reports:days", args=["fair-2024", "age"])).content.decode()
    cells = re.findall(r'<td class="number" data-head="([^"]+)">(.*?)</td>', page, re.DOTALL)
    days = ["30 May", "31 May", "1 Jun", "2 Jun"]
    assert [head for head, _ in cells] == days * 5  # three categories, and two totals
    assert all(("not collected" in cell) == (head == "1 Jun") for head, cell in cells)
    cumulated = reader.get(reverse("reports:days", args=["fair-2024", "age"]), {"show": "cumulative"})
    assert 'data-head="to 2 Jun"' in cumulated.content.decode()
