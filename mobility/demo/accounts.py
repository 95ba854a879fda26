"""The accounts of the demo: one for each role."""

import json
from pathlib import Path

from django.contrib.auth.models import User
from django.db import transaction

from mobility.base.errors import MobilityError
from mobility.base.runtime import write_private
from reports.accounts.actions import create_account, new_password, replace_password
from reports.accounts.grants import give_grant
from reports.accounts.models import find_account
from reports.studies.policies import SEES_ALL, Role


def ensure_demo_accounts(file: Path) -> dict[str, str]:
    """One account for each role, open for all studies; `file` keeps the passwords: a second run hands out the
    same.

    Returns
    -------
    dict of password by username; the username is the role's name

    Raises
    ------
    MobilityError : a person's account has the name of one, in other letters; nothing was changed
    """
    _check_names()
    passwords: dict[str, str]
    if file.exists():
        passwords = json.loads(file.read_text())
        present = set(User.objects.filter(username__in=passwords).values_list("username", flat=True))
        # Of a demo that was made before there were as many roles.
        added = [role for role in Role if role.value not in passwords]
    else:
        passwords, present = {}, set()
        added = list(Role)
    if added:
        found = {role.value: _password_of(role) for role in added}
        present |= {name for name, (_, is_there) in found.items() if is_there}
        passwords |= {name: password for name, (password, _) in found.items()}
        write_private(file, json.dumps(passwords, indent=1))
    for username in passwords.keys() - present:
        _create(Role(username), password=passwords[username])
    return passwords


def _check_names() -> None:
    """Refuse to take over an account that the demo has not made."""
    for role in Role:
        found = find_account(role.value)
        name = "" if found is None else found.get_username()
        if name not in ("", role.value):
            raise MobilityError(
                f"the demo needs an account {role.value}, and the existing name {name} counts as the "
                "same. Nothing was changed. Run the demo with another data folder: set "
                "MOBILITY_DATA_DIR"
            )


@transaction.atomic
def _create(role: Role, *, password: str) -> None:
    account, _ = create_account(role.value, roles=[role], password=password)
    if role not in SEES_ALL:
        give_grant(account, study=None)


def _password_of(role: Role) -> tuple[str, bool]:
    """Make the password of an account, and say whether it is there: what it has made stays its own."""
    there = User.objects.filter(username=role.value).first()
    return (new_password(), False) if there is None else (replace_password(there), True)
