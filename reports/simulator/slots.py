"""Expected error of counts by time slot, with noise on counts and with noise on each person's zone."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import exp, sqrt
from typing import Final

from ldp.privacy.slots import slot_noise

TRIED: Final = (Decimal("0.5"), Decimal(1), Decimal(2), Decimal(4))
MOST_ZONES: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSetting:
    """Counts by slot to be judged.

    epsilon_day, delta : of a person's day
    slots_per_day : of a person that count
    levels : counts of a slot in which a person is
    zones : of the smallest level
    people : counted in a slot, over all zones
    """

    epsilon_day: Decimal
    delta: Decimal
    slots_per_day: int
    levels: int
    zones: int
    people: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRow:
    """Standard deviations of one count, in people, at one epsilon.

    central : with noise added to counts; epsilon is lost by a person's day
    local : with noise added to each person's zone; epsilon is lost by each distinct zone of a person
    """

    epsilon: Decimal
    central: float
    local: float
    is_chosen: bool


def slot_rows(setting: SlotSetting) -> list[SlotRow]:
    """Return the errors at the epsilon of the setting and at some others, from the smallest."""
    tried = sorted({*TRIED, setting.epsilon_day})
    return [
        SlotRow(
            epsilon=epsilon,
            central=central_deviation(setting, epsilon=epsilon),
            local=local_deviation(float(epsilon), people=setting.people, zones=setting.zones),
            is_chosen=epsilon == setting.epsilon_day,
        )
        for epsilon in tried
    ]


def central_deviation(setting: SlotSetting, *, epsilon: Decimal) -> float:
    """Standard deviation of the noise of one count, for which a person's day is certified at epsilon."""
    noise = slot_noise(
        epsilon_day=Fraction(epsilon),
        delta=Fraction(setting.delta),
        slots_per_day=setting.slots_per_day,
        levels=setting.levels,
    )
    return sqrt(noise.variance)


def local_deviation(epsilon: float, *, people: int, zones: int) -> float:
    """Standard deviation of a count if everyone reports their zone, or none, by randomised response (GRR).

    A zone keeps its report (memoisation), so epsilon is lost by each distinct zone of a person. Source: Wang
    et al., USENIX Security 2017, for a zone with few of the people; k = zones + 1.
    """
    odds = exp(epsilon)
    return sqrt(people) * sqrt(odds + zones + 1 - 2) / (odds - 1)
