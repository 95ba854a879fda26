"""Boards and share links of a study of events: its periods and forecasts, and nothing about people."""

import re
from html import unescape

import pytest
from django.test import Client

from reports.boards.actions import BoardError, add_tile, change_tile, create_board
from reports.forecasts.actions import refresh
from reports.models import Board, Indicator, ShareLink, Study
from reports.studies.policies import Role
from tests.mobility.event_study import (
    SLUG,
    TEXT,
    TEXT_OF_PEOPLE,
    as_changes,
    event_definition,
    in_area,
    rows_of,
    write_people,
    write_rows,
)
from tests.mobility.pipeline import pipelines
from tests.reports.page_texts import signed_in

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
PAGE = f"/studies/{SLUG}/"
FORM = {"note": "the mayor", "days": "30", "password": "", "origins": "https://town.example"}
ROWS = [row for day in range(1, 61) for row in rows_of(day, each=20 + 5 * (day % 7))]


@pytest.fixture(scope="module")
def filled(kept):
    with pipelines(event_definition(TEXT.replace("epsilon = 1.0", "epsilon = 8.0"))) as make:
        pipeline = make()
        pipeline.upload(write_rows(kept / "rows.csv", ROWS))
        refresh(Study.objects.get(slug=SLUG))
        return pipeline


@pytest.fixture
def study(filled):
    return Study.objects.get(slug=SLUG)


@pytest.fixture
def ada(person):
    return person("ada", Role.ADMINISTRATOR)


@pytest.fixture
def board(study, ada):
    return create_board(study, name="For the mayor", by=ada)


