"""Creating the analyst zone's rows of a study: one transaction, or nothing."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, time
from types import MappingProxyType
from typing import Any

from django.db import transaction
from django.utils.translation import gettext_noop as _

from ldp import Delta, PlanSpec
from reports.base.reasons import Reason
from reports.privacy.models import DeletedStudy
from reports.studies.areas import create_area
from reports.studies.location_models import LocationTally
from reports.studies.models import Indicator, Study
from reports.studies.plan_models import Plan, PlanIndicator
from reports.studies.slot_models import StudySlots
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.definition import plain_value
from reports.studies.studyfile.slots_definition import ZoneLevel
from reports.studies.tally_models import Publication, Tally, VisitorTally

FIRST_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """Approval of a plan, or why none was needed."""

    review: str
    by: str = ""
    at: datetime | None = None


ON_SERVER = Approval(review=Plan.Review.ON_SERVER)


class StudyExistsError(ValueError):
    """The slug is taken."""

    def __init__(self, slug: str) -> None:
        text = _('study.slug must be new, got "%(slug)s": a study with this name already exists')
        super().__init__(Reason(text, slug=slug))


def plan_hash(spec: PlanSpec) -> str:
    """SHA-256 of the canonical JSON of a plan: both zones compare plans by it."""
    canonical = json.dumps(spec.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


@transaction.atomic
def create_study_rows(
    definition: StudyDefinition,
    *,
    by: str,
    approval: Approval = ON_SERVER,
    version: int = FIRST_VERSION,
    is_demo: bool = False,
) -> Study:
    """Write study, area, indicators, plan and tallies of zero; StudyExistsError if the slug is taken.

    The version is above the first where earlier ones were replaced elsewhere, before anything crossed.
    """
    if Study.objects.filter(slug=definition.slug).exists():
        raise StudyExistsError(definition.slug)
    study = Study.objects.create(
        slug=definition.slug, created_by=by, is_demo=is_demo, **study_fields(definition)
    )
    if definition.area is not None:
        create_area(study, definition.area, location=definition.location)
    create_slots(study, definition)
    indicators = create_indicators(study, definition)
    create_plan(study, definition, indicators, by=by, version=version, approval=approval)
    return study


def create_slots(study: Study, definition: StudyDefinition) -> None:
    """Write what is counted by slot, in place of what there was."""
    StudySlots.objects.filter(study=study).delete()
    slots = definition.slots
    if slots is None:
        return
    zones = definition.area.zones if definition.area else ()
    StudySlots.objects.create(
        study=study,
        spec=slots.spec.to_json(),
        hold_minutes=slots.hold_minutes,
        close_after_minutes=slots.close_after_minutes,
        zones=[*zones, *(zone for level in slots.levels for zone in level.zones)],
        levels=[_level(level) for level in slots.levels],
    )


def _level(level: ZoneLevel) -> dict[str, Any]:
    french = {} if level.zones_fr is None else {"zones_fr": list(level.zones_fr)}
    return {"name": level.name, "zones": list(level.zones), "within": list(level.within), **french}


def study_fields(definition: StudyDefinition) -> dict[str, Any]:
    """Fields of a Study that its definition says."""
    rule, presence = definition.visitor, definition.plan_spec().presence
    return {
        "name": definition.name,
        "name_fr": definition.name_fr,
        "timezone": definition.timezone,
        "first_day": definition.first_day,
        "days": definition.days,
        "units": Study.Units.EVENTS if definition.of_events else Study.Units.VISITORS,
        "market_share": definition.market_share,
        "category_shares": _shares_of(definition),
        "classes": [
            {"slug": each.slug, "name": each.name, "name_fr": each.name_fr} for each in definition.classes
        ]
        or None,
        "min_publication": definition.min_publication,
        "presence": None if presence is None else presence.to_json(),
        "small_cell": definition.small_cell,
        "small_category": definition.small_category or 0,
        "visitor_min_minutes": rule.min_minutes,
        "visitor_from": _clock(rule.from_minute),
        "visitor_to": _clock(rule.to_minute),
        "population": definition.population,
        "key_until": definition.key_until,
    }


def _shares_of(definition: StudyDefinition) -> list[dict[str, Any]] | None:
    """Market shares by category as plain values, in the order of the categories; None = none."""
    categories = {each.slug: each.categories for each in definition.indicators}
    found = []
    for each in definition.category_shares:
        of_category = {share.category: share for share in each.shares}
        in_order = tuple(of_category[category] for category in categories[each.indicator])
        found.append(plain_value(replace(each, shares=in_order)))
    return found or None


def mark_closed(*, study_slug: str, closed_at: datetime) -> None:
    """Note that the study's key is destroyed; its totals and reports stay. Twice does no harm."""
    found = Study.objects.filter(slug=study_slug, state=Study.State.OPEN)
    found.update(state=Study.State.CLOSED, closed_at=closed_at)


