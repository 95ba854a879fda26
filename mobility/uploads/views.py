"""Uploads of the browser that survive a lost connection: a server of tus 1.0 (resumable uploads).

With the extensions creation, termination and expiration. A body is read as it comes and sealed at once; it
never meets the upload handlers of the framework. A redirect to the sign-in page would send gigabytes there,
hence the plain answers.
"""

import base64
import binascii
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, cast
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.http import http_date
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from mobility.base.errors import MobilityError, SupersededError
from mobility.batches.finalisation import cancel, waiting_for_storage
from mobility.batches.pages.access import vault_study_or_404
from mobility.extracts.profiles.definition import DEFAULT
from mobility.uploads import actions as uploads
from mobility.uploads.incoming import notice_silence, say_when, status_of
from mobility.vault.models.batch import Batch
from reports.base.problems import missing_problem, problem
from reports.studies.policies import Role, fetch_rights, roles_of

VERSION = "1.0.0"
EXTENSIONS = "creation,termination,expiration"
BODY_TYPE = "application/offset+octet-stream"

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def tus(view: View[P]) -> View[P]:
    """Let operators in, and speak the protocol's version."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            response = _stranger(request)
            if response is None:
                with waiting_for_storage():
                    response = view(request, *args, **kwargs)
        except MobilityError as error:
            response = problem(status_of(error), error.reason.words)
            say_when(response)
        except Http404:
            if request.method == "GET":  # a person follows a link
                raise
            response = missing_problem()
        response["Tus-Resumable"] = VERSION
        return response

    return cast("View[P]", guarded)


@require_http_methods(["OPTIONS", "POST"])
@tus
def collection(request: HttpRequest, slug: str) -> HttpResponse:
    """Say what this server does, or open an upload."""
    study = vault_study_or_404(request, slug)
    if request.method == "OPTIONS":
        largest = str(settings.MOBILITY_MAX_UPLOAD_BYTES)
        headers = {"Tus-Version": VERSION, "Tus-Extension": EXTENSIONS, "Tus-Max-Size": largest}
        return HttpResponse(status=204, headers=headers)
    if request.headers.get("Tus-Resumable") != VERSION:
        return _other_version()
    length = _whole_number(request.headers.get("Upload-Length", ""))
    if length is None:
        return problem(400, gettext("Send the file length in the Upload-Length header."))
    if length == 0:
        return problem(400, gettext("The file is empty. Choose another file."))
    given = _metadata(request.headers.get("Upload-Metadata", ""))
    if given is None:
        return problem(400, gettext("The file description in the Upload-Metadata header is not valid."))
    batch = uploads.begin(
        study,
        filename=given.get("filename", ""),
        by=request.user.get_username(),
        profile=given.get("profile") or DEFAULT,
        more_to_come=given.get("more_to_come") == "1",
        validate_only=given.get("validate_only") == "1",
        bytes_total=length,
    )
    location = reverse("operator:upload", args=[study.slug, batch.pk])
    return _with_progress(HttpResponse(status=201, headers={"Location": location}), batch)


@require_http_methods(["GET", "HEAD", "PATCH", "DELETE"])
@tus
def upload(request: HttpRequest, slug: str, upload_id: UUID) -> HttpResponse:
    """Continue an upload, ask for its progress, or cancel it; a plain GET leads to the page of its batch."""
    study = vault_study_or_404(request, slug)
    batch = get_object_or_404(Batch, pk=upload_id, study=study, kind__in=Batch.FILES)
    if request.method == "GET":
        return redirect("operator:batch", batch_id=batch.pk)
    if batch.created_by != request.user.get_username():
        raise Http404
    if request.headers.get("Tus-Resumable") != VERSION:
        return _other_version()
    if batch.state in (Batch.State.FAILED, Batch.State.CANCELLED):
        return problem(410, batch.failure.words)
    if request.method == "HEAD":
        return _with_progress(HttpResponse(), _ended_if_whole(batch))
    if request.method == "DELETE":
        cancel(batch, by=request.user.get_username())
        return HttpResponse(status=204)
    return _append(request, batch)


def _append(request: HttpRequest, batch: Batch) -> HttpResponse:
    if request.content_type != BODY_TYPE:
        return problem(415, gettext("The request body must be of type {type}.").format(type=BODY_TYPE))
    offset = _whole_number(request.headers.get("Upload-Offset", ""))
    if offset is None:
        return problem(400, gettext("The offset in the Upload-Offset header must be a whole number."))
    notice_silence(request)
    length = _whole_number(request.headers.get("Content-Length", ""))
    try:
        uploads.append(batch, request, offset=offset, length=length)
    except UnreadablePostError:
        return problem(400, gettext("The connection was interrupted."))  # to no one
    except SupersededError:
        batch.refresh_from_db()
        if batch.state not in (Batch.State.FAILED, Batch.State.CANCELLED):
            raise
        return problem(410, batch.failure.words)
    return _with_progress(HttpResponse(status=204), _ended_if_whole(batch))


def _ended_if_whole(batch: Batch) -> Batch:
    """Queue the batch once all its bytes are there, also if the connection that brought the last one died."""
    if batch.state == Batch.State.RECEIVING and batch.bytes_received == batch.bytes_total:
        uploads.complete(batch)
    return batch


def _stranger(request: HttpRequest) -> HttpResponse | None:
    if not request.user.is_authenticated:
        return problem(401, gettext("You are signed out. Sign in and choose the file again."))
    fetch_rights(request.user)
    if Role.OPERATOR not in roles_of(request.user):
        raise Http404
    return None


def _with_progress(response: HttpResponse, batch: Batch) -> HttpResponse:
    response["Upload-Offset"] = str(batch.bytes_received)
    response["Upload-Length"] = str(batch.bytes_total)
    if batch.state == Batch.State.RECEIVING and batch.alive_until is not None:
        response["Upload-Expires"] = http_date(batch.alive_until.timestamp())
    return response


def _metadata(header: str) -> dict[str, str] | None:
    """Pairs of a name and a text in base64, separated by commas; None if it is something else."""
    found = {}
    for pair in header.split(",") if header else []:
        name, _, value = pair.strip().partition(" ")
        try:
            found[name] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return None
    return found


def _whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _other_version() -> HttpResponse:
    response = problem(412, gettext("This version of the tus protocol is not supported."))
    response["Tus-Version"] = VERSION
    return response
