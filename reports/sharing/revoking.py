"""Ends of tokens and share links, and ledger entries for reads of links."""

from collections.abc import Callable

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.http import QueryDict
from django.utils import timezone

from reports.accounts.access_models import ApiToken, ShareLink
from reports.ledger.actions import record
from reports.ledger.chain import Json
from reports.ledger.models import LedgerEntry, LedgerKind
from reports.studies.models import Study


def revoke_all(maker: User, *, actor: str, unless: Callable[[int], bool] | None = None) -> None:
    """Close all tokens and links of an account permanently; the ledger names the actor.

    unless : of the key of a study: whether what opens it stays; tokens for all studies stay then, too
    """
    for token in ApiToken.objects.filter(owner=maker, revoked_at=None).select_related("study"):
        if unless is None or not (token.study is None or unless(token.study.pk)):
            revoke(token, actor=actor)
    links = ShareLink.objects.filter(created_by=maker, revoked_at=None)
    for link in links.select_related("indicator__study"):
        if unless is None or not unless(link.indicator.study_id):
            revoke(link, actor=actor)


@transaction.atomic
def revoke(opening: ApiToken | ShareLink, *, actor: str) -> None:
    """Close a token or link permanently; nothing happens when it is closed already."""
    if isinstance(opening, ShareLink):
        record_reads(link=opening)
    openings = type(opening)._default_manager.filter(pk=opening.pk, revoked_at=None)
    if not openings.update(revoked_at=timezone.now()):
        return
    if isinstance(opening, ShareLink):
        kind, facts, study = LedgerKind.SHARE_REVOKED, link_facts(opening), opening.indicator.study.slug
    else:
        kind, facts = LedgerKind.TOKEN_REVOKED, {"token": str(opening.pk)}
        study = opening.study.slug if opening.study else ""
    record(kind, actor=actor, study=study, facts=facts)


def record_reads(*, link: ShareLink | None = None, study: Study | None = None) -> None:
    """Add to the ledger how often shared reports were read since it last said so: at most daily for a link.

    Of a `link` or a `study` that ends it is said now, whenever it was said before.
    """
    waiting = ShareLink.objects.filter(reads__gt=F("reads_recorded"))
    if link is not None or study is not None:
        waiting = waiting.filter(pk=link.pk) if link is not None else waiting.filter(indicator__study=study)
    for pk in waiting.values_list("pk", flat=True):
        _record_reads(pk, is_daily=link is None and study is None)


@transaction.atomic
def _record_reads(pk: int, *, is_daily: bool) -> None:
    locked = ShareLink.objects.select_for_update(of=("self",)).select_related("indicator__study").get(pk=pk)
    times = locked.reads - locked.reads_recorded
    event = f"share.reads:{pk}:{timezone.now().date().isoformat()}" if is_daily else ""
    if times == 0 or (event and LedgerEntry.objects.filter(event_id=event).exists()):
        return
    ShareLink.objects.filter(pk=pk).update(reads_recorded=locked.reads)
    facts = link_facts(locked) | {"times": times}
    record(LedgerKind.SHARE_OPENED, study=locked.indicator.study.slug, facts=facts, event_id=event)


def link_facts(link: ShareLink) -> dict[str, Json]:
    """Return the facts of a link for entries of the ledger."""
    return {
        "link": str(link.pk),
        "indicator": link.report.slug if link.report else "",
        **({"what": "presence"} if link.is_of_slots else {}),
        **({"what": "forecast"} if link.is_of_forecast else {}),
        **({"what": "board", "board": QueryDict(link.query)[link.BOARD]} if link.is_of_board else {}),
        "first_day": link.first_day.isoformat(),
        "last_day": link.last_day.isoformat(),
    }
