"""Distance of a day from home: from where a person sleeps to the farthest cell of the day."""

import numpy as np
from numpy.typing import NDArray

from mobility.vault.state import positions
from mobility.vault.state.stays import NO_CELL, Whereabouts
from reports.studies.studyfile import HOME_DISTANCE, StudyDefinition

EARTH_KM = 6371.0088  # mean radius


def cell_positions(definition: StudyDefinition) -> NDArray[np.float64]:
    """Return longitude and latitude of each cell of the registry, in radians, (n, 2); empty if not needed."""
    if definition.area is None or not any(each.derive == HOME_DISTANCE for each in definition.indicators):
        return np.empty((0, 2))
    return np.radians([(cell.lon, cell.lat) for cell in definition.area.cells])


def farthest_km(
    seen: Whereabouts,
    places: NDArray[np.float64],
    people: NDArray[np.uint64],
    homes: NDArray[np.uint32],
) -> NDArray[np.float64]:
    """Return the great-circle distance in km from home to each person's farthest place, shape (n,).

    Parameters
    ----------
    seen : places of the day
    places : longitude and latitude of each cell, in radians
    people : sorted, each once
    homes : cell in which each slept; the distance of NO_CELL is NaN, like that of a person without places
    """
    farthest = np.full(len(people), np.nan)
    owner = positions.find_rows(people, seen.pseudonym)
    rows = np.flatnonzero(owner != positions.NOWHERE)
    rows = rows[homes[owner[rows]] != NO_CELL]
    owner = owner[rows]
    lon, lat = places[seen.cell[rows]].T
    home_lon, home_lat = places[homes[owner]].T
    half = np.sin((lat - home_lat) / 2) ** 2
    half += np.cos(lat) * np.cos(home_lat) * np.sin((lon - home_lon) / 2) ** 2
    np.fmax.at(farthest, owner, 2 * EARTH_KM * np.arcsin(np.sqrt(np.minimum(half, 1.0))))
    return farthest
