"""Slots: intervals, comparisons and facts that noise can carry; their page, map, files, API and command."""

import io
import json
import re
import zipfile
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import pairwise

import geopandas
import numpy as np
import pyarrow.parquet as pq
import pytest
from django.core.management.base import CommandError
from django.http import QueryDict

from ldp.errors import PlanError
from reports.base.tasks import BrokerAwayError
from reports.estimates.models import DayNote
from reports.estimates.queries import WindowError
from reports.exports.presence.columnar import to_parquet
from reports.exports.presence.document import to_pdf
from reports.exports.presence.drawing import to_svg
from reports.exports.presence.geographic import MAX_FEATURES, to_geojson, to_geoparquet
from reports.exports.presence.selection import select_presence
from reports.models import LedgerEntry
from reports.slots import facts, texts
from reports.slots.charts import day_figure
from reports.slots.queries import NoSlotsError, SlotStatus, presence
from reports.slots.query import time_text, view_of
from reports.studies.studyfile.parse import check_small_cells
from tests.reports import report_factory as factory
from tests.reports import slot_factory
from tests.reports.page_texts import check_document, csv_rows, pdf_text, printed, shared, shown, spaced, words

pytestmark = pytest.mark.django_db


def view(study, query=""):
    return view_of(QueryDict(query), presence(study))


def test_an_interval_has_the_width_of_the_noise_scaled_after_it() -> None:
    study = slot_factory.published(market_share=Decimal("0.25"))
    found = presence(study)
    zone = found.zones[0]
    sd = float(found.spec.variance) ** 0.5
    shown = found.figure(36, zone)
    assert shown.people == 4 * 2200
    assert (shown.people - shown.low, shown.high - shown.people) == pytest.approx([4 * 1.959964 * sd] * 2)
    assert 35 < sd < 50  # of two levels and 48 slots at epsilon 1
    without = slot_factory.published(definition=slot_factory.without_noise(), slug="exact")
    exact = presence(without).figure(36, zone)
    assert (exact.low, exact.people, exact.high) == (2200, 2200, 2200)


def test_a_number_that_noise_pushed_below_none_has_the_interval_of_none() -> None:
    study = slot_factory.published()
    found = presence(study)
    below = _of_counts(study, np.where(found.counts == 0, -300, found.counts))  # the south east
    shown = view_of(QueryDict("day=2024-05-30&at=18:00&zone=3"), below)
    zone = below.zones[3]
    expected = f"0 (0 to {below.half_width:.0f})"
    assert texts.figure_text(below.figure(36, zone)) == expected
    assert texts.figure_texts(below, 36, [zone]) == [expected]
    assert texts.column_texts(np.array([-300.0]), below.half_width) == [expected]
    assert f"at most {below.half_width:.0f} people at 18:00" in texts.sentence(shown)
    band, line = day_figure(shown)["data"]
    assert set(line["y"]) == {0.0}
    assert set(band["y"]) == {0.0, round(below.half_width, 1)}


def test_a_slot_is_published_not_yet_not_collected_or_an_outage() -> None:
    study = slot_factory.create()
    noise = np.random.default_rng(1).normal(0, 30, (48, 6)).round()
    slot_factory.publish(study, noise)
    slot_factory.publish(study, slot_factory.counts_of(study, slot_factory.daily, slots=96))
    DayNote.objects.create(study=study, day=2, kind=DayNote.Kind.OUTAGE, text="No mast", by="olga")
    found = presence(study)
    statuses = [found.status(slot) for slot in (0, 48, 96, 143, 144)]
    assert statuses == ["not_collected", "outage", "ok", "ok", "not_yet"]
    assert (found.counts[:48] == noise).all()  # files keep them
    assert np.isnan(found.people(found.zones[0], day=1)).all()


def test_few_people_on_a_day_with_visitors_are_figures() -> None:
    study = slot_factory.create()
    slot_factory.publish(study, np.ones((48, 6)))
    assert presence(study).status(0) == SlotStatus.NOT_COLLECTED
    factory.publish(study, factory.crowd(study, n=50))
    assert presence(study).status(0) == SlotStatus.OK


def test_slots_stay_published_while_the_broker_is_away(monkeypatch, django_capture_on_commit_callbacks):
    def refuse(*_: object, **__: object) -> None:
        raise BrokerAwayError

    study = slot_factory.create()
    monkeypatch.setattr("mobility.workers.app.send", refuse)
    with django_capture_on_commit_callbacks(execute=True) as asked:
        slot_factory.publish(study, np.ones((48, 6)))
    assert len(asked) == 1 and len(presence(study).counts) == 48


