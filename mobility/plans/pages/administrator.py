"""Pages of administrators: studies with their plans, and drafting one from its file."""

from decimal import Decimal

from django.conf import settings
from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_GET, require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from ldp import IndicatorCertificate, PlanSpec
from mobility.base.errors import MobilityError
from mobility.batches.pages.undoing import waiting_undos
from mobility.batches.publication.certificate import is_complete
from mobility.batches.queries import waiting_handover
from mobility.batches.texts import megabytes
from mobility.plans.drafts import DraftOpenError, draft_new_study
from mobility.plans.models import PlanDraft
from mobility.plans.pages.drafts import open_drafts
from mobility.plans.pages.study_form import StudyForm, StudyFormError, check_given, check_size
from mobility.plans.publishing import obstacle
from mobility.vault.models.subscribers import VaultStudy
from reports.accounts.access import administrators_only, overseers_only
from reports.privacy.budget.texts import spent_populations
from reports.privacy.location_texts import noise_words
from reports.privacy.statement.document import certified
from reports.privacy.statement.locations import location_protection
from reports.privacy.statement.slots import slots_table, slots_words
from reports.studies import texts as studies_texts
from reports.studies.models import Area, Indicator, Study
from reports.studies.plan_models import Plan
from reports.studies.queries import current_plan
from reports.studies.studyfile import StudyDefinition, StudyFileError, parse_study
from reports.transfer.studies import StudyExistsError, plan_hash

MAX_NOTES = 10  # on a page


class UnconfirmedError(Exception):
    """The promise of places was not shown yet; `token` names the shown one."""

    def __init__(self, sentences: list[str], *, token: str) -> None:
        super().__init__("not confirmed yet")
        self.sentences = sentences
        self.token = token


@require_GET
@overseers_only
def studies(request: HttpRequest) -> HttpResponse:
    """All studies with the plan in force."""
    newest = {plan.study_id: plan for plan in Plan.objects.order_by("version")}
    rows = [
        {"study": found, "plan": newest[found.pk], "certificate": certified(newest[found.pk])[1]}
        for found in Study.objects.annotate(n_indicators=Count("indicators"))
    ]
    context = {
        "rows": rows,
        "spent_populations": spent_populations(),
        "drafts": open_drafts(request.user),
        "undos": waiting_undos(None, me=request.user.get_username()),
    }
    return render(request, "plans/studies.html", context)


@require_http_methods(["GET", "POST"])
@administrators_only
def create(request: HttpRequest) -> HttpResponse:
    """Draft a study from its file, or list everything that is wrong with it."""
    form, problems, promise, other = StudyForm(), [], None, None
    if request.method == "POST":
        form = StudyForm.of(request)
        try:
            made = _create(request, form)
        except UnconfirmedError as unconfirmed:
            promise = unconfirmed
        except (StudyFormError, StudyFileError, StudyExistsError, MobilityError) as error:
            problems = str(error).split("\n")
            other = error.draft_id if isinstance(error, DraftOpenError) else None
        else:
            said = gettext("The study file is valid. Nothing takes effect until the draft is published.")
            messages.success(request, said)
            address = reverse("administrator:draft", args=[made.pk])
            return HttpResponseClientRedirect(address) if request.htmx else redirect(address)  # type: ignore[attr-defined]
    context = {
        "problems": problems,
        "promise": promise,
        "other_draft": other,
        "form": form,
        "max_mb": megabytes(settings.FILE_UPLOAD_MAX_MEMORY_SIZE),
        "crumbs": [(gettext("Administration"), reverse("administrator:studies"))],
    }
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "plans/_problems.html", context)
    return render(request, "plans/create.html", context, status=422 if problems else 200)


def _create(request: HttpRequest, form: StudyForm) -> PlanDraft:
    check_size(request)
    check_given(form)
    notes: list[str] = []
    definition = parse_study(
        form.text,
        filename=form.filename,
        read=form.read,
        default_min_publication=settings.MOBILITY_MIN_PUBLICATION,
        note=notes.append,
    )
    _check_confirmed(definition, form)
    made = draft_new_study(definition, by=request.user.get_username())
    _show_notes(request, notes)
    return made


def _check_confirmed(definition: StudyDefinition, form: StudyForm) -> None:
    """Raise UnconfirmedError unless the noise of this study's places was seen: it is permanently."""
    spec = definition.plan_spec()
    located = location_protection(spec)
    if located is not None and form.confirmed != plan_hash(spec):
        raise UnconfirmedError(noise_words(located), token=plan_hash(spec))


def _show_notes(request: HttpRequest, notes: list[str]) -> None:
    """Say what was found in the files of a study that was created all the same."""
    for note in notes[:MAX_NOTES]:
        messages.warning(request, note)
    if len(notes) > MAX_NOTES:
        more = len(notes) - MAX_NOTES
        messages.warning(
            request,
            ngettext("%(n)s more note is not shown.", "%(n)s more notes are not shown.", more) % {"n": more},
        )


@require_GET
@overseers_only
def study(request: HttpRequest, slug: str) -> HttpResponse:
    """The plan of a study and what it certifies."""
    found = get_object_or_404(Study, slug=slug)
    plan = current_plan(found)
    spec, certificate = certified(plan)
    located = location_protection(spec, extra_days=plan.voided_days)
    vault = VaultStudy.objects.defer("definition", "plan").filter(slug=slug).first()
    erasure = None if vault is None else vault.certificate
    typed = {each.indicator_id: each.epsilon for each in plan.indicators.all()}
    context = {
        "study": found,
        "area": Area.objects.filter(study=found).first(),
        "places": [] if located is None else noise_words(located),
        "slots": slots_words(spec, hold_minutes=found.slots.hold_minutes) if spec.slots else [],
        "slot_losses": slots_table(spec),
        "plan": plan,
        "spec": spec,
        "certificate": certificate,
        "rows": [
            _indicator_row(each, spec, entry, typed=typed[each.pk])
            for each, entry in zip(found.indicators.all(), certificate.indicators, strict=True)
        ],
        "n_windows": found.days * (found.days + 1) // 2,
        "visitor_rule": studies_texts.visitor_rule(found),
        "versions": found.plans.order_by("-version"),
        "final": obstacle(slug),
        "open_draft": PlanDraft.objects.filter(slug=slug, state__in=PlanDraft.OPEN).first(),
        "erasure": erasure,
        "handover": None if vault is None else waiting_handover(vault.pk),
        "undos": [] if vault is None else waiting_undos(vault, me=request.user.get_username()),
        "is_erased": is_complete(erasure),
        "crumbs": [(gettext("Administration"), reverse("administrator:studies"))],
    }
    return render(request, "plans/study.html", context)


def _indicator_row(
    indicator: Indicator, spec: PlanSpec, certified_to: IndicatorCertificate, *, typed: Decimal | None
) -> dict[str, object]:
    index = spec.index(indicator.slug)
    return {
        "indicator": indicator,
        "typed": typed,
        "nominal": spec.indicators[index].epsilon,
        "certified": certified_to.epsilon,
        "words": studies_texts.answer_words(spec.channel(index)),
        "values": certified_to.n_values,
    }
