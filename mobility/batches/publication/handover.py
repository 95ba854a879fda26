"""Handover to a separate analyst server: all that it lacks, in order, with retries.

The vault keeps every publication until its study is closed, and the server is asked what it has before
anything is sent. So nothing is lost while it is down, nothing counts twice, and one restored from a dump
catches up. Where the analyst zone is not apart (MOBILITY_ANALYST_URL is empty) all of this does nothing.
"""

import logging
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from mobility.batches.publication import certificate
from mobility.batches.publication.analyst_server import (
    AnalystServer,
    HandoverAheadError,
    HandoverError,
    HandoverRefusedError,
    HandoverWaitsError,
)
from mobility.vault.models.handover import Handover
from mobility.vault.models.outbox import VaultPublication
from mobility.vault.models.subscribers import VaultStudy
from reports.base.reasons import Reason
from reports.ledger.chain import moment
from reports.ledger.models import LedgerEntry, LedgerKind
from reports.studies.plan_models import Plan
from reports.studies.studyfile import StudyDefinition
from reports.transfer import messages
from reports.transfer.studies import Approval

log = logging.getLogger(__name__)

# A receipt can have been dated before a try that did not see it yet: its transaction had not ended.
SEEN_WITHIN: Final = timedelta(minutes=1)


def announce(study: VaultStudy) -> None:
    """Let the analyst server create a study that is being created here; without an answer that waits.

    Raises
    ------
    HandoverRefusedError : it refuses; the study must not be created
    """
    if not settings.HANDS_OVER:
        return
    at = timezone.now()
    try:
        AnalystServer().send_study(study.slug, _study_body(study))
    except HandoverWaitsError as error:
        _note(study, at=at, problem=error.reason)
    else:
        _note(study, at=at, problem="", plan_hash=study.plan_hash)


def deliver(study: VaultStudy) -> None:
    """Hand over what the analyst server lacks of a study.

    Raises
    ------
    HandoverError : not everything is there now; it is tried again
    """
    if not settings.HANDS_OVER:
        return
    at = timezone.now()
    try:
        _deliver(study, AnalystServer())
    except HandoverError as error:
        log.warning("handover_waits study=%s error=%s", study.slug, type(error).__name__)
        # Of a server that does not answer it is not known whether it still claims what it did.
        claims = isinstance(error, HandoverAheadError)
        known = {} if isinstance(error, HandoverWaitsError) else {"is_ahead": claims}
        _note(study, at=at, problem=error.reason, **known)
        raise
    _note(study, at=at, problem="", plan_hash=study.plan_hash, is_ahead=False)


def try_to_deliver(study: VaultStudy) -> bool:
    """Deliver, and return False when something waits."""
    try:
        deliver(study)
    except HandoverError:
        return False
    return True


def deliver_what_waits() -> None:
    """Try every study again of which something waits, as long as the server answers."""
    if not settings.HANDS_OVER:
        return
    for study in _waiting():
        try:
            deliver(study)
        except HandoverRefusedError:
            continue  # of this study; others may pass
        except HandoverWaitsError:
            return  # a worker must not wait for it once for each study


def has_crossed(study: VaultStudy) -> bool:
    """Return whether all publications of a study are where analysts read them."""
    waits = VaultPublication.objects.filter(study=study, handed_over_at=None)
    return not settings.HANDS_OVER or not waits.exists()


def _waiting() -> list[VaultStudy]:
    waiting = VaultPublication.objects.filter(handed_over_at=None)
    reasons = (
        Q(handover=None)
        | ~Q(handover__problem="")
        | Q(pk__in=waiting.values("study"))
        | Q(certificate__isnull=False, handover__is_closed=False)
    )
    studies = VaultStudy.objects.filter(reasons).select_related("handover")
    tried = VaultStudy.objects.select_related("handover").exclude(handover=None)
    behind = [study for study in tried if _is_behind(study)]
    return list({study.pk: study for study in (*studies, *behind)}.values())


def _is_behind(study: VaultStudy) -> bool:
    """Return whether there is something that was not there when handing over was last tried."""
    tried = study.handover
    if tried.tried_at is None or tried.plan_hash != study.plan_hash:
        return True
    return _receipts(study).filter(at__gte=tried.tried_at - SEEN_WITHIN).exists()


