"""Slots of a study: when each begins and ends.

A slot is named by its number in the study, from 0. The first slot of a day begins at local midnight, so a
day on which the clocks change has more or fewer of them, and the last one of such a day may be shorter.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Self
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotClock:
    """Times of the slots of a study.

    start, end : int64 (slots,), seconds since 1970 in UTC; a slot does not hold its end
    day : uint8 (slots,), study day, from 1
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    day: NDArray[np.uint8]

    @classmethod
    def of(cls, timezone: str, *, first_day: date, days: int, minutes: int) -> Self:
        """Return the slots of some days of a time zone."""
        zone, step = ZoneInfo(timezone), minutes * 60
        dates = [first_day + timedelta(days=day) for day in range(days + 1)]
        midnights = [int(datetime(d.year, d.month, d.day, tzinfo=zone).timestamp()) for d in dates]
        starts = [np.arange(first, last, step) for first, last in pairwise(midnights)]
        ends = [np.append(each, last)[1:] for each, last in zip(starts, midnights[1:], strict=True)]
        return cls(
            start=np.concatenate(starts).astype(np.int64),
            end=np.concatenate(ends).astype(np.int64),
            day=np.repeat(np.arange(1, days + 1), [len(each) for each in starts]).astype(np.uint8),
        )

    def __len__(self) -> int:
        return len(self.start)

    def closed_by(self, second: int) -> int:
        """Return the number of slots that have ended by a second since 1970."""
        return int(np.searchsorted(self.end, second, side="right"))

    def of_day(self, day: int) -> slice:
        """Return the places of the slots of a study day."""
        first, last = np.searchsorted(self.day, [day, day + 1])
        return slice(int(first), int(last))
