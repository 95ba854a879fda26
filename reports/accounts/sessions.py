"""Sessions of an account, and the time of its deactivation."""

from datetime import datetime
from typing import Any, Final

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session

from reports.accounts.models import AccountName

PENDING: Final = "account_login"  # of a sign-in that still waits for its second factor


def end_sessions(account: User) -> None:
    """End the sessions of an account, and sign-ins that still wait for its second factor."""
    theirs = [session.pk for session in Session.objects.iterator() if _is_of(account, session.get_decoded())]
    Session.objects.filter(pk__in=theirs).delete()


def has_ended(account: User, *, since: datetime) -> bool:
    """Return whether an account was deactivated at or after a time: its access before that has ended."""
    return AccountName.objects.filter(account=account, ended_at__gte=since).exists()


def _is_of(account: User, data: dict[str, Any]) -> bool:
    pending = data.get(PENDING) or {}
    return str(account.pk) in (str(data.get(SESSION_KEY)), str(pending.get("user_pk")))
