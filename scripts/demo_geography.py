"""The invented country of the demo: its zones, sea, rivers, roads and borders, drawn around the demo's cells.

    python -m scripts.demo_geography [FOLDER]

Nothing is a copy of a real shape. A zone is where one of its cells is the nearest; a few points drawn by hand
say where land ends, rivers and roads run. A noise then bends all lines alike, so that zones touch and cells
stay in theirs: a point moves by less than its distance to the nearest cell.
"""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import cos, radians
from pathlib import Path
from typing import Any, Final

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from ldp.kernels.streams import KeyedStream

DEMO: Final = Path(__file__).resolve().parent.parent / "mobility" / "demo"
KEY: Final = b"invented country"
LON, LAT = 6.88, 47.63  # of the point (0, 0); all lengths are kilometres
KM: Final = (111.19 * cos(radians(LAT)), 111.19)  # of a degree
BOX: Final = shapely.box(-150, -150, 150, 150)
REACH_KM: Final = 160  # of the noise from (0, 0)
GRID_KM: Final = 0.001
STEP_KM: Final = 0.2  # between points of a line before it is bent
FINEST_KM: Final = 0.04  # details below are dropped
DECIMALS: Final = 4

# The noise, by wavelength in kilometres: how far it moves a point, and at most what part of the distance to
# the nearest cell.
OCTAVES: Final = ((26.0, 3.2), (13.0, 2.1), (6.5, 1.2), (3.2, 0.6), (1.6, 0.28), (0.8, 0.11))
MOST_OF_DISTANCE: Final = 0.55

Points = Sequence[tuple[float, float]]
Array = NDArray[np.float64]

# Frontier on land, and far out at sea.
COUNTRY: Final[Points] = (
    (-49, -11), (-46, 3), (-41.5, 14), (-32, 21), (-28.5, 34), (-19.5, 43), (-4.5, 46), (6.5, 41.5),
    (14.5, 46), (28.5, 47), (51.5, 51.5), (83, 18.5), (83, -37), (37, -55), (5.5, -69), (-15.5, -53.5),
    (-26, -46), (-36, -43), (-39.5, -32), (-37, -23), (-42.5, -17.5),
)  # fmt: skip
COAST: Final[Points] = (
    (73.5, 150), (66, 118), (53.5, 84.5), (50.5, 64.5), (43, 53.5), (41.5, 42.5), (44, 33), (40.5, 24),
    (36.5, 19), (29.5, 14.5), (35, 11), (42.5, 7.5), (47, -1), (44, -10), (46, -17.5), (38.5, -23),
    (30.5, -21), (25, -25), (17.5, -20), (12, -13.5), (7.5, -14.5), (8.5, -22), (3.5, -25), (2.5, -33),
    (-3.5, -37.5), (-4.5, -45), (-13, -49.5), (-17.5, -60.5), (-29.5, -73.5), (-31.5, -112),
    (-48, -150),
)  # fmt: skip
# Ellipses: x, y, half width, half height.
ISLANDS: Final = (
    (43, -27, 3.2, 1.6), (48, -22.5, 1.2, 1.9), (20, -29.5, 3.0, 1.7), (26, -31.5, 1.3, 0.9),
    (46, 20, 1.5, 2.4),
)  # fmt: skip
LAKES: Final = ((-14, 20, 4.4, 2.0), (25.5, -11.5, 4.2, 1.5), (-36, -15, 1.6, 2.8))
_RIVERS: Final[Sequence[Points]] = (
    (
        (-9, 46), (-6, 35), (-9, 25), (-5, 14), (-1.5, 6), (-2.4, 1), (-6, -5), (-4.5, -12), (1, -15),
        (9, -16.5), (14, -19),
    ),
    ((-60, 14), (-46, 6), (-35, 6), (-25, -3), (-19, -12), (-11, -13), (-4.5, -12)),
    ((-23, 26), (-14, 20), (-9, 25)),
    ((6, 43), (12, 33), (13, 23), (22, 17), (31, 15.5), (36, 16)),
    ((12, 13), (16, 4), (18, -6), (25.5, -11.5), (28, -19), (28, -30)),
    ((-54, -30), (-36, -15), (-31, -27), (-20, -36), (-12, -41), (-2, -46)),
)  # fmt: skip
_ROADS: Final[Sequence[Points]] = (
    (
        (-150, 8), (-90, 0), (-58, -1), (-42, -5), (-30, 3), (-21, -9), (-9.5, -6), (-4, 0), (-1, 2.5),
        (6, 5), (12, 6.5), (21, -2), (28, -3.5), (37, 2), (42, 5),
    ),
    ((-60, -118), (-44, -72), (-33, -36), (-21, -29), (-18, -42), (-12, -47)),
    (
        (-21, -29), (-10, -23), (-6, -15), (-2, -10), (-3.5, -3), (-1, 2.5), (-3, 7), (-8, 17),
        (-7.5, 39), (-14, 62), (-24, 100), (-20, 150),
    ),
    ((-1, 2.5), (2, 8), (7, 14.4), (17, 27), (27, 37), (38, 48), (44, 78), (58, 112), (60, 150)),
    ((-12, 16.5), (-4, 22), (2.6, 26), (17, 27), (35, 22.5)),
    ((21, -2), (19.8, -11.3), (24, -19), (35, -15), (44, -20)),
)  # fmt: skip
_ABROAD: Final[Sequence[Points]] = (
    ((-22, 30), (-48, 56), (-52, 84), (-80, 118), (-84, 150)),
    ((-36, -33), (-70, -40), (-96, -28), (-150, -46)),
)  # fmt: skip
LINES: Final[Mapping[str, Sequence[Points]]] = {"rivers": _RIVERS, "roads": _ROADS, "borders": _ABROAD}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DEMO
    for name, document in documents().items():
        lines = ",\n  ".join(json.dumps(each, ensure_ascii=False) for each in document.pop("features"))
        head = json.dumps(document, ensure_ascii=False)[:-1]
        (folder / name).write_text(f'{head}, "features": [\n  {lines}\n]}}\n', encoding="utf-8")


