"""Pages of people: what administrators change there, what no one can, and who can see what, until when."""

import csv
import re
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from reports.accounts import actions as people
from reports.accounts.actions import AccessChangeError
from reports.accounts.matrix import access_matrix, accounts_with_rights
from reports.estimates.queries import Window
from reports.models import ApiToken, LedgerEntry, Study
from reports.sharing import actions as access
from reports.studies.grant_models import last_moment, today
from reports.studies.policies import Role, roles_of, studies_for
from tests.reports import report_factory as factory
from tests.reports.page_texts import signed_in, words

CHANGES = {"grant": {"study": "fair-2024"}, "active": {"active": "0"}, "password": {}}
CHANGES |= {"roles": {"roles": ["administrator", "operator"]}}
TOMORROW = timedelta(days=1)


def url(name, *args):
    return reverse(f"people:{name}", args=args)


def post(client, name, *args, **data):
    response = client.post(url(name, *args), data, follow=True)
    assert response.status_code == 200
    return words(response)


def password_in(response):
    return re.search(r'<pre class="token"[^>]*>([^<]+)</pre>', response.content.decode())[1]


def last_facts():
    entry = LedgerEntry.objects.filter(kind="access.changed").latest("number")
    assert entry.actor == "adam"
    return entry.facts


def rights_of(user):
    found = User.objects.get(pk=user.pk)
    return roles_of(found), found.is_active, found.password, list(found.study_grants.values())


@pytest.fixture
def market(db):
    return factory.published(slug="market", name="The market")


@pytest.fixture
def anna(fair, person):
    return person("anna", Role.ANALYST, studies=[fair])


def token(name, study, *, by, days=1):
    return access.create_token(name=name, days=days, study=study, by=by)


def pending_sign_in(account):
    session = Client().session
    session["account_login"] = {"user_pk": str(account.pk)}
    session.save()
    return Session.objects.filter(pk=session.session_key)


def share(study, *, by, note="", password="", days=30):
    gender = study.indicators.get(slug="gender")
    given = {"query": "", "days": days, "note": note, "password": password, "by": by}
    return access.create_link(gender, Window(1, 1), **given)[1]


def rows_of(client, query=""):
    response = client.get(f"/people/matrix.csv{query}")
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(response.content.decode().splitlines()))


class TestNewAccount:
    def test_gets_a_password_that_works_is_shown_once_and_nothing_else(self, boss, fair):
        response = boss.post(url("new"), {"username": "berta", "roles": ["analyst"]})
        assert response.status_code == 200 and "no-store" in response["Cache-Control"]
        password, made = password_in(response), User.objects.get(username="berta")
        assert authenticate(username="berta", password=password) == made
        assert roles_of(made) == {Role.ANALYST} and not studies_for(made).exists()
        assert "This account has no access to any study yet" in words(response)
        assert last_facts() == {"account": "berta", "change": "created", "roles": ["analyst"]}
        assert password not in boss.get(url("person", made.pk)).content.decode()
        assert password not in str(list(LedgerEntry.objects.values()))


class TestGrants:
    def test_a_study_is_opened_until_a_day_and_closed(self, boss, fair, person, analyst):
        vera, until = person("vera", Role.VIEWER, studies=[]), today() + timedelta(days=9)
        page = post(boss, "grant", vera.pk, study="fair-2024", until=until.isoformat())
        assert "The account now has access to the study." in page and until.isoformat() in page
        assert list(studies_for(vera)) == [fair]
        # A grant is withdrawn on the page of its account only.
        assert boss.post(url("withdraw", analyst.pk, vera.study_grants.get().pk)).status_code == 404
        page = post(boss, "withdraw", vera.pk, vera.study_grants.get().pk)
        assert "no longer have access to the study" in page
        assert not studies_for(vera).exists()
        assert last_facts()["change"] == "withdrawn"

    def test_withdrawing_all_studies_says_so(self, boss, person):
        vera = person("vera", Role.VIEWER, studies=[None])
        page = post(boss, "withdraw", vera.pk, vera.study_grants.get().pk)
        assert "no longer have access to all studies" in page

    def test_all_studies_must_be_chosen_by_name_and_a_day_that_is_over_is_refused(self, boss, fair, person):
        vera = person("vera", Role.VIEWER, studies=[])
        assert "Choose a study." in post(boss, "grant", vera.pk, study="")
        page = post(boss, "grant", vera.pk, study="fair-2024", until="2020-01-01")
        assert "The date entered is 2020-01-01, but today is" in page
        assert not vera.study_grants.exists()
        post(boss, "grant", vera.pk, study="*")
        assert vera.study_grants.get().study is None


