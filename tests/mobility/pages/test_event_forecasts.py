"""Forecasts of events: sums of the next period, of exact totals and of categories with known noise."""

import json
import re
from datetime import date
from html import unescape

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from jsonschema import Draft202012Validator

from reports.events.periods import PERIODS
from reports.forecasts import computing
from reports.forecasts.actions import Kind, ask_for_due, is_current, kept_forecast, refresh
from reports.forecasts.models import KeptForecast
from reports.forecasts.queries import event_forecast
from reports.forecasts.series import event_days
from reports.models import Indicator, Study
from reports.studies.policies import Role
from tests.mobility.event_study import (
    SLUG,
    TEXT,
    as_changes,
    event_definition,
    in_area,
    rows_of,
    write_rows,
)
from tests.mobility.pipeline import pipelines

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
LAST = 760  # 2026-01-17
LONG = TEXT.replace("days = 400", "days = 800").replace("epsilon = 1.0", "epsilon = 8.0")


def rows_on(day: int) -> list[str]:
    """Rows of a day; more in winter and on each seventh day."""
    return rows_of(day, each=6 + 3 * (day % 7 == 0) + round(2 * np.cos(2 * np.pi * day / 365)))


EVENTS = [in_area(rows_on(day)) for day in range(1, LAST + 500)]  # rows that count, by day
COUNTS = [len(rows) for rows in EVENTS]


@pytest.fixture(scope="module")
def filled(kept):
    rows = [row for day in range(1, LAST + 1) for row in rows_on(day)]
    with pipelines(event_definition(LONG)) as make:
        pipeline = make()
        pipeline.upload(write_rows(kept / "years.csv", rows))
        refresh(Study.objects.get(slug=SLUG))
        return pipeline


@pytest.fixture
def zone(filled):
    return Indicator.objects.get(study__slug=SLUG, slug="zone")


def text_of(client, **query) -> str:
    found = client.get(f"/studies/{SLUG}/zone/", query)
    text = re.sub(r"<[^>]*>", " ", unescape(found.content.decode()))
    return " ".join(text.split())


def test_figures_of_days_are_events_with_the_noise_of_answers(zone) -> None:
    everything, *zones = event_days(zone, last=LAST, ahead=1)
    assert everything.figures.values.tolist() == COUNTS[:LAST]
    assert not everything.figures.variances.any()
    assert sum(each.figures.values for each in zones) == pytest.approx(COUNTS[:LAST])
    for each in zones:
        is_north = each.name == "North"
        true = [sum((",C1," in row) == is_north for row in rows) for rows in EVENTS[:LAST]]
        errors = each.figures.values - true
        assert abs(errors.mean()) < 3.5 * errors.std() / LAST**0.5
        # Of the same size; a day's own sizes of samples add some percent to it.
        assert (errors**2).mean() == pytest.approx(each.figures.variances.mean(), rel=0.3)
    assert everything.figures.seasons[[0, 12, 377]] == pytest.approx([353 / 365, 0, 365 / 366])


def test_the_forecast_holds_the_next_period_of_each_kind(zone) -> None:
    found = {kind: event_forecast(zone, kind) for kind in PERIODS}
    names = [found[kind].name for kind in PERIODS]
    assert names == ["2026-01-18", "2026-W04", "2026-02", "2026-Q2", "2027"]
    assert {each.method for each in found.values()} == {"level, weekday and year"}
    for kind, each in found.items():
        true = sum(COUNTS[place_of(zone, each.first_date) : place_of(zone, each.last_date) + 1])
        everything, *zones = each.rows
        low, high = everything.expected.ends[1]
        assert low < true < high, kind
        assert sum(one.expected.value for one in zones) == pytest.approx(everything.expected.value, rel=0.05)


