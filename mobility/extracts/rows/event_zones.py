"""Zones of events: a row says its cell, and the cell lies in a zone."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mobility.extracts.rows.events import NO_VALUE
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.definition import EVENT_ZONE


class EventZones(NamedTuple):
    """Where the zone of a row goes, and the zone of each cell of the area.

    slot : place among the static indicators
    code_of_cell : uint16 (cells,); NO_VALUE outside all zones
    """

    slot: int
    code_of_cell: NDArray[np.uint16]

    @classmethod
    def of(cls, definition: StudyDefinition) -> Self | None:
        """Zones as an indicator asks for them; None where none does."""
        static = [each for each in definition.indicators if each.kind == "static"]
        slots = [slot for slot, each in enumerate(static) if each.derive == EVENT_ZONE]
        if not slots or definition.area is None:
            return None
        code_of = {zone: code for code, zone in enumerate(definition.area.zones)}
        codes = [code_of.get(cell.zone or "", NO_VALUE) for cell in definition.area.cells]
        return cls(slots[0], np.array(codes, np.uint16))
