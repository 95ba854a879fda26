"""Which studies are open to whom, and until when."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, connection
from django.http import Http404
from django.utils import timezone

from reports.models import Study, StudyGrant
from reports.models.grant import today
from reports.models.ledger import LedgerEntry
from reports.policies import READERS, Role, fetch_rights, is_open_to, roles_of, studies_for, study_for
from reports.services.grants import give_grant, withdraw_grant
from reports.services.people import AccessChangeError
from reports.services.studies import delete_study_rows
from tests.reports import report_factory as factory

Person = Callable[..., User]


@pytest.fixture
def other(db: None) -> Study:
    return factory.create(slug="other")


def seen(user: User, *roles: Role) -> set[str]:
    return set(studies_for(user, *roles).values_list("slug", flat=True))


@pytest.mark.parametrize("role", [Role.ADMINISTRATOR, Role.PRIVACY_OFFICER])
def test_who_oversees_needs_no_grant(fair: Study, other: Study, person: Person, role: Role) -> None:
    assert seen(person("somebody", role, studies=[])) == {"fair-2024", "other"}


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ANALYST, Role.VIEWER])
def test_others_see_what_is_granted(fair: Study, other: Study, person: Person, role: Role) -> None:
    assert seen(person("new", role, studies=[])) == set()
    assert seen(person("one", role, studies=[fair])) == {"fair-2024"}
    assert seen(person("all", role)) == {"fair-2024", "other"}


def test_a_grant_without_a_role_opens_nothing(fair: Study, person: Person) -> None:
    assert seen(person("somebody", studies=[fair])) == set()


def test_nothing_is_open_to_an_account_that_is_blocked(fair: Study, person: Person) -> None:
    user = person("somebody", Role.ADMINISTRATOR)
    user.is_active = False
    assert seen(user) == set()


def test_a_role_does_not_lend_its_studies_to_another(fair: Study, person: Person) -> None:
    user = person("both", Role.ADMINISTRATOR, Role.OPERATOR, studies=[])
    assert seen(user) == {"fair-2024"}
    assert seen(user, Role.OPERATOR) == set()
    assert seen(user, Role.ANALYST) == set()
    assert seen(user, *READERS) == {"fair-2024"}


def test_unknown_and_hidden_studies_are_the_same(fair: Study, other: Study, person: Person) -> None:
    user = person("anna", Role.ANALYST, studies=[fair])
    assert study_for(user, "fair-2024") == fair
    for slug in ("other", "nope"):
        with pytest.raises(Http404) as caught:
            study_for(user, slug)
        assert str(caught.value) == ""


def test_a_grant_ends_with_its_last_day_in_utc(
    fair: Study, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = person("vera", Role.VIEWER, studies=[fair], until=date(2024, 6, 30))
    last = datetime(2024, 6, 30, 23, 59, 59, tzinfo=UTC)
    monkeypatch.setattr(timezone, "now", lambda: last)
    assert seen(user) == {"fair-2024"}
    monkeypatch.setattr(timezone, "now", lambda: last + timedelta(seconds=1))
    assert seen(user) == set()


def test_lists_decide_as_single_pages_do(fair: Study, other: Study, person: Person) -> None:
    yesterday = today() - timedelta(days=1)
    people = [
        person("ended", Role.ANALYST, studies=[fair], until=yesterday),
        person("one", Role.ANALYST, studies=[fair], until=today()),
        person("all", Role.VIEWER),
        person("boss", Role.ADMINISTRATOR, Role.OPERATOR, studies=[other]),
        person("nobody", studies=[fair]),
    ]
    for roles in ((), READERS, (Role.OPERATOR,), (Role.ANALYST, Role.OPERATOR)):
        for user in people:
            listed = {each.slug for each in (fair, other) if is_open_to(user, each.pk, *roles)}
            assert listed == seen(user, *roles), (user.username, roles)


def test_a_grant_of_a_deleted_study_opens_no_other(fair: Study, other: Study, person: Person) -> None:
    user = person("anna", Role.ANALYST, studies=[fair])
    delete_study_rows(fair)
    assert not user.study_grants.exists()
    assert seen(user) == set()


def test_the_database_keeps_one_grant_of_all_studies(person: Person) -> None:
    user = person("anna", Role.ANALYST)
    with pytest.raises(IntegrityError):
        StudyGrant.objects.create(user=user, study=None, granted_by="test")


class TestGiving:
    def test_opens_until_a_day_and_is_recorded(
        self, fair: Study, person: Person, administrator: User
    ) -> None:
        user, until = person("anna", Role.ANALYST, studies=[]), today() + timedelta(days=3)
        grant = give_grant(user, study=fair, until=until, by=administrator)
        assert seen(user) == {"fair-2024"}
        assert grant.granted_by == administrator.username
        entry = LedgerEntry.objects.latest("number")
        assert (entry.kind, entry.actor, entry.study) == ("access.changed", "adam", "fair-2024")
        assert entry.facts == {
            "account": "anna", "change": "granted", "studies": "fair-2024", "until": until.isoformat()
        }  # fmt: skip

    def test_again_replaces_the_end(self, fair: Study, person: Person, administrator: User) -> None:
        user = person("anna", Role.ANALYST, studies=[fair], until=today())
        give_grant(user, study=fair, by=administrator)
        assert [grant.until for grant in user.study_grants.all()] == [None]

    def test_withdrawing_closes_at_once(self, fair: Study, person: Person, administrator: User) -> None:
        user = person("anna", Role.ANALYST, studies=[fair])
        withdraw_grant(user.study_grants.get(), by=administrator)
        assert seen(user) == set()
        assert LedgerEntry.objects.latest("number").facts["change"] == "withdrawn"

    def test_a_last_day_that_is_over_is_refused(
        self, fair: Study, person: Person, administrator: User
    ) -> None:
        user = person("anna", Role.ANALYST, studies=[])
        with pytest.raises(AccessChangeError, match="must be today or later"):
            give_grant(user, study=fair, until=today() - timedelta(days=1), by=administrator)
        assert not user.study_grants.exists()

    @pytest.mark.parametrize("role", [Role.OPERATOR, Role.ANALYST, Role.PRIVACY_OFFICER, Role.VIEWER])
    def test_only_administrators_give(self, fair: Study, person: Person, role: Role) -> None:
        user, by = person("anna", Role.ANALYST, studies=[]), person("else", role)
        with pytest.raises(AccessChangeError, match="Only administrators"):
            give_grant(user, study=fair, by=by)

    def test_nobody_gives_to_the_own_account(self, fair: Study, person: Person) -> None:
        user = person("boss", Role.ADMINISTRATOR, Role.OPERATOR, studies=[])
        with pytest.raises(AccessChangeError, match="Nobody changes the own rights"):
            give_grant(user, study=fair, by=user)


def test_an_upgrade_takes_nothing_away(fair: Study, person: Person, stranger: User) -> None:
    migration: Any = import_module("reports.migrations.0012_grants")
    users = {
        role: person(f"an-{role}", role, studies=[]) for role in ("operator", "analyst", "administrator")
    }
    Group.objects.filter(name__in=["viewer", "privacy_officer"]).delete()
    editor = SimpleNamespace(connection=connection)
    migration.create_groups(apps, editor)
    migration.grant_what_was_open(apps, editor)
    assert all(seen(user) == {"fair-2024"} for user in users.values())
    assert {grant.user.username for grant in StudyGrant.objects.all()} == {"an-operator", "an-analyst"}
    assert not stranger.study_grants.exists()
    assert Group.objects.filter(name__in=["viewer", "privacy_officer"]).count() == 2


def test_rights_that_were_fetched_are_those_of_that_moment(
    person: Person, fair: Study, django_assert_num_queries: Any
) -> None:
    vera = person("vera", Role.VIEWER, studies=[fair])
    fetch_rights(vera)
    StudyGrant.objects.all().delete()
    with django_assert_num_queries(0):
        assert roles_of(vera) == {Role.VIEWER}
        assert is_open_to(vera, fair.pk)
    assert not studies_for(User.objects.get(pk=vera.pk)).exists()
