"""The accounts of the demo: one for each role."""

import json
from pathlib import Path

from django.contrib.auth.models import User
from django.db import transaction

from mobility.runtime import write_private
from reports.policies import SEES_ALL, Role
from reports.services.grants import give_grant
from reports.services.people import create_account, new_password


def ensure_demo_accounts(file: Path) -> dict[str, str]:
    """One account for each role, open for all studies; `file` keeps the passwords: a second run hands out the
    same.

    Returns
    -------
    dict of password by username; the username is the role's name
    """
    passwords: dict[str, str]
    if file.exists():
        passwords = json.loads(file.read_text())
        present = set(User.objects.filter(username__in=passwords).values_list("username", flat=True))
        # Of a demo that was made before there were as many roles.
        added = {role.value: new_password() for role in Role if role.value not in passwords}
    else:
        passwords, present = {}, set()
        added = {role.value: new_password() for role in Role}
    if added:
        present |= _with_new_passwords(added)
        passwords |= added
        write_private(file, json.dumps(passwords, indent=1))
    for username in passwords.keys() - present:
        _create(Role(username), password=passwords[username])
    return passwords


@transaction.atomic
def _create(role: Role, *, password: str) -> None:
    account, _ = create_account(role.value, roles=[role], password=password)
    if role not in SEES_ALL:
        give_grant(account, study=None)


def _with_new_passwords(passwords: dict[str, str]) -> set[str]:
    """Let the accounts that there are sign in with these; what they have made stays theirs. Their names."""
    found = list(User.objects.filter(username__in=passwords))
    for user in found:
        user.set_password(passwords[user.username])
        user.save(update_fields=["password"])
    return {user.username for user in found}
