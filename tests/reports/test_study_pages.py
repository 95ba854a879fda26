"""The list of studies, the page of one, all days of an indicator, and how many queries each takes."""

import json
import re
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.template.defaultfilters import floatformat
from django.test import Client
from django.urls import reverse

from reports import charts, selectors, wording
from reports.coverage import coverage_of
from reports.models import DayNote, Study
from reports.services.notes import note_day
from tests.reports import report_factory as factory

MANY = factory.indicator("region", *(f"Region {letter}" for letter in "ABCDEFGHIJKL"))


def page(client: Client, name: str, *args: str, query: str = "") -> str:
    answer = client.get(reverse(f"reports:{name}", args=args) + query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_list_without_studies_says_what_comes_next(reader: Client) -> None:
    assert "No study is open to you yet" in page(reader, "studies")


def test_list_tells_studies_with_data_from_those_without(reader: Client, fair: Study) -> None:
    factory.create(slug="soon-2025", name="Soon")
    text = page(reader, "studies")
    assert wording.number(4000) in text
    assert "4 of 4" in text
    assert "0 of 4" in text
    assert "All days are published." in text
    assert text.count("no data yet") == 1


def test_study_page_says_who_counts_and_how_answers_are_protected(reader: Client, fair: Study) -> None:
    text = page(reader, "study", "fair-2024")
    assert "at least 60 minutes" in text
    assert "06:00 to 23:59, local time (Europe/Paris)" in text
    assert "Every cell of the extract" in text
    assert "one of the 3 indicators" in text
    for indicator in fair.indicators.all():
        assert reverse("reports:indicator", args=["fair-2024", indicator.slug]) in text


def test_study_page_without_data_has_no_chart(reader: Client, db: None) -> None:
    factory.create()
    text = page(reader, "study", "fair-2024")
    assert "No data yet" in text
    assert "plotly" not in text


def test_visitors_per_day_and_first_timers_are_exact(fair: Study) -> None:
    people = factory.crowd(fair)
    days = coverage_of(fair, visitors=selectors.visitor_unions(fair), notes=()).days
    seen = people.bitmaps == 0  # nobody
    for day, row in enumerate(days, start=1):
        today = people.present(day, day)
        assert row.visitors == today.sum()
        assert row.first_time == (today & ~seen).sum()
        seen = seen | today


def test_days_page_has_each_estimate_and_a_link_to_each_day(reader: Client, fair: Study) -> None:
    text = page(reader, "days", "fair-2024", "stay")
    for report in selectors.indicator_reports(
        fair.indicators.get(slug="stay"), selectors.single_days_of(fair)
    ):
        for estimate in report.estimates:
            assert f"{wording.percent(estimate.frequency)}<br>" in text
            assert wording.share_range(estimate) in text
        assert f"?from={report.first_date}&amp;to={report.last_date}" in text
        assert f">{wording.number(report.n_reports)}</td>" in text


def test_reader_chooses_the_lines(reader: Client) -> None:
    study = factory.create(MANY)
    factory.publish(study, factory.crowd(study))

    def names(query: str) -> list[str]:
        text = page(reader, "days", "fair-2024", "region", query=query)
        figure = json.loads(re.search(r'<script id="figure"[^>]*>(.*?)</script>', text).group(1))
        return [trace["name"] for trace in figure["data"] if "name" in trace]

    assert names("?category=11&category=2") == ["Region C", "Region L"]
    assert len(names("")) < charts.MAX_LINES
    assert len(names("?" + "&".join(f"category={code}" for code in range(12)))) == charts.MAX_LINES
    # nonsense is as good as no choice
    assert names("?category=12&category=x&category=-1&category=²") == names("")


def test_days_page_without_data(reader: Client, db: None) -> None:
    factory.create()
    assert "No data yet" in page(reader, "days", "fair-2024", "stay")


@pytest.mark.parametrize(
    ("name", "args", "queries"),
    [
        # each: session, user, groups, grants
        ("studies", (), 4 + 2 + 1),  # studies, notes; kept views
        ("study", ("fair-2024",), 4 + 6),  # study, plan, visitors, notes, area, indicators
        ("indicator", ("fair-2024", "gender"), 4 + 6),  # study, indicators, visitors, zones, tally, notes
        ("days", ("fair-2024", "gender"), 4 + 4),  # study, indicators, tally, notes
        # study, plan, indicators (3), area, typed epsilons, versions, studies and plans of the people
        ("statement", ("fair-2024",), 4 + 11),
    ],
)
def test_number_of_queries_does_not_grow(
    reader: Client, fair: Study, name: str, args: tuple[str, ...], queries: int, django_assert_num_queries
) -> None:
    other = factory.create(factory.GENDER, factory.AGE, MANY, factory.STAY, slug="other-2024", days=14)
    factory.publish(other, factory.crowd(other, n=100))
    with django_assert_num_queries(queries):
        page(reader, name, *args)
    big = tuple(arg.replace("fair-2024", "other-2024") for arg in args)
    with django_assert_num_queries(queries):
        page(reader, name, *big)


def test_study_page_has_its_key_figures_and_says_that_they_are_exact(reader: Client, fair: Study) -> None:
    text = page(reader, "study", "fair-2024")
    visitors = selectors.visitor_unions(fair)
    daily = [int(visitors[day, day]) for day in range(1, 5)]
    assert f"<dd>{wording.number(int(visitors[1, 4]))}</dd>" in text
    assert f"{wording.number(max(daily))} visitors" in text
    assert f"<dd>{floatformat(sum(daily) / int(visitors[1, 4]), 2)}</dd>" in text
    assert "These numbers are exact" in text


def test_calendar_marks_each_day_with_a_sign_and_a_word(reader: Client) -> None:
    study = factory.create()
    factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
    note_day(study, day=date(2024, 6, 2), kind=DayNote.Kind.EVENT, text="Fireworks", by="adam")
    calendar = page(reader, "study", "fair-2024").split('class="month"')[1].split("</table>")[0]
    assert calendar.count(">published<") == 3
    assert calendar.count(">not collected<") == 1
    assert calendar.count(">event<") == 1
    for day in ("2024-05-30", "2024-06-01"):
        assert f"?from={day}&amp;to={day}" in calendar
    text = page(reader, "study", "fair-2024")
    assert "3 of 4 days are published. Next: Sat 1 Jun 2024." in text
    assert "Fireworks" in text


def test_only_those_who_write_notes_are_led_to_them(reader: Client, administrator: User, fair: Study) -> None:
    notes = reverse("reports:notes", args=["fair-2024"])
    assert notes not in page(reader, "study", "fair-2024")
    client = Client()
    client.force_login(administrator)
    assert notes in page(client, "study", "fair-2024")


def test_key_figures_do_not_tell_of_a_day_that_is_hidden(reader: Client) -> None:
    study = factory.create(small_cell=100)
    people = factory.crowd(study, n=1000)
    bitmaps = np.array([0b0111] * 960 + [0b1111] * 40, np.uint64)  # 40 on day 4
    factory.publish(study, replace(people, bitmaps=bitmaps))
    for address in ("/studies/fair-2024/", "/studies/fair-2024/gender/movement/"):
        text = reader.get(address).content.decode()
        assert "3,040" not in text  # visits: less 1,000 on each of three days, they are those of day 4
        assert "2,040" not in text
        assert "3.04" not in text
        assert "None" not in text
