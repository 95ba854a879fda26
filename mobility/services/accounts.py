"""Accounts: people and their roles, and the three of the demo."""

import json
import secrets
from collections.abc import Iterable
from pathlib import Path

from django.contrib.auth.models import Group, User
from django.db import transaction

from mobility.errors import MobilityError
from mobility.runtime import write_private
from reports.policies import Role

PASSWORD_BYTES = 12


class AccountExistsError(MobilityError):
    """The name is taken."""


@transaction.atomic
def create_account(username: str, *, roles: Iterable[Role], password: str) -> User:
    """Let a person sign in and do what `roles` may do.

    Raises
    ------
    AccountExistsError : the name is taken
    """
    if User.objects.filter(username=username).exists():
        raise AccountExistsError(f"username must be new, got {username!r}: there is such an account already")
    user = User.objects.create_user(username, password=password)
    user.groups.set([Group.objects.get_or_create(name=role)[0] for role in roles])
    return user


def new_password() -> str:
    """A password that nobody guesses and somebody can type."""
    return secrets.token_urlsafe(PASSWORD_BYTES)


def ensure_demo_accounts(file: Path) -> dict[str, str]:
    """One account for each role; `file` keeps the passwords, so a second run hands out the same.

    Returns
    -------
    dict of password by username; the username is the role's name
    """
    if file.exists():
        passwords: dict[str, str] = json.loads(file.read_text())
        present = set(User.objects.filter(username__in=passwords).values_list("username", flat=True))
    else:
        passwords = {role.value: new_password() for role in Role}
        present = _with_new_passwords(passwords)
        write_private(file, json.dumps(passwords, indent=1))
    for username in passwords.keys() - present:
        create_account(username, roles=[Role(username)], password=passwords[username])
    return passwords


def _with_new_passwords(passwords: dict[str, str]) -> set[str]:
    """Let the accounts that there are sign in with these; what they have made stays theirs. Their names."""
    found = list(User.objects.filter(username__in=passwords))
    for user in found:
        user.set_password(passwords[user.username])
        user.save(update_fields=["password"])
    return {user.username for user in found}