def test_a_view_is_the_latest_slot_and_refuses_what_is_not_there() -> None:
    study = slot_factory.published(slots=96 + 10)
    default = view(study)
    assert (default.date, time_text(default.found, default.slot)) == (date(2024, 6, 1), "04:30")
    assert [zone.name for zone in default.zones][:2] == ["North west", "North <east>"]
    assert time_text(default.found, view(study, "day=2024-05-31").slot) == "18:00"
    again = view(study, default.query(at="10:00", level="halves", zone=["5"]))
    assert (again.day, again.slot, again.zones[0].place) == (3, 96 + 20, 5)
    same_day = "day=2024-05-31&with=2024-05-31"
    for query in ("day=2024-06-03", "day=x", "at=10:10", "level=x", "zone=4", same_day):
        with pytest.raises(WindowError):
            view(study, query)
    with pytest.raises(NoSlotsError):
        presence(factory.published(slug="plain"))


def test_an_hour_that_comes_twice_has_two_names() -> None:
    study = slot_factory.published(first_day=date(2024, 10, 26), slots=48 + 50)
    found = presence(study)
    names = [time_text(found, slot) for slot in range(48, 98)]
    assert len(set(names)) == 50 and names[4:8] == ["02:00", "02:30", "02:00+01:00", "02:30+01:00"]
    assert view_of(QueryDict("day=2024-10-27&at=02:00%2B01:00"), found).slot == 48 + 6
    hours = facts.hours_of(found)
    assert hours[48:56].tolist() == [0, 0, 1, 1, 2, 2, 2, 2]


def test_the_median_of_a_weekday_is_covered_by_its_interval() -> None:
    rng = np.random.default_rng(7)
    study = slot_factory.create(days=50)
    truth = rng.integers(900, 1100, 50)
    missed = {"median": 0, "difference": 0}
    n = 150
    base = view_of(QueryDict("day=2024-05-30&at=18:00&with=weekday"), _of_counts(study, np.zeros((2400, 6))))
    sd = base.found.std_error
    others = [day - 1 for day in base.weekday_days]
    assert len(others) == 0  # no visitors: not collected
    for _ in range(n):
        counts = np.repeat(truth, 48)[:, None] + rng.normal(0, sd, (2400, 6)).round()
        shown = view_of(QueryDict("day=2024-05-30&at=18:00&with=weekday"), _of_counts(study, counts))
        others = [day - 1 for day in shown.weekday_days]
        found = facts.change(shown)
        assert found.n_days == len(others) == 7
        true = float(np.median(truth[others]))
        missed["median"] += not found.other.low <= true <= found.other.high
        missed["difference"] += not found.difference.low <= truth[0] - true <= found.difference.high
    assert max(missed.values()) <= 0.05 * n + 3.5 * (n * 0.05 * 0.95) ** 0.5


def test_facts_are_told_only_where_noise_can_carry_them() -> None:
    study = slot_factory.published()
    shown = view(study, "day=2024-05-30&at=18:00&with=2024-06-01")
    sentences = texts.fact_sentences(shown)
    assert "North west was busiest between 17:00 and 19:30, with about 2,200 people" in sentences[0]
    assert sentences[1].startswith("In total, people spent about 31,200 hours in North west on this day")
    assert sentences[2] == "Busiest zone at 18:00: North west."
    assert texts.sentence(shown).startswith("North west: about 2,200 people at 18:00, between 2,1")
    said = texts.change_sentence(shown, facts.change(shown))
    assert said.startswith("No clear difference from Sat 1 Jun 2024")
    flat = view(study, "day=2024-05-30&at=18:00&zone=1")
    assert facts.peak(flat.found, flat.zones[0], day=1) is None
    empty = view(study, "day=2024-05-30&at=18:00&zone=3")
    assert "at most" in texts.sentence(empty)
    assert facts.person_hours(empty.found, empty.zones[0], day=1) is None
    exact = view(slot_factory.published(definition=slot_factory.without_noise(), slug="exact"), "at=18:00")
    assert texts.sentence(exact) == "North west: 2,350 people at 18:00."
    assert "with 2,350 people." in texts.fact_sentences(exact)[0]


def test_a_week_is_the_mean_of_days_with_figures() -> None:
    study = slot_factory.published()
    DayNote.objects.create(study=study, day=4, kind=DayNote.Kind.OUTAGE, text="No mast", by="olga")
    found = presence(study)
    week = facts.week(found, found.zones[0])
    assert week.people[18].tolist()[3:6] == [2150, 2200, 2250]  # Thursday to Saturday
    assert np.isnan(week.people[:, [0, 1, 2, 6]]).all()
    assert week.half_width == pytest.approx(found.half_width / 2**0.5)


