"""Days that wait for a second person before they are undone: what pages show, and the decision."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from mobility.base.errors import MobilityError
from mobility.batches import requests
from mobility.batches.pages.access import operators_only, vault_study_or_404
from mobility.batches.publication import undoing
from mobility.batches.quality.coverage import coverage_of, files_by_day
from mobility.batches.quality.words import files_words
from mobility.batches.queries import study_head
from mobility.vault.models.subscribers import VaultStudy
from mobility.vault.models.undo import DayUndo
from reports.accounts.access import overseers_only


def waiting_undos(study: VaultStudy | None, *, me: str) -> list[dict[str, Any]]:
    """Waiting requests, of a study or of all, and the obstacles to an approval by the reader."""
    return [
        {
            "undo": each,
            "date": study_head(each.study_id).date_of(each.day),
            "rise": undoing.rise_of(each.study).words,
            "files": files_words(files_by_day(coverage_of(each.study_id)).get(each.day, {})),
            "voided_days": each.study.voided_days + 1,
            "obstacle": undoing.obstacle(each, by=me),
        }
        for each in undoing.waiting(study)
    ]


@require_POST
@overseers_only
def decide(request: HttpRequest, slug: str, undo_id: int) -> HttpResponse:
    """Approve or refuse that a published day is undone."""
    undo = get_object_or_404(DayUndo, pk=undo_id, study__slug=slug)
    by, seen = request.user.get_username(), request.POST.get("voided_days", "")
    try:
        if request.POST.get("answer") == "approve":
            voided_days = int(seen) if seen.isdecimal() and len(seen) < 6 else 0
            requests.approve_undo(undo, voided_days=voided_days, by=by)
            messages.success(
                request, gettext("You approved the request. The data uploaded for that day is being removed.")
            )
        else:
            undoing.refuse(undo, by=by)
            messages.success(
                request, gettext("The request was refused. The data for the day has not changed.")
            )
    except MobilityError as error:
        messages.error(request, error.reason.words)
    return redirect("administrator:study", slug=slug)


@require_POST
@operators_only
def withdraw(request: HttpRequest, slug: str, undo_id: int) -> HttpResponse:
    """Take a request back, by any operator of the study."""
    study = vault_study_or_404(request, slug)
    undo = get_object_or_404(DayUndo, pk=undo_id, study=study)
    try:
        undoing.refuse(undo, by=request.user.get_username())
    except MobilityError as error:
        messages.error(request, error.reason.words)
    else:
        messages.success(request, gettext("The request was withdrawn. The data for the day has not changed."))
    return redirect("operator:study", slug=slug)
