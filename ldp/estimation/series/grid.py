"""Counts of slots and zones on a grid on which every day has the same number of rows."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Counts on a full grid of slots.

    values : float64, shape (slots, zones); NaN where nothing is published
    slots_per_day : slots of a local day, at least 2
    first_slot : slot of the week of the first row, from 0
    sundays : numbers of days that count as Sundays, as public holidays may; 0: that of the first row
    """

    values: Floats
    slots_per_day: int
    first_slot: int = 0
    sundays: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] == 0:
            raise LdpError(f"values must have shape (slots, zones), got {self.values.shape}")
        if self.slots_per_day < 2:
            raise LdpError(f"slots_per_day must be >= 2, got {self.slots_per_day}")
        if np.isinf(self.values).any():
            raise LdpError("values must be finite, or NaN where there are none")

    @property
    def days(self) -> float:
        """Days from the first row to the last."""
        return len(self.values) / self.slots_per_day

    def until(self, slot: int) -> Self:
        """Return the rows before `slot`."""
        return replace(self, values=self.values[:slot])

    def slots_of_week(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Slot of the week of some rows, also after the last one; a holiday has those of a Sunday."""
        found = self.first_slot + slots
        if not self.sundays:
            return found
        day = self.slots_per_day
        from_first = self.first_slot % day + slots  # the first row may lie within its day
        is_sunday = np.isin(from_first // day, list(self.sundays))
        return np.where(is_sunday, 6 * day + from_first % day, found)

    def filled(self) -> Floats:
        """Values with each gap filled from the week before, else from the slot before, else 0."""
        values, week = self.values.copy(), 7 * self.slots_per_day
        for slot in np.flatnonzero(np.isnan(values).any(axis=1)):
            gap = np.isnan(values[slot])
            for earlier in (slot - week, slot - 1):
                if earlier >= 0:
                    values[slot, gap] = values[earlier, gap]
                    gap = np.isnan(values[slot])
            values[slot, gap] = 0.0
        return values
