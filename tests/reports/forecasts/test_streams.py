"""Streams on the page of all days: smoothed lines, days of a change, visitor-days, and no unions."""

import json
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from reports.api.presence.schemas import Smoothed
from reports.estimates.queries import indicator_reports, single_days_of
from reports.forecasts.smoothing import smoothed_categories, visitor_days_of
from reports.studies.models import Indicator
from reports.studies.queries import has_unions
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db
DAYS, CHANGED = 14, 10


@pytest.fixture
def stream():
    """Two weeks of few short stays; on day 10 nearly all are short. Windows of three days, at epsilon 3."""
    plan = replace(factory.definition(mechanism="smp-stream", epsilon="3").plan, window_days=3)
    study = factory.create(factory.STAY, plan=plan, days=DAYS)
    people = factory.crowd(study, n=6000)
    bitmaps = np.full(people.bitmaps.shape, 2**DAYS - 1, np.uint64)
    values = np.where(np.arange(6000)[:, None] % 4 == 0, 0, 1).repeat(DAYS, axis=1).astype(np.int32)
    values[:, CHANGED - 1] = np.where(np.arange(6000) % 20 == 0, 1, 0)
    factory.publish(study, replace(people, bitmaps=bitmaps, daily={"stay": values}))
    return Indicator.objects.get(study=study, slug="stay")


def reports_of(indicator):
    return indicator_reports(indicator, single_days_of(indicator.study))


def days_page(client, **query) -> str:
    found = client.get("/studies/fair-2024/stay/days/", query)
    assert found.status_code == 200
    return unescape(found.content.decode())


def test_days_are_smoothed_and_the_one_that_is_unlike_is_marked(stream) -> None:
    short, long = smoothed_categories(reports_of(stream))
    assert (short.category, short.code, long.code) == ("short", 0, 1)
    assert [day.day for day in short.days if day.is_change] == [CHANGED, CHANGED + 1]
    errors = [day.smoothed_error for day in short.days]
    raw = [report.estimates[0].std_error for report in reports_of(stream)]
    # On the day of the change hardly anything is smoothed, and the variance is that of another share.
    assert all(smooth < 1.02 * exact for smooth, exact in zip(errors, raw, strict=True))
    assert np.mean(errors) < np.mean(raw)
    assert abs(short.days[3].smoothed - 0.25) < 4 * short.days[3].smoothed_error
    assert short.days[-1].live == pytest.approx(short.days[-1].smoothed)
    assert short.days[0].range_words != "\u2013"


def test_the_page_shows_points_the_smoothed_line_and_the_change(reader, stream) -> None:
    text = days_page(reader, form="lines")
    figure = json.loads(text.partition('id="figure" type="application/json">')[2].partition("</script>")[0])
    by_name = {(trace.get("name"), trace["mode"]): trace for trace in figure["data"]}
    assert {("short", "markers"), ("short, smoothed", "lines"), ("Change", "markers")} <= by_name.keys()
    rings = by_name["Change", "markers"]["y"]
    assert None not in rings[CHANGED - 1 : CHANGED + 1] and rings[: CHANGED - 1] == [None] * (CHANGED - 1)
    for words in (
        "Lines are smoothed", "Days that differ from the days before: Sat 8 Jun 2024 (short, long); Sun",
        "is at most about 1.0%", "Smoothed shares", "Visitor-days", "added over 14 days",
        "This study does not show how many different people these are",
    ):  # fmt: skip
        assert words in text.replace("<strong>", "").replace("</strong>", ""), words
    assert "any 3 consecutive days are protected with epsilon" in text
    assert "whether a person's daily value changed" not in text
    assert "Visitor-days" in days_page(reader)  # small charts


def test_a_change_has_its_french_noun(reader, stream) -> None:
    found = reader.get("/studies/fair-2024/stay/days/", {"form": "lines"}, HTTP_ACCEPT_LANGUAGE="fr")
    text = found.content.decode()
    assert '"name": "Changement"' in text and '<th scope="col">Changement</th>' in text


def test_daily_answers_have_unions_and_pages_deny_none(reader) -> None:
    plan = replace(factory.definition(mechanism="smp-stream", epsilon="3").plan, window_days=1)
    factory.published(factory.STAY, plan=plan, n=500, days=4)
    text = days_page(reader)
    assert "added over 4 days" in text and "how many different people" not in text


def test_there_is_no_union_and_pages_say_why(reader, stream) -> None:
    assert not has_unions(stream) and stream.max_values == 5
    assert "on at most 5 of the 14 days" in days_page(reader, show="cumulative")
    found = reader.get("/studies/fair-2024/stay/?from=2024-05-30&to=2024-05-31").content.decode()
    assert "No date ranges for this indicator" in found
    answer = reader.get("/studies/fair-2024/questions/").content.decode()
    assert "Only single days are available for: Stay" in unescape(answer)


def test_visitor_days_are_those_of_the_days(stream) -> None:
    n_days, (short, long) = visitor_days_of(reports_of(stream))
    assert n_days == DAYS
    assert short.value + long.value == pytest.approx(6000 * DAYS)
    assert short.low < (DAYS - 1) * 1500 + 5700 < short.high


def test_other_indicators_are_not_smoothed(reader) -> None:
    factory.published(factory.STAY, days=14)
    stay = Indicator.objects.get(slug="stay")
    assert smoothed_categories(reports_of(stay)) == []
    assert visitor_days_of(reports_of(stay)) == (0, [])
    assert "Smoothed" not in days_page(reader) and "Visitor-days" not in days_page(reader)


def test_a_hidden_category_is_not_smoothed(stream) -> None:
    study = stream.study
    study.small_category = 400
    study.save()
    reports = reports_of(Indicator.objects.get(pk=stream.pk))
    hidden = [code for code in (0, 1) if any(report.estimates[code].is_hidden for report in reports)]
    assert hidden
    assert [each.code for each in smoothed_categories(reports)] == [
        code for code in (0, 1) if code not in hidden
    ]
    assert visitor_days_of(reports) == (0, [])


def test_files_and_the_api_hold_estimates_beside_smoothed_shares(reader, stream) -> None:
    answered = reader.get("/api/v1/studies/fair-2024/indicators/stay/smoothed").json()
    Smoothed.model_validate_json(json.dumps(answered))  # as the API's document describes it
    file = reader.get("/studies/fair-2024/stay/smoothed.json")
    assert json.loads(file.content) == answered
    rows = answered["rows"]
    assert (len(rows), answered["window_days"]) == (2 * DAYS, 3)
    first = reports_of(stream)[0].estimates[0]
    assert (rows[0]["frequency"], rows[0]["std_error"]) == (first.frequency, first.std_error)
    assert [row["date"] for row in rows if row["is_change"]] == ["2024-06-08", "2024-06-09"] * 2
    assert [row["days"] for row in answered["visitor_days"]] == [DAYS] * 2
    lines = reader.get("/studies/fair-2024/stay/smoothed.csv").content.decode().splitlines()
    assert len(lines) == 1 + 2 * DAYS and "smoothed_ci_low" in lines[0]


def test_there_is_no_file_of_another_indicator(reader) -> None:
    factory.published(factory.STAY)
    found = reader.get("/studies/fair-2024/stay/smoothed.csv")
    assert found.status_code == 400 and "There are no smoothed shares" in found.content.decode()
    assert reader.get("/api/v1/studies/fair-2024/indicators/stay/smoothed").json()["rows"] == []
