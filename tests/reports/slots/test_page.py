"""The page of presence by slot, its map and share link, its files, API and command."""

import csv
import html
import io
import json
import re
import zipfile
from decimal import Decimal
from itertools import pairwise

import geopandas
import pyarrow.parquet as pq
import pypdf
import pytest
from django.core.management.base import CommandError

from reports.api.presence.schemas import PresencePage
from reports.estimates.models import DayNote
from reports.exports.presence.columnar import to_parquet
from reports.exports.presence.document import to_pdf
from reports.exports.presence.drawing import to_svg
from reports.exports.presence.geographic import MAX_FEATURES, to_geojson, to_geoparquet
from reports.exports.presence.selection import select_presence
from reports.models import LedgerEntry
from tests.reports import report_factory as factory
from tests.reports import slot_factory
from tests.reports.page_texts import printed

pytestmark = pytest.mark.django_db
BASE = "/studies/fair-2024/presence"
EVENING = "day=2024-05-30&at=18:00"
FIRST_DAY = "from=2024-05-30&to=2024-05-30"


@pytest.fixture
def slotted():
    return slot_factory.published(slots=96 + 10, market_share=Decimal("0.5"), small_cell=20)


def shown(reader, address: str, *, status: int = 200) -> str:
    response = reader.get(address)
    assert response.status_code == status, address
    return words(response)


def words(response) -> str:
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", response.content.decode())).split())


def table(study, **changes):
    asked = {"first_day": 1, "last_day": 1, "options": "", "is_drawn": False}
    return select_presence(study, **(asked | changes))


def test_the_page_answers_first_and_says_what_protects(reader, slotted) -> None:
    text = shown(reader, f"{BASE}/?{EVENING}")
    answer = text.index("North west: about 4,400 people at 18:00, between 4,226 and 4,574.")
    assert (
        answer < text.index("People in each slot, Thu 30 May 2024") < text.index("hour by hour over the week")
    )
    assert (
        "with epsilon 1, compared with the person being absent, except with a probability of one in" in text
    )
    assert "probability of one in 1,000,000 (delta)." in text
    assert "Whether a person came on a day is not protected" in text and "does not hide slots" in text
    assert f'href="{BASE}/"' in reader.get("/studies/fair-2024/").content.decode()
    body = reader.get(f"{BASE}/?{EVENING}").content.decode()
    assert body.count('<th scope="row">') >= 48 + 4 + 24
    assert "South east" in text and "-" not in re.findall(r"South east\s+(\S+)", text)[-1]  # below none: 0


def test_a_slot_without_a_figure_says_why(reader, slotted) -> None:
    assert "North west at 18:00: not published yet." in shown(reader, f"{BASE}/?day=2024-06-01&at=18:00")
    DayNote.objects.create(study=slotted, day=1, kind=DayNote.Kind.OUTAGE, text="No mast", by="olga")
    assert "North west at 18:00: outage." in shown(reader, f"{BASE}/?{EVENING}")
    text = shown(reader, f"{BASE}/?day=yesterday", status=400)
    assert "not “yesterday”" in text and "Sat 1 Jun 2024, 04:30" in text
    factory.published(slug="plain")
    assert reader.get("/studies/plain/presence/").status_code == 404
    slot_factory.create(slug="empty")
    assert "No slot of this study has been published yet" in shown(reader, "/studies/empty/presence/")


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


def test_a_share_link_shows_the_view_and_nothing_else(reader, slotted, client) -> None:
    page = reader.get(f"{BASE}/?{EVENING}").content.decode()
    (address,) = re.findall(r'href="(/access/shares/new/[^"]*)"', page)
    made = reader.post(html.unescape(address), {"days": "3", "note": "", "password": ""})
    link = re.findall(r"/shared/[\w-]+", made.content.decode())[-1] + "/"
    text = words(client.get(link))
    assert "North west: about 4,400 people at 18:00, between 4,226 and 4,574." in text
    assert "Download the data" not in text and "data-days" not in client.get(link).content.decode()
    shares = reader.get("/access/shares/").content.decode()
    assert "Presence by time" in shares and html.escape(f"{BASE}/?{EVENING}") in shares
    assert (
        LedgerEntry.objects.get(facts__link__isnull=False, facts__until__isnull=False).facts["what"]
        == "presence"
    )


