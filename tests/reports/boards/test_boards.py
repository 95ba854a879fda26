"""Boards: who sees and arranges them, what their tiles show, and what the ledger keeps of them."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from reports.boards import actions
from reports.boards.contents import shown_tiles
from reports.boards.queries import boards_last_used
from reports.boards.tiles import MAX_TILES, Kind, Tile, moved, read_tiles, write_tiles
from reports.estimates.noise import noisy_window
from reports.estimates.options import ReportOptions
from reports.estimates.queries import Window, indicator_reports, visitor_unions, window_report
from reports.maps import zones as maps
from reports.models import Board, BoardUse, LedgerEntry, Study
from reports.numbers.queries import number_report
from tests.reports import report_factory as factory
from tests.reports.page_texts import Markup, data_of, signed_in, spaced, words

pytestmark = pytest.mark.django_db
BOARDS = "/studies/fair-2024/boards/"
ONE_DAY = "from=2024-05-31&to=2024-05-31"


def address(board, end=""):
    return f"{BOARDS}{board.pk}/{end}"


def kinds(board):
    board.refresh_from_db()
    return [tile["kind"] + ":" + tile.get("of", "") for tile in board.tiles]


def do(client, board, what, key=0, **given):
    return client.post(address(board, "change/"), {"do": what, "tile": str(key), **given})


def text_of(tile, html):
    return spaced(re.sub(r"<[^>]+>", " ", html.split(f'id="tile-{tile}"')[1].split("</li>")[0]))


class TestTiles:
    def test_they_read_back_as_they_were_written(self):
        tiles = [
            Tile(key=3, kind=Kind.TEXT, title="Read <this>", text="one\n\ntwo"),
            Tile(key=1, kind=Kind.MAP, of="home", measure="visitors", classes="equal", is_wide=True),
            Tile(key=2, kind=Kind.MAP, of="home", is_hidden=True),
        ]
        assert read_tiles(write_tiles(tiles)) == tiles
        assert write_tiles([Tile(key=1, kind=Kind.FIGURES)]) == [{"key": 1, "kind": "figures"}]

    def test_one_moves_by_a_place_and_stays_at_the_ends(self):
        tiles = [Tile(key=key, kind=Kind.TEXT) for key in (5, 2, 9)]
        orders = {
            (2, -1): [2, 5, 9], (2, 1): [5, 9, 2], (5, -1): [5, 2, 9], (9, 1): [5, 2, 9], (9, -1): [5, 9, 2],
        }  # fmt: skip
        for (key, step), order in orders.items():
            assert [tile.key for tile in moved(tiles, key, step=step)] == order


class TestPage:
    def test_a_new_board_shows_everything_of_the_chosen_days(self, reader, board, rich):
        assert kinds(board) == [
            "figures:", "visitors:", "indicator:gender", "indicator:region", "indicator:length",
            "indicator:home", "indicator:day_zone", "number:length", "map:home", "map:day_zone", "flows:trip",
        ]  # fmt: skip
        html = reader.get(f"{address(board)}?{ONE_DAY}").content.decode()
        assert Markup(html).refused == []
        n = visitor_unions(rich)[2, 2]
        assert f"Unique visitors {n:,}" in text_of(1, html)
        assert sum(x is not None for x in data_of(html, "figure-2")["data"][0]["y"]) == 1
        # The same figures as on other pages, with their intervals.
        report = window_report(rich.indicators.get(slug="gender"), Window(2, 2))
        first = max(report.estimates, key=lambda each: each.consistent)
        interval = f"{first.ci_low * 100:.1f} to {first.ci_high:.1%}"
        assert f"{first.category} {first.consistent:.1%} {interval}" in text_of(3, html)
        assert "6 smaller categories are not shown" in text_of(4, html)
        mean = number_report(rich.indicators.get(slug="length"), Window(2, 2)).mean
        ends = f"95% interval {mean.ci_low:.1f} to {mean.ci_high:.1f} min"
        assert f"Mean {mean.value:.1f} min {ends}" in text_of(8, html)
        assert data_of(html, "map-9")["frame"]["title"] == "Fri 31 May 2024"
        assert "pairs of places can be distinguished from zero" in text_of(11, html)
        assert f"/studies/fair-2024/home/?{ONE_DAY.replace('&', '&amp;')}&amp;view=map" in html

    def test_days_that_the_study_does_not_have_are_refused_in_words(self, reader, board):
        answer = reader.get(f"{address(board)}?from=2030-01-01")
        assert answer.status_code == 400 and "date range must lie between" in words(answer)

    def test_it_says_why_there_are_no_figures(self, reader, analyst):
        study = factory.create(factory.GENDER, factory.HALF_STAY)
        board = actions.create_board(study, name="empty", by=analyst)
        assert words(reader.get(address(board))).count("No data has been published") == 4
        factory.publish(study, factory.crowd(study))
        assert words(reader.get(address(board))).count("Only single days are available") == 1
        assert "Only single days" not in words(reader.get(f"{address(board)}?{ONE_DAY}"))
        Study.objects.update(small_cell=10_000_000)
        page = words(reader.get(address(board)))
        assert page.count("This study suppresses date ranges with fewer than") >= 2
        assert "Unique visitors" not in page

    def test_noisy_totals_have_their_interval(self, reader, analyst):
        study = factory.create_noisy()
        factory.close(study, factory.crowd(study), first=1, last=2)
        board = actions.create_board(study, name="noisy", by=analyst)
        total = noisy_window(study, visitor_unions(study), first_day=1, last_day=2)
        asked = list(study.indicators.all()), read_tiles(board.tiles), Window(1, 2)
        (shown, *_) = shown_tiles(*asked, visitors=visitor_unions(study))
        (fact,) = shown.facts
        assert fact.value == f"{total.value:,.0f}"
        assert f"{total.ci_low:,.0f} to {total.ci_high:,.0f}" in fact.more


class TestNewBoard:
    def test_it_proposes_a_page_of_charts_and_a_map_that_one_press_makes(self, reader, board):
        html = reader.get(f"{BOARDS}?{ONE_DAY}").content.decode()
        ticked = re.findall(r'name="figures" value="([^"]+)" checked', html)
        assert ticked == ["figures:", "visitors:", "indicator:gender", "indicator:region", "map:home"]
        assert len(re.findall(r'name="figures"', html)) == 12 and "text:" not in html
        (name,) = re.findall(r'name="name" value="([^"]+)"', html)
        given = {"name": name, "start": "chosen", "figures": ticked}
        answer = reader.post(f"{BOARDS}?{ONE_DAY}", given)
        made = Board.objects.get(name="Board 1")
        assert answer["Location"] == f"{address(made)}?{ONE_DAY}"  # with its figures, of the same days
        assert kinds(made) == ticked
        assert 'value="Board 2"' in reader.get(BOARDS).content.decode()

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({"start": "chosen", "figures": ["map:home", "visitors:"]}, ["visitors:", "map:home"]),
            ({"start": "none", "figures": ["map:home"]}, []),
            ({"start": "chosen"}, []),
        ],
    )
    def test_it_has_the_figures_that_were_chosen(self, reader, rich, given, expected):
        answer = reader.post(BOARDS, {"name": "New"} | given)
        made = Board.objects.get()
        assert kinds(made) == expected
        assert answer["Location"] == address(made) + ("" if expected else "?arrange=on")

    def test_it_can_start_with_all_figures_or_as_a_copy(self, reader, board):
        do(reader, board, "remove", 3)
        for start, n_tiles in (("all", 11), (str(board.pk), 10)):
            reader.post(BOARDS, {"name": start, "start": start, "figures": ["visitors:"]})
            assert len(kinds(Board.objects.get(name=start))) == n_tiles

    def test_what_the_study_has_not_is_refused_and_what_was_ticked_stays(self, reader, rich, monkeypatch):
        monkeypatch.setattr("reports.boards.views.MAX_TILES", 1)
        for figures in (["map:gender"], ["text:"], ["visitors:", "figures:"]):
            answer = reader.post(BOARDS, {"name": "New", "start": "chosen", "figures": figures})
            assert answer.status_code == 400 and not Board.objects.exists()
        assert "A board has at most 1 tiles" in words(answer)
        ticked = re.findall(r'name="figures" value="([^"]+)" checked', answer.content.decode())
        assert ticked == ["figures:", "visitors:"]


class TestArranging:
    def test_buttons_move_resize_hide_and_remove(self, reader, board):
        for what, key in (("down", 1), ("up", 11), ("small", 1), ("wide", 3), ("hide", 4), ("remove", 5)):
            assert do(reader, board, what, key)["Location"] == f"{address(board)}?arrange=on#tile-{key}"
        do(reader, board, "visitors", 3)
        board.refresh_from_db()
        tiles = {tile.key: tile for tile in read_tiles(board.tiles)}
        assert list(tiles) == [2, 1, 3, 4, 6, 7, 8, 9, 11, 10]
        assert not tiles[1].is_wide and tiles[3].is_wide and tiles[4].is_hidden
        html = reader.get(address(board)).content.decode()
        assert 'id="tile-4"' not in html and "Gender: visitors" in html
        assert 'id="tile-4"' in reader.get(f"{address(board)}?arrange=on").content.decode()
        do(reader, board, "show", 4)
        assert 'id="tile-4"' in reader.get(address(board)).content.decode()

    def test_the_first_tile_does_not_move_up_nor_the_last_one_down(self, reader, board):
        html = reader.get(f"{address(board)}?arrange=on").content.decode()
        still = re.findall(r'id="tile-(\d+)"(?:(?!id="tile-).)*?value="(up|down)" disabled', html, re.DOTALL)
        assert still == [("1", "up"), ("11", "down")]

    def test_a_map_says_whom_it_does_not_show(self, reader, board, rich):
        tile = reader.get(address(board)).content.decode().split('id="tile-9"')[1].split("</figure>")[0]
        assert re.search(r"<dt>Not on the map</dt><dd>NR: ", tile)

    def test_a_map_keeps_the_classes_that_were_chosen(self, reader, board, rich):
        def legend():
            html = reader.get(address(board)).content.decode()
            return re.findall(r"</svg>([^<]+)</li>", html.split('id="tile-9"')[1].split("</ul>")[0])

        first = legend()
        do(reader, board, "quantile", 9)
        board.refresh_from_db()
        assert {tile.classes for tile in read_tiles(board.tiles) if tile.key == 9} == {"quantile"}
        options = ReportOptions(view="map", classes="quantile")
        home = rich.indicators.get(slug="home")
        scale = maps.map_scale(indicator_reports(home, maps.windows_of_scale(home)), options=options)
        assert legend() != first
        rows = maps.legend(scale, rich, options=options)
        assert legend()[: len(scale.labels())] == [row.text for row in rows]
        html = reader.get(f"{address(board)}?arrange=on").content.decode()
        assert "classes=quantile" in html  # of the page that the title leads to
        buttons = re.findall(r'value="(round|quantile|equal)" aria-pressed="(true|false)"', html)
        assert buttons[:3] == [("round", "false"), ("quantile", "true"), ("equal", "false")]
        assert buttons[3:] == [("round", "true"), ("quantile", "false"), ("equal", "false")]
        copy = actions.create_board(rich, name="copy", by=board.owner, tiles=read_tiles(board.tiles))
        assert copy.tiles == board.tiles
        do(reader, board, "round", 9)
        assert legend() == first

    def test_scripts_are_answered_without_a_page_and_days_stay(self, reader, board):
        asked = {"do": "down", "tile": "1"}
        answer = reader.post(address(board, "change/"), asked, headers={"HX-Request": "true"})
        assert (answer.status_code, answer.content) == (204, b"")
        kept = reader.post(f"{address(board, 'change/')}?{ONE_DAY}&next=//evil.example", asked)["Location"]
        assert kept == f"{address(board)}?{ONE_DAY}&arrange=on#tile-1"
        for given in ({}, {"do": "sell"}, {"do": "up", "tile": "99"}, {"do": "up", "tile": "²"}):
            assert reader.post(address(board, "change/"), given).status_code == 302

    def test_words_are_shown_as_they_are(self, reader, board):
        do(reader, board, "add", offer="text:")
        text = "First.\r\n\r\n<script>alert(1)</script>"
        do(reader, board, "text", 12, title="Read <b>this</b>", text=text)
        html = reader.get(address(board)).content.decode()
        assert "<h2>Read &lt;b&gt;this&lt;/b&gt;</h2>" in html
        assert "<p>First.</p>" in html and "<p>&lt;script&gt;" in html
        for wrong in ({"title": "x" * 81}, {"text": "x" * 2001}, {"title": "two\nlines"}, {"text": "\0"}):
            do(reader, board, "text", 12, **({"title": "", "text": ""} | wrong))
        board.refresh_from_db()
        assert read_tiles(board.tiles)[-1].title == "Read <b>this</b>"

    def test_only_what_the_study_offers_is_added_and_so_many(self, reader, board):
        for wrong in ("map:gender", "number:gender", "indicator:nothing", "flows:gender", "text:gender", ""):
            do(reader, board, "add", offer=wrong)
        assert len(kinds(board)) == 11
        for more in range(len(kinds(board)), MAX_TILES + 1):  # only the page after the last one is looked at
            asked = {"do": "add", "offer": "figures:"}
            answer = reader.post(address(board, "change/"), asked, follow=more == MAX_TILES)
        assert len(kinds(board)) == MAX_TILES and "A board has at most 24 tiles" in words(answer)


class TestReaders:
    def test_a_board_is_its_owners_until_it_is_shared(self, reader, board, boss, administrator):
        assert boss.get(address(board)).status_code == 404
        do(reader, board, "name", name="For all", is_shared="on")
        assert "Shared by" in words(boss.get(address(board)))
        # Others see it, and change nothing.
        assert "Arrange" not in words(boss.get(f"{address(board)}?arrange=on"))
        for end, given in (("change/", {"do": "up", "tile": "2"}), ("remove/", {})):
            assert boss.post(address(board, end), given).status_code == 404
        copy = boss.post(BOARDS, {"name": "Mine", "start": board.pk})["Location"]
        assert Board.objects.get(owner=administrator).tiles == board.tiles
        assert reader.get(copy).status_code == 404
        do(reader, board, "name", name="For me again")
        assert boss.get(address(board)).status_code == 404
        foreign = boss.post(BOARDS, {"name": "Stolen", "start": board.pk})
        assert foreign.status_code == 400

    def test_viewers_have_their_own_and_share_none(self, rich, viewer):
        client = signed_in(viewer)
        client.post(BOARDS, {"name": "Mine", "start": "none"})
        board = Board.objects.get()
        answer = client.post(
            address(board, "change/"), {"do": "name", "name": "Ours", "is_shared": "on"}, follow=True
        )
        assert "Only analysts and administrators can share" in words(answer)
        board.refresh_from_db()
        assert (board.name, board.is_shared) == ("Mine", False)
        assert "The board was saved." not in words(answer)
        renamed = client.post(address(board, "change/"), {"do": "name", "name": "Still mine"}, follow=True)
        assert "The board was saved." in words(renamed)

    def test_names_are_unique_for_a_reader_and_boards_few(self, reader, board, analyst, rich, monkeypatch):
        assert "You already have a board named" in words(
            reader.post(BOARDS, {"name": " For the mayor ", "start": "all"})
        )
        monkeypatch.setattr(actions, "MAX_BOARDS", 1)
        assert "You already have 1 boards" in words(reader.post(BOARDS, {"name": "Another", "start": "all"}))
        assert Board.objects.count() == 1

    def test_the_last_used_come_first_while_they_may_be_seen(self, reader, board, rich, analyst, boss):
        other = actions.create_board(rich, name="Other", by=analyst)
        for each in (other, board):
            reader.get(address(each))
        studies = Study.objects.all()
        assert boards_last_used(analyst, among=studies, at_most=5) == [board, other]
        assert boards_last_used(analyst, among=studies, at_most=1) == [board]
        BoardUse.objects.filter(board=board).update(at=timezone.now() - timedelta(hours=1))
        assert boards_last_used(analyst, among=studies, at_most=5) == [other, board]
        reader.head(address(board))
        assert boards_last_used(analyst, among=studies, at_most=5) == [other, board]
        reader.get(address(board))
        assert boards_last_used(analyst, among=studies, at_most=5) == [board, other]
        assert boards_last_used(analyst, among=studies.none(), at_most=5) == []
        Board.objects.filter(pk=board.pk).update(owner=signed_owner(boss))
        assert boards_last_used(analyst, among=studies, at_most=5) == [other]

    def test_the_first_page_has_their_pdf_and_a_way_to_share_them(self, reader, board, viewer):
        file = f"/studies/fair-2024/boards/{board.pk}/board.pdf"
        ways = (file, f"/access/shares/new/fair-2024/gender/?board={board.pk}")
        reader.get(address(board))
        html = reader.get("/").content.decode()
        for way in ways:
            assert f'href="{way}"' in html
            assert reader.get(way).status_code == 200
        study = reader.get(f"/studies/fair-2024/?{ONE_DAY}").content.decode()
        assert f'href="{file}?{ONE_DAY.replace("&", "&amp;")}"' in study
        Board.objects.update(is_shared=True)
        other = signed_in(viewer)
        other.get(address(board))
        assert not any(f'href="{way}' in other.get("/").content.decode() for way in ways)

    def test_the_ledger_keeps_what_others_see_of_it(self, reader, board):
        do(reader, board, "name", name="For all", is_shared="on")
        do(reader, board, "up", 2)
        do(reader, board, "name", name="For all of us", is_shared="on")
        do(reader, board, "name", name="For me")
        key = str(board.pk)
        assert reader.post(address(board, "remove/"))["Location"] == BOARDS
        entries = LedgerEntry.objects.filter(kind="board.changed").order_by("number")
        assert [entry.facts for entry in entries] == [
            {"board": key, "change": change} for change in ("created", "shared", "unshared", "removed")
        ]
        assert not Board.objects.exists()


def signed_owner(client):
    return client.session["_auth_user_id"]
