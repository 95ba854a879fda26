"""Parts of a grid in the analyst zone: which squares are land, and in which zone. It has no cells."""

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from ldp.geo.grid import Grid

NO_ZONE: Final = -1
_ZONE = np.dtype("<i2")  # the same bytes on every machine


@dataclass(frozen=True, slots=True, kw_only=True)
class GridMap:
    """A grid and what its squares are.

    zones : int16 (n_y, n_x), place among the zones of the area; NO_ZONE = none
    land : bool (n_y, n_x), whether people may be there
    at_antennas : whether these are the squares of antennas; else all that is land
    """

    grid: Grid
    zones: NDArray[np.int16]
    land: NDArray[np.bool_]
    at_antennas: bool = False

    def to_fields(self) -> dict[str, Any]:
        """Values of the fields of `Area`: an eighth of a byte, and two bytes, a square."""
        return {
            "grid": self.grid.to_json(),
            "grid_zones": self.zones.astype(_ZONE).tobytes(),
            "grid_land": np.packbits(self.land).tobytes(),
            "grid_at_antennas": self.at_antennas,
        }

    @classmethod
    def from_fields(
        cls, *, grid: dict[str, Any], zones: bytes, land: bytes, at_antennas: bool = False
    ) -> Self:
        """Rebuild what `to_fields` wrote; the arrays are read-only."""
        of = Grid.from_json(grid)
        bits = np.unpackbits(np.frombuffer(land, np.uint8), count=of.n_cells)
        return cls(
            grid=of,
            zones=np.frombuffer(zones, _ZONE).reshape(of.shape),
            land=bits.astype(np.bool_).reshape(of.shape),
            at_antennas=at_antennas,
        )
