"""A new version of a study's plan, before anything was counted under the old one."""

from django.db import transaction
from django.utils import timezone

from reports.ledger.actions import record
from reports.ledger.models import LedgerKind
from reports.privacy.budget.actions import check_budget
from reports.studies.models import Indicator, Study
from reports.studies.plan_models import Plan
from reports.studies.studyfile import StudyDefinition
from reports.studies.tally_models import Publication, VisitorTally
from reports.transfer.studies import (
    Approval,
    create_indicators,
    create_plan,
    create_slots,
    plan_hash,
    study_fields,
)


class PlanInUseError(ValueError):
    """Answers were counted under the plan, or another version is in force: it is not replaced."""


@transaction.atomic
def replace_plan_rows(
    definition: StudyDefinition, *, version: int, replaces: str, by: str, approval: Approval
) -> Plan:
    """Put a version in force, with tallies of zero; the one before stays as a record. Twice does no harm.

    `replaces` is the hash of the plan that must be in force.

    Raises
    ------
    PlanInUseError : something was counted, the study is closed, or another plan is in force
    BudgetExceededError : a cap of its population forbids it
    """
    study = Study.objects.select_for_update().get(slug=definition.slug)
    spec = definition.plan_spec(version=version)
    old = study.plans.get(superseded_at=None)
    if (old.version, old.spec_hash) == (version, plan_hash(spec)):
        return old
    _check_replaceable(study, old, replaces=replaces)
    check_budget(definition, by=by)
    old.superseded_at = timezone.now()
    old.save(update_fields=["superseded_at"])
    old.tallies.all().delete()
    old.indicators.all().delete()
    if hasattr(old, "location_tally"):
        old.location_tally.delete()
    VisitorTally.objects.filter(study=study).delete()
    Study.objects.filter(pk=study.pk).update(**study_fields(definition))
    create_slots(study, definition)
    indicators = _replace_indicators(study, definition)
    study.refresh_from_db()
    plan = create_plan(study, definition, indicators, by=by, version=version, approval=approval)
    _record(LedgerKind.PLAN_SUPERSEDED, old, by=by)
    return plan


def _check_replaceable(study: Study, old: Plan, *, replaces: str) -> None:
    if study.state != Study.State.OPEN:
        raise PlanInUseError(f"study {study.slug} must be open, got one that is closed")
    if old.spec_hash != replaces:
        raise PlanInUseError(
            f"the plan in force must be the one that the draft was compared with, got version {old.version}: "
            "draft again from that one"
        )
    if Publication.objects.filter(study=study).exists():
        raise PlanInUseError(f"the plan of study {study.slug} must have no answers yet, got some")


def _replace_indicators(study: Study, definition: StudyDefinition) -> list[Indicator]:
    """Indicators that ask the same stay, and what people keep of them; the others are made again."""
    kept: dict[str, Indicator] = {}
    answered_days = definition.answered_days()
    for row in study.indicators.all():
        asked = next((each for each in definition.indicators if each.slug == row.slug), None)
        if asked is not None and (
            asked.kind,
            list(asked.categories),
            answered_days[asked.slug],
            asked.max_moves,
        ) == (row.kind, row.categories, row.max_values, row.max_moves):
            kept[row.slug] = row
        else:
            row.delete()
    for row in kept.values():  # out of the way first: no two may have one place
        Indicator.objects.filter(pk=row.pk).update(position=row.position + len(definition.indicators) + 1000)
    return create_indicators(study, definition, kept=kept)


def _record(kind: LedgerKind, plan: Plan, *, by: str) -> None:
    record(
        kind,
        actor=by,
        study=plan.study.slug,
        facts={"version": plan.version, "plan_sha256": plan.spec_hash},
        event_id=f"{kind}:{plan.study.slug}:{plan.version}:{plan.spec_hash}",
    )
