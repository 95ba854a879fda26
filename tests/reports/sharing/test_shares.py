"""Readers' sharing and settings: share links, tokens of programs, kept views."""

import hashlib
import re
from datetime import timedelta

import pytest
from django.core import signing
from django.forms.models import model_to_dict
from django.test import Client
from django.utils import timezone

from mobility.signin.models import CacheEntry
from reports.accounts.grants import give_grant, withdraw_grant
from reports.estimates.queries import Window
from reports.models import ApiToken, LedgerEntry, SavedView, ShareLink, ShareView, Study
from reports.sharing import actions as access
from reports.sharing.revoking import record_reads, revoke
from reports.studies.policies import Role
from tests.reports import report_factory as factory
from tests.reports.page_texts import signed_in, words

pytestmark = pytest.mark.django_db
URL = "/access/shares/"
NEW = f"{URL}new/fair-2024/gender/"
WINDOW = "from=2024-05-31&to=2024-06-01"
FORM = {"note": "the mayor", "days": "30", "password": ""}
DAYS = Window(2, 3)
PASSWORD = "open-sesame"
TOKENS = "/access/tokens/"
TOKEN_FORM = {"name": "nightly", "study": "", "days": "30"}
KEPT = "/access/saved/"
PAGE = "/studies/fair-2024/gender/?from=2024-05-31&order=sorted"
ESCAPED = PAGE.replace("&", "&amp;")
ELSEWHERE = [
    "", "https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)",
    "/sign-out/", "/operator/", "/studies/fair-2024/gender/export.csv",
    "/studies/fair-2024/statement.json", "/nowhere/", "//studies/fair-2024/",
    "/studies/fair-2024/\n", "/studies/?a=\nb", "/studies/?" + "x" * 1000, "studies/",
]  # fmt: skip


def link_to(study, window=DAYS, **options):
    given = {"query": WINDOW, "days": 30, "note": "", "password": ""} | options
    _, text = access.create_link(study.indicators.get(slug="gender"), window, **given)
    return f"/shared/{text}/"


@pytest.fixture
def share(fair, analyst):
    return lambda **options: link_to(fair, **{"by": analyst} | options)


@pytest.fixture
def made(analyst):
    given = {"name": "x", "days": 1, "study": None, "by": analyst}
    return lambda **options: access.create_token(**given | options)


def test_what_a_withdrawn_grant_opened_ends_for_good(reader, fair, analyst, made, administrator):
    other = factory.create(factory.GENDER, slug="other")
    addresses = {study: link_to(study, by=analyst, window=Window(1, 1)) for study in (fair, other)}
    tokens = {study: made(study=study)[1] for study in (fair, other, None)}
    analyst.study_grants.all().delete()
    for study in (fair, other):
        give_grant(analyst, study=study)
    withdraw_grant(analyst.study_grants.get(study=fair), by=administrator)
    give_grant(analyst, study=fair)
    assert [Client().get(address).status_code for address in addresses.values()] == [404, 200]
    assert [access.token_of(text) is not None for text in tokens.values()] == [False, True, True]
    revoked = LedgerEntry.objects.filter(kind="share.revoked").values_list("actor", "study")
    assert list(revoked) == [(administrator.username, "fair-2024")]
    give_grant(analyst, study=None)
    withdraw_grant(analyst.study_grants.get(study=other))  # the grant for all studies covers it
    assert Client().get(addresses[other]).status_code == 200


class TestMaking:
    def test_the_link_is_shown_once_and_opens_without_an_account(self, reader, fair):
        assert "Gender, Fri 31 May 2024 to Sat 1 Jun 2024" in words(reader.get(f"{NEW}?{WINDOW}"))
        made = reader.post(f"{NEW}?{WINDOW}", FORM)
        address = re.search(r"http://testserver(/shared/[\w-]{43}/)", made.content.decode())[1]
        assert "no-store" in made["Cache-Control"]
        link = ShareLink.objects.get()
        assert link.days == (fair.date_of(2), fair.date_of(3))
        assert address not in words(reader.get(URL))
        assert address.split("/")[2] not in str(model_to_dict(link))
        assert "The fair, Fri 31 May 2024 to Sat 1 Jun 2024" in words(Client().get(address))

    def test_the_way_it_is_shown_goes_along_and_nothing_else_and_a_default_window_stays(self, reader, fair):
        reader.post(f"{NEW}?{WINDOW}&order=natural&next=//evil.example", FORM)
        reader.post(NEW, FORM)
        queries = [link.query for link in ShareLink.objects.order_by("pk")]
        assert queries == [f"{WINDOW}&order=natural", "from=2024-05-30&to=2024-06-02"]

    def test_a_form_that_is_wrong_makes_nothing(self, reader, fair):
        for given in ({"days": "0"}, {"days": "367"}, {"password": "short"}, {"note": "x" * 81}):
            assert "errorlist" in reader.post(f"{NEW}?{WINDOW}", FORM | given).content.decode()
        response = reader.get(f"{NEW}?from=2030-01-01", follow=True)
        assert response.redirect_chain[0][0] == "/studies/fair-2024/gender/"
        assert "date range must lie between" in words(response)
        assert not ShareLink.objects.exists()