@transaction.atomic
def delete_study_rows(study: Study) -> None:
    """Delete a study with its plans, tallies and everything else of the analyst zone; permanently.

    Its loss stays spent: the budget of its population keeps a row of it.
    """
    plan = study.plans.order_by("version").last()
    if plan is not None and Publication.objects.filter(study=study).exists():
        DeletedStudy.objects.create(
            population=study.population,
            slug=study.slug,
            name=study.name,
            name_fr=study.name_fr,
            first_day=study.first_day,
            days=study.days,
            spec=plan.spec,
            spec_hash=plan.spec_hash,
            voided_days=plan.voided_days,
        )
    study.plans.all().delete()  # they protect the indicators
    study.delete()


def _clock(minute: int) -> time:
    return time(minute // 60, minute % 60)


def create_indicators(
    study: Study, definition: StudyDefinition, *, kept: Mapping[str, Indicator] = MappingProxyType({})
) -> list[Indicator]:
    """Write the indicators in their order; those of `kept`, by slug, only take their names and place."""
    rows, answered_days = [], definition.answered_days()
    for position, indicator in enumerate(definition.indicators):
        row = kept.get(indicator.slug) or Indicator(
            study=study,
            slug=indicator.slug,
            kind=indicator.kind,
            categories=list(indicator.categories),
            max_values=answered_days[indicator.slug],
            max_moves=indicator.max_moves,
        )
        row.position, row.name, row.name_fr = position, indicator.name, indicator.name_fr
        row.categories_fr = indicator.categories_fr and list(indicator.categories_fr)
        row.groups, row.protect = dict(indicator.groups) or None, indicator.protect
        row.save()
        rows.append(row)
    return rows


def create_plan(
    study: Study,
    definition: StudyDefinition,
    indicators: list[Indicator],
    *,
    by: str,
    version: int = FIRST_VERSION,
    approval: Approval = ON_SERVER,
) -> Plan:
    """Write a plan with tallies of zero."""
    spec = definition.plan_spec(version=version)
    plan = Plan.objects.create(
        study=study,
        version=version,
        mechanism=definition.plan.mechanism,
        unit=definition.plan.unit,
        epsilon=definition.plan.epsilon,
        epsilon_profile=definition.plan.epsilon_profile,
        spec=spec.to_json(),
        spec_hash=plan_hash(spec),
        published_by=by,
        review=approval.review,
        reviewed_by=approval.by,
        reviewed_at=approval.at,
    )
    _create_tallies(plan, spec, definition, indicators)
    return plan


def _create_tallies(
    plan: Plan, spec: PlanSpec, definition: StudyDefinition, indicators: list[Indicator]
) -> None:
    zero = Delta.zero(spec)
    VisitorTally.objects.create(study=plan.study, counts=zero.visitors.tobytes(), stays=zero.stays.tobytes())
    if spec.location is not None:
        LocationTally(plan=plan).set(zero.counts[spec.d])
    for indicator, typed, counts, n_reports in zip(
        indicators, definition.indicators, zero.counts[: spec.d], zero.n_reports[: spec.d], strict=True
    ):
        PlanIndicator.objects.create(plan=plan, indicator=indicator, epsilon=typed.epsilon)
        Tally.objects.create(
            plan=plan, indicator=indicator, counts=counts.tobytes(), n_reports=n_reports.tobytes()
        )
