"""Tokens of unattended feeds: each opens one study to one program, for a limited time, and can be revoked.

A token acts for the account that made it, and ends when that account may no longer send files of the study.
One that was made on the command line acts for no account.
"""

import hashlib
import hmac
import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from mobility.base.errors import FeedEndedError, FeedTokenError
from mobility.batches.publication.receipts import record_feed, record_feed_revoked
from mobility.vault.models.profiles import FeedToken
from mobility.vault.models.subscribers import VaultStudy
from mobility.vault.unlocking import unlock
from reports.accounts.actions import COMMAND_LINE
from reports.accounts.grants import ALL_STUDIES
from reports.accounts.sessions import has_ended
from reports.ledger.models import LedgerEntry, LedgerKind
from reports.studies.models import Study
from reports.studies.policies import SEES_ALL, Role, fetch_rights, roles_of, studies_for

PREFIX = "mobility-feed-"  # so that scanners of leaked secrets, and people, know what they have found
TOKEN_BYTES = 32
DAYS_MAX = 3650
MAKERS = (Role.OPERATOR, Role.ADMINISTRATOR)


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
    unlock(study)
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
    """The valid token with this text, whose use is noted.

    Raises
    ------
    FeedEndedError : the account that made it may no longer send files of its study
    """
    digest = _digest(text)
    # Anyone who measures how long this takes learns of digests, not of tokens.
    found = FeedToken.objects.select_related("study").filter(digest=digest).first()
    if found is None or not hmac.compare_digest(found.digest, digest):
        return None
    if not _may_send(found):
        _end(found)
        raise FeedEndedError(
            "this token no longer works, because the account that created it may no longer upload "
            "files to this study. Ask an operator of the study for a new token"
        )
    if not found.is_valid:
        return None
    FeedToken.objects.filter(pk=found.pk).update(last_used_at=timezone.now())
    return found


def revoke(token: FeedToken, *, by: str) -> None:
    """Close the door to a token permanently; nothing happens when it is closed already."""
    FeedToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    record_feed_revoked(token, by=by)


def end_without_maker() -> None:
    """Revoke tokens whose maker may no longer send: what comes back is the account, not its tokens."""
    for token in FeedToken.objects.filter(revoked_at=None).select_related("study"):
        if not _may_send(token):
            _end(token)


def tokens_of(study: VaultStudy) -> QuerySet[FeedToken]:
    """Every token of a study, newest first."""
    return FeedToken.objects.filter(study=study).order_by("-created_at")


def _may_send(token: FeedToken) -> bool:
    """Return whether the account that made a token may send files of its study, now and ever since."""
    if token.created_by == COMMAND_LINE:
        return True
    maker = User.objects.filter(username=token.created_by, date_joined__lte=token.created_at).first()
    if maker is None or has_ended(maker, since=token.created_at):
        return False
    fetch_rights(maker)
    may_now = studies_for(maker, *MAKERS).filter(slug=token.study.slug).exists()
    return may_now and not _has_lost_rights(maker, token)


def _has_lost_rights(maker: User, token: FeedToken) -> bool:
    """Return whether the ledger tells that role or grant of the maker ended since, though they are back.

    Sweeps and uses of the token see what is missing at that moment only.
    """
    slug, needs_grant = token.study.slug, not roles_of(maker) & SEES_ALL
    other = {slug: ALL_STUDIES, ALL_STUDIES: slug}
    given = {grant.study.slug if grant.study else ALL_STUDIES: grant for grant in maker.study_grants.all()}
    until: dict[str, str | None] = {}
    told = LedgerEntry.objects.filter(kind=LedgerKind.ACCESS_CHANGED, facts__account=maker.get_username())
    for facts, at in told.order_by("number").values_list("facts", "at"):
        change, studies = facts.get("change"), facts.get("studies")
        is_lost = change == "roles" and not set(MAKERS) & set(facts.get("roles") or ())
        if change in ("granted", "withdrawn") and studies in other and needs_grant:
            remaining = given.get(other[studies])
            is_over = change == "withdrawn" or (until.get(studies) or at.isoformat()) < at.date().isoformat()
            is_lost = is_over and (remaining is None or remaining.granted_at > at)
            until[studies] = facts.get("until")
        if is_lost and at >= token.created_at:
            return True
    return False


def _end(token: FeedToken) -> None:
    # An account or a study that is missing may be in a dump that is about to be restored.
    has_maker = User.objects.filter(username=token.created_by).exists()
    if has_maker and Study.objects.filter(slug=token.study.slug).exists():
        revoke(token, by="")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
