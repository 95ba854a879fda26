"""Pages of operators: choose a study, send an extract, watch its batch, close or undo days."""

from collections.abc import Callable
from pathlib import PurePosixPath, PureWindowsPath
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from mobility import selectors
from mobility.errors import MobilityError
from mobility.models import Batch, VaultStudy
from mobility.services import intake
from mobility.views.forms import DayForm, close_form, void_form
from mobility.views.progress import batch_progress, upload_texts
from reports.policies import Role, require_role, roles_of

operators_only = require_role(Role.OPERATOR)


@require_GET
@operators_only
def studies(request: HttpRequest) -> HttpResponse:
    """All studies with the state of their days."""
    return render(request, "operator/studies.html", {"rows": selectors.study_rows()})


@require_GET
@operators_only
def study(request: HttpRequest, slug: str) -> HttpResponse:
    """Upload form, days and batches of one study."""
    row = _study_or_404(slug)
    head = selectors.study_head(row.pk)
    days = selectors.study_days(row.pk, head)
    context = {
        "study": head,
        "days": days,
        "batches": selectors.study_batches(row.pk),
        "batches_shown": selectors.BATCHES_SHOWN,
        "texts": upload_texts(),
        "close_form": close_form(days),
        "void_form": void_form(days),
        "crumbs": [(gettext("Uploads"), reverse("operator:studies"))],
    }
    return render(request, "operator/study.html", context)


@require_http_methods(["PUT"])
def upload(request: HttpRequest, slug: str) -> HttpResponse:
    """Take the raw body of the request in as an extract.

    A redirect to the sign-in page would send gigabytes there, hence the plain answers.
    """
    if not request.user.is_authenticated:
        return _refused(gettext("You are signed out: sign in and send the file again."), status=401)
    if Role.OPERATOR not in roles_of(request.user):
        raise Http404
    row = _study_or_404(slug)
    try:
        length = int(request.headers.get("Content-Length", ""))
    except ValueError:
        return _refused(gettext("The length of the file must be announced (Content-Length)."), status=411)
    if length <= 0:
        return _refused(gettext("The file is empty: choose another one."), status=400)
    try:
        batch = intake.receive(
            request,
            study=row,
            filename=_filename(request.GET.get("filename", "")),
            by=request.user.get_username(),
            more_to_come=request.GET.get("more_to_come") == "1",
            bytes_total=length,
        )
    except MobilityError as error:
        return _refused(str(error), status=400)
    return JsonResponse({"batch": str(batch.pk), "url": _batch_url(batch)}, status=201)


@require_GET
@operators_only
def batch(request: HttpRequest, batch_id: UUID) -> HttpResponse:
    """How far a batch is and how it ended; the fragment asks for itself until the end."""
    found = get_object_or_404(Batch, pk=batch_id)
    head = selectors.study_head(found.study_id)
    context = {
        "batch": found,
        "study": head,
        "progress": batch_progress(found, head),
        "rejected": selectors.rejected_rows(found),
        "ignored": selectors.ignored_rows(found),
        "can_read": bool({Role.ANALYST, Role.ADMINISTRATOR} & roles_of(request.user)),
        "crumbs": [
            (gettext("Uploads"), reverse("operator:studies")),
            (head.name, reverse("operator:study", args=[head.slug])),
        ],
    }
    is_fragment = bool(request.htmx)  # type: ignore[attr-defined]
    template = "operator/_batch.html" if is_fragment else "operator/batch.html"
    return render(request, template, context)


@require_POST
@operators_only
def close_days(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for days to be made final."""
    row = _study_or_404(slug)
    form = close_form(_days(row), request.POST)
    by = request.user.get_username()
    return _start(request, row, form, lambda: intake.request_close_days(row, through=form.chosen, by=by))


@require_POST
@operators_only
def void_day(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for everything that was uploaded for a day to be undone."""
    row = _study_or_404(slug)
    form = void_form(_days(row), request.POST)
    by = request.user.get_username()
    return _start(request, row, form, lambda: intake.request_void_day(row, day=form.chosen, by=by))


def _start(request: HttpRequest, row: VaultStudy, form: DayForm, start: Callable[[], Batch]) -> HttpResponse:
    """Start a batch and show it, or say why not on the page of the study."""
    if not form.is_valid():
        messages.error(request, gettext("Nothing was changed: choose a day and confirm."))
    else:
        try:
            return redirect(_batch_url(start()))
        except MobilityError as error:
            messages.error(request, str(error))
    return redirect("operator:study", slug=row.slug)


def _study_or_404(slug: str) -> VaultStudy:
    return get_object_or_404(VaultStudy.objects.defer("definition", "plan"), slug=slug)


def _days(row: VaultStudy) -> list[selectors.StudyDay]:
    return selectors.study_days(row.pk, selectors.study_head(row.pk))


def _batch_url(batch: Batch) -> str:
    return reverse("operator:batch", args=[batch.pk])


def _refused(text: str, *, status: int) -> JsonResponse:
    return JsonResponse({"error": text}, status=status)


def _filename(given: str) -> str:
    """Name of the file alone, printable: some browsers and scripts send a path."""
    name = PurePosixPath(PureWindowsPath(given).name).name
    return "".join(char for char in name if char.isprintable()) or "upload"