def test_exact_slots_and_hidden_small_windows_exclude_each_other() -> None:
    exact = factory.definition(slots=slot_factory.without_noise(), small_cell=20)
    with pytest.raises(PlanError, match=r'slots\.noise must not be "none" with study\.small_cell'):
        check_small_cells(exact)
    check_small_cells(replace(exact, small_cell=0))
    check_small_cells(replace(exact, slots=slot_factory.DEFINITION))


def _of_counts(study, counts):
    found = presence(study)
    seen = SlotStatus.OK if counts.any() else SlotStatus.NOT_COLLECTED
    return replace(found, counts=counts.astype(np.int64), statuses=(seen,) * study.days)


BASE = "/studies/fair-2024/presence"
EVENING = "day=2024-05-30&at=18:00"
FIRST_DAY = "from=2024-05-30&to=2024-05-30"


@pytest.fixture
def slotted():
    return slot_factory.published(slots=96 + 10, market_share=Decimal("0.5"), small_cell=20)


def table(study, **changes):
    asked = {"first_day": 1, "last_day": 1, "options": "", "is_drawn": False}
    return select_presence(study, **(asked | changes))


def test_the_page_answers_first_and_says_what_protects(reader, slotted) -> None:
    response = reader.get(f"{BASE}/?{EVENING}")
    text, body = words(response), response.content.decode()
    sentence = "North west: about 4,400 people at 18:00, between 4,226 and 4,574."
    assert body.index("People in each slot, Thu") < body.index(sentence) < body.index("data-figure=")
    assert re.search(r"\bEpsilon is 1 for [^.]* one in 1,000,000 \(delta\)\.", text)
    assert f'href="{BASE}/"' in reader.get("/studies/fair-2024/").content.decode()
    assert body.count('<th scope="row">') >= 48 + 4 + 24
    assert "-" not in re.findall(r"South east\s+(\S+)", text)[-1]  # below none: 0


def test_a_slot_without_a_figure_says_why(reader, slotted) -> None:
    assert "North west at 18:00: not published yet." in shown(reader, f"{BASE}/?day=2024-06-01&at=18:00")
    assert "not “yesterday”" in shown(reader, f"{BASE}/?day=yesterday", status=400)
    factory.published(slug="plain")
    for address in ("/studies/plain/presence/", "/api/v1/studies/plain/presence"):
        assert reader.get(address).status_code == 404
    slot_factory.create(slug="empty")
    assert "No time slot of this study has been published yet" in shown(reader, "/studies/empty/presence/")
    DayNote.objects.create(study=slotted, day=1, kind=DayNote.Kind.OUTAGE, text="No mast", by="olga")
    assert "North west at 18:00: outage." in shown(reader, f"{BASE}/?{EVENING}")


def test_the_map_plays_the_slots_of_a_day_at_each_level(reader, slotted) -> None:
    frames = reader.get(f"{BASE}/slots.json?{EVENING}").json()["frames"]
    assert len(frames) == 48
    assert frames[36]["title"] == "Thu 30 May 2024, 18:00"
    assert frames[36]["panels"][0]["texts"][0].startswith("North west\n4,400 (4,226 to 4,574)")
    west, north_east, south_west, _ = frames[36]["panels"][0]["classes"]
    assert west > north_east == south_west
    halves = reader.get(f"{BASE}/slots.json?{EVENING}&level=halves").json()["frames"][36]["panels"][0]
    assert halves["texts"][0] == halves["texts"][2] and halves["texts"][0].startswith("West\n5,")
    assert reader.get(f"{BASE}/slots.json?day=2024-06-01").json()["frames"][-1]["panels"][0]["blank"]


def test_a_share_link_shows_the_view_and_nothing_else(reader, slotted) -> None:
    _, html = shared(reader, f"{BASE}/?{EVENING}")
    assert "North west: about 4,400 people at 18:00, between 4,226 and 4,574." in spaced(html)
    assert LedgerEntry.objects.get(kind="share.created").facts["what"] == "presence"


