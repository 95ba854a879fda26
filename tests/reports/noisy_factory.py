"""Studies with presence noise, published as the vault does it: capped counts and the noise of each cell."""

from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import uuid4

import numpy as np

import ldp
from ldp.presence import first_days
from ldp.presence_noise import noise_delta
from reports.models import Plan, Study
from reports.services.publications import apply_publication
from reports.services.studies import create_study_rows
from tests.reports import report_factory as factory
from tests.reports.report_factory import People

KEY = bytes(15) + b"\3"


def create(*, presence_epsilon: str = "1", presence_days: int = 4, **changes: Any) -> Study:
    """A study of four days with a lasting indicator and one of every day."""
    made = factory.definition(factory.GENDER, factory.STAY, epsilon="3", **changes)
    plan = replace(made.plan, presence_epsilon=Decimal(presence_epsilon), presence_days=presence_days)
    return create_study_rows(replace(made, plan=plan), by="adam")


def close(study: Study, people: People, *, first: int, last: int, key: bytes = KEY) -> None:
    """Let the cells of some days cross, as a closing does."""
    plan = Plan.objects.get(study=study)
    spec = ldp.PlanSpec.from_json(plan.spec)
    assert spec.presence is not None
    capped = replace(people, bitmaps=first_days(people.bitmaps, most=spec.presence.max_days))
    exact = factory._delta(spec, capped, sanitiser=ldp.Sanitiser(spec, ldp.KeyedPrf(key)))
    for counts in (exact.visitors, *exact.counts, *exact.n_reports):
        counts[..., :first] = 0
        counts[..., last + 1 :] = 0
    exact.add(noise_delta(spec, prf=ldp.KeyedPrf(key), first_day=first, last_day=last))
    apply_publication(
        study_slug=study.slug,
        publication_id=uuid4(),
        plan_hash=plan.spec_hash,
        delta=replace(exact, noisy_through=last),
        voided_days=0,
    )
    study.refresh_from_db()


def nobody(study: Study) -> People:
    """No people at all."""
    crowd = factory.crowd(study, n=1)
    return replace(crowd, bitmaps=np.zeros(1, np.uint64))
