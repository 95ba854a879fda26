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
from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from reports.accounts.access import account, openers_only, study_or_404
from reports.base.later import later
from reports.boards.actions import record_digest
from reports.boards.models import Board, BoardDigest
from reports.boards.queries import board_or_404, boards_of
from reports.estimates.fingerprints import state_of
from reports.estimates.queries import Window, visitor_unions
from reports.exports.boards.selection import BoardFile, options_of, select_board
from reports.ledger.chain import Json
from reports.studies.policies import OPENERS, studies_for
from reports.studies.texts import crumbs_to

MAX_ADDRESSES: Final = 5
RETRY: Final = timedelta(hours=1)

log = logging.getLogger(__name__)
_to_pdf = later("reports.exports.boards.document.to_pdf")
_rows_of = later("reports.exports.boards.drawing.rows_of")


# --- sending --------------------------------------------------------------------------------------


def send_due(now: datetime | None = None) -> None:
    """Send the digests that are due; of several workers one sends each of them."""
    now = now or timezone.now()
    due = BoardDigest.objects.filter(next_at__lte=now).select_related("board__study", "owner")
    for digest in due if settings.MOBILITY_DIGEST_DOMAINS else ():
        step = timedelta(days=digest.every_days)
        following = digest.next_at + step * ((now - digest.next_at) // step + 1)
        if BoardDigest.objects.filter(pk=digest.pk, next_at=digest.next_at).update(next_at=following):
            _send_or_end(digest, now=now)


def _send_or_end(digest: BoardDigest, *, now: datetime) -> None:
    if not _may_go_on(digest):
        end_digest(digest, actor="")
        return
    addresses = [each for each in digest.addresses if _is_allowed(each)]
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
        kind = type(error).__name__  # never its words: they may have addresses
        log.warning("digest_not_sent digest=%d error=%s", digest.pk, kind)
        BoardDigest.objects.filter(pk=digest.pk).update(next_at=now + RETRY, error=kind)
        return
    BoardDigest.objects.filter(pk=digest.pk).update(sent_at=now, sent_state=state, error="")
    facts: dict[str, Json] = {"file": f"{found.name}.pdf", "sha256": hashlib.sha256(pdf).hexdigest()}
    record_digest(
        digest, "sent", actor=digest.owner.get_username(), facts=facts | {"addresses": len(addresses)}
    )


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
        "%(owner)s set up these e-mails. They end when %(owner)s stops them or loses access to the study."
    ) % {"owner": digest.owner.get_username()}
    sentences = [row.words for row in _rows_of(found.tiles)]
    parts = [f"{found.study.shown_name}, {found.days_title}", *sentences, *found.reading_words, end]
    if settings.MOBILITY_SITE_URL:
        parts.append(f"{settings.MOBILITY_SITE_URL}{page}")
    return EmailMessage(
        subject=" ".join(f"{found.board.name}: {found.days_title}".split()),
        body="\n\n".join(part for part in parts if part) + "\n",
        bcc=addresses,
        attachments=[(f"{found.name}.pdf", pdf, "application/pdf")],
    )


def end_digest(digest: BoardDigest, *, actor: str) -> None:
    """Remove a digest; without an actor because its owner lost the right to it."""
    record_digest(digest, "ended", actor=actor)
    digest.delete()


def _is_allowed(address: str) -> bool:
    return address.rpartition("@")[2].lower() in {each.lower() for each in settings.MOBILITY_DIGEST_DOMAINS}


# --- page -----------------------------------------------------------------------------------------


class DigestForm(forms.Form):
    """Recipients of a digest, and how often they get it."""

    addresses = forms.CharField(
        label=_("E-mail addresses, one per line"), widget=forms.Textarea(attrs={"rows": 3}), max_length=1000
    )
    every_days = forms.TypedChoiceField(
        label=_("Interval"), coerce=int,
        choices=(
            (1, _("Every day, for the last day with data")),
            (7, _("Every week, for the last seven days")),
        ),
    )  # fmt: skip

    def clean_addresses(self) -> list[str]:
        """Addresses of allowed domains, each once."""
        found = list(dict.fromkeys(self.cleaned_data["addresses"].split()))
        if len(found) > MAX_ADDRESSES:
            text = gettext("Enter at most %(n)d addresses. You entered %(found)d.")
            raise forms.ValidationError(text % {"n": MAX_ADDRESSES, "found": len(found)})
        for each in found:
            validate_email(each)
            if not _is_allowed(each):
                text = gettext("“%(address)s” is not allowed. Addresses must end in: %(domains)s.")
                domains = ", ".join(settings.MOBILITY_DIGEST_DOMAINS)
                raise forms.ValidationError(text % {"address": each, "domains": domains})
        return found


@require_http_methods(["GET", "POST"])
@openers_only
def digest(request: HttpRequest, slug: str, board_id: int) -> HttpResponse:
    """Set up, change or stop one's own digest of a board."""
    study, owner = study_or_404(request, slug), account(request)
    board = board_or_404(study, board_id, reader=owner)
    if not studies_for(owner, *OPENERS).filter(pk=study.pk).exists():
        raise Http404
    found = BoardDigest.objects.filter(board=board, owner=owner).first()
    if request.method == "POST" and "stop" in request.POST:
        if found is not None:
            found.board = board
            end_digest(found, actor=owner.get_username())
            messages.success(request, gettext("This board is no longer sent by e-mail."))
        return redirect(request.path)
    initial = {"addresses": "\n".join(found.addresses), "every_days": found.every_days} if found else None
    form = DigestForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        _save(board, owner, form.cleaned_data)
        messages.success(request, gettext("Saved. The next e-mail will be sent within an hour."))
        return redirect(request.path)
    crumbs = [*crumbs_to(study), (board.name, reverse("reports:board", args=[slug, board.pk]))]
    context = {"study": study, "board": board, "digest": found, "form": form, "crumbs": crumbs}
    context["domains"] = settings.MOBILITY_DIGEST_DOMAINS
    return render(request, "boards/digest.html", context, status=400 if form.errors else 200)


def _save(board: Board, owner: User, asked: dict[str, Any]) -> None:
    values = asked | {"language": translation.get_language() or settings.LANGUAGE_CODE}
    values |= {"next_at": timezone.now(), "sent_state": "", "error": ""}
    found, is_new = BoardDigest.objects.update_or_create(board=board, owner=owner, defaults=values)
    facts: dict[str, Json] = {"addresses": len(asked["addresses"]), "every_days": asked["every_days"]}
    record_digest(found, "created" if is_new else "changed", actor=owner.get_username(), facts=facts)
