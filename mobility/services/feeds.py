"""Tokens of unattended feeds: each opens one study to one program, for a limited time, and can be revoked."""

import hashlib
import hmac
import secrets
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from mobility.errors import FeedTokenError
from mobility.models import FeedToken, VaultStudy
from mobility.services.receipts import record_feed, record_feed_revoked
from mobility.services.vault import open_study

PREFIX = "mobility-feed-"  # so that scanners of leaked secrets, and people, know what they have found
TOKEN_BYTES = 32
DAYS_MAX = 3650


def create_token(study: VaultStudy, *, name: str, days: int, by: str) -> tuple[FeedToken, str]:
    """Make a token; its text is returned this once and kept nowhere.

    Parameters
    ----------
    name : which program it is for, 1 to 80 characters
    days : how long it is valid, 1 to 3650

    Raises
    ------
    FeedTokenError : the name or the number of days is out of range
    StudyClosedError, KeyMissingError : the study takes nothing in
    """
    open_study(study)
    name = name.strip()
    if not 1 <= len(name) <= 80 or not name.isprintable():
        raise FeedTokenError("the name of a feed must have 1 to 80 printable characters")
    if not 1 <= days <= DAYS_MAX:
        raise FeedTokenError(f"a token must be valid for 1 to {DAYS_MAX} days, got {days}")
    text = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    token = FeedToken.objects.create(
        study=study,
        name=name,
        digest=_digest(text),
        created_by=by,
        expires_at=timezone.now() + timedelta(days=days),
    )
    record_feed(token)
    return token, text


def token_of(text: str) -> FeedToken | None:
    """The valid token with this text, whose use is noted."""
    digest = _digest(text)
    # Whoever measures how long this takes learns of digests, not of tokens.
    found = FeedToken.objects.select_related("study").filter(digest=digest).first()
    if found is None or not hmac.compare_digest(found.digest, digest) or not found.is_valid:
        return None
    FeedToken.objects.filter(pk=found.pk).update(last_used_at=timezone.now())
    return found


def revoke(token: FeedToken, *, by: str) -> None:
    """Close the door to a token for ever; nothing happens when it is closed already."""
    FeedToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    record_feed_revoked(token, by=by)


def tokens_of(study: VaultStudy) -> QuerySet[FeedToken]:
    """Every token of a study, newest first."""
    return FeedToken.objects.filter(study=study).order_by("-created_at")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