def test_a_forecast_stands_beside_the_mean_of_weekdays_and_the_last_whole_period(zone) -> None:
    month = event_forecast(zone, "month")
    days = (month.first_date, month.last_date)
    assert (*days, month.before) == (date(2026, 2, 1), date(2026, 2, 28), "2025-12")
    start = place_of(zone, month.first_date)
    of_weekday = [np.mean(COUNTS[weekday:LAST:7]) for weekday in range(7)]
    expected = sum(of_weekday[place % 7] for place in range(start, start + 28))
    assert month.rows[0].weekday_mean == pytest.approx(expected, abs=1e-5)
    december = place_of(zone, date(2025, 12, 1))
    assert month.rows[0].before == sum(COUNTS[december : december + 31])


def place_of(indicator: Indicator, day: date) -> int:
    return (day - indicator.study.first_day).days


def test_the_page_marks_the_forecast_as_a_model(zone, client, person) -> None:
    client.force_login(person("vera", Role.VIEWER))
    for kind, name in (("month", "2026-02"), ("year", "2027")):
        text = text_of(client, period=kind)
        assert f"model Expected numbers of events in {name}" in text
        assert "effects of the weekday and of the season" in text
        assert "too short for effects of the season" not in text
    assert "All events" in text and "They hold if the model does." in text
    client.cookies["django_language"] = "fr"
    assert "modèle Nombres d\u2019événements attendus pour 2026-02" in text_of(client, period="month")


def test_files_and_the_api_have_the_forecast_with_its_backtest(zone, client, person) -> None:
    client.force_login(person("ada", Role.ADMINISTRATOR))
    page = f"/studies/{SLUG}/zone/next-period"
    month = event_forecast(zone, "month")
    found = json.loads(client.get(f"{page}.json", {"period": "month"}).content)
    address = f"/api/v1/studies/{SLUG}/indicators/zone/next-period"
    asked = client.get(address, {"period": "month"}).json()
    document = client.get("/api/v1/openapi.json").json()
    path = "/api/v1/studies/{study}/indicators/{indicator}/next-period"
    answer = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    Draft202012Validator(answer | {"components": document["components"]}).validate(asked)
    assert found == asked
    everything = found["rows"][0]
    expected = (None, "2026-02", "2026-02-01", "2026-02-28", "2025-12")
    assert tuple(everything[each] for each in ("name", "period", "at", "last_day", "last_period")) == expected
    assert (everything["low_95"], everything["high_95"]) == month.rows[0].expected.ends[1]
    assert {row["name"] for row in found["rows"]} == {None, "North", "South"}
    (judged,) = found["backtest"]
    assert judged["days"] == 14
    assert 0 < judged["mae"] < judged["mae_last_value"]
    for ending, start in (("csv", b"study,method"), ("xlsx", b"PK"), ("parquet", b"PAR1")):
        assert client.get(f"{page}.{ending}", {"period": "year"}).content.startswith(start)
    assert client.get(f"{page}.csv", {"period": "decade"}).status_code == 404
    assert "In a backtest of the next day on 14 past days" in text_of(client, period="month")


def test_smaller_categories_are_left_out(zone, client, person, monkeypatch) -> None:
    client.force_login(person("vera", Role.VIEWER))
    monkeypatch.setattr(computing, "MOST_CATEGORIES", 1)
    monkeypatch.setattr(computing, "VERSION", 0)
    KeptForecast.objects.all().delete()
    refresh(zone.study)
    found = event_forecast(zone, "month")
    assert [each.name for each in found.rows] == ["", "South"]  # the larger one
    assert "1 smaller category is not forecast." in text_of(client)


def test_a_worker_computes_what_is_due(zone, monkeypatch) -> None:
    asked = []
    KeptForecast.objects.all().delete()
    monkeypatch.setattr("reports.forecasts.actions.ask_for_forecasts", lambda study: asked.append(study.slug))
    ask_for_due()
    refresh(zone.study)
    assert is_current(kept_forecast(zone.study, Kind.DAYS, zone))
    assert not kept_forecast(zone.study, Kind.DAYS).pk  # of all visitors: there are none
    ask_for_due()
    assert asked == [SLUG]