class TestPublicPage:
    def test_it_shows_the_report_and_leads_nowhere(self, share, reader):
        response = Client().get(share())
        html = response.content.decode()
        assert re.findall(r'href="(/[^"]*)"', html.split("<main")[1]) == []
        assert set(re.findall(r'(?:action|href)="(/(?!static)[^"]*)"', html)) == {"/language/"}
        inside = words(reader.get(f"/studies/fair-2024/gender/?{WINDOW}"))
        shares = re.findall(r"\d+\.\d%", words(response))
        assert "count the operator's subscribers" in words(response).split("Share of visitors")[0]
        assert len(shares) > 6 and set(shares) <= set(re.findall(r"\d+\.\d%", inside))
        assert html.count('class="dots__true"') == 58  # e / (e + 2): the chance of a true answer
        plain, details = html.split("<summary>Details of the protection")
        assert "“Gender” is at most 1, because each person gives one answer." in plain
        assert "Stay" not in plain and "58" in details
        # Search engines and caches leave it alone.
        assert response["X-Robots-Tag"] == "noindex, nofollow, noarchive"
        assert "no-store" in response["Cache-Control"]
        assert '<meta name="robots" content="noindex, nofollow">' in html

    def test_it_is_shown_as_it_was_to_accounts_without_rights_too(self, share, operator):
        html = signed_in(operator).get(share()).content.decode()
        assert "data-figure" in html and "olga" not in html and "/operator/" not in html
        table = Client().get(share(query=f"{WINDOW}&view=table")).content.decode()
        assert "data-figure" not in table and "Data table" in table

    def test_it_shows_nothing_of_a_study_without_data_and_of_suppressed_days(self, share, analyst):
        empty = Client().get(link_to(factory.create(slug="empty"), by=analyst))
        assert empty.status_code == 200 and "Nothing to show for these days" in words(empty)
        address = share()
        Study.objects.update(small_cell=10_000_000)
        page = words(Client().get(address))
        assert "Nothing to show" in page and "%" not in page.split("Method and limitations")[0]


class TestEnding:
    def test_wrong_expired_and_revoked_links_look_the_same(self, share, analyst):
        expired, revoked, orphaned = share(), share(), share()
        assert Client().get(orphaned).status_code == 200
        ShareView.objects.all().delete()
        links = list(ShareLink.objects.order_by("pk"))
        ShareLink.objects.filter(pk=links[0].pk).update(expires_at=timezone.now())
        revoke(links[1], actor=analyst.get_username())
        wrong = Client().get("/shared/nothing/")
        assert "has expired, has been revoked or is incomplete" in words(wrong) and wrong["X-Robots-Tag"]
        plain = re.sub(r'value="[^"]*"', "", wrong.content.decode())
        assert [Client().get(address).status_code for address in (expired, revoked)] == [404, 404]
        analyst.groups.clear()  # a link ends with the role of its maker
        for address in ("/shared/nothing/", expired, revoked, orphaned):
            answer = Client().get(address)
            assert answer.status_code == 404
            assert re.sub(r'value="[^"]*"', "", answer.content.decode()) == plain
        assert not ShareView.objects.exists()

    def test_people_revoke_their_own_and_administrators_all(self, share, reader, boss, person):
        address, revoke = share(note="the mayor"), f"{URL}{ShareLink.objects.get().pk}/revoke/"
        other = signed_in(person("otto", Role.ANALYST))
        assert "the mayor" in words(reader.get(URL))
        assert "the mayor" not in words(other.get(URL)) and other.post(revoke).status_code == 404
        assert (reader.get(revoke).status_code, Client().get(address).status_code) == (405, 200)
        assert "the mayor anna valid" in words(boss.get(URL))
        boss.post(revoke)
        assert Client().get(address).status_code == 404
        assert "the mayor revoked" in words(reader.get(URL))


