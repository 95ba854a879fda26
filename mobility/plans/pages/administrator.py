"""Pages of administrators: studies with their plans."""

from decimal import Decimal

from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from ldp import IndicatorCertificate, PlanSpec
from mobility.batches.pages.undoing import waiting_undos
from mobility.batches.publication.certificate import is_complete
from mobility.batches.queries import waiting_handover
from mobility.plans.models import PlanDraft
from mobility.plans.pages.drafts import open_drafts
from mobility.plans.publishing import obstacle
from mobility.tables.pages import waiting_tables
from mobility.vault.models.subscribers import VaultStudy
from reports.accounts.access import overseers_only
from reports.privacy.budget.texts import spent_populations
from reports.privacy.days_texts import two_categories
from reports.privacy.location_texts import noise_words
from reports.privacy.statement.document import certified
from reports.privacy.statement.locations import location_protection
from reports.privacy.statement.slots import slots_table, slots_words
from reports.studies import texts as studies_texts
from reports.studies.models import Area, Indicator, Study
from reports.studies.plan_models import Plan
from reports.studies.queries import current_plan, shown_names


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
        "two_categories": two_categories(spec, shown_names(found)),
        "n_windows": found.days * (found.days + 1) // 2,
        "visitor_rule": studies_texts.visitor_rule(found),
        "versions": found.plans.order_by("-version"),
        "final": obstacle(slug),
        "open_draft": PlanDraft.objects.filter(slug=slug, state__in=PlanDraft.OPEN).first(),
        "erasure": erasure,
        "handover": None if vault is None else waiting_handover(vault.pk),
        "undos": [] if vault is None else waiting_undos(vault, me=request.user.get_username()),
        "tables": [] if vault is None else waiting_tables(vault, me=request.user.get_username()),
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
        "is_renewed": spec.is_renewed(index),
    }
