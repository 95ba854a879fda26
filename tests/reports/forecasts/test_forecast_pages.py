"""Pages, files, API and command of forecasts, and who may set limits of zones."""

import io
import json
from html import unescape
from urllib.parse import urlencode

import numpy as np
import openpyxl
import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from reports.api.presence.schemas import Forecast
from reports.forecasts import texts
from reports.forecasts.actions import refresh
from reports.forecasts.charts import Fan, fan_figure
from reports.forecasts.following import follow
from reports.forecasts.models import CrowdLimit
from reports.forecasts.queries import Expected, slot_forecast
from reports.slots.queries import presence
from tests.reports import report_factory as factory
from tests.reports import slot_factory
from tests.reports.page_texts import shared

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    """Two days after three weeks of slots, with their noise."""
    made = slot_factory.create(days=24)
    counts = slot_factory.counts_of(made, slot_factory.daily, slots=23 * 48)
    slot_factory.publish(made, counts + np.random.default_rng(1).normal(0, 40, counts.shape).round())
    return made


def page(client, name, *args, **query):
    found = client.get(reverse(f"reports:{name}", args=args), query)
    assert found.status_code == 200
    return unescape(found.content.decode())


def test_the_page_shows_the_fan_of_a_zone_the_backtest_and_what_it_rests_on(reader, study) -> None:
    assert "No forecast yet" in page(reader, "presence_forecast", study.slug)
    follow(study.pk)
    text = page(reader, "presence_forecast", study.slug, zone="North west")
    found = slot_forecast(study)
    zone = found.found.zones[0]
    assert "they use no additional epsilon" in text
    assert "from 1104 published slots" in text
    first = f"{found.expected(0, zone).value:,.0f}"
    assert f'<td class="number">{first}</td>' in text
    figure = json.loads(text.partition('id="forecast" type="application/json">')[2].partition("</script>")[0])
    names = [trace["name"] for trace in figure["data"]]
    assert names == ["95% interval", "80% interval", "Published", "Forecast"]
    assert figure["data"][2]["y"][-1] == presence(study).counts[-1, 0]
    assert figure["data"][3]["y"][0] == pytest.approx(found.expected(0, zone).value, abs=0.1)
    judged = found.judged(zone)[0]
    assert f'<td class="number">{judged.rmse[0]:,.0f}</td>' in text
    assert "Compute now" not in text


def test_an_interval_of_people_below_none_is_that_of_none_in_words_and_bands() -> None:
    below = Expected(value=-45.0, ends=((-60.0, -30.0), (-80.0, -10.0)))
    assert [texts.range_text(ends) for ends in below.ends] == ["0 to 15", "0 to 35"]
    assert texts.range_text((-20.0, 50.0)) == "0 to 50"
    outer, *_ = fan_figure(Fan(times=["1", "2"], published=[3.0], expected=[below]))["data"]
    assert outer["y"] == [35.0, 0.0]


def test_new_figures_are_said_to_be_missing_until_a_worker_has_them(reader, study) -> None:
    follow(study.pk)
    slot_factory.publish(study, slot_factory.counts_of(study, slot_factory.daily, slots=1))
    assert "Newer figures have been published" in page(reader, "presence_forecast", study.slug)


def test_a_limit_is_set_by_an_administrator_drawn_and_said(reader, boss, study) -> None:
    address = reverse("reports:crowd_limits", args=[study.slug])
    assert reader.get(address).status_code in (403, 404)
    client = boss
    for bad in ("0", "-1", "1.5", "many", "99999999999"):
        answer = client.post(address, {"zone": "0", "ahead": "0", "capacity": bad})
        assert (answer.status_code, CrowdLimit.objects.count()) == (400, 0), bad
    assert client.post(address, {"zone": "9", "ahead": "0", "capacity": "10"}).status_code == 400
    assert client.post(address, {"zone": "0", "ahead": "0", "capacity": "100"}).status_code == 302
    assert (CrowdLimit.objects.get().state, CrowdLimit.objects.get().set_by) == ("exceeds", "adam")
    follow(study.pk)
    text = page(client, "presence_forecast", study.slug, zone="North west")
    assert "North west exceeds its limit of 100" in text
    assert '"name": "Limit"' in text
    assert client.post(address, {"zone": "0", "ahead": "0", "capacity": ""}).status_code == 302
    assert not CrowdLimit.objects.exists()


