"""The second-person rule: no one who could act through the account of an author."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from reports.accounts import actions as people
from reports.accounts.second_person import obstacle
from reports.base import formats
from reports.ledger.actions import record
from reports.ledger.models import LedgerKind
from reports.studies.policies import Role

pytestmark = pytest.mark.django_db
OFFICER, ADMINISTRATOR = [Role.PRIVACY_OFFICER], [Role.ADMINISTRATOR]


@pytest.fixture(autouse=True)
def _accounts():
    for name in ("adam", "bea", "mona"):
        people.create_account(name, roles=ADMINISTRATOR)
    people.create_account("petra", roles=OFFICER)


def user(name: str) -> User:
    return User.objects.get(username=name)


def why_not(reviewer: str = "petra", *authors: str, **options) -> str:
    return obstacle(reviewer, authors=authors or ("adam",), of_author="own", **options)


def changed(actor: str, account: str, what: str, *, days_ago: float = 0, monkeypatch) -> None:
    at = timezone.now() - timedelta(days=days_ago)
    with monkeypatch.context() as patched:
        patched.setattr("reports.ledger.actions.timezone.now", lambda: at)
        record(LedgerKind.ACCESS_CHANGED, actor=actor, facts={"account": account, "change": what})


def test_an_author_approves_nothing_whatever_capitals_the_name_has():
    assert why_not("petra") == ""
    assert why_not("adam") == why_not("ADAM") == why_not("petra", "mona", "petra") == "own"


CHANGES = {
    "adam reset the password of petra": lambda by: people.replace_password(user("petra"), by=by),
    "adam changed the roles of petra": lambda by: people.set_roles(user("petra"), roles=ADMINISTRATOR, by=by),
    "adam created the account eve": lambda by: people.create_account("eve", roles=OFFICER, by=by),
}


@pytest.mark.parametrize("words", CHANGES)
def test_nor_does_an_account_that_an_author_created_or_whose_password_or_roles_one_changed(words, settings):
    CHANGES[words](user("adam"))
    reviewer = words.split()[-1]
    assert words in why_not(reviewer)
    assert "The waiting period is 30 days (setting MOBILITY_SECOND_PERSON_DAYS)" in why_not(reviewer)
    assert why_not("bea") == ""  # anyone else may
    assert why_not(reviewer, "bea") == ""  # and to what others wrote it may say yes
    settings.MOBILITY_SECOND_PERSON_DAYS = 7
    assert "The waiting period is 7 days" in why_not(reviewer)
    settings.MOBILITY_SECOND_PERSON_DAYS = 1
    assert "The waiting period is 1 day (" in why_not(reviewer)
    settings.MOBILITY_SECOND_PERSON_DAYS = 10**9
    assert words in why_not(reviewer)


@pytest.mark.parametrize("what", ["second factor removed", "second factor added", "activated", "unheard of"])
def test_whatever_else_an_author_changes_counts_but_no_grants_nor_own_changes(what, monkeypatch):
    for harmless in ("granted", "withdrawn", "deactivated"):
        changed("adam", "petra", harmless, monkeypatch=monkeypatch)
    for own in ("password changed", "second factor removed"):
        changed("petra", "petra", own, monkeypatch=monkeypatch)
    for actor in ("command line", "sign-in", "demo", ""):
        changed(actor, "petra", "password replaced", monkeypatch=monkeypatch)
    assert why_not() == ""
    changed("adam", "petra", what, monkeypatch=monkeypatch)
    assert why_not()


def test_approvals_count_again_when_the_last_change_is_so_many_days_old(monkeypatch):
    changed("adam", "petra", "password replaced", days_ago=31, monkeypatch=monkeypatch)
    assert why_not() == ""
    assert why_not(at=timezone.now() - timedelta(days=2))  # one of then does not count later either
    changed("adam", "petra", "roles", days_ago=29, monkeypatch=monkeypatch)
    changed("adam", "petra", "password replaced", days_ago=10, monkeypatch=monkeypatch)
    free = timezone.now() + timedelta(days=20)
    assert (f" {free.day} {free:%b %Y}" in why_not(), why_not(at=free + timedelta(minutes=1))) == (True, "")


def test_a_change_counts_whatever_clock_another_host_has_and_says_until_when_to_the_minute(monkeypatch):
    changed("adam", "petra", "password replaced", days_ago=-0.01, monkeypatch=monkeypatch)
    assert why_not()
    assert why_not(at=timezone.now()) == ""  # an approval of before
    free = timezone.now() + timedelta(days=30.01, minutes=1)
    assert f"before {formats.day_title(free.date())}, {free:%H:}" in why_not()


def test_nor_does_one_who_could_act_as_the_author_or_is_the_person_behind_both_accounts(monkeypatch):
    changed("mona", "adam", "password replaced", monkeypatch=monkeypatch)
    assert why_not() == ""
    changed("mona", "petra", "created", monkeypatch=monkeypatch)
    assert "mona created the account petra" in why_not()
    assert "mona reset the password of adam" in why_not()
    changed("bea", "adam", "password replaced", monkeypatch=monkeypatch)
    assert "bea reset the password of adam" in why_not("bea")


def test_changes_through_a_third_account_count_in_whatever_order_they_stand(monkeypatch):
    changed("bea", "petra", "roles", monkeypatch=monkeypatch)
    assert why_not() == ""
    changed("adam", "mona", "password replaced", monkeypatch=monkeypatch)
    changed("mona", "bea", "created", monkeypatch=monkeypatch)
    text = why_not()
    assert all(words in text for words in ("adam reset", "mona created", "bea changed the roles of petra"))


def test_who_gave_an_author_roles_stays_independent(monkeypatch):
    changed("petra", "adam", "roles", monkeypatch=monkeypatch)
    changed("mona", "adam", "roles", monkeypatch=monkeypatch)
    changed("mona", "petra", "roles", monkeypatch=monkeypatch)
    assert why_not() == ""
