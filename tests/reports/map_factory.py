"""A study on a map: four squares of a kilometre, one with a hole, and people who sleep there."""

from collections.abc import Sequence
from typing import Any

from reports.models import Study
from reports.studyfile.definition import AreaDefinition, Cell
from tests.reports import report_factory as factory

ZONES = ("North west", "North <east>", "South west", "South east")
HOME = factory.indicator("home", *ZONES[:3], "NR")  # one zone is no category, one category is no zone
WEST, SOUTH, SIDE = 6.80, 47.60, 0.01  # degrees


def square(column: float, row: float, *, side: float = 1.0) -> list[list[float]]:
    """Ring of a square in degrees, anticlockwise, at a place counted in squares."""
    corners = [(0, 0), (side, 0), (side, side), (0, side), (0, 0)]
    return [[WEST + SIDE * (column + x), SOUTH + SIDE * (row + y)] for x, y in corners]


def area(names: Sequence[str] = ZONES) -> AreaDefinition:
    """Squares in two columns from the north west on; the first has a hole."""
    places = [(0, 1), (1, 1), (0, 0), (1, 0)]
    features = []
    for place, name in enumerate(names):
        rings = [square(*places[place])]
        if place == 0:
            rings.append(square(0.25, 1.25, side=0.5)[::-1])
        geometry: dict[str, Any] = {"type": "Polygon", "coordinates": rings}
        features.append({"type": "Feature", "properties": {"zone": name}, "geometry": geometry})
    cell = Cell(cell_id="1", lon=WEST, lat=SOUTH, zone=names[-1], valid_from=None, valid_to=None)
    collection = {"type": "FeatureCollection", "features": features}
    return AreaDefinition(cells=(cell,), zones=tuple(names), geojson=collection)


def create(*indicators: Any, **changes: Any) -> Study:
    """A study with that area, and answers."""
    study = factory.create(
        *(indicators or (HOME, factory.GENDER)), area=area(), **({"epsilon": "6"} | changes)
    )
    factory.publish(study, factory.crowd(study))
    return study
