"""Boards behind share links, and reports in frames of other sites."""

import re

import pytest
from django.test import Client

from reports.boards import actions
from reports.estimates.queries import Window
from reports.models import Board, LedgerEntry, ShareLink, Study, StudyGrant
from reports.sharing import actions as access
from reports.studies.policies import Role
from tests.reports.page_texts import signed_in, words

pytestmark = pytest.mark.django_db
DAYS = "from=2024-05-31&to=2024-06-01"
FORM = {"note": "the mayor", "days": "30", "password": "", "origins": ""}
SITE, OTHER = "https://town.example", "https://www.region.example:8443"


def share(client, board, **given):
    new = f"/access/shares/new/fair-2024/gender/?board={board.pk}&{DAYS}"
    html = client.post(new, FORM | given).content.decode()
    return re.findall(r"http://testserver(/shared/[\w-]{43}/(?:frame/)?)", html)


class TestLinks:
    def test_it_shows_the_board_of_these_days_and_leads_nowhere(self, reader, board, rich):
        actions.change_tile(board, "hide", key=4)
        (address,) = share(reader, board)
        html = Client().get(address).content.decode()
        assert "For the mayor" in html and "Fri 31 May 2024 to Sat 1 Jun 2024" in html
        assert re.findall(r'href="(/[^"]*)"', html.split("<main")[1]) == []
        assert 'id="figure-3"' in html and 'id="map-9"' in html and 'id="tile-4"' not in html
        assert "The privacy loss (epsilon) of one person&#x27;s answers" in html
        for said in (
            "a person's presence is not protected", "not scaled to the population",
            "No other indicator shown here has a higher epsilon", "of 100 answers on",
            "changes the odds of a correct guess about that person",
        ):  # fmt: skip
            assert said in words(Client().get(address)), said
        # Tiles and figures are those of the moment.
        actions.change_tile(board, "remove", key=3)
        Study.objects.update(small_cell=10_000_000)
        page = words(Client().get(address))
        assert "Gender" not in page and "Unique visitors" not in page
        assert "suppresses date ranges with fewer than" in page

    def test_it_is_listed_and_recorded_as_a_board(self, reader, board, boss):
        asked = f"/access/shares/new/fair-2024/gender/?board={board.pk}&{DAYS}"
        assert f"{board.name}, Fri 31 May 2024" in words(reader.get(asked))
        share(reader, board)
        assert "Board The fair, Fri 31 May 2024" in words(reader.get("/access/shares/"))
        assert f'href="/studies/fair-2024/boards/{board.pk}/?{DAYS.replace("&", "&amp;")}"' in (
            reader.get("/access/shares/").content.decode()
        )
        facts = LedgerEntry.objects.get(kind="share.created").facts
        assert (facts["what"], facts["board"], facts["indicator"]) == ("board", str(board.pk), "")
        assert f"to board {board.pk}." in words(boss.get("/ledger/"))

    def test_it_ends_with_what_its_maker_may_open(self, reader, board, analyst, person, rich):
        actions.rename_board(board, name="For all", is_shared=True, by=analyst)
        colleague = signed_in(person("otto", Role.ANALYST))
        (own,), (foreign,) = share(reader, board), share(colleague, board)
        assert [Client().get(each).status_code for each in (own, foreign)] == [200, 200]
        actions.rename_board(board, name="For me", is_shared=False, by=analyst)
        assert [Client().get(each).status_code for each in (own, foreign)] == [200, 404]
        assert Client().head(foreign).status_code == 404
        assert "suspended" in words(colleague.get("/access/shares/"))
        assert share(colleague, board) == []
        StudyGrant.objects.filter(user=analyst).delete()
        assert Client().get(own).status_code == 404

    def test_removing_the_board_revokes_it(self, reader, board):
        (address,) = share(reader, board)
        reader.post(f"/studies/fair-2024/boards/{board.pk}/remove/")
        assert Client().get(address).status_code == 404
        assert ShareLink.objects.get().revoked_at
        kinds = LedgerEntry.objects.order_by("number").values_list("kind", flat=True)
        assert [*kinds][-3:] == ["share.created", "share.revoked", "board.changed"]

    def test_what_is_no_board_is_not_shared(self, reader, board):
        for key in ("", "x", "9" * 30, "²", str(board.pk + 1)):
            answer = reader.post(
                f"/access/shares/new/fair-2024/gender/?board={key}&{DAYS}", FORM, follow=True
            )
            assert "This study has no such board" in words(answer)
        assert not ShareLink.objects.exists()


class TestFrames:
    def test_only_the_named_sites_can_frame_it_and_it_sets_no_cookie(self, reader, board):
        page, frame = share(reader, board, origins=f" {SITE.upper()}  {OTHER} {SITE}")
        answer = Client().get(frame)
        assert "For the mayor" in words(answer) and answer.status_code == 200
        rules = {rule.strip() for rule in answer["Content-Security-Policy"].split(";")}
        assert f"frame-ancestors {SITE} {OTHER}" in rules and "default-src 'self'" in rules
        assert "X-Frame-Options" not in answer and not answer.cookies
        assert answer["X-Robots-Tag"] == "noindex, nofollow, noarchive"
        assert "<form" not in answer.content.decode()
        # The page itself stays out of frames.
        outside = Client().get(page)
        assert "frame-ancestors 'none'" in outside["Content-Security-Policy"]
        assert outside["X-Frame-Options"] == "DENY"
        assert ShareLink.objects.get().reads == 2
        assert LedgerEntry.objects.get(kind="share.created").facts["origins"] == [SITE, OTHER]

    def test_it_ends_with_its_link_and_is_limited_like_it(self, reader, board, settings):
        _, frame = share(reader, board, origins=SITE)
        (plain,) = share(reader, board)
        assert Client().get(f"{plain}frame/").status_code == 404  # no site may
        assert Client().head(frame).status_code == 200
        settings.ACCOUNT_RATE_LIMITS |= {"shared_link": "1/m/key"}
        assert [Client().get(frame).status_code for _ in range(2)] == [200, 429]
        settings.ACCOUNT_RATE_LIMITS |= {"shared_link": "300/m/key"}
        reader.post(f"/access/shares/{ShareLink.objects.order_by('pk')[0].pk}/revoke/")
        ended = Client().get(frame)
        assert ended.status_code == 404 and not ended.cookies
        assert "frame-ancestors 'none'" in ended["Content-Security-Policy"]

    def test_a_report_can_be_framed_too(self, rich, analyst):
        asked = {"query": DAYS, "days": 1, "note": "", "password": "", "by": analyst, "origins": SITE}
        _, text = access.create_link(rich.indicators.get(slug="gender"), Window(2, 3), **asked)
        answer = Client().get(f"/shared/{text}/frame/")
        assert "Gender" in words(answer) and not answer.cookies

    def test_sites_are_named_one_by_one_and_passwords_need_a_page(self, reader, board):
        wrong = (
            "town.example", "https://town.example/path", "https://*.example", "*", "'self'", "ftp://town.example",
            "https://town.example;", "https://", "https://town.example:x", "data:", "https://-.example",
            " ".join(f"https://site-{n}.example" for n in range(6)),
        )  # fmt: skip
        for origins in wrong:
            assert share(reader, board, origins=origins) == []
        assert share(reader, board, origins=SITE, password="open-sesame") == []
        assert not ShareLink.objects.exists()
        assert Board.objects.exists()
