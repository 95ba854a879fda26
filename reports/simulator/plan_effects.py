"""Figures by which two plans are compared: their risks and accuracy.

Errors are those of `ldp.estimation.simulation`, so that this comparison and the simulator never say two
things.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from ldp import Certificate, certify
from ldp.estimation.simulation import Crowd, forecast
from ldp.protocols.numbers.wave import kept_share
from reports.studies.studyfile import StudyDefinition

DEFAULT_VISITORS = 10_000
MOST_VISITORS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One indicator under one plan.

    epsilon : certified, of one answer
    n_values : most answers of a person
    kept_of_100 : answers of a hundred that name, or mark, the true category; made-up reports are none
    half_width : of the 95% interval of a category of average size, on one day; a share of the visitors
    """

    epsilon: Decimal
    n_values: int
    n_categories: int
    kept_of_100: int
    half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One indicator before and after; None = it is not asked."""

    slug: str
    name: str
    before: Effect | None
    after: Effect | None

    @property
    def is_same(self) -> bool:
        return self.before == self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEffects:
    """Two plans side by side; without a first one, `before` is None everywhere.

    largest : names of the classes with the largest epsilon, for which all figures are; of the second plan if
        it has classes, else of the first
    """

    before: Certificate | None
    after: Certificate
    rows: Sequence[Comparison]
    largest: Sequence[str]


def plan_effects(before: StudyDefinition | None, after: StudyDefinition, *, visitors: int) -> PlanEffects:
    """Compare two plans at an expected number of visitors of a day, at least 1."""
    old = {} if before is None else _effects(before, visitors=visitors)
    new = _effects(after, visitors=visitors)
    names = {each.slug: each.shown_name for each in ([] if before is None else before.indicators)}
    names |= {each.slug: each.shown_name for each in after.indicators}
    return PlanEffects(
        before=None if before is None else certify(before.plan_spec()),
        after=certify(after.plan_spec()),
        rows=[
            Comparison(slug=slug, name=names[slug], before=old.get(slug), after=new.get(slug))
            for slug in [*new, *(each for each in old if each not in new)]
        ],
        largest=_largest(after) or ([] if before is None else _largest(before)),
    )


def _largest(definition: StudyDefinition) -> list[str]:
    return [each.shown_name for each in definition.classes if each.epsilon == definition.plan.epsilon]


def _effects(definition: StudyDefinition, *, visitors: int) -> dict[str, Effect]:
    spec = definition.plan_spec()
    certificate = certify(spec)
    return {
        entry.slug: Effect(
            epsilon=entry.epsilon,
            n_values=entry.n_values,
            n_categories=spec.indicators[foretold.index].domain_size,
            kept_of_100=round(100 * kept_share(spec.answer_channel(foretold.index))),
            half_width=foretold.day.half_width(foretold.even),
        )
        for entry, foretold in zip(
            certificate.indicators, forecast(spec, crowd=Crowd(visitors=visitors)), strict=True
        )
    }
