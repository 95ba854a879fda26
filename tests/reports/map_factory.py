"""A study on a map: four squares of a kilometre, one with a hole, and people who sleep there."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ldp
from ldp.codes import NO_ANSWER
from ldp.geo.grid import Grid
from ldp.keyed.noise.locations import LocationSanitiser
from reports.models import Plan, Study
from reports.studies.studyfile.definition import AreaDefinition, Cell, LocationDefinition
from tests.reports import report_factory as factory
from tests.reports.kept import made_once

ZONES = ("North west", "North <east>", "South west", "South east")
HOME = factory.indicator("home", *ZONES[:3], "NR")  # one zone is no category, one category is no zone
WEST, SOUTH, SIDE = 6.80, 47.60, 0.01  # degrees


def square(column: float, row: float, *, side: float = 1.0) -> list[list[float]]:
    corners = [(0, 0), (side, 0), (side, side), (0, side), (0, 0)]
    return [[WEST + SIDE * (column + x), SOUTH + SIDE * (row + y)] for x, y in corners]


def area(names: Sequence[str] = ZONES) -> AreaDefinition:
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
    asked = indicators or (HOME, factory.GENDER)
    return factory.published(*asked, area=area(), **({"epsilon": "6"} | changes))


GRID = Grid(x0_m=-1600, y0_m=-2000, step_m=200, n_x=16, n_y=20)
LOCATION = LocationDefinition(
    level=Decimal("1.38629436"), radius_m=200, max_values=None, grid=GRID, places=(0,)
)


@made_once
def create_located(
    *indicators: Any, n: int = 3000, location: LocationDefinition = LOCATION, **changes: Any
) -> Study:
    """A study with reported places: most people are in one square, the others anywhere."""
    asked = indicators or (HOME, factory.GENDER)
    study = factory.create(*asked, area=area(), location=location, **({"epsilon": "6"} | changes))
    people = factory.crowd(study, n=n)
    publish_located(study, people, places=true_places(study, people))
    return study


def true_places(study: Study, people: factory.People) -> NDArray[np.uint16]:
    stream = ldp.KeyedStream(bytes(15) + b"p")
    shape = people.bitmaps.size, study.days
    anywhere = stream.uniform_int(shape[0] * shape[1], 0, GRID.n_cells).reshape(shape)
    crowded = stream.uniform_int(shape[0] * shape[1], 0, 10).reshape(shape) < 7
    return np.where(crowded, 10 * GRID.n_x + 6, anywhere).astype(np.uint16)


def publish_located(
    study: Study, people: factory.People, *, places: NDArray[np.uint16], key: bytes = bytes(16)
) -> None:
    plan = Plan.objects.get(study=study)
    spec = ldp.PlanSpec.from_json(plan.spec)
    prf = ldp.KeyedPrf(key)
    assert spec.location is not None
    delta = factory._delta(spec, people, sanitiser=ldp.Sanitiser(spec, prf))
    sanitiser = LocationSanitiser(spec.location, prf, spec.version)
    answered = sanitiser.answer_days(people.pseudonyms, days=study.days) & people.bitmaps
    days = [sanitiser.reports(people.pseudonyms, column.copy()) for column in places.T]
    is_answered = answered[:, np.newaxis] >> np.arange(study.days, dtype=np.uint64) & np.uint64(1) == 1
    words = np.where(is_answered, np.stack(days, axis=1), NO_ANSWER).astype(np.uint16)[:, :, np.newaxis]
    ldp.tally_reports(people.bitmaps, words, delta, index=spec.d, is_unary=False, sign=1)
    factory.apply(study, plan, delta)
