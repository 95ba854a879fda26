"""Certificate of counts by slot and zone, by unit: a person's slot, day, week and study."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Final, Literal

from ldp.privacy.accounting import certify_presence
from ldp.privacy.plans import PlanSpec
from ldp.privacy.slots import SlotNoise, gaussian_epsilon, zcdp_epsilon, zcdp_order

SlotUnit = Literal["slot", "day", "week", "study"]
WEEK_DAYS: Final = 7
_UP: Final = Context(prec=30, rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotLoss:
    """Loss of some slots of a person, against another history of them.

    rho : zCDP, exact
    order : at which the bound is evaluated; 1 where nothing is lost
    epsilon : certified at the delta of the plan, rounded up
    tight : what continuous Gaussian noise of this size loses; to be shown next to it, no certificate
    """

    rho: Fraction
    order: Fraction
    epsilon: Decimal
    tight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRow:
    """Loss of the slots of one unit.

    slots : of a person in it, that count
    absent : against being counted in none of them
    moved : against being counted elsewhere, or at other times of the same days
    """

    unit: SlotUnit
    slots: int
    absent: SlotLoss
    moved: SlotLoss


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotCertificate:
    """Losses by unit, from the smallest; `week` only in a study of more than a week.

    epsilon, epsilon_moved, epsilon_replaced : of all that a study publishes on the presence of a person, at
        the delta of the plan: slots and all other counts, as PresenceCertificate has them; None = those have
        no noise, so nothing hides whether a person was there
    """

    noise: SlotNoise
    rows: tuple[SlotRow, ...]
    epsilon: Decimal | None
    epsilon_moved: Decimal | None
    epsilon_replaced: Decimal | None

    @property
    def study(self) -> SlotRow:
        """All slots of a person."""
        return self.rows[-1]

    @property
    def day(self) -> SlotRow:
        """The slots of a local day, carried-over ones included."""
        return self.rows[1]


def certify_slots(plan: PlanSpec) -> SlotCertificate | None:
    """Realised loss of the counts by slot under a plan; None if it has none, or exact ones.

    Losses of presence that have no delta are added to that of the slots; the sum holds at the delta of those.
    """
    noise = None if plan.slots is None else plan.slots.noise
    if noise is None:
        return None
    rows = tuple(_rows(noise, days=plan.days))
    presence, slots = certify_presence(plan), rows[-1]
    total, moved, replaced = (
        (
            _UP.add(presence.epsilon, slots.absent.epsilon),
            _UP.add(presence.epsilon_moved, slots.moved.epsilon),
            _UP.add(presence.epsilon_replaced, slots.moved.epsilon),
        )
        if presence is not None
        else (None, None, None)
    )
    return SlotCertificate(
        noise=noise, rows=rows, epsilon=total, epsilon_moved=moved, epsilon_replaced=replaced
    )


def _rows(noise: SlotNoise, *, days: int) -> Iterator[SlotRow]:
    of_units: dict[SlotUnit, int] = {"slot": 1, "day": noise.slots_per_day}
    if days > WEEK_DAYS:
        of_units["week"] = WEEK_DAYS * noise.slots_per_day
    of_units["study"] = days * noise.slots_per_day
    for unit, slots in of_units.items():
        absent, moved = (_loss(noise, slots=slots, is_moved=is_moved) for is_moved in (False, True))
        yield SlotRow(unit=unit, slots=slots, absent=absent, moved=moved)


def _loss(noise: SlotNoise, *, slots: int, is_moved: bool) -> SlotLoss:
    rho, delta = noise.rho(slots=slots, is_moved=is_moved), noise.delta
    return SlotLoss(
        rho=rho,
        order=zcdp_order(rho, delta=delta),
        epsilon=zcdp_epsilon(rho, delta=delta),
        tight=gaussian_epsilon(float(rho), delta=float(delta)),
    )