def words(client, address) -> str:
    found = client.get(address)
    assert found.status_code == 200, (address, found.content)
    text = re.sub(r"<script.*?</script>", "", found.content.decode(), flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", unescape(text.split("<main", 1)[1].split("</main>")[0])).split())


def test_a_board_offers_what_events_have(study, ada):
    shown = signed_in(ada).get(f"{PAGE}boards/").content.decode()
    offers = re.findall(r'name="figures" value="([^"]*)"', shown)
    of_indicators = [f"{kind}:{slug}" for kind in ("indicator", "forecast") for slug in ("reason", "zone")]
    assert offers == ["events:", *of_indicators]
    own = create_board(study, name="Own", by=ada, tiles=[])
    for offer in ("figures:", "visitors:", "map:zone", "number:zone", "flows:zone"):
        with pytest.raises(BoardError, match="Choose a tile from the list"):
            add_tile(own, offer)


def test_a_board_shows_periods_with_intervals_and_the_forecast(board, ada):
    client = signed_in(ada)
    week = words(client, f"{PAGE}boards/{board.pk}/?period=week")
    total = len(in_area(ROWS))
    assert "2024-W06" in week and "2024-01 " not in week
    assert re.search(r"2024-W06 [0-9.]+% \([0-9.]+%? ?(?:to|\u2013|-) ?[0-9.]+%\)", week), week
    year = words(client, f"{PAGE}boards/{board.pk}/?period=year")
    in_2023 = len([row for row in in_area(ROWS) if row.startswith("2023")])
    assert f"2023 (incomplete) {in_2023}" in year and f"2024 (incomplete) {total - in_2023:,}" in year
    assert "Expected numbers of events in 2024-W08 (Mon 19 Feb 2024 to Sun 25 Feb 2024)" in week
    assert "80% interval 95% interval All events" in week
    assert "There is no forecast of this period" in year
    assert "visitor" not in week.lower() and "not scaled" not in week


def test_a_board_speaks_french(board, ada):
    client = signed_in(ada)
    client.cookies["django_language"] = "fr"
    shown = words(client, f"{PAGE}boards/{board.pk}/?period=week")
    assert "Nombre d\u2019événements" in shown and "Intervalle à 95" in shown and "visiteur" not in shown


def test_a_board_is_arranged_without_measures_and_files(board, ada):
    client = signed_in(ada)
    shown = client.get(f"{PAGE}boards/{board.pk}/?period=day&arrange=on").content.decode()
    assert 'value="visitors"' not in shown
    assert "period=week&arrange=on" in unescape(shown)
    moved = client.post(f"{PAGE}boards/{board.pk}/change/?period=day", {"do": "hide", "tile": "1"})
    assert moved["Location"].startswith(f"{PAGE}boards/{board.pk}/?period=day&arrange=on")
    plain = client.get(f"{PAGE}boards/{board.pk}/?period=day").content.decode()
    assert "board.pdf" not in plain and 'id="tile-1"' not in plain and 'id="tile-2"' in plain
    assert f"{PAGE}boards/{board.pk}/" in client.get("/").content.decode()
    assert "board.pdf" not in client.get("/").content.decode()
    gone = client.post(f"{PAGE}boards/{board.pk}/remove/")
    assert gone.status_code == 302 and not Board.objects.exists()


def test_a_board_without_events_says_so(make_pipeline, ada):
    make_pipeline(**as_changes(event_definition()) | {"slug": "empty"})
    own = create_board(Study.objects.get(slug="empty"), name="Early", by=ada)
    shown = words(signed_in(ada), f"/studies/empty/boards/{own.pk}/")
    assert shown.count("No data has been published for this study yet.") == 5


def made_links(client, query, indicator="zone") -> list[str]:
    found = client.post(f"/access/shares/new/{SLUG}/{indicator}/?{query}", FORM).content.decode()
    return re.findall(r"http://testserver((?:/shared|/embedded)/[\w-]{43}/)", found)


def test_a_link_shows_a_board_and_leads_nowhere(board, ada):
    client = signed_in(ada)
    change_tile(board, "hide", key=4)
    for address in made_links(client, f"board={board.pk}&period=week"):
        html = Client().get(address).content.decode()
        assert re.findall(r'href="(/[^"]*)"', html.split("<main")[1]) == []
        shown = words(Client(), address)
        assert "For the mayor" in shown and "2024-W06" in shown and 'id="tile-4"' not in html
        assert "because each event gives one answer" in shown
    assert f'href="{PAGE}boards/{board.pk}/?period=week"' in client.get("/access/shares/").content.decode()
    change_tile(board, "remove", key=2)
    assert 'id="tile-2"' not in Client().get(address).content.decode()


def test_a_link_shows_the_periods_of_an_indicator_and_its_forecast(study, ada, person):
    client = signed_in(ada)
    page = client.get(f"{PAGE}zone/?period=week&category=1").content.decode()
    (asked,) = re.findall(rf'href="/access/shares/new/{SLUG}/zone/\?([^"]*)"', page)
    addresses = made_links(client, unescape(asked))
    assert len(addresses) == 2
    for address in addresses:
        html = Client().get(address).content.decode()
        assert re.findall(r'href="(/[^"]*)"', html.split("<main")[1]) == []
        shown = words(Client(), address)
        assert "2024-W06" in shown and "Expected numbers of events in 2024-W08" in shown
        assert "(South): estimates for each period" in unescape(html)
    assert ShareLink.objects.get().query == "period=week&category=1"
    assert f'href="{PAGE}zone/?period=week&amp;category=1"' in client.get("/access/shares/").content.decode()
    assert "Share link" not in signed_in(person("vera", Role.VIEWER)).get(f"{PAGE}zone/").content.decode()


def test_boards_of_people_with_several_events_say_which_are_answered(make_pipeline, ada, tmp_path):
    changes = as_changes(event_definition(TEXT_OF_PEOPLE)) | {"slug": "patients", "population": "patients"}
    pipeline = make_pipeline(**changes)
    rows = [f"{row},p{n % 50}" for n, row in enumerate(rows_of(1, 2, each=100))]
    pipeline.upload(write_people(tmp_path / "rows.csv", rows))
    study = Study.objects.get(slug="patients")
    own = create_board(study, name="Own", by=ada)
    assert "Only the first 2 events of each person report." in words(
        signed_in(ada), f"/studies/patients/boards/{own.pk}/"
    )
    assert Indicator.objects.filter(study=study).count() == 2