class TestPassword:
    def test_it_is_asked_for_before_anything_is_shown(self, share, reader):
        address, client = share(password=PASSWORD), Client()
        asked = client.get(address)
        assert "is password protected" in words(asked) and "Gender" not in asked.content.decode()
        assert not ShareView.objects.exists()
        assert Client(enforce_csrf_checks=True).post(address, {"password": PASSWORD}).status_code == 403
        wrong = client.post(address, {"password": PASSWORD + "x"})
        assert wrong.status_code == 403 and "The password is wrong" in words(wrong)
        assert "0 times 1 wrong password" in words(reader.get(URL))
        assert "Gender" in words(client.post(address, {"password": PASSWORD}, follow=True))
        assert "Gender" in words(client.get(address))
        assert "Gender" not in words(Client().get(address))

    def test_it_is_kept_hashed_and_opens_one_link_only_for_an_hour(self, share, monkeypatch):
        one, other = share(password=PASSWORD), share(password=PASSWORD)
        assert all(PASSWORD not in link.password and link.password for link in ShareLink.objects.all())
        client = Client()
        client.post(one, {"password": PASSWORD})
        cookie = client.cookies["shared_report"]
        assert cookie["httponly"] and (cookie["samesite"], cookie["path"]) == ("Lax", one)
        forged = Client()
        forged.cookies.load({"shared_report": cookie.value})
        assert "is password protected" in words(forged.get(other)) and "Gender" in words(forged.get(one))
        now = signing.time.time()
        monkeypatch.setattr(signing.time, "time", lambda: now + 3601)
        assert "is password protected" in words(client.get(one))

    def test_guessing_comes_to_an_end(self, share):
        address = share(password=PASSWORD)
        for n in range(10):
            status = Client().post(address, {"password": f"guess-{n}"}).status_code
        assert status == 429
        locked = Client().post(address, {"password": PASSWORD})
        assert locked.status_code == 429 and "Too many wrong passwords" in words(locked)
        assert ShareView.objects.count() == 10
        ShareView.objects.update(at=timezone.now() - timedelta(minutes=61))
        assert Client().post(address, {"password": PASSWORD}).status_code == 302


class TestLog:
    def test_views_are_counted_without_the_visitor_and_old_ones_forgotten(self, share, reader, settings):
        address = share()
        Client().get(address, REMOTE_ADDR="203.0.113.9", headers={"User-Agent": "curious"})
        Client().get(address)
        assert "2 times" in words(reader.get(URL))
        assert {field.name for field in ShareView._meta.concrete_fields} == {"id", "link", "at", "is_granted"}
        ShareLink.objects.all().delete()
        settings.MOBILITY_SHARE_LOG_DAYS = 30
        for days in (0, 29, 31, 400):
            Client().get(share())
            newest = ShareView.objects.order_by("-pk")[0]
            ShareView.objects.filter(pk=newest.pk).update(at=timezone.now() - timedelta(days=days))
        ShareLink.objects.update(expires_at=timezone.now() - timedelta(days=500))
        assert access.forget_old_views() == 2
        assert (ShareView.objects.count(), ShareLink.objects.count()) == (2, 4)
        assert access.forget_old_views() == 0
        assert "keeps this log for 30 days" in words(reader.get(URL))

    @pytest.mark.database
    def test_the_ledger_tells_the_first_reading_and_then_daily_how_many_came_after_it(self, share, analyst):
        address, visitor = share(), Client()
        for _ in range(4):
            visitor.get(address)
        assert times() == [None]
        assert ShareView.objects.count() == 1  # a row for an hour
        record_reads()
        visitor.get(address)
        record_reads()  # once a day
        assert times() == [None, 3]
        revoke(ShareLink.objects.get(), actor=analyst.get_username())
        assert times() == [None, 3, 1]
        record_reads()
        assert times() == [None, 3, 1]

    def test_head_writes_nothing(self, share):
        address, locked = share(), share(password=PASSWORD)
        before = (times(), CacheEntry.objects.count())
        for link, status in ((address, 200), (locked, 200), ("/shared/nothing/", 404)):
            answer = Client().head(link)
            assert (answer.status_code, answer["X-Robots-Tag"]) == (status, "noindex, nofollow, noarchive")
        assert (times(), CacheEntry.objects.count()) == before
        assert not ShareView.objects.exists()
        assert not ShareLink.objects.filter(reads__gt=0).exists()

    def test_an_address_and_a_link_are_read_so_often_in_a_minute_and_no_more(self, share, settings):
        one, other, here = share(), share(), {"REMOTE_ADDR": "2001:db8:1:2::9"}
        limits = settings.ACCOUNT_RATE_LIMITS
        assert (limits["shared_address"], limits["shared_link"]) == ("60/m/ip", "300/m/key")
        settings.ACCOUNT_RATE_LIMITS = limits | {"shared_address": "3/m/ip", "shared_link": "4/m/key"}
        assert [Client().get(one, **here).status_code for _ in range(4)] == [200, 200, 200, 429]
        assert Client().get(other, REMOTE_ADDR="2001:db8:1:2:ffff::1").status_code == 429  # the same network
        refused = Client().get("/shared/nothing/", **here)  # looking for links, too
        assert refused.status_code == 429 and 1 <= int(refused["Retry-After"]) <= 60
        assert Client().get(one, REMOTE_ADDR="2001:db8:1:3::9").status_code == 200
        assert Client().get(one, REMOTE_ADDR="192.0.2.9").status_code == 429  # the link
        assert Client().get(other, REMOTE_ADDR="192.0.2.9").status_code == 200
        assert ShareLink.objects.order_by("pk")[0].reads == 4


