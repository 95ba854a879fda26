"""Hours of the local day in which people were seen: first, last, and busiest."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mobility.extracts.rows.timestamps import study_clock
from mobility.vault.state import positions
from mobility.vault.state.stays import Whereabouts
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.hours import HOURS_A_DAY

HOUR_S: Final = 3600


class HourClock:
    """Local hours of one study; an hour that the clocks show twice is one hour."""

    def __init__(self, definition: StudyDefinition) -> None:
        self._clock = study_clock(definition.timezone, first_day=definition.first_day, days=definition.days)

    def hours(self, seconds: NDArray[np.uint32]) -> NDArray[np.uint16]:
        """Hour of each event, in [0, 24); `seconds` are UTC, since the clock's origin, shape (n,)."""
        utc = seconds.astype(np.int64) + self._clock.origin
        offset = self._clock.offset_s[np.searchsorted(self._clock.utc_from, utc, side="right") - 1]
        return ((utc + offset) // HOUR_S % HOURS_A_DAY).astype(np.uint16)

    def busiest(self, seen: Whereabouts, people: NDArray[np.uint64]) -> NDArray[np.uint16]:
        """Hour with the most quarter-hours in which each person was seen; of equal ones the earliest.

        Parameters
        ----------
        seen : events of the day, the last of each quarter-hour; each of the people has one
        people : uint64, shape (n,); sorted, each once
        """
        owner = positions.find_rows(people, seen.pseudonym)
        rows = np.flatnonzero(owner != positions.NOWHERE)
        places = owner[rows] * HOURS_A_DAY + self.hours(seen.second[rows])
        counts = np.bincount(places, minlength=HOURS_A_DAY * len(people))
        return np.asarray(counts.reshape(-1, HOURS_A_DAY).argmax(axis=1), np.uint16)