def test_files_the_api_and_the_command_give_the_same_numbers(reader, study, capsys) -> None:
    empty = reader.get(reverse("reports:presence_forecast_file", args=[study.slug, "csv"]))
    assert empty.status_code == 400
    assert reader.get(f"/api/v1/studies/{study.slug}/presence/forecast").json()["method"] is None
    call_command("forecast", study.slug, horizons=48)
    printed = json.loads(capsys.readouterr().out)
    answered = reader.get(f"/api/v1/studies/{study.slug}/presence/forecast").json()
    file = reader.get(reverse("reports:presence_forecast_file", args=[study.slug, "json"]))
    assert printed == answered == json.loads(file.content)
    Forecast.model_validate_json(json.dumps(answered))  # as the API's document describes it
    assert len(printed["rows"]) == 48 * 6
    first = printed["rows"][0]
    assert first["low_95"] <= first["low_80"] < first["value"] < first["high_80"] <= first["high_95"]
    assert first["at"] == "2024-06-22T00:00:00+02:00"
    call_command("forecast", study.slug, horizons=2, file_format="csv")
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 1 + 2 * 6
    with pytest.raises(CommandError, match=r"must be in 1\.\.48, got 49"):
        call_command("forecast", study.slug, horizons=49)


def test_typed_files_hold_the_forecast_and_its_backtest(reader, study, capsys) -> None:
    call_command("forecast", study.slug, horizons=48)
    printed = json.loads(capsys.readouterr().out)
    address = reverse("reports:presence_forecast_file", args=[study.slug, "parquet"])
    table = pq.read_table(io.BytesIO(reader.get(address).content))
    assert [row["value"] for row in table.to_pylist()] == [row["value"] for row in printed["rows"]]
    assert table["at"][0].as_py().isoformat() == printed["rows"][0]["at"]
    assert json.loads(table.schema.metadata[b"mobility_reports"])["backtest"] == printed["backtest"]
    workbook = reader.get(reverse("reports:presence_forecast_file", args=[study.slug, "xlsx"])).content
    book = openpyxl.load_workbook(io.BytesIO(workbook))
    for name in ("rows", "backtest"):
        head, *rows = book["forecast" if name == "rows" else name].iter_rows(values_only=True)
        found = [dict(zip(head, row, strict=True)) for row in rows]
        assert [each["ahead"] for each in found] == [each["ahead"] for each in printed[name]]
    assert found[0]["rmse"] == pytest.approx(printed["backtest"][0]["rmse"])


def test_a_share_link_shows_the_forecast_and_nothing_else(reader) -> None:
    made = slot_factory.create(days=24)
    slot_factory.publish(made, slot_factory.counts_of(made, slot_factory.daily, slots=23 * 48))
    factory.publish(made, factory.crowd(made))
    refresh(made)
    for name, args, kind, said in (
        ("presence_forecast", [], {"zone": "North west"}, "Forecast by time slot"),
        ("forecast", [], {}, "Forecast for the coming days"),
        ("forecast_indicator", ["gender"], {"category": "M"}, "Gender: forecast"),
    ):
        address = f"{reverse(f'reports:{name}', args=[made.slug, *args])}?{urlencode(kind)}"
        _, html = shared(reader, address)
        assert said in html and "Past forecasts" in html


def test_days_have_the_same_page_files_and_answers(reader, capsys) -> None:
    study = factory.published(factory.GENDER, days=30)
    refresh(study)
    text = page(reader, "forecast", study.slug)
    assert "from 30 published days" in text
    assert "1 day ahead" in text
    shares = page(reader, "forecast_indicator", study.slug, "gender", category="M")
    assert '<option value="M" selected>' in shares
    call_command("forecast", study.slug, indicator="gender")
    printed = json.loads(capsys.readouterr().out)
    assert printed == reader.get(f"/api/v1/studies/{study.slug}/forecast", {"indicator": "gender"}).json()
    file = reader.get(reverse("reports:forecast_indicator_file", args=[study.slug, "gender", "json"]))
    assert printed == json.loads(file.content)
    assert [row["name"] for row in printed["rows"][::7]] == ["F", "M", "NR"]


def test_a_short_study_without_slots_has_no_forecast(reader) -> None:
    study = factory.published(factory.GENDER)
    assert "at least 14 days" in page(reader, "forecast", study.slug)
    assert reader.get(reverse("reports:presence_forecast", args=[study.slug])).status_code == 404
    assert reader.get(f"/api/v1/studies/{study.slug}/forecast").json()["rows"] == []
    with pytest.raises(CommandError, match="too few days"):
        call_command("forecast", study.slug)