def documents() -> dict[str, dict[str, Any]]:
    """GeoJSON of each file."""
    codes, cells = _cells()
    bend = _bending(cells)
    lines = {name: [shapely.LineString(_curve(each)) for each in points] for name, points in LINES.items()}
    land = shapely.union_all([shapely.Polygon([*_curve(COAST), (-150, -150), (-150, 150)]), *_blobs(ISLANDS)])
    country = shapely.intersection(shapely.Polygon(_curve(COUNTRY, closed=True)), land)
    zones, sea = _regions(codes, cells, country=country, land=land)
    lakes = _blobs(LAKES)
    # Without what is common with the coast.
    frontier = shapely.intersection(country.boundary, shapely.buffer(land, -GRID_KM))

    def bent(shape: BaseGeometry) -> BaseGeometry:
        return shapely.simplify(bend(_dense(shape)), FINEST_KM)

    def drawn(name: str, within: BaseGeometry) -> list[BaseGeometry]:
        return [bent(shapely.intersection(line, within)) for line in lines[name]]

    *shapes, water = shapely.coverage_simplify([*map(bend, zones.values()), bend(sea)], FINEST_KM)
    abroad = drawn("borders", shapely.difference(land, country))
    return {
        "zones.geojson": _zones(dict(zip(zones, shapes, strict=True))),
        "water.geojson": _layer("sea and lakes", [water, *map(bent, lakes)]),
        "rivers.geojson": _layer(
            "rivers", drawn("rivers", shapely.difference(land, shapely.union_all(lakes)))
        ),
        "roads.geojson": _layer("main roads", drawn("roads", land)),
        "borders.geojson": _layer("borders of states", [bent(frontier), *abroad]),
    }


def _zones(shapes: Mapping[str, BaseGeometry]) -> dict[str, Any]:
    """Zones with their names; French ones are those that their file has."""
    features = json.loads((DEMO / "zones.geojson").read_text(encoding="utf-8"))["features"]
    known = {feature["properties"]["zone"]: feature["properties"] for feature in features}
    description = "Invented zones of the demo: not administrative boundaries"
    return _collection(description, [(known[name], shape) for name, shape in shapes.items()])


