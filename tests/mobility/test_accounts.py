"""The accounts of the demo: one for each role."""

import json
from pathlib import Path

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User

from mobility.services.accounts import ensure_demo_accounts
from reports.policies import Role, roles_of, studies_for
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db


def roles_by_name() -> dict[str, frozenset[str]]:
    return {user.username: roles_of(user) for user in User.objects.all()}


def test_demo_has_one_account_for_each_role(tmp_path: Path) -> None:
    passwords = ensure_demo_accounts(tmp_path / "accounts.json")
    assert roles_by_name() == {role.value: frozenset({role.value}) for role in Role}
    for username, password in passwords.items():
        assert authenticate(username=username, password=password) is not None


def test_demo_accounts_see_every_study(tmp_path: Path) -> None:
    fair = factory.create()
    for username in ensure_demo_accounts(tmp_path / "accounts.json"):
        assert list(studies_for(User.objects.get(username=username))) == [fair]


def test_demo_passwords_are_in_a_private_file_and_stay(tmp_path: Path) -> None:
    file = tmp_path / "accounts.json"
    passwords = ensure_demo_accounts(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text()) == passwords
    assert ensure_demo_accounts(file) == passwords
    assert len(set(passwords.values())) == len(Role)


def test_demo_of_an_earlier_version_gets_the_roles_that_it_lacks(tmp_path: Path) -> None:
    file = tmp_path / "accounts.json"
    before = ensure_demo_accounts(file)
    User.objects.get(username="viewer").delete()
    file.write_text(json.dumps({name: text for name, text in before.items() if name != "viewer"}))
    after = ensure_demo_accounts(file)
    assert {name: after[name] for name in before if name != "viewer"} == {
        name: text for name, text in before.items() if name != "viewer"
    }
    assert authenticate(username="viewer", password=after["viewer"]) is not None
    assert json.loads(file.read_text()) == after


def test_demo_keeps_what_a_person_changed(tmp_path: Path) -> None:
    ensure_demo_accounts(tmp_path / "accounts.json")
    user = User.objects.get(username="analyst")
    user.set_password("a new one of my own")
    user.save()
    ensure_demo_accounts(tmp_path / "accounts.json")
    assert authenticate(username="analyst", password="a new one of my own") is not None


def test_lost_file_gives_new_passwords_that_work(tmp_path: Path) -> None:
    before = ensure_demo_accounts(tmp_path / "accounts.json")
    kept = User.objects.get(username="operator")
    (tmp_path / "accounts.json").unlink()
    after = ensure_demo_accounts(tmp_path / "accounts.json")
    assert before["operator"] != after["operator"]
    assert User.objects.get(username="operator").pk == kept.pk  # what the account has made stays
    assert authenticate(username="operator", password=after["operator"]) is not None