class TestAccount:
    def test_roles_are_replaced(self, boss, analyst):
        post(boss, "roles", analyst.pk, roles=["analyst"])
        assert not LedgerEntry.objects.filter(kind="access.changed").exists()  # the same again is no change
        assert "The roles were changed." in post(boss, "roles", analyst.pk, roles=["viewer", "operator"])
        assert roles_of(analyst) == {Role.VIEWER, Role.OPERATOR}
        assert last_facts() == {"account": "anna", "change": "roles", "roles": ["operator", "viewer"]}
        post(boss, "roles", analyst.pk)
        assert roles_of(analyst) == frozenset()

    def test_a_new_password_ends_the_sessions_of_the_old_one(self, boss, analyst, reader, password):
        pending, new = pending_sign_in(analyst), password_in(boss.post(url("password", analyst.pk)))
        assert authenticate(username="anna", password=new) == analyst
        assert authenticate(username="anna", password=password) is None
        assert reader.get("/").status_code == 302
        assert not pending.exists()
        assert last_facts() == {"account": "anna", "change": "password replaced"}

    def test_who_is_shut_out_is_out_at_once_and_keeps_the_roles(self, boss, analyst, reader):
        assert "The account is disabled" in post(boss, "active", analyst.pk, active="0")
        assert reader.get("/").status_code == 302
        assert last_facts() == {"account": "anna", "change": "deactivated"}
        shown = boss.get(url("person", analyst.pk)).content.decode()
        assert re.search(r'<input[^>]*value="analyst"[^>]*checked', shown)
        assert "can sign in again" in post(boss, "active", analyst.pk, active="1")
        assert roles_of(User.objects.get(pk=analyst.pk)) == {Role.ANALYST}

    @pytest.mark.parametrize("way", ["page", "model", "under way"])
    def test_reactivating_brings_nothing_back_that_was_open(self, boss, analyst, reader, fair, person, way):
        other = person("otto", Role.ANALYST)
        others, pending = signed_in(other), pending_sign_in(analyst)
        _, text = access.create_token(name="nightly", days=9, study=None, by=analyst)
        _, theirs = access.create_token(name="nightly", days=9, study=None, by=other)
        given = {"query": "", "days": 9, "note": "", "password": ""}
        _, link = access.create_link(fair.indicators.get(slug="gender"), Window(1, 2), **given, by=analyst)
        if way == "under way":  # sign-ins and tokens that were begun before, and are written after it
            User.objects.filter(pk=analyst.pk).update(is_active=False)
        for active in (False, True):
            if way != "model":
                post(boss, "active", analyst.pk, active=str(int(active)))
            else:
                analyst.is_active = active
                analyst.save()
        assert reader.get("/").status_code == 302
        assert not pending.exists()
        assert access.token_of(text) is None and access.link_of(link) is None
        assert others.get("/").status_code == 200
        assert access.token_of(theirs)
        ended = LedgerEntry.objects.filter(actor="account disabled").order_by("number")
        assert [entry.kind for entry in ended] == ["token.revoked", "share.revoked"]


