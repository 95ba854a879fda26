"""Grants: open studies of each account, and their end; report pages are read only."""

import json
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.db import IntegrityError
from django.http import Http404
from django.urls import reverse
from django.utils import timezone

from reports.accounts.actions import AccessChangeError
from reports.accounts.grants import give_grant, withdraw_grant
from reports.models import LedgerEntry, Study
from reports.studies.grant_models import StudyGrant, today
from reports.studies.policies import READERS, Role, fetch_rights, is_open_to, roles_of, studies_for, study_for
from reports.transfer.studies import delete_study_rows
from tests.mobility.pages.access_rules import RULES
from tests.reports import report_factory as factory
from tests.reports.page_texts import printed

pytestmark = pytest.mark.django_db


@pytest.fixture
def fair(db) -> Study:
    return factory.create()


@pytest.fixture
def other(db) -> Study:
    return factory.create(slug="other")


def seen(user: User, *roles: Role) -> set[str]:
    return set(studies_for(user, *roles).values_list("slug", flat=True))


@pytest.mark.parametrize("role", [Role.ADMINISTRATOR, Role.PRIVACY_OFFICER])
def test_who_oversees_needs_no_grant(fair, other, person, role) -> None:
    user = person("somebody", role, studies=[])
    assert (roles_of(user), seen(user)) == ({role}, {"fair-2024", "other"})
    user.is_active = False
    assert (roles_of(user), seen(user)) == (frozenset(), set())


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ANALYST, Role.VIEWER])
def test_others_see_what_is_granted_and_nothing_without_a_role(fair, other, person, role) -> None:
    assert seen(person("new", role, studies=[])) == set()
    assert seen(person("one", role, studies=[fair])) == {"fair-2024"}
    assert seen(person("all", role)) == {"fair-2024", "other"}
    nobody = person("nobody", studies=[fair])
    assert (roles_of(nobody), seen(nobody)) == (frozenset(), set())
    one = User.objects.get(username="one")
    assert study_for(one, "fair-2024") == fair
    for slug in ("other", "nope"):  # hidden and unknown ones are the same
        with pytest.raises(Http404) as caught:
            study_for(one, slug)
        assert str(caught.value) == ""


def test_a_role_does_not_lend_its_studies_to_another(fair, person) -> None:
    user = person("both", Role.ADMINISTRATOR, Role.OPERATOR, studies=[])
    assert (seen(user), seen(user, Role.OPERATOR), seen(user, Role.ANALYST)) == ({"fair-2024"}, set(), set())
    assert seen(user, *READERS) == {"fair-2024"}


def test_a_grant_ends_with_its_last_day_in_utc(fair, person, monkeypatch) -> None:
    user = person("vera", Role.VIEWER, studies=[fair], until=date(2024, 6, 30))
    last = datetime(2024, 6, 30, 23, 59, 59, tzinfo=UTC)
    for now, open_to in ((last, {"fair-2024"}), (last + timedelta(seconds=1), set())):
        monkeypatch.setattr(timezone, "now", lambda now=now: now)
        assert seen(user) == open_to


def test_lists_decide_as_single_pages_do(fair, other, person) -> None:
    people = [
        person("ended", Role.ANALYST, studies=[fair], until=today() - timedelta(days=1)),
        person("one", Role.ANALYST, studies=[fair], until=today()),
        person("all", Role.VIEWER),
        person("boss", Role.ADMINISTRATOR, Role.OPERATOR, studies=[other]),
        person("nobody", studies=[fair]),
    ]
    for roles in ((), READERS, (Role.OPERATOR,), (Role.ANALYST, Role.OPERATOR)):
        for user in people:
            listed = {each.slug for each in (fair, other) if is_open_to(user, each.pk, *roles)}
            assert listed == seen(user, *roles), (user.username, roles)


def test_a_grant_of_a_deleted_study_opens_no_other_and_one_opens_all(fair, other, person) -> None:
    user, everywhere = person("anna", Role.ANALYST, studies=[fair]), person("alf", Role.ANALYST)
    delete_study_rows(fair)
    assert not user.study_grants.exists()
    assert seen(user) == set()
    with pytest.raises(IntegrityError):
        StudyGrant.objects.create(user=everywhere, study=None, granted_by="test")


def test_a_grant_opens_until_a_day_and_is_recorded(fair, person, administrator) -> None:
    user, until = person("anna", Role.ANALYST, studies=[]), today() + timedelta(days=3)
    grant = give_grant(user, study=fair, until=until, by=administrator)
    assert (seen(user), grant.granted_by) == ({"fair-2024"}, administrator.username)
    entry = LedgerEntry.objects.latest("number")
    assert (entry.kind, entry.actor, entry.study) == ("access.changed", "adam", "fair-2024")
    facts = {"account": "anna", "change": "granted", "studies": "fair-2024", "until": until.isoformat()}
    assert entry.facts == facts
    give_grant(user, study=fair, by=administrator)  # again: replaces the end
    assert [each.until for each in user.study_grants.all()] == [None]
    withdraw_grant(user.study_grants.get(), by=administrator)
    assert seen(user) == set()
    assert LedgerEntry.objects.latest("number").facts["change"] == "withdrawn"


def test_only_administrators_give_not_to_themselves_nor_for_a_day_that_is_over(fair, person, administrator):
    boss = person("boss", Role.ADMINISTRATOR, Role.OPERATOR, studies=[])
    others = [Role.OPERATOR, Role.ANALYST, Role.PRIVACY_OFFICER, Role.VIEWER]
    for by, until, rule in (
        *((person(f"by {role}", role), None, "Only administrators") for role in others),
        (boss, None, "You cannot change your own rights"),
        (administrator, today() - timedelta(days=1), "last day of access cannot be in the past"),
    ):
        with pytest.raises(AccessChangeError, match=rule):
            give_grant(boss, study=fair, until=until, by=by)
    assert not boss.study_grants.exists()


