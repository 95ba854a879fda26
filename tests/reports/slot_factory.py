"""A study with slots: zones on a map, larger zones above them, and counts that a publication brings."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

import ldp
from ldp.estimation.series.counts import SlotCounts
from reports.models import Plan, Study
from reports.studies.slot_models import StudySlots
from reports.studies.studyfile.slots_definition import SlotsDefinition, ZoneLevel
from reports.transfer.publications import apply_publication
from reports.transfer.studies import create_study_rows
from tests.reports import map_factory
from tests.reports import report_factory as factory
from tests.reports.kept import made_once

HALVES = ZoneLevel(name="halves", zones=("West", "East"), within=(0, 1, 0, 1), geojson={})
DEFINITION = SlotsDefinition(
    minutes=30, hold_minutes=60, slots_per_day=48, levels=(HALVES,),
    epsilon_day=Decimal(1), delta=Decimal("0.000001"),
)  # fmt: skip


def create(slots: SlotsDefinition = DEFINITION, **changes: Any) -> Study:
    made = factory.definition(factory.GENDER, area=map_factory.area(), slots=slots, **changes)
    return create_study_rows(made, by="adam")


def without_noise(**changes: Any) -> SlotsDefinition:
    return replace(DEFINITION, epsilon_day=None, delta=None, **changes)


def publish(study: Study, counts: NDArray[np.int64]) -> None:
    plan = Plan.objects.get(study=study)
    closed = StudySlots.objects.get(study=study).closed
    delta = ldp.Delta.zero(ldp.PlanSpec.from_json(plan.spec))
    slots = SlotCounts(first_slot=closed, counts=counts.astype(np.int64))
    told = {"study_slug": study.slug, "publication_id": uuid4(), "plan_hash": plan.spec_hash}
    apply_publication(**told, delta=delta, voided_days=0, slots=slots)


def counts_of(study: Study, people: Callable[[int], Any], *, slots: int) -> NDArray[np.int64]:
    """Counts of the next slots: those of the zones by place, from the number of a slot in the study."""
    closed = StudySlots.objects.get(study=study).closed
    leaves = np.array([people(slot) for slot in range(closed, closed + slots)])
    halves = np.stack([leaves[:, [0, 2]].sum(axis=1), leaves[:, [1, 3]].sum(axis=1)], axis=1)
    return np.concatenate([leaves, halves], axis=1)


def daily(slot: int) -> list[int]:
    """People who fill the north west in the evening, on every day a little more; the south east is empty."""
    day, at = divmod(slot, 48)
    evening = max(0, 12 - abs(at - 36))  # fullest at 18:00
    return [1000 + 100 * evening + 50 * day, 500, 200 + 10 * at, 0]


@made_once
def published(*, slots: int = 4 * 48, definition: SlotsDefinition = DEFINITION, **changes: Any) -> Study:
    study = create(definition, **changes)
    publish(study, counts_of(study, daily, slots=slots))
    return study