class TestLimits:
    def test_nobody_changes_the_own_rights(self, boss, administrator, fair):
        before = rights_of(administrator)
        for name, data in CHANGES.items():
            assert "You cannot change your own rights" in post(boss, name, administrator.pk, **data)
        own_grant = administrator.study_grants.get().pk
        assert "You cannot change your own rights" in post(boss, "withdraw", administrator.pk, own_grant)
        assert rights_of(administrator) == before
        own = boss.get(url("person", administrator.pk)).content.decode()
        assert 'action="/people/' not in own and "Only another administrator can change it" in own

    def test_the_last_administrator_stays_even_from_the_shell(self, administrator, person):
        carol = person("carol", Role.ADMINISTRATOR)
        User.objects.filter(pk=carol.pk).update(is_active=False)
        with pytest.raises(AccessChangeError, match="adam is the last administrator"):
            people.set_roles(administrator, roles=[Role.VIEWER])
        with pytest.raises(AccessChangeError, match="adam is the last administrator"):
            people.set_active(administrator, is_active=False)
        User.objects.filter(pk=carol.pk).update(is_active=True)
        people.set_active(administrator, is_active=False)

    def test_who_has_lost_the_role_or_was_shut_out_meanwhile_changes_nothing(self, administrator, person):
        carol = person("carol", Role.ADMINISTRATOR)
        people.set_active(User.objects.get(pk=administrator.pk), is_active=False, by=carol)
        assert administrator.is_active  # as this request still believes
        with pytest.raises(AccessChangeError, match="Only administrators"):
            people.set_active(carol, is_active=False, by=administrator)
        people.set_active(User.objects.get(pk=administrator.pk), is_active=True, by=carol)
        people.set_roles(administrator, roles=[], by=carol)
        with pytest.raises(AccessChangeError, match="Only administrators"):
            people.set_roles(carol, roles=[], by=administrator)
        assert roles_of(carol) == {Role.ADMINISTRATOR}


class TestPages:
    def test_the_privacy_officer_sees_and_changes_nothing(self, officer, analyst):
        for address in (url("people"), url("person", analyst.pk)):
            page = officer.get(address).content.decode()
            assert "anna" in page and 'action="/people/' not in page and url("new") not in page
        assert officer.post(url("new"), {"username": "x"}).status_code == 404


