"""Pages of people: what administrators change there, and what nobody can."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from reports.models import Study
from reports.models.grant import today
from reports.models.ledger import LedgerEntry
from reports.policies import Role, roles_of, studies_for
from reports.services import people
from reports.services.people import AccessChangeError

Person = Callable[..., User]


@pytest.fixture
def boss(administrator: User, client: Client) -> Client:
    """An administrator who is signed in."""
    client.force_login(administrator)
    return client


def url(name: str, *args: object) -> str:
    return reverse(f"people:{name}", args=args)


def words(response: HttpResponse) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def post(client: Client, name: str, *args: object, **data: Any) -> str:
    """What the page says that comes after a change."""
    response = client.post(url(name, *args), data, follow=True)
    assert response.status_code == 200
    return words(response)


def last_facts() -> dict[str, Any]:
    entry = LedgerEntry.objects.filter(kind="access.changed").latest("number")
    assert entry.actor == "adam"
    facts: dict[str, Any] = entry.facts
    return facts


class TestNewAccount:
    def test_gets_a_password_that_works_and_nothing_else(self, boss: Client, fair: Study) -> None:
        response = boss.post(url("new"), {"username": "berta", "roles": ["analyst"]})
        assert response.status_code == 200
        assert "no-store" in response["Cache-Control"]
        found = re.search(r'<pre class="token"[^>]*>([^<]+)</pre>', response.content.decode())
        assert found is not None
        assert authenticate(username="berta", password=found[1]) is not None
        made = User.objects.get(username="berta")
        assert roles_of(made) == {Role.ANALYST}
        assert not studies_for(made).exists()
        assert "No study is open to this account yet" in words(response)
        assert last_facts() == {"account": "berta", "change": "created", "roles": ["analyst"]}

    def test_password_is_shown_once_and_stands_nowhere(self, boss: Client) -> None:
        shown = boss.post(url("new"), {"username": "berta", "roles": ["viewer"]}).content.decode()
        password = re.search(r'<pre class="token"[^>]*>([^<]+)</pre>', shown)
        assert password is not None
        made = User.objects.get(username="berta")
        assert password[1] not in boss.get(url("person", made.pk)).content.decode()
        assert password[1] not in str(list(LedgerEntry.objects.values()))

    @pytest.mark.parametrize("name", ["anna", "Anna", "a b", "", "x" * 151, "demo", "Sign-in"])
    def test_a_name_that_is_none_or_taken_is_refused(self, boss: Client, analyst: User, name: str) -> None:
        before = User.objects.count()
        response = boss.post(url("new"), {"username": name, "roles": ["viewer"]})
        assert response.status_code == 422
        assert User.objects.count() == before
        assert 'class="errorlist"' in response.content.decode()

    def test_an_invented_role_is_refused(self, boss: Client) -> None:
        assert boss.post(url("new"), {"username": "berta", "roles": ["boss"]}).status_code == 422
        assert not User.objects.filter(username="berta").exists()


class TestGrants:
    def test_a_study_is_opened_until_a_day_and_closed(
        self, boss: Client, fair: Study, person: Person
    ) -> None:
        vera = person("vera", Role.VIEWER, studies=[])
        until = today() + timedelta(days=9)
        page = post(boss, "grant", vera.pk, study="fair-2024", until=until.isoformat())
        assert "The study is open to this account." in page
        assert until.isoformat() in page
        assert list(studies_for(vera)) == [fair]
        grant = vera.study_grants.get()
        page = post(boss, "withdraw", vera.pk, grant.pk)
        assert "The study is closed to this account" in page
        assert not studies_for(vera).exists()
        assert last_facts()["change"] == "withdrawn"

    def test_all_studies_must_be_chosen_by_name(self, boss: Client, fair: Study, person: Person) -> None:
        vera = person("vera", Role.VIEWER, studies=[])
        assert "Choose a study." in post(boss, "grant", vera.pk, study="")
        assert not vera.study_grants.exists()
        post(boss, "grant", vera.pk, study="*")
        assert vera.study_grants.get().study is None

    def test_a_day_that_is_over_is_refused_in_words(self, boss: Client, fair: Study, person: Person) -> None:
        vera = person("vera", Role.VIEWER, studies=[])
        page = post(boss, "grant", vera.pk, study="fair-2024", until="2020-01-01")
        assert "The last day must be today or later, got 2020-01-01" in page
        assert not vera.study_grants.exists()

    def test_a_grant_is_withdrawn_on_the_page_of_its_account_only(
        self, boss: Client, fair: Study, person: Person
    ) -> None:
        vera, anna = person("vera", Role.VIEWER), person("anna", Role.ANALYST)
        address = url("withdraw", anna.pk, vera.study_grants.get().pk)
        assert boss.post(address).status_code == 404
        assert vera.study_grants.exists()


class TestRoles:
    def test_are_replaced(self, boss: Client, person: Person) -> None:
        anna = person("anna", Role.ANALYST)
        assert "The roles are changed." in post(boss, "roles", anna.pk, roles=["viewer", "operator"])
        assert roles_of(anna) == {Role.VIEWER, Role.OPERATOR}
        assert last_facts() == {"account": "anna", "change": "roles", "roles": ["operator", "viewer"]}

    def test_the_same_again_is_no_change(self, boss: Client, person: Person) -> None:
        anna = person("anna", Role.ANALYST)
        post(boss, "roles", anna.pk, roles=["analyst"])
        assert not LedgerEntry.objects.filter(kind="access.changed").exists()

    def test_without_a_tick_nothing_is_left(self, boss: Client, person: Person) -> None:
        anna = person("anna", Role.ANALYST)
        post(boss, "roles", anna.pk)
        assert roles_of(anna) == frozenset()

    def test_of_an_account_that_is_shut_out_are_kept(self, boss: Client, person: Person) -> None:
        anna = person("anna", Role.ANALYST)
        post(boss, "active", anna.pk, active="0")
        shown = boss.get(url("person", anna.pk)).content.decode()
        assert re.search(r'<input[^>]*value="analyst"[^>]*checked', shown)
        post(boss, "active", anna.pk, active="1")
        assert roles_of(User.objects.get(pk=anna.pk)) == {Role.ANALYST}


class TestDoor:
    def test_a_new_password_ends_the_sessions_of_the_old_one(
        self, boss: Client, person: Person, password: str
    ) -> None:
        anna, reader = person("anna", Role.ANALYST), Client()
        reader.force_login(anna)
        shown = boss.post(url("password", anna.pk)).content.decode()
        found = re.search(r'<pre class="token"[^>]*>([^<]+)</pre>', shown)
        assert found is not None
        assert authenticate(username="anna", password=found[1]) is not None
        assert authenticate(username="anna", password=password) is None
        assert reader.get("/").status_code == 302
        assert last_facts() == {"account": "anna", "change": "password replaced"}

    def test_who_is_shut_out_is_out_at_once(self, boss: Client, person: Person) -> None:
        anna, reader = person("anna", Role.ANALYST), Client()
        reader.force_login(anna)
        assert "shut out" in post(boss, "active", anna.pk, active="0")
        assert reader.get("/").status_code == 302
        assert last_facts() == {"account": "anna", "change": "deactivated"}
        assert "can sign in again" in post(boss, "active", anna.pk, active="1")
        assert reader.get("/").status_code == 200


CHANGES: dict[str, dict[str, Any]] = {
    "roles": {"roles": ["administrator", "operator"]},
    "grant": {"study": "fair-2024"},
    "active": {"active": "0"},
    "password": {},
}


@pytest.mark.parametrize("name", CHANGES)
def test_nobody_changes_the_own_rights(boss: Client, administrator: User, fair: Study, name: str) -> None:
    before = rights_of(administrator)
    assert "Nobody changes the own rights" in post(boss, name, administrator.pk, **CHANGES[name])
    assert rights_of(administrator) == before
    own = boss.get(url("person", administrator.pk)).content.decode()
    assert 'action="/people/' not in own
    assert "another administrator changes it" in own


def test_nobody_withdraws_the_own_grant(boss: Client, administrator: User) -> None:
    grant = administrator.study_grants.get()
    assert "Nobody changes the own rights" in post(boss, "withdraw", administrator.pk, grant.pk)
    assert administrator.study_grants.exists()


def rights_of(user: User) -> tuple[object, ...]:
    found = User.objects.get(pk=user.pk)
    return roles_of(found), found.is_active, found.password, list(found.study_grants.values())


def test_an_administrator_takes_another_ones_role_but_one_is_left(boss: Client, person: Person) -> None:
    other = person("carol", Role.ADMINISTRATOR)
    post(boss, "roles", other.pk, roles=["viewer"])
    assert roles_of(other) == {Role.VIEWER}


@pytest.mark.parametrize(
    "change",
    [
        lambda last: people.set_roles(last, roles=[Role.VIEWER]),
        lambda last: people.set_active(last, is_active=False),
    ],
    ids=["role", "door"],
)
def test_the_last_administrator_stays_even_from_the_shell(
    administrator: User, person: Person, change: Callable[[User], None]
) -> None:
    blocked = person("carol", Role.ADMINISTRATOR)
    User.objects.filter(pk=blocked.pk).update(is_active=False)
    with pytest.raises(AccessChangeError, match="adam is the last administrator"):
        change(administrator)
    User.objects.filter(pk=blocked.pk).update(is_active=True)
    change(administrator)


def test_who_has_lost_the_role_meanwhile_changes_nothing(administrator: User, person: Person) -> None:
    other = person("carol", Role.ADMINISTRATOR)
    people.set_roles(administrator, roles=[], by=other)
    with pytest.raises(AccessChangeError, match="Only administrators"):
        people.set_roles(other, roles=[], by=administrator)
    assert roles_of(other) == {Role.ADMINISTRATOR}


def test_who_was_shut_out_meanwhile_changes_nothing(administrator: User, person: Person) -> None:
    other = person("carol", Role.ADMINISTRATOR)
    people.set_active(User.objects.get(pk=administrator.pk), is_active=False, by=other)
    assert administrator.is_active  # as this request still believes
    with pytest.raises(AccessChangeError, match="Only administrators"):
        people.set_active(other, is_active=False, by=administrator)


def test_the_privacy_officer_sees_and_changes_nothing(
    client: Client, privacy_officer: User, analyst: User, fair: Study
) -> None:
    client.force_login(privacy_officer)
    for address in (url("people"), url("person", analyst.pk)):
        page = client.get(address).content.decode()
        assert "anna" in page
        assert 'action="/people/' not in page
        assert url("new") not in page
    for name, data in CHANGES.items():
        assert client.post(url(name, analyst.pk), data).status_code == 404
    assert client.post(url("new"), {"username": "x"}).status_code == 404


def test_changes_need_the_form(analyst: User, administrator: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(administrator)
    for name, data in CHANGES.items():
        assert strict.post(url(name, analyst.pk), data).status_code == 403
        assert strict.get(url(name, analyst.pk)).status_code == 405


def test_the_list_says_what_each_account_has(boss: Client, fair: Study, person: Person) -> None:
    until = today() + timedelta(days=1)
    person("anna", Role.ANALYST, studies=[fair], until=until)
    person("bob", Role.VIEWER, studies=[])
    person("carol", Role.ADMINISTRATOR, Role.OPERATOR, studies=[])
    person("dora", Role.OPERATOR, studies=[fair], until=today() - timedelta(days=1))
    page = words(boss.get(url("people")))
    assert f"anna analyst The fair until {until}" in page
    assert "bob viewer none yet" in page
    assert "carol operator, administrator all (other roles: as granted)" in page
    assert "dora operator The fair ended" in page


def test_many_accounts_take_as_many_queries_as_one(
    boss: Client, person: Person, fair: Study, django_assert_num_queries: Any
) -> None:
    counts = []
    for n in range(2):
        for m in range(1 + 10 * n):
            person(f"p-{n}-{m}", Role.ANALYST, studies=[fair])
        with django_assert_num_queries(8) as captured:  # session, user, rights; accounts and theirs
            assert boss.get(url("people")).status_code == 200
        counts.append(len(captured))
    assert counts[0] == counts[1]
