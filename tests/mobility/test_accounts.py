"""Accounts and the three people of the demo."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from mobility.services.accounts import ensure_demo_accounts
from reports.policies import Role, roles_of

pytestmark = pytest.mark.django_db


def roles_by_name() -> dict[str, frozenset[str]]:
    return {user.username: roles_of(user) for user in User.objects.all()}


def test_demo_has_one_account_for_each_role(tmp_path: Path) -> None:
    passwords = ensure_demo_accounts(tmp_path / "accounts.json")
    assert roles_by_name() == {role.value: frozenset({role.value}) for role in Role}
    for username, password in passwords.items():
        assert authenticate(username=username, password=password) is not None


def test_demo_passwords_are_in_a_private_file_and_stay(tmp_path: Path) -> None:
    file = tmp_path / "accounts.json"
    passwords = ensure_demo_accounts(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text()) == passwords
    assert ensure_demo_accounts(file) == passwords
    assert len(set(passwords.values())) == len(Role)


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


def test_create_account_prints_a_password_that_works() -> None:
    out = StringIO()
    call_command("create_account", "berta", "analyst", "administrator", stdout=out)
    printed = json.loads(out.getvalue())
    assert printed["username"] == "berta"
    assert printed["roles"] == ["analyst", "administrator"]
    assert authenticate(username="berta", password=printed["password"]) is not None
    assert roles_by_name() == {"berta": frozenset({"analyst", "administrator"})}


def test_create_account_refuses_a_taken_name(analyst: User) -> None:
    with pytest.raises(CommandError, match=f"username must be new, got '{analyst.username}'"):
        call_command("create_account", analyst.username, "operator")
    assert roles_of(analyst) == {Role.ANALYST}
