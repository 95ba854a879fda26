"""The page that edits a draft: a form that works without scripts, and loses nothing that was typed."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from mobility.plans.drafts import DraftConflictError, DraftError, save_draft
from mobility.plans.models import PlanDraft
from mobility.plans.pages.draft_fields import certified_words, draft_form
from mobility.plans.pages.draft_typed import CLASS, DAILY, JOINT, ORIGIN, STATIC, Typed
from mobility.plans.pages.drafts import crumbs, revision_of
from mobility.plans.pages.simulated import USED, use
from mobility.plans.pages.simulator_form import recommendation_for
from mobility.plans.pages.simulator_source import source_of_draft
from reports.accounts.access import administrators_only
from reports.base.reasons import words_of
from reports.studies.studyfile import Problem, StudyDefinition, StudyFileError
from reports.studies.studyfile.numbers import NUMBER
from reports.studies.studyfile.redraft import read_tables
from reports.transfer.studies import StudyExistsError

ADDS = {
    "add-static": STATIC,
    "add-origin": ORIGIN,
    "add-daily": DAILY,
    "add-joint": JOINT,
    "add-number": NUMBER,
    "add-class": CLASS,
}


@require_http_methods(["GET", "POST"])
@administrators_only
def edit(request: HttpRequest, draft_id: int) -> HttpResponse:
    """Show the form, change its rows, or save it."""
    found = get_object_or_404(PlanDraft, pk=draft_id)
    if not found.is_open:
        messages.error(request, gettext("This draft can no longer be edited."))
        return redirect("administrator:draft", draft_id=found.pk)
    definition = StudyDefinition.from_json(found.definition)
    if request.method == "GET":
        typed = Typed.of(definition)
        if USED in request.GET:
            use(typed, request.GET)
        return _page(request, found, typed, revision=found.revision, is_simulated=USED in request.GET)
    typed = Typed.sent(dict(request.POST.lists()))
    revision = revision_of(request)
    action = request.POST.get("do", "save")
    if action in ADDS:
        return _page(request, found, typed, revision=revision, new=typed.add(ADDS[action]))
    if action.startswith("remove-"):
        typed.remove(action.removeprefix("remove-"))
        return _page(request, found, typed, revision=revision, is_changed=True)
    return _save(request, found, typed, definition, revision=revision)


def _save(
    request: HttpRequest, found: PlanDraft, typed: Typed, definition: StudyDefinition, *, revision: int
) -> HttpResponse:
    try:
        edited = read_tables(typed.tables(definition), like=definition)
    except StudyFileError as error:
        return _page(request, found, typed, revision=revision, problems=error.problems)
    try:
        is_new = save_draft(found, edited, revision=revision, by=request.user.get_username())
    except DraftConflictError as error:
        return _page(request, found, typed, revision=revision, conflict=words_of(error))
    except (DraftError, StudyExistsError) as error:
        refused = [Problem(file="", key="study.slug", rule=error.args[0])]
        return _page(request, found, typed, revision=revision, problems=refused)
    if is_new:
        messages.success(request, gettext("Saved. The effects of the draft are shown below."))
    else:
        messages.info(request, gettext("Nothing has changed, so the draft was not saved again."))
    return redirect("administrator:draft", draft_id=found.pk)


def _certified(typed: Typed, found: PlanDraft) -> dict[str, str]:
    """Certified epsilon of each class with the values of the form; nothing while they are not valid."""
    like = StudyDefinition.from_json(found.definition)
    try:
        return certified_words(read_tables(typed.tables(like), like=like)) if typed.classes else {}
    except StudyFileError:
        return {}


def _page(
    request: HttpRequest,
    found: PlanDraft,
    typed: Typed,
    *,
    revision: int,
    problems: list[Problem] | None = None,
    conflict: str = "",
    new: str = "",
    is_changed: bool = False,
    is_simulated: bool = False,
) -> HttpResponse:
    context = {
        "draft": found,
        "form": draft_form(
            typed,
            problems=problems or (),
            slug_is_fixed=not found.is_new_study,
            recommendation=recommendation_for(source_of_draft(found)),
            notes=_certified(typed, found),
        ),
        "revision": revision,
        "conflict": conflict,
        "new": new,
        "is_simulated": is_simulated,
        "is_changed": is_changed or bool(new),
        "crumbs": [*crumbs(), (found.shown_name, reverse("administrator:draft", args=[found.pk]))],
    }
    status = 409 if conflict else 422 if problems else 200
    return render(request, "plans/draft_edit.html", context, status=status)
