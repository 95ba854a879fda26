"""Pages of operators: choose a study, send an extract, watch its batch, close or undo days."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from mobility.base.errors import MobilityError
from mobility.batches import finalisation, queries, requests
from mobility.batches.pages.access import (
    batch_or_404,
    crumbs_to,
    operators_only,
    slugs_of,
    vault_study_or_404,
)
from mobility.batches.pages.progress import batch_progress
from mobility.batches.pages.undoing import waiting_undos
from mobility.batches.publication.undoing import UndoWaitsError, needs_second_person, rise_of
from mobility.batches.quality.batch_checks import batch_checks
from mobility.batches.quality.coverage import coverage_of, files_by_day
from mobility.batches.texts import help_entry, undone_words
from mobility.extracts.profiles.definition import OPT_OUT
from mobility.extracts.profiles.errors import ProfileMissingError
from mobility.uploads.coverage_calendar import day_marks, legend
from mobility.uploads.form import upload_context
from mobility.uploads.forms import DayForm, SlotsForm, close_form, void_form
from mobility.uploads.profile_pages.texts import profile_words
from mobility.vault.models.batch import Batch
from mobility.vault.profiles import find_profile
from reports.studies.policies import READERS, studies_for
from reports.studies.studyfile import StudyDefinition


@require_GET
@operators_only
def studies(request: HttpRequest) -> HttpResponse:
    """The studies that are open to the operator, with the state of their days."""
    rows = queries.study_rows(slugs=slugs_of(request))
    return render(request, "uploads/studies.html", {"rows": rows})


@require_GET
@operators_only
def study(request: HttpRequest, slug: str) -> HttpResponse:
    """Upload form, days and batches of one study."""
    row = vault_study_or_404(request, slug, whole=True)
    head = queries.study_head(row.pk)
    days = queries.study_days(row.pk, head)
    coverage = coverage_of(row.pk)
    marks = day_marks(coverage)
    batches = list(queries.study_batches(row.pk))  # an undo is newer than what it undid
    context = {
        "study": head,
        "days": [(day, marks[day.day]) for day in days],
        "sources": [source.source for source in coverage.sources],
        "legend": legend(),
        "batches": [(batch, undone_words(queries.undone_days(batch, batches), head)) for batch in batches],
        "batches_shown": queries.BATCHES_SHOWN,
        **upload_context(row, by=request.user.get_username()),
        "handover": queries.waiting_handover(row.pk),
        "close_form": close_form(days),
        "void_form": void_form(days, files=files_by_day(coverage)),
        "undos": waiting_undos(row, me=request.user.get_username()),
        "rise": rise_of(row).words,
        "needs_approval": needs_second_person(row),
        "crumbs": [(gettext("Uploads"), reverse("operator:studies"))],
    }
    return render(request, "uploads/study.html", context)


@require_GET
@operators_only
def batch(request: HttpRequest, batch_id: UUID) -> HttpResponse:
    """Show progress and end of a batch; the fragment refreshes itself until the end."""
    found = batch_or_404(request, batch_id)
    head = queries.study_head(found.study_id)
    context = {
        "batch": found,
        "study": head,
        "progress": batch_progress(found, head),
        "rejected": queries.rejected_rows(found),
        "ignored": queries.ignored_rows(found),
        "is_noted": any(found.notes.values()),
        "checks": batch_checks(found),
        "expected": _expected_columns(found),
        "help_entry": help_entry(found.failure) if found.state == Batch.State.FAILED else "",
        "handover": queries.waiting_handover(found.study_id) if found.is_final else None,
        "can_read": settings.HAS_REPORTS
        and studies_for(request.user, *READERS).filter(slug=head.slug).exists(),
        "crumbs": crumbs_to(head.shown_name, head.slug),
    }
    is_fragment = bool(request.htmx)  # type: ignore[attr-defined]
    template = "uploads/_batch.html" if is_fragment else "uploads/batch.html"
    return render(request, template, context)


def _expected_columns(batch: Batch) -> dict[str, Any]:
    """Columns of the profile that a useless file was read with, in words; empty for all other batches."""
    is_useless = batch.state == Batch.State.FAILED or batch.counts_nothing
    if not is_useless or batch.kind not in Batch.FILES or batch.profile == OPT_OUT:
        return {}
    definition = StudyDefinition.from_json(batch.study.definition)
    try:
        profile = find_profile(batch.study, batch.profile, definition)
    except ProfileMissingError:  # a later plan has no attributes of subscribers
        return {}
    return {
        **profile_words(profile, definition),
        "found": batch.failure.values.get("found", []),
        "copied": profile.name if batch.rows_read else "",  # its columns are there: the values differ
    }


@require_POST
@operators_only
def cancel(request: HttpRequest, batch_id: UUID) -> HttpResponse:
    """Cancel a batch that has changed nothing yet."""
    found = batch_or_404(request, batch_id)
    try:
        finalisation.cancel(found, by=request.user.get_username())
    except MobilityError as error:
        messages.error(request, error.reason.words)
    return redirect("operator:batch", batch_id=found.pk)


@require_POST
@operators_only
def close_days(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for days to be made final."""
    return _start(request, slug, close_form, requests.request_close_days, name="through")


@require_POST
@operators_only
def close_slots(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for the counts of slots to be published."""
    row = vault_study_or_404(request, slug)
    form = SlotsForm(request.POST)
    if not form.is_valid():
        messages.error(request, gettext("Nothing was changed. Choose a time and tick the confirmation box."))
        return redirect("operator:study", slug=row.slug)
    try:
        by = request.user.get_username()
        begun = requests.request_close_slots(row, through=form.cleaned_data["through"], by=by)
    except MobilityError as error:
        messages.error(request, error.reason.words)
        return redirect("operator:study", slug=row.slug)
    return redirect("operator:batch", batch_id=begun.pk)


@require_POST
@operators_only
def void_day(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for everything that was uploaded for a day to be undone."""
    return _start(request, slug, void_form, requests.request_void_day, name="day")


def _start(
    request: HttpRequest, slug: str, make: Callable[..., DayForm], start: Callable[..., Batch], *, name: str
) -> HttpResponse:
    """Start a batch for a day, `name` of its argument, and show it; or say why not on the study's page."""
    row = vault_study_or_404(request, slug)
    form = make(queries.study_days(row.pk, queries.study_head(row.pk)), request.POST)
    if not form.is_valid():
        messages.error(request, gettext("Nothing was changed. Choose a day and tick the confirmation box."))
    else:
        try:
            begun = start(row, **{name: form.cleaned_data["day"]}, by=request.user.get_username())
            return redirect("operator:batch", batch_id=begun.pk)
        except UndoWaitsError as waits:
            messages.warning(request, str(waits))
        except MobilityError as error:
            messages.error(request, error.reason.words)
    return redirect("operator:study", slug=row.slug)
