"""Digests of boards: what a board shows, sent by e-mail every day or week, as sentences and as a PDF.

A digest reads with the rights of its owner, at each sending: it ends with the owner's role, grant or board.
Small numbers are hidden as on the page, since the same code makes the figures. Mail leaves the site, so
addresses must be in MOBILITY_DIGEST_DOMAINS; without that setting there are no digests.
"""

import hashlib
import json
import logging
from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Final

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext

from reports.base.formats import colon
from reports.base.later import later
from reports.boards.actions import record_digest
from reports.boards.models import BoardDigest
from reports.boards.queries import boards_of
from reports.estimates.fingerprints import state_of
from reports.estimates.queries import Window, visitor_unions
from reports.exports.boards.selection import BoardFile, options_of, select_board
from reports.ledger.chain import Json
from reports.studies.policies import OPENERS, studies_for

RETRY: Final = timedelta(hours=1)

log = logging.getLogger(__name__)
_to_pdf = later("reports.exports.boards.document.to_pdf")
_rows_of = later("reports.exports.boards.drawing.rows_of")


class DigestsError(Exception):
    """Digests of a run failed for another reason than the mail server; the others were sent."""


def send_due(now: datetime | None = None) -> None:
    """Send the digests that are due; of several workers one sends each of them.

    Raises
    ------
    DigestsError : digests failed unexpectedly; raised after all others were sent, so that the run counts
        as failed and the alert channels report it
    """
    now = now or timezone.now()
    is_due = Q(next_at__lte=now) | Q(retry_at__lte=now)
    due = BoardDigest.objects.filter(is_due).select_related("board__study", "owner")
    failed = []
    for digest in due if settings.MOBILITY_DIGEST_DOMAINS else ():
        if not _claim(digest, now=now):
            continue
        try:
            _send_or_end(digest, now=now)
        except Exception as error:  # noqa: BLE001 - no error of a board may stop the others
            _note_failure(digest, error, now=now)
            failed.append(str(digest.pk))
    if failed:
        raise DigestsError(f"digests {', '.join(failed)} were not sent")


def _claim(digest: BoardDigest, *, now: datetime) -> bool:
    """Return whether this worker sends it now; the next regular time stays that of the schedule."""
    following, step = digest.next_at, timedelta(days=digest.every_days)
    if following <= now:
        following += step * ((now - following) // step + 1)
    found = BoardDigest.objects.filter(pk=digest.pk, next_at=digest.next_at, retry_at=digest.retry_at)
    return bool(found.update(next_at=following, retry_at=None))


def _send_or_end(digest: BoardDigest, *, now: datetime) -> None:
    if not _may_go_on(digest):
        end_digest(digest, actor="")
        return
    addresses = [each for each in digest.addresses if is_allowed(each)]
    found = _file_of(digest)
    state = _state(found) if found is not None else ""
    if found is None or not addresses or state == digest.sent_state:
        return  # nothing new
    with translation.override(digest.language):
        pdf = _to_pdf(found)
        mail = _mail(digest, found, pdf=pdf, addresses=addresses)
    try:
        mail.send()
    except (SMTPException, OSError, ValueError) as error:
        _note_failure(digest, error, now=now)
        return
    facts: dict[str, Json] = {"file": f"{found.name}.pdf", "sha256": hashlib.sha256(pdf).hexdigest()}
    with transaction.atomic():  # without an entry it counts as not sent: a second mail is the lesser evil
        BoardDigest.objects.filter(pk=digest.pk).update(sent_at=now, sent_state=state, error="")
        record_digest(
            digest, "sent", actor=digest.owner.get_username(), facts=facts | {"addresses": len(addresses)}
        )


def _note_failure(digest: BoardDigest, error: Exception, *, now: datetime) -> None:
    """Note the kind of the error, never its words: they may have addresses. Try again in an hour."""
    kind = type(error).__name__
    log.warning("digest_not_sent digest=%d error=%s", digest.pk, kind)
    BoardDigest.objects.filter(pk=digest.pk).update(retry_at=now + RETRY, error=kind[:64])


def _may_go_on(digest: BoardDigest) -> bool:
    """Return whether the owner still may give figures of the study away, and open the board."""
    owner, study = User.objects.get(pk=digest.owner_id), digest.board.study
    is_open = studies_for(owner, *OPENERS).filter(pk=study.pk).exists()
    return is_open and boards_of(study, reader=owner).filter(pk=digest.board_id).exists()


def _file_of(digest: BoardDigest) -> BoardFile | None:
    """The board in the last days with visitors: one, or seven; None where there are no visitors yet."""
    study = digest.board.study
    daily = visitor_unions(study).diagonal()
    last = max((day for day in range(1, study.days + 1) if daily[day]), default=0)
    if not last:
        return None
    window = Window(max(1, last - digest.every_days + 1), last)
    with translation.override(digest.language):
        return select_board(study, window, options=options_of(digest.board))


def _state(found: BoardFile) -> str:
    parts = [state_of([found.study]), found.board.tiles, found.board.name, found.window]
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


def _mail(digest: BoardDigest, found: BoardFile, *, pdf: bytes, addresses: list[str]) -> EmailMessage:
    """Sentences, the PDF, and the page; each address sees only itself."""
    page = reverse("reports:board", args=[found.study.slug, found.board.pk])
    end = gettext(
        "%(owner)s set up these e-mails. They stop if this person cancels them, or loses access to the study "
        "or to the board."
    ) % {"owner": digest.owner.get_username()}
    sentences = [row.words for row in _rows_of(found.tiles)]
    parts = [f"{found.study.shown_name}, {found.days_title}", *sentences, *found.reading_words, end]
    if settings.MOBILITY_SITE_URL:
        parts.append(f"{settings.MOBILITY_SITE_URL}{page}")
    return EmailMessage(
        subject=" ".join(f"{found.board.name}{colon()} {found.days_title}".split()),
        body="\n\n".join(part for part in parts if part) + "\n",
        bcc=addresses,
        attachments=[(f"{found.name}.pdf", pdf, "application/pdf")],
    )


def end_digest(digest: BoardDigest, *, actor: str) -> None:
    """Remove a digest; without an actor because its owner lost the right to it."""
    record_digest(digest, "ended", actor=actor)
    digest.delete()


def is_allowed(address: str) -> bool:
    """Return whether mail may go to an address: its domain is one of MOBILITY_DIGEST_DOMAINS."""
    return address.rpartition("@")[2].lower() in {each.lower() for each in settings.MOBILITY_DIGEST_DOMAINS}
