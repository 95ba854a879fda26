"""Sign-ins in the ledger, from the signals that every way of signing in sends."""

from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver

from reports.accounts.models import find_account
from reports.ledger.actions import record
from reports.ledger.models import LedgerKind


@receiver(user_logged_in, dispatch_uid="ledger")
def _succeeded(user: User, **_: Any) -> None:
    record(LedgerKind.SIGN_IN_SUCCEEDED, actor=user.get_username())


@receiver(user_login_failed, dispatch_uid="ledger")
def _failed(credentials: dict[str, Any], **_: Any) -> None:
    """A name that is no account is not kept: people type their password into the wrong field."""
    found = find_account(str(credentials.get("username") or ""))
    known = found is not None
    actor = found.get_username() if found else ""
    record(LedgerKind.SIGN_IN_FAILED, actor=actor, facts={"account_exists": known})


@receiver(user_logged_out, dispatch_uid="ledger")
def _signed_out(user: User | None, **_: Any) -> None:
    if user is not None:  # a session that had ended already
        record(LedgerKind.SIGNED_OUT, actor=user.get_username())
