"""The end of a study: closing it permanently, and its erasure certificate."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods

from mobility.base.errors import MobilityError
from mobility.batches.publication.certificate import is_complete
from mobility.batches.queries import study_head
from mobility.plans.closing import close_study
from mobility.plans.pages.closing_form import ClosingForm, Obstacles
from mobility.plans.pages.study_files import attached
from mobility.vault.models.subscribers import VaultStudy
from reports.accounts.access import administrators_only, overseers_only
from reports.base.reasons import words_of


@require_http_methods(["GET", "POST"])
@administrators_only
def close(request: HttpRequest, slug: str) -> HttpResponse:
    """Explain closing and its obstacles; close after confirmation."""
    row = get_object_or_404(VaultStudy, slug=slug)
    page = reverse("administrator:study", args=[slug])
    if is_complete(row.certificate):
        return redirect(page)
    obstacles = Obstacles.of(row)
    form = ClosingForm(request.POST or None, study=row, obstacles=obstacles)
    if form.is_valid():
        try:
            close_study(row, by=request.user.get_username(), leave=form.leave)
        except MobilityError as error:
            form.add_error(None, words_of(error))
            row.refresh_from_db()
        else:
            messages.success(request, gettext("The study is closed. Keep its erasure certificate."))
            return redirect(page)
    head = study_head(row.pk)
    context = {
        "study": head,
        "row": row,
        "form": form,
        "obstacles": obstacles,
        "crumbs": [(gettext("Administration"), reverse("administrator:studies")), (head.shown_name, page)],
    }
    return render(request, "plans/close.html", context, status=422 if form.errors else 200)


@require_GET
@overseers_only
def certificate(request: HttpRequest, slug: str) -> HttpResponse:
    """The erasure certificate as a file."""
    row = get_object_or_404(VaultStudy, slug=slug)
    if not is_complete(row.certificate):
        messages.error(request, gettext("There is no erasure certificate, because the study is not closed."))
        return redirect("administrator:study", slug=slug)
    return attached(row.certificate, filename=f"{slug}-erasure-certificate.json")
