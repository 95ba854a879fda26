"""The API of unattended feeds: a file in one stream, and how its batch is doing. A token opens one study.

No session and no cookie counts here, so that no CSRF token is needed either. Errors are RFC 9457 problems.
"""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, cast
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.csrf import csrf_exempt

from mobility.base.errors import MobilityError
from mobility.batches import outcomes
from mobility.batches.finalisation import waiting_for_storage
from mobility.extracts.profiles.definition import DEFAULT
from mobility.uploads import actions as uploads
from mobility.uploads.actions import Readable
from mobility.uploads.feeds import actions as feeds
from mobility.uploads.incoming import notice_silence, say_when, status_of
from mobility.vault.models.batch import BY_FEED, Batch
from mobility.vault.models.profiles import FeedToken
from reports.base.problems import problem

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, FeedToken, P], HttpResponse]
FLAGS = ("more_to_come", "validate_only")
PARAMETERS = ("profile", *FLAGS)
ON = ("1", "true", "yes", "on")
LENGTH_DIGITS = 20
OFF = ("0", "false", "no", "off", "")


def feed(*methods: str) -> Callable[[View[P]], Callable[Concatenate[HttpRequest, P], HttpResponse]]:
    """Let in who has a token, and answer refusals as problems."""

    def decorate(view: View[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if request.method not in methods:
                refusal = problem(405, gettext("This address does not accept this request method."))
                refusal["Allow"] = ", ".join(methods)
                return refusal
            scheme, _, text = request.headers.get("Authorization", "").partition(" ")
            try:
                token = feeds.token_of(text.strip()) if scheme.lower() == "bearer" else None
                if token is None:
                    refusal = problem(401, gettext("The token is missing, unknown, expired or revoked."))
                    refusal["WWW-Authenticate"] = 'Bearer realm="mobility"'
                    return refusal
                with waiting_for_storage():
                    return view(request, token, *args, **kwargs)
            except MobilityError as error:
                refusal = problem(status_of(error), str(error))
                say_when(refusal)
                return refusal

        return cast("Callable[Concatenate[HttpRequest, P], HttpResponse]", csrf_exempt(guarded))

    return decorate


@feed("PUT")
def extract(request: HttpRequest, token: FeedToken, slug: str, filename: str) -> HttpResponse:
    """Take a file in; the same file again changes nothing."""
    if token.study.slug != slug:
        return problem(404, gettext("This token does not give access to a study with that name."))
    body = _body(request)
    if body is None:
        return problem(
            411, gettext("Send the file length in the Content-Length header, or send the file in chunks.")
        )
    stream, length = body
    if length == 0:
        return problem(400, gettext("The file is empty."))
    profile, flags = _options(request)
    notice_silence(request)
    batch = uploads.receive(
        stream,
        study=token.study,
        filename=filename,
        by=_sender(token),
        profile=profile,
        bytes_total=length,
        more_to_come=flags["more_to_come"],
        validate_only=flags["validate_only"],
    )
    url = request.build_absolute_uri(reverse("api:batch", args=[batch.pk]))
    return JsonResponse({"batch": str(batch.pk), "url": url}, status=201, headers={"Location": url})


@feed("GET")
def batch(_request: HttpRequest, token: FeedToken, batch_id: UUID) -> HttpResponse:
    """State of a batch that this feed sent, and what its own file decides; never what the vault holds."""
    mine = Batch.objects.filter(study=token.study_id, created_by=_sender(token))
    found = mine.select_related("study").filter(pk=batch_id).first()
    if found is None or found.kind not in Batch.FILES:
        return problem(404, gettext("This token does not give access to a batch with that name."))
    state = {"state": found.state, "is_final": found.is_final, "failure": found.failure}
    return JsonResponse({**state, **outcomes.summary_for_feed(found)})


def _sender(token: FeedToken) -> str:
    return f"{BY_FEED}{token.name}"


def _options(request: HttpRequest) -> tuple[str, dict[str, bool]]:
    """Profile and flags of the address.

    Raises
    ------
    MobilityError : something in it has no meaning; anyone who misspells "only check" must not publish
    """
    for name in request.GET:
        if name not in PARAMETERS:
            raise MobilityError(f"unknown parameter {name!r}; parameters: {', '.join(PARAMETERS)}")
    return request.GET.get("profile") or DEFAULT, {name: _flag(request, name) for name in FLAGS}


def _flag(request: HttpRequest, name: str) -> bool:
    text = request.GET.get(name, "").lower()
    if text not in (*ON, *OFF):
        off = ", ".join(filter(None, OFF))
        raise MobilityError(f"{name} must be one of {', '.join(ON)}; or one of {off}, or empty")
    return text in ON


def _body(request: HttpRequest) -> tuple[Readable, int | None] | None:
    """Return the source of the body and its length; None if its end is unknown.

    Raises
    ------
    MobilityError : the length is not a whole number
    """
    length = request.headers.get("Content-Length", "")
    if length.isascii() and length.isdigit() and len(length) < LENGTH_DIGITS:
        return request, int(length)
    if length:
        raise MobilityError(gettext("Content-Length must be a whole number of bytes."))
    # Of a body in chunks the server knows the end; the framework would take it for empty.
    is_chunked = request.headers.get("Transfer-Encoding", "").lower() == "chunked"
    if is_chunked and request.META.get("wsgi.input_terminated"):
        return request.META["wsgi.input"], None
    return None
