"""Nights of a study: from an evening of each study day into the morning of the next date."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from mobility.extracts.rows.timestamps import study_clock
from reports.studies.studyfile import StudyDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class Nights:
    """When the night of each study day begins and ends, in seconds since the clock's origin.

    start, end : int64 (days,); rising, end[i] <= start[i + 1]. The end is not part of the night
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]

    def day_of(self, second: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Study day whose night each second belongs to, shape (n,); 0 = in no night of the study."""
        begun = np.searchsorted(self.start, second, side="right")
        is_night = (begun > 0) & (second < self.end[np.maximum(begun, 1) - 1])
        return np.where(is_night, begun, 0).astype(np.uint8)


def nights_of(definition: StudyDefinition) -> Nights | None:
    """Nights of a study that derives anything from them.

    Notes
    -----
    Their ends are local times, made instants as all others (`timestamps`): of a time that the clocks show
    twice the first one counts. One that they skip is taken as if they had not been put forward.
    """
    if definition.night is None:
        return None
    night_from, night_to = definition.night
    zone = ZoneInfo(definition.timezone)
    origin = study_clock(definition.timezone, first_day=definition.first_day, days=definition.days).origin

    def second(day: int, minute: int) -> int:
        date = definition.first_day + timedelta(days=day)
        local = datetime(date.year, date.month, date.day, *divmod(minute, 60), tzinfo=zone)
        return int(local.timestamp()) - origin

    days = range(definition.days)
    return Nights(
        start=np.array([second(day, night_from) for day in days], np.int64),
        end=np.array([second(day + 1, night_to) for day in days], np.int64),
    )
