"""Queries about studies for both zones and every page."""

import numpy as np
from numpy.typing import NDArray

from ldp import PlanSpec
from ldp.privacy.plans import RENEWED
from ldp.protocols.numbers.threshold import Scale
from reports.studies.models import Indicator, Study
from reports.studies.plan_models import Plan
from reports.studies.tally_models import VisitorTally

Counts = NDArray[np.int64]


def has_unions(indicator: Indicator) -> bool:
    """Return whether a union of several days can be counted: everyone answers on each present day.

    Moves are counted by day only.
    """
    answers_daily = indicator.max_values in (None, indicator.study.days) and indicator.max_moves is None
    return indicator.kind == Indicator.Kind.STATIC or answers_daily


def has_lasting_reports(indicator: Indicator) -> bool:
    """Return whether a person's report is the same on all days, and so in all windows."""
    if indicator.kind != Indicator.Kind.STATIC:
        return False
    return current_plan(indicator.study).mechanism != RENEWED


def scale_of(indicator: Indicator) -> Scale | None:
    """Cuts of a number, from the plan in force; None for an indicator with categories."""
    spec = current_plan(indicator.study).parsed
    return spec.indicators[spec.index(indicator.slug)].scale


def shown_names(study: Study) -> dict[str, str]:
    """Names of the indicators in the active language, by slug."""
    return {each.slug: each.shown_name for each in study.indicators.all()}


def current_plan(study: Study) -> Plan:
    """The plan in force: the newest version."""
    return study.plans.order_by("-version")[:1].get()


def visitors_of(tally: VisitorTally) -> Counts:
    """Visitors of every gap cell; int64 of shape (days + 1, days + 1), of events (1, days + 1)."""
    return counts_of(tally.counts, shape=tally.study.tally_shape)


def stays_of(tally: VisitorTally, plan: Plan) -> dict[str, Counts]:
    """Return the plan's further tallies of presence, by name; int64 of shape (days + 1, days + 1)."""
    names = plan.spec.get("tallies", [])
    return dict(zip(names, _all_stays(tally)[: len(names)], strict=True))


def class_visitors(tally: VisitorTally, plan: PlanSpec) -> Counts:
    """Visitors of each class, by its place in the plan; int64 of shape (classes, days + 1, days + 1)."""
    return _all_stays(tally)[len(plan.tallies) :]


def _all_stays(tally: VisitorTally) -> Counts:
    return counts_of(tally.stays, shape=(-1, tally.study.days + 1, tally.study.days + 1))


def counts_of(blob: bytes | memoryview, *, shape: tuple[int, ...]) -> Counts:
    """Counts as they are stored, as int64 of that shape."""
    return np.frombuffer(blob, "<i8").reshape(shape).astype(np.int64)
