"""The accounts of the demo: one for each role."""

import json

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User

from mobility.base.errors import MobilityError
from mobility.demo.accounts import ensure_demo_accounts
from reports.studies.policies import Role, roles_of, studies_for
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db


def can_sign_in(passwords: dict[str, str]) -> bool:
    return all(authenticate(username=name, password=passwords[name]) is not None for name in passwords)


def test_demo_has_one_account_for_each_role_which_sees_every_study(tmp_path) -> None:
    fair, file = factory.create(), tmp_path / "accounts.json"
    passwords = ensure_demo_accounts(file)
    users = {user.username: user for user in User.objects.all()}
    assert {name: roles_of(user) for name, user in users.items()} == {role: {role} for role in Role}
    assert all(list(studies_for(user)) == [fair] for user in users.values())
    assert can_sign_in(passwords)
    assert (file.stat().st_mode & 0o777, json.loads(file.read_text())) == (0o600, passwords)
    assert (len(set(passwords.values())), ensure_demo_accounts(file)) == (len(Role), passwords)


def test_demo_gets_the_roles_that_it_lacks_and_keeps_what_was_changed(tmp_path) -> None:
    file = tmp_path / "accounts.json"
    before = ensure_demo_accounts(file)
    User.objects.get(username="viewer").delete()
    del before["viewer"]
    file.write_text(json.dumps(before))
    changed = User.objects.get(username="analyst")
    changed.set_password("a new one of my own")
    changed.save()
    after = ensure_demo_accounts(file)
    assert after == before | {"viewer": after["viewer"]} == json.loads(file.read_text())
    assert can_sign_in(after | {"analyst": "a new one of my own"})
    file.unlink()  # lost: new passwords that work
    kept = User.objects.get(username="operator")
    again = ensure_demo_accounts(file)
    assert before["operator"] != again["operator"]
    assert User.objects.get(username="operator").pk == kept.pk  # the account's objects stay
    assert can_sign_in(again)


def test_an_account_of_a_person_whose_name_counts_as_the_same_is_not_taken_over(tmp_path, person) -> None:
    person("Operator", Role.VIEWER)
    said = "needs an account operator, and the existing name Operator counts as the same"
    with pytest.raises(MobilityError, match=said):
        ensure_demo_accounts(tmp_path / "accounts.json")
    assert [user.username for user in User.objects.all()] == ["Operator"]
    assert not (tmp_path / "accounts.json").exists()