def times() -> list[int | None]:
    found = LedgerEntry.objects.filter(kind="share.opened").order_by("number")
    return [entry.facts.get("times") for entry in found]


class TestTokens:
    def test_steps_for_qgis_stand_beside_the_tokens(self, reader, fair):
        html = reader.get(TOKENS).content.decode()
        for text in (
            "http://testserver/api/v1/studies/STUDY/features/",
            "Bearer TOKEN",
            'href="/help/api.md#qgis"',
        ):
            assert text in html, text
        assert 'id="qgis"' in reader.get("/help/api.md").content.decode()

    def test_a_token_is_shown_once_and_only_its_digest_is_kept(self, reader, made, analyst, fair):
        assert "No tokens yet" in words(reader.get(TOKENS))
        response = reader.post(TOKENS, TOKEN_FORM | {"study": "fair-2024"})
        text = re.search(r"mobility-read-[\w-]{43}", response.content.decode())[0]
        token = access.token_of(text)
        assert (token.owner, token.study, token.name) == (analyst, fair, "nightly")
        assert timedelta(days=29.9) < token.expires_at - timezone.now() < timedelta(days=30)
        assert "no-store" in response["Cache-Control"]
        again = reader.get(TOKENS)
        assert text not in again.content.decode() and "nightly The fair valid" in words(again)
        assert text not in str(model_to_dict(token))
        assert token.digest == hashlib.sha256(text.encode()).hexdigest()
        assert made()[1] != made()[1]

    def test_names_and_days_have_bounds(self, reader, made, fair):
        for given in ({"name": ""}, {"name": "x" * 81}, {"days": "0"}, {"days": "731"}, {"study": "nothing"}):
            assert "errorlist" in reader.post(TOKENS, TOKEN_FORM | given).content.decode()
        bounds = {("name", " "): "1 to 80", ("name", "a\nb"): "printable", ("days", 0): "days, not 0"}
        for (name, value), said in (bounds | {("days", 731): "1 to 730"}).items():
            with pytest.raises(access.AccessError, match=said):
                made(**{name: value})
        assert not ApiToken.objects.exists()

    def test_people_see_and_revoke_their_own_and_administrators_all(self, made, reader, boss, person):
        other = person("otto", Role.ANALYST)
        mine, text = made(name="mine")
        made(name="theirs", by=other)
        own, everyone = words(reader.get(TOKENS)), words(boss.get(TOKENS))
        assert "mine" in own and "theirs" not in own
        assert "mine all studies anna analyst" in everyone and "theirs all studies otto analyst" in everyone
        address = f"{TOKENS}{mine.pk}/revoke/"
        assert (signed_in(other).post(address).status_code, reader.get(address).status_code) == (404, 405)
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(mine.owner)
        assert strict.post(address).status_code == 403
        assert access.token_of(text) is not None
        assert "was revoked" in words(boss.post(address, follow=True))
        assert access.token_of(text) is None
        first = ApiToken.objects.get(pk=mine.pk).revoked_at
        revoke(mine, actor=other.get_username())
        assert ApiToken.objects.get(pk=mine.pk).revoked_at == first is not None

    def test_states_are_told_apart(self, made, boss, analyst):
        now = timezone.now()
        states = {"valid": {}, "revoked": {"revoked_at": now}, "expired": {"expires_at": now}}
        for name, change in states.items():
            ApiToken.objects.filter(pk=made(name=f"one-{name}")[0].pk).update(**change)
        page = words(boss.get(TOKENS))
        for name in states:
            assert f"one-{name} all studies anna analyst {name}" in page
        analyst.groups.clear()
        assert "one-valid all studies anna no role suspended" in words(boss.get(TOKENS))

    def test_rows_cost_no_queries_of_their_own(self, made, share, boss, fair, django_assert_max_num_queries):
        for _ in range(12):
            made(study=fair)
            share()
        for address, n in ((TOKENS, 10), (URL, 9)):
            with django_assert_max_num_queries(n):
                boss.get(address)


