"""From what an administrator typed to a plan: the one conversion of epsilon to an exact fraction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

from ldp.errors import InvalidBudgetError, PlanError
from ldp.geo.location import LocationSpec
from ldp.privacy.classes import ClassSpec
from ldp.privacy.first_reports import FirstReports, HashCells
from ldp.privacy.moves import MoveSpec
from ldp.privacy.plans import (
    FAKED,
    OF_FIRST,
    STREAM,
    IndicatorSpec,
    Kind,
    Mechanism,
    PlanSpec,
    PresenceTally,
    check_static,
)
from ldp.privacy.presence import PresenceSpec
from ldp.privacy.slots import SlotSpec
from ldp.privacy.streams import check_window, default_window, most_answers
from ldp.protocols.channels import Unit
from ldp.protocols.fake_data import hidden_epsilon
from ldp.protocols.numbers.threshold import Scale, nearest_shares


@dataclass(frozen=True, slots=True, kw_only=True)
class IndicatorRequest:
    """One indicator as an administrator asks for it.

    Parameters
    ----------
    slug : str; unique in the plan
    kind : "static" (one value per person) or "daily" (one value per person and day)
    domain_size : int; number of categories, in [2, 65534]; of a number, of its cuts
    epsilon : Decimal or None; None takes the plan's
    max_values : int or None; daily only: number of days a person answers, None = all
    weight : Decimal or None; smp only: how often it is asked, against the others; above 0, None = 1
    parts : slugs of the indicators whose combination it is; none = it is no joint indicator
    scale : of a number; None = it is none
    moves : of moves of a day or of visited places, with their size as domain_size; None = of something else
    by_code : smp only: as of `IndicatorSpec`
    lookup : static only: as of `IndicatorSpec`
    regions : region of each category, by number, that reports disclose; none = they disclose none
    sensitive : categories, by code, that reports hide while they disclose all others; none = all are hidden
    """

    slug: str
    kind: Kind
    domain_size: int
    epsilon: Decimal | None = None
    max_values: int | None = None
    weight: Decimal | None = None
    parts: tuple[str, ...] = ()
    scale: Scale | None = None
    moves: MoveSpec | None = None
    by_code: bool = False
    lookup: str = ""
    regions: tuple[int, ...] = ()
    sensitive: tuple[int, ...] = ()


def build_plan(
    *,
    mechanism: Mechanism,
    unit: Unit,
    version: int,
    days: int,
    epsilon: Decimal,
    indicators: Sequence[IndicatorRequest],
    location: LocationSpec | None = None,
    presence_epsilon: Decimal | None = None,
    presence_days: int | None = None,
    tallies: tuple[PresenceTally, ...] = (),
    slots: SlotSpec | None = None,
    epsilon_first: Decimal | None = None,
    hash_cells: HashCells | None = None,
    window_days: int | None = None,
    events: bool = False,
    classes: Mapping[str, Decimal] = MappingProxyType({}),
    max_events: int | None = None,
) -> PlanSpec:
    """Plan from what an administrator typed; the one conversion of epsilon to an exact fraction.

    Parameters
    ----------
    epsilon : Decimal; of one answer under smp; under spl the total, shared equally; under rsfd what is
        promised for the unit
    location : everyone's reports of places, in addition to the indicators and their epsilon
    presence_epsilon, presence_days : of the noise on the counts, and the days of a subscriber that count;
        both or none, None = counts are exact
    tallies : further tallies of presence
    slots : counts by slot and zone
    epsilon_first, hash_cells : smp-loloha and smp-allomfree only: of one report with separate noise, None =
        half of the indicator's epsilon, and the cells that daily values are hashed to, None = two
    window_days : smp-stream only: consecutive days on which a person answers once, None = seven, or all
    events : units are events, each of one day
    classes : epsilon of each class of people, by its slug; none = all have that of the plan
    max_events : most events of a person that are answered; None = all

    Raises
    ------
    InvalidBudgetError, InvalidDomainError, PlanError
    """
    if not mechanism.startswith("smp-"):
        for request in indicators:
            _check_shares_epsilon(request, mechanism=mechanism)
    if mechanism == STREAM and window_days is None:
        window_days = default_window(days)
    promised = _exact(epsilon)
    answers = _answers_epsilon(promised, mechanism=mechanism, unit=unit, indicators=indicators)
    specs = tuple(
        IndicatorSpec(
            slug=request.slug,
            kind=request.kind,
            domain_size=request.domain_size,
            epsilon=answers if request.epsilon is None else _exact(request.epsilon),
            max_values=_max_values(request, mechanism=mechanism, days=days, window_days=window_days),
            parts=request.parts,
            scale=request.scale,
            moves=request.moves,
            by_code=request.by_code,
            lookup=request.lookup,
            regions=request.regions,
            sensitive=request.sensitive,
        )
        for request in indicators
    )
    return PlanSpec(
        mechanism=mechanism,
        unit=unit,
        version=version,
        days=days,
        indicators=specs,
        epsilon=promised if mechanism in FAKED else None,
        shares=_shares(indicators, mechanism=mechanism),
        location=location,
        presence=_presence(presence_epsilon, presence_days),
        tallies=tallies,
        slots=slots,
        first=_first(epsilon_first, hash_cells, mechanism=mechanism),
        window_days=window_days,
        events=events,
        classes=tuple(ClassSpec(slug=slug, epsilon=_exact(own)) for slug, own in classes.items()),
        max_events=max_events,
    )


def suited(indicators: Sequence[IndicatorRequest], *, mechanism: Mechanism) -> tuple[IndicatorRequest, ...]:
    """Return requests without settings that a mechanism does not know: for comparisons of mechanisms.

    Of a stream the days on which a person answers follow from its window.
    """
    is_sampled = mechanism.startswith("smp-")
    return tuple(
        replace(
            each,
            epsilon=each.epsilon if is_sampled else None,
            weight=each.weight if is_sampled else None,
            max_values=None if mechanism == STREAM else each.max_values,
            by_code=each.by_code and is_sampled,
        )
        for each in indicators
    )


def _max_values(
    request: IndicatorRequest, *, mechanism: Mechanism, days: int, window_days: int | None
) -> int | None:
    """Days on which a person answers: of a stream they follow from the window."""
    is_stream = mechanism == STREAM and request.kind == "daily"
    if window_days is None or not is_stream or request.max_values is not None:
        return request.max_values
    check_window(window_days, days=days)
    return most_answers(days, window_days=window_days)


def _first(epsilon: Decimal | None, cells: HashCells | None, *, mechanism: Mechanism) -> FirstReports | None:
    if mechanism not in OF_FIRST and epsilon is None and cells is None:
        return None
    return FirstReports(epsilon=None if epsilon is None else _exact(epsilon), cells=cells or "two")


def _presence(epsilon: Decimal | None, days: int | None) -> PresenceSpec | None:
    if epsilon is None and days is None:
        return None
    if epsilon is None:
        raise PlanError(f"presence_days must be absent without presence_epsilon, got {days}")
    if days is None:
        raise PlanError(
            "presence_days must be present with presence_epsilon: it is how many days of a subscriber count, "
            "and the noise is as large as they are many, got None"
        )
    return PresenceSpec(epsilon=_exact(epsilon), max_days=days)


def _shares(indicators: Sequence[IndicatorRequest], *, mechanism: Mechanism) -> tuple[int, ...] | None:
    """Shares that are nearest to the weights; None without weights."""
    given = [request for request in indicators if request.weight is not None]
    if not given:
        return None
    if not mechanism.startswith("smp-"):
        raise PlanError(f"weight of {given[0].slug} must be absent: {mechanism} asks all alike")
    for request in given:
        if request.weight is not None and not (request.weight.is_finite() and request.weight > 0):
            raise PlanError(f"weight of {request.slug} must be > 0, got {request.weight}")
    return nearest_shares([Fraction(1 if each.weight is None else each.weight) for each in indicators])


def _answers_epsilon(
    promised: Fraction, *, mechanism: Mechanism, unit: Unit, indicators: Sequence[IndicatorRequest]
) -> Fraction:
    """Return the epsilon of an answer without an individual one."""
    if mechanism == "spl-grr":
        return promised / max(len(indicators), 1)
    if mechanism not in FAKED or unit == "profile":
        return promised
    for request in indicators:
        check_static(slug=request.slug, kind=request.kind, mechanism=mechanism)
    sizes = [request.domain_size for request in indicators]
    return hidden_epsilon(FAKED[mechanism], epsilon=promised, unit=unit, domain_sizes=sizes)


def _check_shares_epsilon(request: IndicatorRequest, *, mechanism: Mechanism) -> None:
    if request.epsilon is None:
        return
    reason = "spl-grr shares one" if mechanism == "spl-grr" else f"{mechanism} has one for all"
    raise PlanError(f"epsilon of {request.slug} must be absent: {reason}, got {request.epsilon}")


def _exact(epsilon: Decimal) -> Fraction:
    if not epsilon.is_finite():
        raise InvalidBudgetError(f"epsilon must be a finite number, got {epsilon}")
    return Fraction(epsilon)
