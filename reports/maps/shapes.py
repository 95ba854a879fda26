"""Shapes of an area as maps draw them: metres, outer rings anticlockwise and holes clockwise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reports.maps.layer_looks import look_of, shown_name
from reports.studies.models import Area

Path = NDArray[np.float64]  # shape (n_points, 2): x_m east, y_m north; of a ring, the last point is the first
_WIDE_M: Final = 10_000  # from here on, whole metres are less than a pixel


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneShape:
    """A zone; a point is in it if it is inside an odd number of its rings."""

    name: str
    shown_name: str
    rings: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineLayer:
    """Rivers, roads or borders: open paths, or outlines.

    Parameters
    ----------
    is_area : all paths are rings; a point is in the layer if it is inside an odd number of them
    """

    name: str
    paths: tuple[Path, ...]
    is_area: bool = False

    @property
    def shown_name(self) -> str:
        """Name in the active language."""
        return shown_name(self.name)

    @property
    def look(self) -> str:
        """Return "water", "road", "border" or "other"."""
        return look_of(self.name)

    @property
    def is_filled(self) -> bool:
        """Return whether the layer is drawn as an area: only water is."""
        return self.is_area and self.look == "water"


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaShapes:
    """Input for drawing a map of an area."""

    zones: tuple[ZoneShape, ...]
    layers: tuple[LineLayer, ...] = ()

    @property
    def names(self) -> list[str]:
        return [zone.name for zone in self.zones]

    @property
    def shown_names(self) -> list[str]:
        """Names in the active language."""
        return [zone.shown_name for zone in self.zones]

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east and north of all zones, in metres; all 0 without zones."""
        rings = [ring for zone in self.zones for ring in zone.rings]
        if not rings:
            return 0.0, 0.0, 0.0, 0.0
        points = np.concatenate(rings)
        (west, south), (east, north) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
        return west, south, east, north

    def to_json(self) -> dict[str, Any]:
        """Flat lists [x, y, x, y, ...], which are a third shorter than pairs."""
        west, south, east, north = self.bounds
        is_wide = max(east - west, north - south) > _WIDE_M

        def flat(paths: Sequence[Path]) -> list[Any]:
            return [(np.rint(path).astype(np.int64) if is_wide else path).ravel().tolist() for path in paths]

        return {
            "zones": [{"name": zone.shown_name, "rings": flat(zone.rings)} for zone in self.zones],
            "layers": [
                {"look": layer.look, "is_filled": layer.is_filled, "paths": flat(layer.paths)}
                for layer in self.layers
            ],
            "bounds": [west, south, east, north],
        }


def area_shapes(area: Area) -> AreaShapes:
    """Shapes of an area; zones whose shapes are not known are left out."""
    zones = [
        ZoneShape(name=name, shown_name=shown, rings=wound([np.array(ring, np.float64) for ring in rings]))
        for name, shown, rings in zip(area.zones, area.shown_zones, area.outlines, strict=False)
        if rings
    ]
    layers = [
        LineLayer(
            name=layer["name"],
            paths=tuple(np.array(path, np.float64) for path in layer["paths"]),
            is_area=layer.get("kind") == "polygons",
        )
        for layer in area.layers
    ]
    return AreaShapes(zones=tuple(zones), layers=tuple(layers))


def wound(rings: Sequence[Path]) -> tuple[Path, ...]:
    """Rings of one zone in the directions that fill it and leave its holes out, however it is nested."""
    if len(rings) == 1:
        return (_turned(rings[0], is_hole=False),)
    return tuple(
        _turned(ring, is_hole=sum(_holds(other, ring[0]) for other in rings if other is not ring) % 2 == 1)
        for ring in rings
    )


def _turned(ring: Path, *, is_hole: bool) -> Path:
    x, y = ring[:, 0] - ring[0, 0], ring[:, 1] - ring[0, 1]
    is_anticlockwise = float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])) > 0
    return np.flip(ring, axis=0) if is_anticlockwise == is_hole else ring


def _holds(ring: Path, point: Path) -> bool:
    """Return whether a point is inside a ring: an odd number of edges lies to the right of it."""
    (x1, y1), (x2, y2) = ring[:-1].T, ring[1:].T
    crosses = (y1 > point[1]) != (y2 > point[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        at = x1 + (point[1] - y1) * (x2 - x1) / (y2 - y1)
    return bool(np.sum(crosses & (point[0] < at)) % 2)