class TestMatrix:
    def test_the_matrix_is_what_policies_decide(self, fair, market, person):
        people = [
            person("one", Role.ANALYST, studies=[fair]),
            person("ended", Role.VIEWER, studies=[fair], until=today() - TOMORROW),
            person("all", Role.OPERATOR),
            person("boss", Role.ADMINISTRATOR, studies=[]),
            person("both", Role.PRIVACY_OFFICER, Role.OPERATOR, studies=[market]),
            person("none", studies=[fair]),
        ]
        found = access_matrix(Study.objects.all())
        rights = {each.user.username: each.rights for each in found.accounts + found.blind}
        for user in people:
            for study, role in product((fair, market), Role):
                is_open = studies_for(user, role).filter(pk=study.pk).exists()
                in_matrix = {right.role for right in rights[user.username][study.pk]}
                assert (role in in_matrix) == is_open, (user, study, role)
        assert {each.user.username for each in found.blind} == {"ended", "none"}

    def test_a_blocked_account_stands_in_no_row(self, fair, anna):
        token("x", fair, by=anna)
        User.objects.filter(pk=anna.pk).update(is_active=False)
        found = access_matrix(Study.objects.all())
        assert found.accounts == found.blind == found.openings == ()
        [account] = accounts_with_rights(User.objects.all(), studies=[fair])
        assert (account.roles, account.rights) == ((Role.ANALYST,), {fair.pk: ()})

    def test_openings_are_those_that_open_now(self, fair, market, anna, person):
        gone = person("gone", Role.ANALYST, studies=[fair])
        token("all", None, by=anna)
        token("one", fair, by=anna)
        ended = {"revoked": {"revoked_at": timezone.now()}, "expired": {"expires_at": timezone.now()}}
        for name, change in ended.items():
            ApiToken.objects.filter(pk=token(name, fair, by=anna)[0].pk).update(**change)
        token("suspended", fair, by=gone)
        share(fair, by=anna, note="for the town")
        share(fair, by=gone, note="suspended")
        gone.study_grants.all().delete()
        found = access_matrix(Study.objects.all()).openings
        assert {each.study for each in found} == {fair}
        names = sorted((each.kind, each.name) for each in found)
        assert names == [("link", "for the town"), ("token", "all"), ("token", "one")]

    def test_an_opening_ends_with_the_longest_grant_of_its_maker_and_says_its_last_use(self, fair, anna):
        anna.study_grants.update(until=today())
        anna.study_grants.create(study=None, granted_by="test", until=today() + TOMORROW)
        text, address = token("long", fair, by=anna, days=100)[1], share(fair, by=anna, days=100)
        found = access_matrix([fair])
        assert [right.until for right in found.accounts[0].rights[fair.pk]] == [today() + TOMORROW]
        assert {opening.until for opening in found.openings} == {last_moment(today() + TOMORROW)}
        anna.study_grants.update(until=None)
        for opening in access_matrix([fair]).openings:
            assert opening.until > timezone.now() + timedelta(days=99) and opening.last_used is None
        Client().get(f"/shared/{address}/")
        Client().get("/api/v1/studies", headers={"Authorization": f"Bearer {text}"})
        for opening in access_matrix([fair]).openings:
            assert timezone.now() - opening.last_used < timedelta(minutes=1)

    def test_the_page_is_of_the_study_that_is_asked_for(self, officer, fair, market):
        for address, studies in (("", {fair, market}), ("?study=market", {market})):
            assert set(officer.get(f"/people/matrix/{address}").context["matrix"].studies) == studies

    def test_the_file_has_a_row_for_each_way_into_a_study(self, officer, fair, market, person):
        anna = person("anna", Role.ANALYST, Role.OPERATOR, studies=[fair], until=today())
        last = datetime(2024, 6, 1, 12, 30, tzinfo=UTC)
        User.objects.filter(pk=anna.pk).update(last_login=last)
        token("nightly", None, by=anna, days=5)
        share(fair, by=anna, note="town")
        rows = [row for row in rows_of(officer) if row["account"] == "anna"]
        assert {row["study"] for row in rows} == {"fair-2024"}
        columns = ("way", "role", "name", "report", "password")
        accounts = [("account", role, "", "", "") for role in ("operator", "analyst")]
        openings = [("token", "", "nightly", "", ""), ("link", "", "town", "Gender", "no")]
        assert [tuple(row[name] for name in columns) for row in rows] == accounts + openings
        assert rows[0]["until_utc"] == today().isoformat()
        assert rows[0]["last_used_utc"] == "2024-06-01T12:30:00+00:00"
        assert rows[2]["until_utc"] == f"{today()}T23:59:59+00:00"
        assert {row["study"] for row in rows_of(officer)} == {"fair-2024", "market"}
        assert {row["study"] for row in rows_of(officer, "?study=market")} == {"market"}

    def test_a_spreadsheet_computes_nothing_of_the_file(self, officer, fair, person):
        anna = person("+anna", Role.ANALYST)
        token("=1+1", fair, by=anna)
        share(fair, by=anna, note="@SUM(1)")
        for row in rows_of(officer):
            assert not any(value.startswith(("=", "+", "-", "@")) for value in row.values()), row
        assert {row["name"] for row in rows_of(officer)} == {"", "'=1+1", "'@SUM(1)"}

    def test_queries_do_not_grow_with_accounts(self, officer, fair, person, django_assert_num_queries):
        for n in (1, 8):
            for m in range(n):
                user = person(f"p-{n}-{m}", Role.ANALYST, studies=[fair])
                token("x", None, by=user)
                share(fair, by=user)
            factory.create(slug=f"more-{n}")
            with django_assert_num_queries(9):  # session, user, rights; accounts and theirs; names
                assert officer.get(url("people")).status_code == 200
            with django_assert_num_queries(12):
                assert officer.get("/people/matrix/").status_code == 200
