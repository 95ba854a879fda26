"""Delivery of files: at once if small, else when a worker has made it.

A browser sees a page with the progress, which refreshes itself. A script waits: the answer to its request
is the file, or, after a minute, the same address once more.
"""

import threading
import time
from typing import Final

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from reports.accounts.access import account, exporters_only
from reports.base.attachments import attachment, streamed
from reports.base.turns import without_turn
from reports.estimates.queries import WindowError
from reports.exports.actions import Asked, ask_for_file
from reports.exports.errors import ExportError
from reports.exports.formats.choosing import FORMATS, Format
from reports.exports.models import ExportFile
from reports.exports.recipes import Recipe, write
from reports.ledger.handed_out import P, View, handed_out
from reports.studies.models import Study
from reports.studies.texts import crumbs_to

AT_ONCE_BYTES: Final = 1_000_000  # a larger file is sent in pieces
WAIT_S: Final = {"browser": 3.0, "script": 60.0}  # that a request waits for a worker
LOOK_S: Final = 0.3
PLACES: Final = 4  # requests of a process that wait: each holds a thread
AGAIN_S: Final = 5
MAX_TURNS: Final = 5  # most clients follow as many
TURN: Final = "turn"
_places = threading.BoundedSemaphore(PLACES)


def file_of_study(view: View[P]) -> View[P]:
    """A file of the study in the address, for people who may have its figures; the ledger notes it."""
    return require_safe(exporters_only(handed_out(view)))


def format_or_404(scope: str, ending: str) -> Format:
    """A format that makes sense for a scope."""
    if ending not in FORMATS[scope]:
        raise Http404
    return FORMATS[scope][ending]


def file_response(request: HttpRequest, study: Study, recipe: Recipe) -> HttpResponseBase:
    """The file of a recipe, how far it is, or why there is none; the reader may have it."""
    if recipe.is_made_at_once(study):
        try:
            made = write(study, recipe)
        except (ExportError, WindowError) as error:
            return refused(error)
        return attachment(made.content, content_type=made.content_type, name=made.name)
    if request.method == "HEAD":  # starts nothing
        return HttpResponse(content_type=recipe.content_type)
    asked, has_waited = _held(request, study, recipe)
    found = asked.file
    is_page = _is_browser(request)
    if found is not None and found.state == ExportFile.State.DONE and not request.headers.get("HX-Request"):
        return _kept(found)
    if found is not None and found.state == ExportFile.State.FAILED and not is_page:
        failure = gettext("The file could not be created. Try again in a minute.")
        return refused(ExportError(found.reason)) if found.reason else _come_again(failure)
    if is_page:
        return _page(request, study, asked)
    return _turned(request) if has_waited else _come_again(_later())


def refused(error: ValueError) -> HttpResponse:
    """Why there is no such file, in words."""
    return HttpResponse(str(error), status=400, content_type="text/plain; charset=utf-8")


def _is_browser(request: HttpRequest) -> bool:
    """Return whether a person looks at the answer: scripts take anything, browsers name pages."""
    return "text/html" in request.headers.get("Accept", "") or bool(request.headers.get("HX-Request"))


def _held(request: HttpRequest, study: Study, recipe: Recipe) -> tuple[Asked, bool]:
    """Request the file, and wait for a while if a thread can be spared; returns whether it could."""
    asked = ask_for_file(study, recipe, by=account(request))
    if request.headers.get("HX-Request") or not _places.acquire(blocking=False):
        return asked, False
    try:
        until = time.monotonic() + WAIT_S["browser" if _is_browser(request) else "script"]
        while (asked.file is None or asked.file.is_on_its_way) and time.monotonic() < until:
            with without_turn():
                time.sleep(LOOK_S)
            asked = ask_for_file(study, recipe, by=account(request))
        return asked, True
    finally:
        _places.release()


def _kept(found: ExportFile) -> HttpResponseBase:
    """Send the kept file; a large one is unpacked as it is sent."""
    if found.size <= AT_ONCE_BYTES:
        return attachment(b"".join(found.pieces()), content_type=found.content_type, name=found.name)
    return streamed(found.pieces(), content_type=found.content_type, name=found.name, size=found.size)


def _page(request: HttpRequest, study: Study, asked: Asked) -> HttpResponse:
    """Show the progress of a file: the page, or its part that refreshes."""
    context = {
        "study": study,
        "file": asked.file,
        "waits_for": asked.waits_for,
        "is_done": asked.file is not None and asked.file.state == ExportFile.State.DONE,
        "has_failed": asked.file is not None and asked.file.state == ExportFile.State.FAILED,
        "address": request.get_full_path(),
        "crumbs": crumbs_to(study),
    }
    is_part = bool(request.headers.get("HX-Request"))
    template = "exports/_file_state.html" if is_part else "exports/file.html"
    response = render(
        request, template, context, status=400 if context["has_failed"] and not is_part else 202
    )
    response["Cache-Control"] = "no-store"
    return response


def _turned(request: HttpRequest) -> HttpResponse:
    """Redirect to the same address a few times; then a script has to try again later."""
    text = request.GET.get(TURN, "")
    turn = int(text) if text.isascii() and text.isdigit() and len(text) == 1 else 0
    if turn >= MAX_TURNS:
        return _come_again(_later())
    query = request.GET.copy()
    query[TURN] = str(turn + 1)
    return HttpResponseRedirect(f"{request.path}?{query.urlencode()}")


def _later() -> str:
    return gettext("The file is being created. Request it again in a few seconds.")


def _come_again(text: str) -> HttpResponse:
    refusal = HttpResponse(text, status=503, content_type="text/plain; charset=utf-8")
    refusal["Retry-After"] = str(AGAIN_S)
    return refusal