def _deliver(study: VaultStudy, server: AnalystServer) -> None:
    state = server.state(study.slug)
    if not state.get("is_known") or state.get("plan_hash") != study.plan_hash:
        server.send_study(study.slug, _study_body(study))
        state = server.state(study.slug)
    known = _known(state)
    _check_claims(study, known, is_closed=bool(state.get("is_closed")))
    publications = VaultPublication.objects.filter(study=study)
    # Those that a server has lost wait again.
    publications.exclude(pk__in=known).update(handed_over_at=None)
    publications.filter(pk__in=known, handed_over_at=None).update(handed_over_at=timezone.now())
    for pk in (
        publications.exclude(pk__in=known).order_by("number", "slots_through").values_list("pk", flat=True)
    ):
        _send(study, publications.get(pk=pk), server)
    _send_receipts(study, server, known=state.get("receipts"))
    if certificate.is_complete(study.certificate):
        if not state.get("is_closed"):
            server.send_closed(study.slug, _closed_body(study))
        Handover.objects.filter(study=study).update(is_closed=True)


def _check_claims(study: VaultStudy, known: Collection[UUID], *, is_closed: bool) -> None:
    """Refuse to send anything to a server that claims what the vault does not know.

    Either the vault was restored from an older backup, and what it sends might count people twice, or the
    server is wrong, or not to be trusted. It never decides what this zone accepts.

    Raises
    ------
    HandoverAheadError
    """
    unknown = set(known) - set(VaultPublication.objects.filter(study=study).values_list("pk", flat=True))
    if not unknown and not is_closed:
        return
    # Closing decides first and then forgets publications: of a closed study there is nothing to compare.
    if not VaultStudy.objects.filter(pk=study.pk, certificate__isnull=True).exists():
        return
    claim = Reason(_("reports this study as closed, but it is open here"))
    if unknown:
        text = _("lists %(n)s publication(s) of this study that this vault never made, such as %(which)s")
        claim = Reason(text, n=len(unknown), which=str(min(unknown)))
    log.error("handover_ahead study=%s unknown=%s closed=%s", study.slug, len(unknown), is_closed)
    raise HandoverAheadError(
        _(
            "the analyst server %(claim)s. Nothing is sent to it, so that no one is counted twice; uploads "
            "continue as before. Check whether one of the two servers was restored from a backup: see "
            "docs/zones.md"
        ),
        claim=claim,
    )


def _send(study: VaultStudy, publication: VaultPublication, server: AnalystServer) -> None:
    body = messages.publication_body(
        bytes(publication.delta),
        number=publication.number,
        plan_hash=study.plan_hash,
        voided_days=publication.voided_days,
        slots=None if publication.slots is None else bytes(publication.slots),
    )
    server.send_publication(study.slug, publication.pk, body)
    VaultPublication.objects.filter(pk=publication.pk).update(handed_over_at=timezone.now())


def _send_receipts(study: VaultStudy, server: AnalystServer, *, known: object) -> None:
    """Receipts of batches, for the ledger over there."""
    there = {each for each in known if isinstance(each, str)} if isinstance(known, list) else set()
    missing = [entry for entry in _receipts(study).order_by("number") if entry.event_id not in there]
    for start in range(0, len(missing), messages.RECEIPTS_MAX):
        part = missing[start : start + messages.RECEIPTS_MAX]
        receipts = ({"event": each.event_id, "facts": each.facts | {"at": moment(each.at)}} for each in part)
        server.send_receipts(study.slug, messages.receipts_body(receipts))


def _receipts(study: VaultStudy) -> QuerySet[LedgerEntry]:
    return LedgerEntry.objects.filter(kind=LedgerKind.BATCH_ENDED, study=study.slug)


def _known(state: dict[str, object]) -> set[UUID]:
    listed = state.get("publications", [])
    try:
        return {UUID(each) for each in listed} if isinstance(listed, list) else set()
    except (AttributeError, TypeError, ValueError):
        raise HandoverRefusedError(
            _(
                "the analyst server lists publications in an unknown format: check that both servers run "
                "the same version"
            )
        ) from None


def _study_body(study: VaultStudy) -> bytes:
    plan = (
        Plan.objects.select_related("study").filter(study__slug=study.slug, spec_hash=study.plan_hash).first()
    )
    if plan is None:
        raise HandoverWaitsError(
            _("the main database has no plan of this study: restore the database, or create the study again")
        )
    return messages.study_body(
        StudyDefinition.from_json(study.definition),
        plan_version=plan.version,
        plan_hash=study.plan_hash,
        approval=Approval(review=plan.review, by=plan.reviewed_by, at=plan.reviewed_at),
        is_demo=plan.study.is_demo,
    )


def _closed_body(study: VaultStudy) -> bytes:
    closed_at = study.closed_at or timezone.now()
    return messages.to_body({"closed_at": closed_at.isoformat(), "certificate": study.certificate})


def _note(study: VaultStudy, *, at: datetime, **values: str | bool) -> None:
    Handover.objects.update_or_create(study=study, defaults={"tried_at": at, **values})
