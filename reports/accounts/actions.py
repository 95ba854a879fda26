"""Accounts and their roles. New ones get nothing but what is named; the ledger records every change.

AccessChangeError: `by` may not change an account, or the site would lose its last administrator.
"""

import secrets
from collections.abc import Collection

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils.translation import gettext

from reports.accounts.models import find_account
from reports.accounts.names import name_problem, normalised
from reports.accounts.sessions import end_sessions
from reports.ledger.actions import record
from reports.ledger.models import LedgerKind
from reports.studies.policies import Role, roles_of

PASSWORD_BYTES = 12
COMMAND_LINE = "command line"  # anyone who has the shell of the server is trusted


class AccessChangeError(ValueError):
    """Rights cannot be changed like that; nothing was changed, and the text says why."""


@transaction.atomic
def create_account(
    username: str, *, roles: Collection[Role], password: str = "", by: User | None = None
) -> tuple[User, str]:
    """Let a person sign in and do what `roles` may do, in studies that are granted later.

    Parameters
    ----------
    roles : empty: the account sees nothing yet
    password : empty: one is made
    by : who creates it; None = anyone who has the shell of the server

    Returns
    -------
    the account, and its password, which is kept nowhere

    Raises
    ------
    AccessChangeError : the name is taken or none, or `by` is no administrator
    """
    lock_access()
    _check_administrator(by)
    _check_name(username)
    text = password or new_password()
    account = User.objects.create_user(normalised(username), password=text)
    account.groups.set(_groups(roles))
    _record(account, by=by, change="created", roles=sorted(roles))
    return account, text


@transaction.atomic
def set_roles(account: User, *, roles: Collection[Role], by: User | None = None) -> None:
    """Let an account do what `roles` may do, and nothing else."""
    lock_access()
    check_may_change(account, by=by)
    before = frozenset(account.groups.filter(name__in=list(Role)).values_list("name", flat=True))
    if Role.ADMINISTRATOR in before and Role.ADMINISTRATOR not in roles:
        _check_others_administer(account)
    if before == frozenset(roles):
        return
    account.groups.remove(*Group.objects.filter(name__in=list(Role)))
    account.groups.add(*_groups(roles))
    _record(account, by=by, change="roles", roles=sorted(roles))


@transaction.atomic
def set_active(account: User, *, is_active: bool, by: User | None = None) -> None:
    """Shut an account out at once, or let it in again. Its roles and grants stay.

    Its sessions, tokens and links end for good (reports/sharing/deactivated.py): letting it in brings none
    back.
    """
    lock_access()
    check_may_change(account, by=by)
    account.refresh_from_db()
    if account.is_active == is_active:
        return
    if not is_active and Role.ADMINISTRATOR in roles_of(account):
        _check_others_administer(account)
    account.is_active = is_active
    account.save(update_fields=["is_active"])
    _record(account, by=by, change="activated" if is_active else "deactivated")


@transaction.atomic
def replace_password(account: User, *, by: User | None = None) -> str:
    """Give an account a new password and end its sessions; the password is returned this once."""
    lock_access()
    check_may_change(account, by=by)
    text = new_password()
    account.set_password(text)
    account.save(update_fields=["password"])
    end_sessions(account)
    _record(account, by=by, change="password replaced")
    return text


def new_password() -> str:
    """A password that no one guesses and someone can type."""
    return secrets.token_urlsafe(PASSWORD_BYTES)


def check_may_change(account: User, *, by: User | None) -> None:
    """Raise AccessChangeError unless `by` may change these rights: no one changes the own ones."""
    _check_administrator(by)
    if by is not None and by.pk == account.pk:
        raise AccessChangeError(gettext("You cannot change your own rights. Ask another administrator."))


def lock_access() -> None:
    """Let changes of rights wait for each other, until the transaction ends."""
    # One row that all changes have in common: two administrators could else remove each other.
    Group.objects.get_or_create(name=Role.ADMINISTRATOR)
    Group.objects.select_for_update().get(name=Role.ADMINISTRATOR)


def _check_administrator(by: User | None) -> None:
    # Asked again, now that the lock is held: another administrator may have been faster.
    if by is not None and Role.ADMINISTRATOR not in roles_of(User.objects.get(pk=by.pk)):
        raise AccessChangeError(gettext("Only administrators can change accounts."))


def _check_others_administer(account: User) -> None:
    others = User.objects.filter(is_active=True, groups__name=Role.ADMINISTRATOR).exclude(pk=account.pk)
    if not others.exists():
        text = gettext("%(name)s is the last administrator. Make another account an administrator first.")
        raise AccessChangeError(text % {"name": account.get_username()})


def _check_name(username: str) -> None:
    problem = name_problem(username)
    if problem:
        raise AccessChangeError(problem)
    if find_account(username) is not None:
        text = gettext("An account named %(name)s already exists. Choose another name.")
        raise AccessChangeError(text % {"name": normalised(username)})


def _groups(roles: Collection[Role]) -> list[Group]:
    return [Group.objects.get_or_create(name=role)[0] for role in roles]


def _record(account: User, *, by: User | None, change: str, roles: list[Role] | None = None) -> None:
    facts: dict[str, object] = {"account": account.get_username(), "change": change}
    if roles is not None:
        facts["roles"] = [str(role) for role in roles]
    actor = COMMAND_LINE if by is None else by.get_username()
    record(LedgerKind.ACCESS_CHANGED, actor=actor, facts=facts)  # type: ignore[arg-type]
