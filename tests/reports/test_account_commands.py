"""Accounts and grants from the shell of the server."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from reports.models import Study
from reports.models.ledger import LedgerEntry
from reports.policies import Role, roles_of, studies_for

pytestmark = pytest.mark.django_db


def run(*words: str) -> dict[str, Any]:
    out = StringIO()
    call_command(*words, stdout=out, stderr=StringIO())
    printed: dict[str, Any] = json.loads(out.getvalue())
    return printed


def test_create_account_prints_a_password_that_works() -> None:
    printed = run("create_account", "berta", "--role", "analyst", "--role", "administrator", "--all-studies")
    assert printed["username"] == "berta"
    assert printed["roles"] == ["analyst", "administrator"]
    assert printed["studies"] == ["all"]
    assert authenticate(username="berta", password=printed["password"]) is not None
    assert roles_of(User.objects.get(username="berta")) == {"analyst", "administrator"}


def test_create_account_takes_a_password_from_a_file_and_does_not_print_it(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("four unlikely words here\n")
    printed = run("create_account", "ada", "--role", "administrator", "--password-file", str(file))
    assert "password" not in printed
    assert authenticate(username="ada", password="four unlikely words here") is not None


def test_create_account_takes_a_password_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("four unlikely words here\n"))
    run("create_account", "ada", "--role", "administrator", "--password-file", "-")
    assert authenticate(username="ada", password="four unlikely words here") is not None


@pytest.mark.parametrize("password", ["", "short", "123456789012345"])
def test_create_account_refuses_a_password_that_is_guessed(tmp_path: Path, password: str) -> None:
    file = tmp_path / "password"
    file.write_text(password)
    with pytest.raises(CommandError, match="password"):
        run("create_account", "ada", "--role", "administrator", "--password-file", str(file))
    assert not User.objects.filter(username="ada").exists()


def test_new_accounts_get_nothing_that_is_not_named(fair: Study) -> None:
    errors = StringIO()
    call_command("create_account", "berta", "--role", "viewer", stdout=StringIO(), stderr=errors)
    assert not studies_for(User.objects.get(username="berta")).exists()
    assert "berta sees no study yet" in errors.getvalue()


def test_create_account_opens_the_named_study_until_a_day(fair: Study) -> None:
    printed = run(
        "create_account", "berta", "--role", "viewer", "--study", "fair-2024", "--until", "2999-12-31"
    )
    assert (printed["studies"], printed["until"]) == (["fair-2024"], "2999-12-31")
    grant = User.objects.get(username="berta").study_grants.get()
    assert (grant.study, str(grant.until), grant.granted_by) == (fair, "2999-12-31", "command line")


def test_accounts_are_recorded() -> None:
    run("create_account", "berta", "--role", "analyst", "--all-studies")
    made, granted = LedgerEntry.objects.order_by("number")
    assert made.facts == {"account": "berta", "change": "created", "roles": ["analyst"]}
    assert made.actor == granted.actor == "command line"
    assert granted.facts["studies"] == "all studies"


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["--role", "analyst", "--study", "nope"], "there is no study 'nope'; studies: fair-2024"),
        (["--role", "analyst", "--study", "fair-2024", "--all-studies"], "not both"),
        (["--role", "analyst", "--until", "2999-01-01"], "--study or --all-studies, too"),
        (["--role", "analyst", "--all-studies", "--until", "2000-01-01"], "must be today or later"),
        (["--role", "analyst", "--all-studies", "--until", "soon"], "must be a date"),
        (["--role", "privacy_officer", "--all-studies"], "see all studies"),
        (["--role", "boss"], "invalid choice"),
        ([], "required"),
    ],
)
def test_what_makes_no_sense_is_refused_and_makes_no_account(
    fair: Study, words: list[str], rule: str
) -> None:
    with pytest.raises(CommandError, match=rule):
        run("create_account", "berta", *words)
    assert not User.objects.filter(username="berta").exists()


@pytest.mark.parametrize("name", ["anna", "ANNA"])
def test_create_account_refuses_a_taken_name(analyst: User, name: str) -> None:
    with pytest.raises(CommandError, match=f"There is an account of the name {name} already"):
        run("create_account", name, "--role", "operator")
    assert roles_of(analyst) == {Role.ANALYST}


def test_grant_study_opens_and_closes(fair: Study) -> None:
    run("create_account", "berta", "--role", "viewer")
    user = User.objects.get(username="berta")
    assert run("grant_study", "berta", "--study", "fair-2024")["granted"]
    assert list(studies_for(user)) == [fair]
    assert not run("grant_study", "berta", "--study", "fair-2024", "--withdraw")["granted"]
    assert not studies_for(user).exists()
    with pytest.raises(CommandError, match="berta has no grant for fair-2024"):
        run("grant_study", "berta", "--study", "fair-2024", "--withdraw")


def test_grant_study_wants_an_account_and_a_study(fair: Study, analyst: User) -> None:
    with pytest.raises(CommandError, match="there is no account 'nobody'"):
        run("grant_study", "nobody", "--all-studies")
    with pytest.raises(CommandError, match="name what to open"):
        run("grant_study", analyst.username)
