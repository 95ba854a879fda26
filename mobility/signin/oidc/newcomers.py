"""Accounts that a first sign-in through the OpenID provider makes."""

import re
from collections.abc import Iterable

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import transaction

from mobility.signin.events import note_change
from reports.accounts.models import find_account
from reports.accounts.names import SIGN_IN, name_problem, normalised
from reports.studies.policies import Role

NOT_IN_A_NAME = re.compile(r"[^\w.@+-]+")
LONGEST = 140  # of 150, for a number behind it


def free_username(wanted: str) -> str:
    """A user name that no one has, like `wanted`: "ada", then "ada-2".

    Names that fold to the same text count as the same, so that no one passes for another account.
    """
    base = NOT_IN_A_NAME.sub("-", normalised(wanted))[:LONGEST].strip("-")
    if not base or name_problem(f"{base}-2"):  # with a number added, a reserved name is free
        base = "person"
    name, number = base, 1
    while name_problem(name) or find_account(name) is not None:
        number += 1
        name = f"{base}-{number}"
    return name


@transaction.atomic
def give_mapped_roles(user: User, *, groups: Iterable[str]) -> list[Role]:
    """Give a new account the roles of MOBILITY_OIDC_GROUPS for what the provider says; without it none.

    Roles only: which studies the account sees is for administrators to say.
    """
    mapping: dict[str, str] = settings.MOBILITY_OIDC_GROUPS
    roles = sorted({Role(mapping[group]) for group in groups if group in mapping})
    user.groups.set([Group.objects.get_or_create(name=role)[0] for role in roles])
    note_change(user, actor=SIGN_IN, change="created", roles=[str(role) for role in roles])
    return roles
