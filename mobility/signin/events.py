"""Ledger entries of second factors: additions, removals, and wrong codes."""

from typing import Any

from allauth.account.signals import password_changed
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authentication_failed, authenticator_added, authenticator_removed
from django.contrib.auth.models import User
from django.dispatch import receiver

from reports.ledger.actions import record
from reports.ledger.chain import Json
from reports.ledger.models import LedgerKind

COMMAND_LINE = "command line"


@receiver(authenticator_added, dispatch_uid="ledger")
def _added(user: User, authenticator: Authenticator, **_: Any) -> None:
    if authenticator.type != Authenticator.Type.RECOVERY_CODES:  # they only replace one
        note_change(user, actor=user.get_username(), change="second factor added")


@receiver(authenticator_removed, dispatch_uid="ledger")
def _removed(user: User, authenticator: Authenticator, **_: Any) -> None:
    if authenticator.type != Authenticator.Type.RECOVERY_CODES:
        note_change(user, actor=user.get_username(), change="second factor removed")


@receiver(authentication_failed, dispatch_uid="ledger")
def _wrong_code(user: User, **_: Any) -> None:
    facts = {"account_exists": True, "second_factor": True}
    record(LedgerKind.SIGN_IN_FAILED, actor=user.get_username(), facts=facts)


@receiver(password_changed, dispatch_uid="ledger")
def _new_password(user: User, **_: Any) -> None:
    note_change(user, actor=user.get_username(), change="password changed")


def note_change(user: User, *, actor: str, change: str, roles: list[str] | None = None) -> None:
    """Record that an account is opened otherwise than before, or may do something else."""
    facts: dict[str, Json] = {"account": user.get_username(), "change": change}
    if roles is not None:
        facts["roles"] = list(roles)
    record(LedgerKind.ACCESS_CHANGED, actor=actor, facts=facts)
