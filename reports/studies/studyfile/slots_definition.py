"""Contents of the section [slots] of a valid study file."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Self

from ldp.privacy.slots import SlotSpec, slot_noise


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneLevel:
    """Larger zones, each the union of some zones of the area.

    within : of each zone of the area, in its order, the place in `zones` of its larger one; None = none
    geojson : the larger zones with their shapes, WGS 84, in the order of `zones`
    zones_fr : French names, in the order of `zones`; None = the same names
    """

    name: str
    zones: tuple[str, ...]
    within: tuple[int | None, ...]
    geojson: dict[str, Any]
    zones_fr: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsDefinition:
    """Presence by slot of time and by zone, as typed.

    minutes : length of a slot
    hold_minutes : how long a person counts where last seen; 0 = in slots with an event only
    slots_per_day : first slots of a person that count on a local day
    epsilon_day, delta : of the noise that covers a person's day, at every level; None = counts are exact
    close_after_minutes : a slot is published so long after its end; None = when `close_slots` says so
    levels : larger zones that are counted too, from smaller to larger
    """

    minutes: int
    hold_minutes: int
    slots_per_day: int
    epsilon_day: Decimal | None
    delta: Decimal | None
    close_after_minutes: int | None = None
    levels: tuple[ZoneLevel, ...] = ()

    @property
    def spec(self) -> SlotSpec:
        """Return the specification for the library, with the least noise that keeps `epsilon_day`."""
        levels = 1 + len(self.levels)
        exact = SlotSpec(minutes=self.minutes, slots_per_day=self.slots_per_day, levels=levels)
        if self.epsilon_day is None or self.delta is None:
            return exact
        noise = slot_noise(
            epsilon_day=Fraction(self.epsilon_day),
            delta=Fraction(self.delta),
            slots_per_day=self.slots_per_day,
            levels=levels,
        )
        return replace(exact, variance=noise.variance, delta=noise.delta)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild what StudyDefinition.to_json wrote."""
        levels = tuple(_level_from_json(each) for each in data["levels"])
        exact = {"epsilon_day": _exact(data["epsilon_day"]), "delta": _exact(data["delta"])}
        return cls(**{**data, **exact, "levels": levels})


def _level_from_json(data: Mapping[str, Any]) -> ZoneLevel:
    texts = {key: tuple(data[key]) for key in ("zones", "within", "zones_fr") if key in data}
    return ZoneLevel(**{**data, **texts})


def _exact(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)