def _cells() -> tuple[list[str], Array]:
    """Zone and position of each cell of the demo."""
    with (DEMO / "cells.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    degrees = np.array([[float(row["lon"]), float(row["lat"])] for row in rows])
    return [row["zone"] for row in rows], (degrees - [LON, LAT]) * KM


def _regions(
    codes: Sequence[str], cells: Array, *, country: BaseGeometry, land: BaseGeometry
) -> tuple[dict[str, BaseGeometry], BaseGeometry]:
    """Zones by name, and the sea: pieces of the box whose common borders have the same points."""
    nearest = shapely.get_parts(
        shapely.voronoi_polygons(shapely.MultiPoint(cells), extend_to=BOX, ordered=True)
    )
    wholes = {code: shapely.union_all(nearest[np.array(codes) == code]) for code in dict.fromkeys(codes)}
    parts = [shapely.intersection(whole, country) for whole in wholes.values()]
    lines = shapely.union_all([shapely.boundary(each) for each in (*parts, land, BOX)], grid_size=GRID_KM)
    faces = shapely.get_parts(shapely.polygonize([shapely.segmentize(lines, STEP_KM)]))
    inner = shapely.point_on_surface(faces)
    at_home, ashore = shapely.contains(country, inner), shapely.contains(land, inner)
    zones = {
        code: shapely.union_all(faces[at_home & shapely.contains(whole, inner)])
        for code, whole in wholes.items()
    }
    return zones, shapely.union_all(faces[~ashore])


def _bending(cells: Array) -> Callable[[BaseGeometry], BaseGeometry]:
    """Return what bends a shape; cells stay where they are."""
    stream = KeyedStream(KEY)
    lattices = []
    for wavelength, far in OCTAVES:
        side = int(np.ceil(2 * REACH_KM / wavelength)) + 2
        values = stream.uniform_int(2 * side**2, -1000, 1001).reshape(2, side, side) / 1000
        lattices.append((wavelength, far, values))
    tree = shapely.STRtree(shapely.points(cells))

    def moved(at: Array) -> Array:
        points = shapely.points(at)
        _, nearest_km = tree.query_nearest(points, return_distance=True, all_matches=False)
        shift = np.zeros_like(at)
        for wavelength, far, lattice in lattices:
            # A wave as long as the distance to a cell would tear cells out of their zones.
            room = np.minimum(1.0, nearest_km / wavelength)
            shift += (far * room * _noise(lattice, at / wavelength)).T
        allowed = MOST_OF_DISTANCE * nearest_km / np.maximum(np.hypot(*shift.T), 1e-9)
        return np.asarray(at + shift * np.minimum(1.0, allowed)[:, np.newaxis], np.float64)

    return lambda shape: shapely.transform(shape, moved)


def _noise(lattice: Array, at: Array) -> Array:
    """Smooth values between those of a lattice, shape (2, n): one for each axis."""
    middle = lattice.shape[1] / 2
    low = np.floor(at + middle).astype(int).clip(0, lattice.shape[1] - 2)
    x, y = ((at + middle - low) ** 2 * (3 - 2 * (at + middle - low))).T
    column, row = low.T
    bottom = lattice[:, row, column] * (1 - x) + lattice[:, row, column + 1] * x
    top = lattice[:, row + 1, column] * (1 - x) + lattice[:, row + 1, column + 1] * x
    return np.asarray(bottom * (1 - y) + top * y, np.float64)


def _curve(points: Points, *, closed: bool = False) -> list[tuple[float, float]]:
    """Corners cut off three times (Chaikin): a smooth line whose ends stay."""
    at = np.array([*points, points[0]] if closed else points, np.float64)
    for _ in range(3):
        cut = np.stack([0.75 * at[:-1] + 0.25 * at[1:], 0.25 * at[:-1] + 0.75 * at[1:]], axis=1).reshape(
            -1, 2
        )
        at = np.vstack([cut, cut[:1]]) if closed else np.vstack([at[:1], cut, at[-1:]])
    return [(x, y) for x, y in at.tolist()]


def _blobs(ellipses: Iterable[tuple[float, float, float, float]]) -> list[BaseGeometry]:
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    return [
        shapely.Polygon(np.stack([x + width * np.cos(angle), y + height * np.sin(angle)], axis=1))
        for x, y, width, height in ellipses
    ]


def _dense(shape: BaseGeometry) -> BaseGeometry:
    return shapely.segmentize(shape, STEP_KM)


def _layer(what: str, shapes: Sequence[BaseGeometry]) -> dict[str, Any]:
    return _collection(
        f"Invented {what} of the demo", [({}, shape) for shape in shapes if not shape.is_empty]
    )


def _collection(description: str, features: Iterable[tuple[dict[str, Any], BaseGeometry]]) -> dict[str, Any]:
    found = [
        {
            "type": "Feature",
            "properties": properties,
            "geometry": json.loads(shapely.to_geojson(_in_degrees(shape))),
        }
        for properties, shape in features
    ]
    return {"type": "FeatureCollection", "description": description, "features": found}


def _in_degrees(shape: BaseGeometry) -> BaseGeometry:
    degrees = shapely.transform(shape, lambda at: np.round(at / KM + [LON, LAT], DECIMALS))
    return shapely.orient_polygons(degrees)


if __name__ == "__main__":
    main()