def test_rights_that_were_fetched_are_those_of_that_moment(person, fair, django_assert_num_queries) -> None:
    vera = person("vera", Role.VIEWER, studies=[fair])
    fetch_rights(vera)
    StudyGrant.objects.all().delete()
    with django_assert_num_queries(0):
        assert roles_of(vera) == {Role.VIEWER}
        assert is_open_to(vera, fair.pk)
    assert not studies_for(User.objects.get(pk=vera.pk)).exists()


WRITTEN = {
    "reports:maps_compute", "reports:notes", "reports:remove_note", "reports:ask_forecast",
    "reports:crowd_limits", "reports:map_layers", "reports:boards", "reports:board_digest",
}  # fmt: skip


def test_pages_are_read_only(client, administrator) -> None:
    client.force_login(administrator)  # reads them all
    pages = [name for name, rule in RULES.items() if name.startswith("reports:") and rule.method == "get"]
    assert len(pages) > 40
    for name in {*pages} - WRITTEN:
        rule = RULES[name]
        address = reverse(name, kwargs={**rule.kwargs, **dict.fromkeys(rule.about, 1)})
        for method in (client.post, client.put, client.patch, client.delete):
            assert method(address).status_code == 405, name


def run(*words: str) -> dict[str, Any]:
    return json.loads(printed(*words, stderr=StringIO()))


def test_create_account_prints_a_password_that_works_and_is_recorded() -> None:
    found = run("create_account", "berta", "--role", "analyst", "--role", "administrator", "--all-studies")
    assert (found["username"], found["studies"]) == ("berta", ["all"])
    assert found["roles"] == ["analyst", "administrator"]
    assert authenticate(username="berta", password=found["password"]) is not None
    assert roles_of(User.objects.get(username="berta")) == {"analyst", "administrator"}
    made, granted = LedgerEntry.objects.order_by("number")
    assert made.facts == {"account": "berta", "change": "created", "roles": ["administrator", "analyst"]}
    assert (made.actor, granted.actor, granted.facts["studies"]) == (*["command line"] * 2, "all studies")


def test_create_account_takes_a_password_from_a_file_or_input_and_no_weak_one(tmp_path, monkeypatch) -> None:
    file = tmp_path / "password"
    file.write_text("four unlikely words here\n")
    monkeypatch.setattr("sys.stdin", StringIO("four unlikely words here\n"))
    for name, given in (("ada", str(file)), ("eva", "-")):
        found = run("create_account", name, "--role", "administrator", "--password-file", given)
        assert "password" not in found
        assert authenticate(username=name, password="four unlikely words here") is not None
    for password in ("", "short", "123456789012345"):
        file.write_text(password)
        with pytest.raises(CommandError, match="password"):
            run("create_account", "ina", "--role", "administrator", "--password-file", str(file))
        assert not User.objects.filter(username="ina").exists()


def test_create_account_opens_the_named_study_until_a_day_and_nothing_else(fair) -> None:
    words = ("--role", "viewer", "--study", "fair-2024", "--until", "2999-12-31")
    found = run("create_account", "berta", *words)
    assert (found["studies"], found["until"]) == (["fair-2024"], "2999-12-31")
    grant = User.objects.get(username="berta").study_grants.get()
    assert (grant.study, str(grant.until), grant.granted_by) == (fair, "2999-12-31", "command line")
    errors = StringIO()
    printed("create_account", "eva", "--role", "viewer", stderr=errors)
    assert not studies_for(User.objects.get(username="eva")).exists()
    assert "eva has no access to a study yet" in errors.getvalue()


def test_what_makes_no_sense_or_has_a_taken_name_is_refused_and_makes_no_account(fair, analyst) -> None:
    analyst_of = ["--role", "analyst"]
    for words, rule in (
        ([*analyst_of, "--study", "nope"], "there is no study 'nope'; studies: fair-2024"),
        ([*analyst_of, "--study", "fair-2024", "--all-studies"], "not both"),
        ([*analyst_of, "--until", "2999-01-01"], "--study or --all-studies, too"),
        ([*analyst_of, "--all-studies", "--until", "2000-01-01"], "last day of access cannot be in the past"),
        (["--role", "privacy_officer", "--all-studies"], "see all studies"),
    ):
        with pytest.raises(CommandError, match=rule):
            run("create_account", "berta", *words)
    for name in ("anna", "ANNA"):
        with pytest.raises(CommandError, match=f"An account named {name} already"):
            run("create_account", name, "--role", "operator")
    assert list(User.objects.values_list("username", flat=True)) == ["anna"]
    assert roles_of(analyst) == {Role.ANALYST}


def test_grant_study_opens_and_closes(fair) -> None:
    run("create_account", "berta", "--role", "viewer")
    user, given = User.objects.get(username="berta"), ("grant_study", "berta", "--study", "fair-2024")
    for words, is_open in (((), True), (("--withdraw",), False)):
        assert run(*given, *words)["granted"] == is_open
        assert list(studies_for(user)) == [fair] * is_open
    for words, rule in (
        ((*given, "--withdraw"), "berta has no grant for fair-2024"),
        (("grant_study", "nobody", "--all-studies"), "no account is named 'nobody'"),
        (("grant_study", "berta"), "give --study SLUG or --all-studies"),
    ):
        with pytest.raises(CommandError, match=rule):
            run(*words)
