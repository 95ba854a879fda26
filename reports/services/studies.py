"""Creating the analyst zone's rows of a study: one transaction, or nothing."""

import hashlib
import json
from datetime import datetime, time

from django.db import transaction

from ldp import Delta, PlanSpec
from reports.models import Indicator, LocationTally, Plan, PlanIndicator, Study, Tally, VisitorTally
from reports.services.areas import create_area
from reports.studyfile import StudyDefinition

FIRST_VERSION = 1


class StudyExistsError(ValueError):
    """The slug is taken."""

    def __init__(self, slug: str) -> None:
        super().__init__(f'study.slug must be new, got "{slug}": there is a study of that name already')


def plan_hash(spec: PlanSpec) -> str:
    """SHA-256 of the canonical JSON of a plan: both zones compare plans by it."""
    canonical = json.dumps(spec.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


@transaction.atomic
def create_study_rows(definition: StudyDefinition, *, by: str) -> Study:
    """Write study, area, indicators, first plan and tallies of zero.

    Raises
    ------
    StudyExistsError
    """
    if Study.objects.filter(slug=definition.slug).exists():
        raise StudyExistsError(definition.slug)
    rule = definition.visitor
    study = Study.objects.create(
        slug=definition.slug,
        name=definition.name,
        timezone=definition.timezone,
        first_day=definition.first_day,
        days=definition.days,
        market_share=definition.market_share,
        min_publication=definition.min_publication,
        small_cell=definition.small_cell,
        visitor_min_minutes=rule.min_minutes,
        visitor_from=_clock(rule.from_minute),
        visitor_to=_clock(rule.to_minute),
        population=definition.population,
        key_until=definition.key_until,
        created_by=by,
    )
    if definition.area is not None:
        location = definition.location
        create_area(
            study,
            definition.area,
            grid=None if location is None else location.grid,
            h3_resolution=None if location is None else location.h3_resolution,
        )
    indicators = _create_indicators(study, definition)
    _create_plan(study, definition, indicators, by=by)
    return study


def mark_closed(*, study_slug: str, closed_at: datetime) -> None:
    """Note that the study's key is destroyed; its totals and reports stay. Twice does no harm."""
    found = Study.objects.filter(slug=study_slug, state=Study.State.OPEN)
    found.update(state=Study.State.CLOSED, closed_at=closed_at)


@transaction.atomic
def delete_study_rows(study: Study) -> None:
    """Delete a study with its plans, tallies and everything else of the analyst zone; for ever."""
    study.plans.all().delete()  # they protect the indicators
    study.delete()


def _clock(minute: int) -> time:
    return time(minute // 60, minute % 60)


def _create_indicators(study: Study, definition: StudyDefinition) -> list[Indicator]:
    return [
        Indicator.objects.create(
            study=study,
            position=position,
            slug=indicator.slug,
            name=indicator.name,
            kind=indicator.kind,
            categories=list(indicator.categories),
            max_values=indicator.max_values,
        )
        for position, indicator in enumerate(definition.indicators)
    ]


def _create_plan(study: Study, definition: StudyDefinition, indicators: list[Indicator], *, by: str) -> None:
    spec = definition.plan_spec(version=FIRST_VERSION)
    plan = Plan.objects.create(
        study=study,
        version=FIRST_VERSION,
        mechanism=definition.plan.mechanism,
        unit=definition.plan.unit,
        epsilon=definition.plan.epsilon,
        epsilon_profile=definition.plan.epsilon_profile,
        spec=spec.to_json(),
        spec_hash=plan_hash(spec),
        published_by=by,
    )
    zero = Delta.zero(spec)
    VisitorTally.objects.create(study=study, counts=zero.visitors.tobytes())
    if spec.location is not None:
        LocationTally(plan=plan).set(zero.counts[spec.d])
    for indicator, typed, counts, n_reports in zip(
        indicators, definition.indicators, zero.counts[: spec.d], zero.n_reports[: spec.d], strict=True
    ):
        PlanIndicator.objects.create(plan=plan, indicator=indicator, epsilon=typed.epsilon)
        Tally.objects.create(
            plan=plan, indicator=indicator, counts=counts.tobytes(), n_reports=n_reports.tobytes()
        )