def test_files_keep_what_was_published(reader) -> None:
    study = slot_factory.create(market_share=Decimal("0.5"))
    counts = slot_factory.counts_of(study, slot_factory.daily, slots=48)
    counts[3, 3] = -7
    slot_factory.publish(study, counts)
    rows = csv_rows(reader.get(f"{BASE}.csv"))
    assert len(rows) == 48 * 6
    row = rows[3 * 6 + 3]
    assert (row["zone"], row["count"], float(row["people"]), row["status"]) == ("South east", "-7", -14, "ok")
    half = float(row["ci_high"]) - float(row["people"])
    assert half == pytest.approx(1.959964 * float(row["std_error"]), abs=2e-3)
    assert row["slot_start"] == "2024-05-30T01:30:00+02:00" and float(row["epsilon_day"]) <= 1
    later = json.loads(reader.get(f"{BASE}.json?from=2024-05-31&to=2024-05-31&zone=West").content)
    assert later["slots"][0]["status"] == "not_yet" and later["slots"][0]["zones"][0]["people"] is None
    sdmx = csv_rows(reader.get(f"{BASE}.sdmx.csv?zone=West"))
    assert (sdmx[0]["FREQ"], sdmx[0]["TIME_PERIOD"]) == ("N", "2024-05-30T00:00:00+02:00/PT30M")
    assert (sdmx[0]["REF_AREA"], sdmx[0]["CATEGORY"], sdmx[0]["OBS_VALUE"]) == ("halves_West", "_T", "2400.0")
    book = zipfile.ZipFile(io.BytesIO(reader.get(f"{BASE}.xlsx?zone=West").content))
    assert b"one in 1,000,000" in b"".join(book.read(name) for name in book.namelist())
    frame = pq.read_table(io.BytesIO(to_parquet(table(study)))).to_pandas()
    assert frame["count"].tolist() == counts.ravel().tolist()
    assert str(frame["slot_start"].iloc[-1]) == "2024-05-30 23:30:00+02:00"
    assert reader.get(f"{BASE}.csv?from=2024-06-09").status_code == 400
    facts = LedgerEntry.objects.filter(facts__way="page").first().facts
    assert facts == {"way": "page", "file": "fair-2024_presence_2024-05-30_2024-05-30.xlsx"}


def test_map_files_have_time_and_the_shape_of_larger_zones(slotted) -> None:
    features = json.loads(to_geojson(table(slotted)))["features"]
    assert features[0]["time"] == {"interval": ["2024-05-29T22:00:00Z", "2024-05-29T22:30:00Z"]}
    frame = geopandas.read_parquet(io.BytesIO(to_geoparquet(table(slotted))))
    assert str(frame["slot_start"].dtype) == "datetime64[ms, UTC]"
    first = frame[:6].set_index("zone").geometry
    assert first["West"].area == pytest.approx(first["North west"].area + first["South west"].area)
    assert len(frame) == len(features) == 48 * 6 < MAX_FEATURES["geojson"]


def test_drawing_and_report_of_a_day_have_its_answer_every_slot_and_what_protects(slotted) -> None:
    svg = to_svg(table(slotted, options=f"{EVENING}&with=2024-05-31", is_drawn=True)).decode()
    assert "North west: about 4,400 people at 18:00" in svg and svg.startswith("<?xml")
    content = to_pdf(table(slotted, options=EVENING, is_drawn=True))
    assert content == to_pdf(table(slotted, options=EVENING, is_drawn=True))  # without a moment of making
    text = pdf_text(content)
    assert "North west: about 4,400 people at 18:00" in text
    assert all(f"{hour:02}:{minute:02}" in text for hour in range(24) for minute in (0, 30))
    assert text.count("not published yet") == 0 and "one in 1,000,000" in text


def test_the_api_pages_through_slots_as_openapi_says(reader, slotted) -> None:
    address = f"/api/v1/studies/fair-2024/presence?{FIRST_DAY}&level=halves&limit=20"
    starts = []
    while address:
        page = reader.get(address).json()
        starts += [item["slot_start"] for item in page["items"]]
        assert {zone["zone"] for item in page["items"] for zone in item["zones"]} == {"West", "East"}
        address = page["next"]
    assert len(starts) == 48 and all(one < two for one, two in pairwise(starts))
    check_document(reader, "/api/v1/studies/{study}/presence", answer=page)
    csv_page = reader.get(f"/api/v1/studies/fair-2024/presence?{FIRST_DAY}&format=csv&zone=West&limit=2")
    assert csv_page.content.decode().count("\n") == 3
    assert reader.get("/api/v1/studies/fair-2024/presence?zone=Nowhere").status_code == 422


def test_the_command_prints_what_the_file_has(slotted) -> None:
    whole = json.loads(printed("export_presence", "fair-2024", "--from", "2024-05-30", "--zone", "West"))
    assert len(whole["slots"]) == 48 and [zone["zone"] for zone in whole["slots"][0]["zones"]] == ["West"]
    assert LedgerEntry.objects.get(facts__way="command").facts["what"] == "presence"
    with pytest.raises(CommandError, match="There is no zone named"):
        printed("export_presence", "fair-2024", "--zone", "Nowhere")
