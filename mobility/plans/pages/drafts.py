"""Pages of drafts: what each would change, and the next step of anyone who looks."""

from collections.abc import Callable, Iterable
from datetime import time
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Q, QuerySet
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from mobility.base.errors import MobilityError
from mobility.plans import drafts as services
from mobility.plans.drafts import DraftOpenError, copy_of_study, draft_of_study
from mobility.plans.models import PlanDraft
from mobility.plans.pages.draft_fields import certified_words, derived_words
from mobility.plans.pages.draft_state import DraftState, state_of
from mobility.plans.pages.simulator_source import expected_visitors
from mobility.plans.publishing import obstacle, publish_draft
from reports.accounts.access import administrators_only, overseers_only
from reports.base.reasons import words_of
from reports.privacy.budget.actions import BudgetExceededError, outlook_of
from reports.privacy.budget.texts import outlook_sentences
from reports.privacy.days_texts import two_categories
from reports.privacy.location_texts import noise_words
from reports.privacy.plan_changes import plan_changes
from reports.privacy.statement.locations import location_protection
from reports.privacy.statement.slots import slots_words
from reports.simulator.plan_effects import DEFAULT_VISITORS, MOST_VISITORS, plan_effects
from reports.studies.models import Study
from reports.studies.names import in_language
from reports.studies.policies import Role, roles_of
from reports.studies.studyfile import StudyDefinition, StudyFileError
from reports.studies.texts import plan_words, visitor_words
from reports.transfer.plans import PlanInUseError
from reports.transfer.studies import StudyExistsError

Somebody = AbstractBaseUser | AnonymousUser
GOING_ON = Q(state__in=PlanDraft.OPEN) | Q(state=PlanDraft.State.PUBLISHED, announced_at=None)
MAX_ENDED = 200
REFUSALS = (MobilityError, StudyExistsError, PlanInUseError, BudgetExceededError, StudyFileError)


@require_GET
@overseers_only
def drafts(request: HttpRequest) -> HttpResponse:
    """All drafts, those first that wait for someone."""
    # Ended drafts are records: without the text, which can be large.
    ended = PlanDraft.objects.exclude(GOING_ON).defer("definition", "base")
    context = {
        "going_on": open_drafts(request.user),
        "ended": _states(request.user, _titled(ended)[:MAX_ENDED]),
        "crumbs": crumbs()[:1],
    }
    return render(request, "plans/drafts.html", context)


@require_GET
@overseers_only
def draft(request: HttpRequest, draft_id: int) -> HttpResponse:
    """One draft: the next step, what it changes, and what it says."""
    found = get_object_or_404(PlanDraft, pk=draft_id)
    definition, before = StudyDefinition.from_json(found.definition), services.base_of(found)
    spec = definition.plan_spec(version=found.version)
    located = location_protection(spec)
    visitors = _visitors(request, expected=expected_visitors(definition))
    outlook = outlook_of(definition) if found.is_open else None
    certified = certified_words(definition)
    context = {
        "state": _state(request.user, found),
        "draft": found,
        "definition": definition,
        "before": before,
        "spec": spec,
        "plan_words": plan_words(spec),
        "visitor_rule": visitor_words(
            minutes=definition.visitor.min_minutes,
            start=time(*divmod(definition.visitor.from_minute, 60)),
            end=time(*divmod(definition.visitor.to_minute, 60)),
            timezone=definition.timezone,
        ),
        "classes": [(each, certified[each.slug]) for each in definition.classes],
        "asked": [(each, derived_words(each.derive or "")) for each in definition.indicators],
        "places": [] if located is None else noise_words(located),
        "slots": slots_words(spec, hold_minutes=definition.slots.hold_minutes) if definition.slots else [],
        "changes": plan_changes(before, definition),
        "effects": plan_effects(before, definition, visitors=visitors),
        "two_categories": two_categories(
            spec, {each.slug: each.shown_name for each in definition.indicators}
        ),
        "visitors": visitors,
        "most_visitors": MOST_VISITORS,
        "budget": outlook_sentences(outlook) if outlook else [],
        "exceeds_budget": bool(outlook and outlook.exceeded),
        "crumbs": crumbs(),
    }
    return render(request, "plans/draft.html", context)


@require_POST
@overseers_only
def step(request: HttpRequest, draft_id: int) -> HttpResponse:
    """Take the next step with a draft; what cannot be done says why, and changes nothing."""
    found = get_object_or_404(PlanDraft, pk=draft_id)
    name = request.POST.get("step", "")
    problem = ""
    if name not in STEPS:
        problem = gettext(
            "Nothing was changed: the form did not include an action. Reload the page and try again."
        )
    elif name not in _state(request.user, found).may:
        problem = gettext(
            "Nothing was changed. Either you do not have permission for this step, or the draft has "
            "reached a different stage."
        )
    else:
        try:
            messages.success(request, STEPS[name](request, found))
        except REFUSALS as error:
            problem = words_of(error)
    if problem:
        messages.error(request, problem)
    found.refresh_from_db()
    if found.state == PlanDraft.State.PUBLISHED and not found.is_unfinished and name in ("publish", "finish"):
        return redirect("administrator:study", slug=found.slug)
    return redirect("administrator:draft", draft_id=found.pk)


