"""The privacy statement, for people."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from reports.accounts.access import any_study_or_404, readers_only, sees_all
from reports.privacy.location_texts import noise_words
from reports.privacy.statement.document import (
    certified,
    class_protections,
    privacy_statement,
    protections,
)
from reports.privacy.statement.locations import location_protection
from reports.privacy.statement.presence import presence_words
from reports.privacy.statement.slots import slots_table, slots_words
from reports.privacy.statement.sums import sums_words
from reports.studies.queries import current_plan
from reports.studies.texts import crumbs_to


@require_safe
@readers_only
def statement(request: HttpRequest, slug: str) -> HttpResponse:
    """Promises, their limits, the exact numbers behind them, and data retention."""
    study = any_study_or_404(request, slug)
    plan = current_plan(study)
    spec, certificate = certified(plan)
    by_slug = protections(plan)
    located = location_protection(spec, extra_days=plan.voided_days)
    facts = privacy_statement(study, with_names=sees_all(request.user))
    context = {
        "study": study,
        "plan": plan,
        "spec": spec,
        "certificate": certificate,
        "statement": facts,
        "presence": presence_words(spec),
        "slots": slots_words(spec, hold_minutes=study.slots.hold_minutes) if spec.slots else [],
        "slot_losses": slots_table(spec),
        "sums": sums_words(facts),
        "classes": class_protections(plan),
        "versions": study.plans.order_by("-version"),
        "places": [] if located is None else noise_words(located),
        "protections": [(found, by_slug[found.slug]) for found in study.indicators.all()],
        "crumbs": crumbs_to(study),
    }
    return render(request, "privacy/statement.html", context)
