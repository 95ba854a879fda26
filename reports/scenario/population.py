"""A synthetic population of a study: people who do not exist, made of the figures that its pages show.

Presence follows from the shown numbers of visitors, so that each of them agrees exactly; with presence noise
from the flows nearest to them. Attributes follow from the published estimates. Nothing else of the tallies is
used: people in a hidden window could be any who fit, and no epsilon is spent.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from django.utils.translation import gettext
from numpy.typing import NDArray

from ldp import (
    CellNoise,
    Flows,
    IndicatorTallies,
    KeyedStream,
    edge_targets,
    projected_flows,
    shown_flows,
    synthetic_daily,
    synthetic_presence,
    synthetic_static,
    whole_flows,
)
from ldp.errors import FewVisitorsError, NoReportsError
from reports.estimates.noise import answer_noise
from reports.estimates.queries import WindowReport, has_small, reports_with_tallies, windows_of
from reports.scenario.population_errors import ErrorRow, indicator_errors, visitor_errors
from reports.studies.models import Indicator, Study
from reports.studies.plan_models import Plan
from reports.studies.queries import current_plan, has_unions

SEED: Final = 1  # of downloads
MOST_PEOPLE: Final = 5_000_000
Tick = Callable[[int], None]
Found = Sequence[tuple[list[WindowReport], IndicatorTallies]]


class PopulationError(ValueError):
    """There is no such population; people read why, so it is translated."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attribute:
    """Values of synthetic people for one indicator.

    Parameters
    ----------
    codes : ndarray of int32; static: shape (people,); daily: shape (people, days), -1 where absent
    """

    indicator: Indicator
    codes: NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Population:
    """Synthetic people of a study; the same for its figures and a seed.

    Parameters
    ----------
    scale : people per visitor; 1 unless another number of people is asked for
    presence : ndarray of uint64, shape (people,); bit t - 1 = day t
    attributes : in plan order
    left_out : by slug of an indicator, why people have no value of it
    errors : synthetic numbers next to published ones: all visitors first, then in plan order
    """

    study: Study
    plan: Plan
    seed: int
    scale: float
    presence: NDArray[np.uint64]
    attributes: tuple[Attribute, ...]
    left_out: dict[str, str]
    errors: tuple[ErrorRow, ...]

    @property
    def person_days(self) -> int:
        return int(np.bitwise_count(self.presence).sum())

    def of_kind(self, kind: str) -> list[Attribute]:
        """Attributes that stay ("static") or that change with the day ("daily")."""
        return [each for each in self.attributes if each.indicator.kind == kind]


def population_refusal(study: Study) -> str:
    """Say why no synthetic people are made for a study; empty if they are."""
    if study.classes:
        return gettext(
            "Synthetic people are not available for this study yet, because its classes answer with "
            "different epsilons."
        )
    if any(each.protect for each in study.indicators.all()):
        return gettext(
            "Synthetic people are not available for this study yet, because answers to one of its "
            "indicators disclose groups or categories."
        )
    return ""


def synthesise(
    study: Study, *, seed: int = SEED, people: int | None = None, tick: Tick = lambda _: None
) -> Population:
    """Make the synthetic population of a study.

    Parameters
    ----------
    study : Study
    seed : int; which of the many populations that fit; at least 0
    people : how many there are, in [1, MOST_PEOPLE], with the shares of the study; None: as many as visitors
    tick : told how many percent are done; what it raises ends the work

    Raises
    ------
    PopulationError : the study has no visitors, or so few that their number is hidden, or it has classes,
        or answers tell the group;
        people is out of range
    """
    if people is not None and not 1 <= people <= MOST_PEOPLE:
        text = gettext("The number of people must be from 1 to %(most)d, not %(people)d.")
        raise PopulationError(text % {"most": MOST_PEOPLE, "people": people})
    if refusal := population_refusal(study):
        raise PopulationError(refusal)
    indicators = list(study.indicators.all())
    tick(0)
    windows = windows_of(study)
    found = reports_with_tallies(indicators, [windows if has_unions(each) else [] for each in indicators])
    plan = current_plan(study)
    tick(20)
    flows = _flows(study, found)
    if not flows.total:
        raise PopulationError(gettext("There are no visitors yet, so no synthetic people can be created."))
    scale = 1.0 if people is None else people / flows.total
    if people is not None:
        flows = whole_flows(Flows(flows.edges * scale))
    presence = synthetic_presence(flows, stream=_stream(study, seed, purpose="presence"))
    attributes: list[Attribute] = []
    left_out: dict[str, str] = {}
    errors = list(visitor_errors(study, found[0][1].visitors, presence, scale=scale))
    for number, (indicator, (reports, tallies)) in enumerate(zip(indicators, found, strict=True), start=1):
        codes = (
            "has small categories"
            if has_small(reports)
            else _codes(indicator, tallies, presence, plan=plan, seed=seed)
        )
        if isinstance(codes, str):
            left_out[indicator.slug] = codes
        else:
            attributes.append(Attribute(indicator=indicator, codes=codes))
            errors += indicator_errors(indicator, reports, presence=presence, codes=codes, scale=scale)
        tick(20 + 60 * number // len(indicators))
    return Population(
        study=study,
        plan=plan,
        seed=seed,
        scale=scale,
        presence=presence,
        attributes=tuple(attributes),
        left_out=left_out,
        errors=tuple(errors),
    )


def _flows(study: Study, found: Found) -> Flows:
    """Flows in whole people, from shown numbers of visitors only."""
    visitors = found[0][1].visitors
    if study.presence is not None:
        return whole_flows(projected_flows(visitors))
    try:
        return shown_flows(visitors, small_cell=study.small_cell)
    except FewVisitorsError:
        raise PopulationError(
            gettext(
                "The study has fewer than %(small_cell)d visitors in total. Its small-cell rule hides "
                "such small numbers, so no synthetic people can be created."
            )
            % {"small_cell": study.small_cell}
        ) from None


def _codes(
    indicator: Indicator, tallies: IndicatorTallies, presence: NDArray[np.uint64], *, plan: Plan, seed: int
) -> Any:
    """Values of the people: an array, or a text that says why there are none."""
    if indicator.max_moves is not None:
        return "is about moves or visits"
    if not has_unions(indicator):
        return "answered on some days only"
    spec = plan.parsed
    if spec.indicators[spec.index(indicator.slug)].parts:  # its values could contradict those of its parts
        return "combines other indicators"
    if spec.indicators[spec.index(indicator.slug)].scale is not None:  # reports tell shares, not values
        return "is a number"
    if spec.is_renewed(spec.index(indicator.slug)):  # of people who leave, no report says what they are
        return "is reported again each day"
    noise = answer_noise(spec, indicator.study)
    cells = None if noise is None else CellNoise(visitors=noise.visitors.channel, answers=noise.channel)
    try:
        targets = edge_targets(tallies, noise=cells)
    except NoReportsError:
        return "no reports"
    make = synthetic_static if indicator.kind == Indicator.Kind.STATIC else synthetic_daily
    return make(presence, targets, stream=_stream(indicator.study, seed, purpose=indicator.slug))


def _stream(study: Study, seed: int, *, purpose: str) -> KeyedStream:
    """Random words of one purpose; an indicator more or less does not disturb the others."""
    name = f"{study.slug}/{seed}/{purpose}".encode()
    return KeyedStream(hashlib.blake2b(name, digest_size=16, person=b"synthetic people").digest())
