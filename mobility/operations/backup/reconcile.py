"""Repairs after a restore, for events since the backup: repeated until all are settled.

`restore` and `restore_keys` both end with it. Without the key that signs the ledger nothing can be settled:
then it waits for `restore_keys`.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.utils import timezone

from mobility.operations.backup.ledger import can_sign
from mobility.operations.models import Backup
from reports.accounts.access_models import ApiToken, ShareLink
from reports.ledger.actions import record, recorded_events
from reports.ledger.models import LedgerKind
from reports.studies.models import Study

if settings.HAS_VAULT:  # the models of a vault exist there only
    from mobility.plans.recovery import recover
    from mobility.vault.models.profiles import FeedToken


def reconcile(*, by: str, closed: Collection[str] = ()) -> dict[str, Any]:
    """Settle what a restore leaves open; everything in it can be repeated.

    Parameters
    ----------
    closed : slugs of studies that are known elsewhere to have been closed
    """
    last = Backup.objects.filter(kind=Backup.Kind.RESTORE).order_by("-made_at").first()
    told: dict[str, Any] = {"sessions_ended": _end_sessions(last), "openings": openings()}
    if not can_sign():
        return told | {"waits_for": "restore_keys"}
    if settings.HAS_VAULT:
        told |= recover(by=by, closed={*closed, *_closed_here()})
    if last is not None:
        _record(last, by=by)
    return told | {"waits_for": None}


def openings() -> dict[str, Any]:
    """End all access from outside: it is as it was when the backup was made."""
    now = timezone.now()
    tokens = ApiToken.objects.filter(revoked_at=None, expires_at__gt=now).select_related("owner")
    links = ShareLink.objects.filter(revoked_at=None, expires_at__gt=now)
    told: dict[str, Any] = {
        "accounts": sorted(User.objects.filter(is_active=True).values_list("username", flat=True)),
        "api_tokens": [f"{token.owner.username}: {token.name}" for token in tokens.order_by("pk")],
        "share_links": links.count(),
    }
    if settings.HAS_VAULT:
        told["feed_tokens"] = FeedToken.objects.filter(revoked_at=None, expires_at__gt=now).count()
    return told


def revoke_openings() -> None:
    """End tokens of programs and feeds, and share links: some may have been ended since the backup."""
    now = timezone.now()
    for model in (ApiToken, ShareLink):
        model._default_manager.filter(revoked_at=None).update(revoked_at=now)
    if settings.HAS_VAULT:
        FeedToken.objects.filter(revoked_at=None).update(revoked_at=now)


def _closed_here() -> set[str]:
    """Studies that analysts know as closed."""
    return set(Study.objects.filter(state=Study.State.CLOSED).values_list("slug", flat=True))


def _end_sessions(last: Backup | None) -> int:
    """Sessions of the backup may have been ended since; everyone signs in again, once after each restore."""
    if last is None or _event(last) in recorded_events(LedgerKind.BACKUP_RESTORED):
        return 0  # present sessions began after the repair
    ended, _ = Session.objects.all().delete()
    UserSession.objects.all().delete()
    return ended


def _record(last: Backup, *, by: str) -> None:
    made = Backup.objects.filter(kind=Backup.Kind.BACKUP, digest=last.digest).first()
    made_at: datetime = made.made_at if made else last.made_at
    record(
        LedgerKind.BACKUP_RESTORED,
        actor=by,
        facts={
            "manifest_sha256": last.digest,
            "backup_of": made_at.isoformat(),
            "at": last.made_at.isoformat(),
        },
        event_id=_event(last),
    )


def _event(last: Backup) -> str:
    return f"backup.restored/{last.digest[:16]}/{last.made_at.isoformat()}"
