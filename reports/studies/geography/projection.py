"""Degrees to metres around one place: Lambert's azimuthal equal-area projection (Snyder 1987, 24)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyproj import Transformer

CENTRE_DECIMALS: Final = 2  # of degrees, about a kilometre: a cell more does not move the centre of a city

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LocalProjection:
    """A projection in metres, as PROJ reads it; areas are exact, distances nearly so.

    >>> LocalProjection("+proj=laea +lat_0=47.64 +lon_0=6.86 +datum=WGS84 +units=m").to_metres(6.86, 47.64)
    (0.0, 0.0)
    """

    text: str

    @cached_property
    def _transformer(self) -> Transformer:
        return Transformer.from_crs("OGC:CRS84", self.text, always_xy=True)

    def to_metres(self, lon: Floats | float, lat: Floats | float) -> tuple[Floats, Floats]:
        """x east and y north of the centre, in metres; of the shape of what is given."""
        x_m, y_m = self._transformer.transform(lon, lat)
        return x_m, y_m

    def to_degrees(self, x_m: Floats | float, y_m: Floats | float) -> tuple[Floats, Floats]:
        """Longitude and latitude, WGS 84; the reverse of `to_metres`."""
        lon, lat = self._transformer.transform(x_m, y_m, direction="INVERSE")
        return lon, lat


def projection_around(lon: Floats, lat: Floats) -> str:
    """Text of the projection centred at the middle of the points' bounding box, rounded to 0.01 degree.

    Where the points lie on both sides of the date line, the box is the one across it.
    """
    east_of_0 = np.where(lon < 0, lon + 360, lon)
    if np.ptp(east_of_0) < np.ptp(lon):
        lon = east_of_0
    centre_lon = round((lon.min() + lon.max()) / 2, CENTRE_DECIMALS)
    centre_lon = round(centre_lon - 360, CENTRE_DECIMALS) if centre_lon > 180 else centre_lon
    centre_lat = round((lat.min() + lat.max()) / 2, CENTRE_DECIMALS)
    return f"+proj=laea +lat_0={centre_lat:.2f} +lon_0={centre_lon:.2f} +datum=WGS84 +units=m +no_defs"
