"""Hexagons of the H3 grid (Uber): coarse cells by which squares are summed after the noise."""

from typing import Any, Final

import h3
import numpy as np
from numpy.typing import NDArray

MAX_RESOLUTION: Final = 15
_DEGREE_DECIMALS: Final = 7  # a centimetre


def finest_resolution(lon: Any, lat: Any, *, step_m: int) -> int:
    """The finest resolution whose hexagon at a point, in degrees, is at least as large as a square."""
    resolutions = range(MAX_RESOLUTION, -1, -1)
    cells = ((each, h3.latlng_to_cell(float(lat), float(lon), each)) for each in resolutions)
    return next((each for each, cell in cells if h3.cell_area(cell, unit="m^2") >= step_m**2), 0)


def hexagons_of(lon: NDArray[np.float64], lat: NDArray[np.float64], *, resolution: int) -> list[str]:
    """Name of the hexagon that holds each point; points in degrees."""
    return [h3.latlng_to_cell(*each, resolution) for each in zip(lat.tolist(), lon.tolist(), strict=True)]


def hexagon_ring(name: str) -> list[list[float]]:
    """Corners [lon, lat] in degrees, anticlockwise, closed; across the date line they continue beyond 180."""
    corners = np.array(h3.cell_to_boundary(name))[:, ::-1]
    corners[:, 0] = np.unwrap(corners[:, 0], period=360.0)
    ring: list[list[float]] = np.round(np.vstack([corners, corners[:1]]), _DEGREE_DECIMALS).tolist()
    return ring
