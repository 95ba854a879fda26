"""The intake: where operator zones that run apart hand over. A signature opens it, and nothing else.

No session and no cookie counts here, so that no token against forged requests is needed either. Strangers are
refused before their body is read. Errors are RFC 9457 problems.
"""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import override
from django.views.decorators.csrf import csrf_exempt

from reports.base.problems import problem
from reports.transfer import actions as intake
from reports.transfer import messages
from reports.transfer.messages import Kind
from reports.transfer.models import Sender

P = ParamSpec("P")
Taker = Callable[Concatenate[Sender, bytes, P], HttpResponse]
log = logging.getLogger(__name__)


def signed(
    method: str, *, kind: Kind
) -> Callable[[Taker[P]], Callable[Concatenate[HttpRequest, P], HttpResponse]]:
    """Let in messages of one kind that a registered sender has signed, and answer refusals as problems."""

    def decorate(take: Taker[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
        @wraps(take)
        def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if request.method != method:
                refusal = problem(405, "the method is not allowed here")
                refusal["Allow"] = method
                return refusal
            try:
                with override("en"):  # for programs and their logs
                    sender, body = _opened(request, kind=kind)
                    return take(sender, body, *args, **kwargs)
            except intake.IntakeError as error:
                log.warning("handover_refused kind=%s status=%s", kind, error.status)
                return _refusal(error)

        exempt: Any = csrf_exempt(guarded)
        return exempt  # type: ignore[no-any-return]

    return decorate


@signed("GET", kind="state")
def state(sender: Sender, _body: bytes, *, slug: str) -> HttpResponse:
    """Return the state of a study here: a sender sends the missing parts."""
    return JsonResponse(intake.state_of(sender, slug=slug))


@signed("POST", kind="study")
def study(sender: Sender, body: bytes, *, slug: str) -> HttpResponse:
    """Create a study."""
    return JsonResponse({"is_new": intake.take_study(sender, slug=slug, body=body)})


@signed("POST", kind="publication")
def publication(sender: Sender, body: bytes, *, slug: str, publication_id: UUID) -> HttpResponse:
    """Add to the totals of a study."""
    is_new = intake.take_publication(sender, slug=slug, publication_id=publication_id, body=body)
    return JsonResponse({"is_new": is_new})


@signed("POST", kind="receipts")
def receipts(sender: Sender, body: bytes, *, slug: str) -> HttpResponse:
    """Add receipts of batches to the ledger."""
    intake.take_receipts(sender, slug=slug, body=body)
    return JsonResponse({})


@signed("POST", kind="closed")
def closed(sender: Sender, body: bytes, *, slug: str) -> HttpResponse:
    """Mark a study as closed."""
    return JsonResponse({"is_new": intake.take_closed(sender, slug=slug, body=body)})


def _opened(request: HttpRequest, *, kind: Kind) -> tuple[Sender, bytes]:
    """Sender and body of a message; IntakeError if not signed, too large, or not the body that was signed."""
    address = request.resolver_match.kwargs if request.resolver_match else {}
    item = str(address.get("publication_id", ""))
    try:
        envelope = messages.envelope_of(request.headers, kind=kind, study=address["slug"], item=item)
    except messages.MessageError as error:
        raise intake.IntakeError(400, str(error)) from None
    sender = intake.sender_of(envelope, request.headers.get(messages.SIGNATURE, ""))
    body = _body(request)
    if messages.digest_of(body) != envelope.digest:
        raise intake.IntakeError(400, "the body is not the one that was signed; nothing was changed")
    return sender, body


def _body(request: HttpRequest) -> bytes:
    """The whole body, of bounded size."""
    length = request.headers.get("Content-Length", "")
    if request.method == "GET":
        return b""
    if not (length.isascii() and length.isdigit()):
        raise intake.IntakeError(411, "the length of the body must be given (Content-Length)")
    most = settings.MOBILITY_INTAKE_MAX_BYTES
    if int(length) > most:
        raise intake.IntakeError(413, f"the body must have at most {most} bytes, got {int(length)}")
    # Not request.body, whose limit is that of forms.
    return request.read(int(length))


def _refusal(error: intake.IntakeError) -> HttpResponse:
    refusal = problem(error.status, str(error))
    if error.status == 401:
        refusal["WWW-Authenticate"] = f'{messages.FORMAT} realm="mobility"'
    return refusal