@require_POST
@administrators_only
def draft_study(request: HttpRequest, slug: str) -> HttpResponse:
    """Draft the next version of a study's plan, or a new study like it."""
    get_object_or_404(Study, slug=slug)
    by, to = request.user.get_username(), request.POST.get("copy_to", "").strip()
    try:
        made = copy_of_study(slug, to=to, by=by) if "copy_to" in request.POST else _next_version(slug, by=by)
    except DraftOpenError as error:
        messages.info(request, words_of(error))
        return redirect("administrator:draft", draft_id=error.draft_id)
    except REFUSALS as error:
        messages.error(request, words_of(error))
        return redirect("administrator:study", slug=slug)
    return redirect("administrator:edit_draft", draft_id=made.pk)


def _next_version(slug: str, *, by: str) -> PlanDraft:
    final = obstacle(slug)
    if final:
        raise MobilityError(final)
    return draft_of_study(slug, by=by)


def open_drafts(user: Somebody) -> list[DraftState]:
    """Drafts that wait for someone, for the page of all studies."""
    return _states(user, _titled(PlanDraft.objects.filter(GOING_ON)))


def _titled(rows: QuerySet[PlanDraft]) -> QuerySet[PlanDraft]:
    """Add the name of each study in the active language, without its definition."""
    name = KT("definition__name")
    return rows.annotate(title=in_language(name, Coalesce(KT("definition__name_fr"), name)))


def _states(user: Somebody, rows: Iterable[PlanDraft]) -> list[DraftState]:
    by, is_administrator = user.get_username(), Role.ADMINISTRATOR in roles_of(user)
    asks_second = settings.MOBILITY_SECOND_PERSON
    return [
        state_of(each, by=by, is_administrator=is_administrator, asks_second=asks_second) for each in rows
    ]


def _state(user: Somebody, found: PlanDraft) -> DraftState:
    return _states(user, [found])[0]


def _visitors(request: HttpRequest, *, expected: int | None) -> int:
    text = "".join(request.GET.get("visitors", "").split())
    typed = int(text) if text.isdecimal() and len(text) < 12 else expected or DEFAULT_VISITORS
    return min(max(typed, 1), MOST_VISITORS)


def revision_of(request: HttpRequest) -> int:
    """The revision of a draft that a form was made from; 0: it does not say."""
    text = request.POST.get("revision", "")
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def crumbs() -> list[tuple[str, str]]:
    return [
        (gettext("Administration"), reverse("administrator:studies")),
        (gettext("Draft plans"), reverse("administrator:drafts")),
    ]


def _seen(request: HttpRequest) -> dict[str, Any]:
    """Return the person of a step and the revision of the draft that they saw."""
    return {"revision": revision_of(request), "by": request.user.get_username()}


def _remark(request: HttpRequest) -> str:
    return request.POST.get("remark", "").strip()


def _submit(request: HttpRequest, found: PlanDraft) -> str:
    services.submit_draft(found, **_seen(request))
    return gettext(
        "The draft is waiting for review. Ask another administrator or a privacy officer to review it."
    )


def _approve(request: HttpRequest, found: PlanDraft) -> str:
    services.approve_draft(found, **_seen(request), remark=_remark(request))
    return gettext("You approved the draft in its current form. An administrator can publish it.")


def _send_back(request: HttpRequest, found: PlanDraft) -> str:
    services.send_back(found, **_seen(request), remark=_remark(request))
    return gettext("The draft was sent back with your comment.")


def _withdraw(request: HttpRequest, found: PlanDraft) -> str:
    services.withdraw_draft(found, **_seen(request))
    return gettext("The draft was withdrawn. It is kept here as a record.")


def _publish(request: HttpRequest, found: PlanDraft) -> str:
    publish_draft(found, **_seen(request))
    if found.is_new_study:
        said = gettext(
            "The study has been created. Next, open the People page and check who can see the study. "
            "Give access to the operators who upload extracts and to the people who read the reports."
        )
        people = reverse("people:people")
        return format_html('{} <a href="{}">{}</a>', said, people, gettext("Open the People page"))
    return gettext("Version %(version)s of the plan is now in force.") % {"version": found.version}


STEPS: dict[str, Callable[[HttpRequest, PlanDraft], str]] = {
    "submit": _submit,
    "approve": _approve,
    "send_back": _send_back,
    "withdraw": _withdraw,
    "publish": _publish,
    "finish": _publish,
}