@pytest.mark.parametrize(
    ("last", "kinds", "shown"),
    [
        (13, [], "It must have 14 days"),
        (40, ["day", "week", "month"], "too short for effects of the season, which need 730 days."),
    ],
)  # fmt: skip
def test_a_short_history_is_refused_or_has_no_seasons(
    make_pipeline, client, person, tmp_path, last, kinds, shown
) -> None:
    pipeline = make_pipeline(**as_changes(event_definition()) | {"slug": "short"})
    rows = [row for day in range(1, last + 1) for row in rows_of(day, each=8)]
    pipeline.upload(write_rows(tmp_path / "rows.csv", rows))
    client.force_login(person("vera", Role.VIEWER))
    page = "/studies/short/zone/"
    assert "A worker computes the forecast" in unescape(client.get(page).content.decode())
    refresh(Study.objects.get(slug="short"))
    zone = Indicator.objects.get(study__slug="short", slug="zone")
    assert [kind for kind in PERIODS if event_forecast(zone, kind).rows] == kinds
    assert shown in " ".join(unescape(client.get(page).content.decode()).split())
    year = unescape(client.get(page, {"period": "year"}).content.decode())
    assert "There is no forecast of this period" in year


def test_days_whose_events_answer_other_questions_count_with_the_mean_share(make_pipeline, tmp_path) -> None:
    pipeline = make_pipeline(**as_changes(event_definition()) | {"slug": "few"})
    rows = [row for day in range(1, 31) for row in rows_of(day, each=1 + day % 2)]
    pipeline.upload(write_rows(tmp_path / "rows.csv", rows))
    found = Indicator.objects.get(study__slug="few", slug="zone")
    everything, *zones = event_days(found, last=30, ahead=1)
    assert np.isfinite([each.figures.values for each in zones]).all()
    assert sum(each.figures.values for each in zones) == pytest.approx(everything.figures.values)
    assert all((each.figures.variances > 0).all() for each in zones)


def test_the_command_refuses_events(zone) -> None:
    with pytest.raises(CommandError, match="counts events: their forecast is on the page of each indicator"):
        call_command("forecast", SLUG)


def test_nothing_is_forecast_before_the_first_file(make_pipeline, client, person) -> None:
    make_pipeline(**as_changes(event_definition()) | {"slug": "empty"})
    study = Study.objects.get(slug="empty")
    assert refresh(study) == 2
    assert event_forecast(study.indicators.get(slug="zone"), "month").rows == []
    client.force_login(person("vera", Role.VIEWER))
    assert "No data yet" in client.get("/studies/empty/zone/").content.decode()


def test_the_backtest_has_whole_weeks_and_months_and_says_what_it_leaves_out(zone, client, person) -> None:
    starts = [place for place in range(LAST) if (zone.study.first_day.toordinal() + place) % 7 == 1]
    weeks = [place for place in starts if place + 7 <= LAST][-8:]  # ordinal 1 was a Monday
    steps = [sum(COUNTS[at : at + 7]) - sum(COUNTS[at - 7 : at]) for at in weeks]
    found = {kind: event_forecast(zone, kind).longer for kind in PERIODS}
    assert {kind: each.days for kind, each in found.items() if each} == {"week": 8, "month": 6}
    assert found["week"].mae[1] == pytest.approx(np.mean(np.abs(steps)))
    assert found["week"].mae[2] is None
    assert 0 < found["month"].mae[0] < found["month"].mae[1]
    assert found["month"].coverage[1] >= found["month"].coverage[0] > 0
    client.force_login(person("vera", Role.VIEWER))
    untested = "Forecasts of longer periods, such as this one, were not tested."
    for kind in PERIODS:
        text = text_of(client, period=kind)
        tested = found[kind] and f"on {found[kind].days} past periods of this kind"
        assert tested is None or tested in text
        assert (untested in text) == (kind in ("quarter", "year")), kind
        assert "Forecasts of categories were not tested" in text