def test_files_keep_what_was_published(reader) -> None:
    study = slot_factory.create(market_share=Decimal("0.5"))
    counts = slot_factory.counts_of(study, slot_factory.daily, slots=48)
    counts[3, 3] = -7
    slot_factory.publish(study, counts)
    rows = list(csv.DictReader(io.StringIO(reader.get(f"{BASE}.csv").content.decode())))
    assert len(rows) == 48 * 6
    row = rows[3 * 6 + 3]
    assert (row["zone"], row["count"], float(row["people"]), row["status"]) == ("South east", "-7", -14, "ok")
    assert float(row["ci_high"]) - float(row["people"]) == pytest.approx(
        1.959964 * float(row["std_error"]), abs=2e-3
    )
    assert row["slot_start"] == "2024-05-30T01:30:00+02:00" and float(row["epsilon_day"]) <= 1
    later = json.loads(reader.get(f"{BASE}.json?from=2024-05-31&to=2024-05-31&zone=West").content)
    assert later["slots"][0]["status"] == "not_yet" and later["slots"][0]["zones"][0]["people"] is None
    sdmx = list(csv.DictReader(io.StringIO(reader.get(f"{BASE}.sdmx.csv?zone=West").content.decode())))
    assert (sdmx[0]["FREQ"], sdmx[0]["TIME_PERIOD"]) == ("N", "2024-05-30T00:00:00+02:00/PT30M")
    assert (sdmx[0]["CATEGORY"], sdmx[0]["OBS_VALUE"]) == ("halves/West", "2400.0")
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


def test_the_drawing_shows_the_view(slotted) -> None:
    svg = to_svg(table(slotted, options=f"{EVENING}&with=2024-05-31", is_drawn=True)).decode()
    assert "North west: about 4,400 people at 18:00" in svg and svg.startswith("<?xml")


def test_the_report_of_a_day_has_its_answer_every_slot_and_what_protects(reader, slotted) -> None:
    shown_table = table(slotted, options=EVENING, is_drawn=True)
    assert to_pdf(shown_table) == to_pdf(shown_table)  # no moment of the download is in it
    book = pypdf.PdfReader(io.BytesIO(reader.get(f"{BASE}.pdf?{EVENING}").content))
    text = " ".join(" ".join(page.extract_text() for page in book.pages).split())
    assert "North west: about 4,400 people at 18:00" in text
    assert all(f"{hour:02}:{minute:02}" in text for hour in range(24) for minute in (0, 30))
    assert text.count("not published yet") == 0 and "one in 1,000,000" in text


def test_the_api_pages_through_slots_as_openapi_says(reader, slotted) -> None:
    address = f"/api/v1/studies/fair-2024/presence?{FIRST_DAY}&level=halves&limit=20"
    starts = []
    while address:
        page = reader.get(address).json()
        assert page["count"] == 48 and page["presence"]["mechanism"] == "discrete-gaussian"
        starts += [item["slot_start"] for item in page["items"]]
        assert {zone["zone"] for item in page["items"] for zone in item["zones"]} == {"West", "East"}
        address = page["next"]
    assert len(starts) == 48 and all(one < two for one, two in pairwise(starts))
    document = reader.get("/api/v1/openapi.json").json()
    assert "/api/v1/studies/{study}/presence" in document["paths"]
    PresencePage.model_validate(page)
    csv_page = reader.get(f"/api/v1/studies/fair-2024/presence?{FIRST_DAY}&format=csv&zone=West&limit=2")
    assert csv_page.content.decode().count("\n") == 3
    assert reader.get("/api/v1/studies/fair-2024/presence?zone=Nowhere").status_code == 422
    factory.published(slug="plain")
    assert reader.get("/api/v1/studies/plain/presence").status_code == 404


def test_the_command_prints_what_the_file_has(slotted) -> None:
    whole = json.loads(printed("export_presence", "fair-2024", "--from", "2024-05-30", "--zone", "West"))
    assert len(whole["slots"]) == 48 and [zone["zone"] for zone in whole["slots"][0]["zones"]] == ["West"]
    assert LedgerEntry.objects.get(facts__way="command").facts["what"] == "presence"
    with pytest.raises(CommandError, match="No zone is called"):
        printed("export_presence", "fair-2024", "--zone", "Nowhere")