@pytest.mark.django_db(databases=["default", "vault"])  # Home lists what waits in the vault
class TestKeptViews:
    def test_a_view_is_kept_and_found_again(self, reader, analyst, boss, fair):
        html = reader.get(PAGE).content.decode()
        assert f'name="address" value="{ESCAPED}"' in html
        assert f'href="/access/shares/new/fair-2024/gender/?{ESCAPED.partition("?")[2]}"' in html
        assert "Friday" not in words(reader.get("/")) + words(reader.get("/studies/"))
        response = reader.post(KEPT, {"name": " Friday ", "address": PAGE}, follow=True)
        assert response.redirect_chain == [(PAGE, 302)] and "Saved as “Friday”" in words(response)
        view = SavedView.objects.get()
        assert (view.owner, view.name, view.address) == (analyst, "Friday", PAGE)
        assert f'href="{ESCAPED}"' in reader.get(KEPT).content.decode()
        for page in ("/", "/studies/"):
            assert "Saved views Friday" in words(reader.get(page))
            assert "Friday" not in words(boss.get(page))
        reader.post(KEPT, {"name": "Friday", "address": "/studies/fair-2024/"})  # the same name replaces
        assert SavedView.objects.get().address == "/studies/fair-2024/"

    def test_only_pages_of_studies_are_kept(self, reader, fair):
        for address in ELSEWHERE:
            response = reader.post(KEPT, {"name": "x", "address": address})
            assert (response.status_code, response["Location"]) == (302, KEPT), address
            assert "Only study pages" in words(reader.get(KEPT))
        assert not SavedView.objects.exists()

    def test_names_have_bounds(self, reader, fair, analyst, monkeypatch):
        for name in ("", " ", "x" * 81, "a\nb"):
            response = reader.post(KEPT, {"name": name, "address": PAGE}, follow=True)
            assert response.redirect_chain == [(PAGE, 302)]
            assert "1 to 80 printable characters" in words(response)
        assert not SavedView.objects.exists()
        french = "\u00ab\u00a0Mairie\u00a0\u00bb\u202f: juin"
        reader.post(KEPT, {"name": french, "address": "/studies/fair-2024/"})
        assert SavedView.objects.get().name == french
        SavedView.objects.all().delete()
        monkeypatch.setattr(access, "VIEWS_MAX", 2)  # There is an end to keeping.
        for name in ("a", "b", "b"):
            access.save_view(name=name, address="/studies/", by=analyst)
        with pytest.raises(access.AccessError, match="already saved 2 views"):
            access.save_view(name="c", address="/studies/", by=analyst)

    def test_people_see_and_remove_their_own_only(self, reader, analyst, administrator, person):
        view = access.save_view(name="Friday", address="/studies/", by=analyst)
        for user in (administrator, person("otto", Role.ANALYST)):
            other = signed_in(user)
            assert "Friday" not in words(other.get(KEPT))
            assert other.post(f"{KEPT}{view.pk}/remove/").status_code == 404
        assert reader.get(f"{KEPT}{view.pk}/remove/").status_code == 405
        removed = reader.post(f"{KEPT}{view.pk}/remove/", follow=True)
        assert "was removed from your saved views" in words(removed)
        assert not SavedView.objects.exists()


def test_only_readers_open_or_keep_anything(share, made, operator, stranger):
    for user in (operator, stranger):
        for attempt in (share, made, lambda by: access.save_view(name="x", address=PAGE, by=by)):
            with pytest.raises(access.AccessError):
                attempt(by=user)
